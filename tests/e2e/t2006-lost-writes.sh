#!/usr/bin/env bash
# t2006-lost-writes.sh - damaged and older databases: refused in words, never believed, never made anew
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSCTL" python3

cat >"$T/job.yaml" <<'YAML'
name: queued
workers: 2
network: linear
dataset: {kind: nonlinear}
batch_size: 16
epochs: 1
loss: mse
optimizer: {kind: momentum, learning_rate: 0.005, momentum: 0.9}
YAML
DB=$T/a.db

start_on() { start_sched a --database "$DB" "$@"; }
submit() { ctl a submit "$T/job.yaml"; }
last=0
# A submit whose id is above all that any database of this test gave; it is in $last.
new_id() {
    local id
    id=$(submit) && echo "$id after $last" && [ "$id" -gt "$last" ] && last=$id
}
# ... and far above: a number that the time of the start is in.
far_id() { local before=$last; new_id && [ "$last" -gt $((before + 9)) ] && [ "$last" -gt 200000000000 ]; }
ids() { ctl a jobs --all --json | python3 -c 'import json, sys; print(*[j["id"] for j in json.load(sys.stdin)])'; }
# The scheduler must end by itself with 78; what it says is in $T/refused.log.
refused() {
    : >"$T/refused.log"
    start refused "$MSSCHEDD" --listen none --socket "$T/refused.sock" --database "$DB"
    reap refused
    [ $? -eq 78 ]
}
says() { grep -qF -- "$1" "$T/refused.log"; }
# Turns one byte of a file around.
flip() { python3 -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2])); b = f.read(1); f.seek(-1, 1); f.write(bytes([b[0] ^ 255]))' "$1" "$2"; }

ok "a scheduler runs" start_on
for _ in 1 2 3; do submit >>"$T/ids" || break; done
ok "three jobs are queued" [ "$(ids)" = "1 2 3" ]
ok "TERM ends it" stop a
cp "$DB" "$T/copy.db"

ok "it starts again" start_on
ok "a fourth job" new_id
stop a KILL
mkdir "$T/newest"
mv "$DB" "$DB-wal" "$T/newest" 2>/dev/null
cp "$T/copy.db" "$DB"
ok "an older copy in its place is refused with 78" refused
ok "it says what is missing" says "is older than what was acknowledged"
ok "and what to do" says "--accept-loss"
ok "with the loss accepted it starts" start_on --accept-loss
ok "what the copy held is there" [ "$(ids)" = "1 2 3" ]
ok "no id is given twice: they go on far above" far_id
ok "the log says so" logged a "scheduler.skipped_ahead"
ok "TERM ends it" stop a
ok "the next start needs no flag" start_on
was=$last
ok "and goes on from there" new_id
ok "with the next one" [ "$last" = $((was + 1)) ]
ok "TERM ends it" stop a

offset=$(grep -obaF 'queued' "$DB" | tail -n 1 | cut -d: -f1)
flip "$DB" "$offset"
sum=$(sha256sum <"$DB")
ok "one damaged byte of a row is refused with 78" refused
ok "it names the checksum" says "does not match its checksum"
ok "and the commands that put a copy back" says "cp -a COPY"
ok "the damaged file stays as it was" [ "$(sha256sum <"$DB")" = "$sum" ]

mkdir "$T/c"
DB=$T/c/state.db
ok "a database in a folder of its own" start_on
ok "its first job" [ "$(submit)" = 1 ]
stop a
cp -a "$T/c" "$T/c.backup"
ok "a scheduler runs on it" start_on
ok "two more" [ "$(submit) $(submit)" = "2 3" ]
last=3
stop a
cp -a "$T/c.backup/." "$T/c"
ok "the folder is copied back over itself: it starts" start_on
ok "and says so" logged a "was copied, moved or put back"
ok "no id is given twice" far_id
stop a KILL
mv "$DB" "$T/c/aside.db"
log=$(sha256sum <"$DB-wal")
ok "without its database the log of writes is refused with 78" refused
ok "in words" says "put it back (with its -wal)"
ok "and is left alone" [ "$(sha256sum <"$DB-wal")" = "$log" ]
ok "no database is made in its place" [ ! -e "$DB" ]
ok "back in its place" mv "$T/c/aside.db" "$DB"
ok "it starts" start_on
ok "with all its jobs" [ "$(ids)" = "1 $last" ]
stop a KILL
DB=$T/c/renamed.db
mv "$T/c/state.db" "$DB"
ok "renamed without its log it is refused with 78" refused
ok "in words" says "without its log of writes"
ok "and each time it is tried" refused
mv "$T/c/state.db-wal" "$DB-wal"
ok "with it, it starts" start_on
ok "and gives no id twice" far_id
stop a KILL
mkdir "$T/c/tidy"
mv "$DB-wal" "$DB.lock" "$T/c/tidy" # "stale files"
ok "killed, and without log and lock in its own place, it is refused" refused
ok "in words" says "without its log of writes"
mv "$T/c/tidy/renamed.db-wal" "$DB-wal"
ok "with its log it starts" start_on
stop a

# What operations.md says about a backup, word by word but for the folders; sudo and systemctl are these:
mkdir "$T/o" "$T/shims"
printf '#!/bin/sh\nexec "$@"\n' >"$T/shims/sudo"
printf '#!/bin/sh\necho "$*" >>"%s"\n' "$T/asked" >"$T/shims/systemctl"
chmod 755 "$T/shims/"*
block() { # N, of section 8
    awk -v want="$1" '/^## / { here = index($0, "## 8. ") == 1; n = 0 }
        /^```/ { inside = !inside; n += inside; next }
        here && inside && n == want && !/^#/ && !/journalctl/ { print }' "$ROOT/docs/operations.md" |
        sed "s#/var/lib/msched#$T/o#g; s#/backup#$T/o.backup#g"
}
walk() { (PATH=$T/shims:$PATH && cd "$T/c" && : >"$T/asked" && bash -c "$(block "$1")" 2>"$T/walk.err"); }
asked() { [ "$(paste -sd, "$T/asked")" = "$1" ]; }
fails() { ! "$@"; }
folders() { [ "$(find "$T/o" -maxdepth 1 -name 'old-*' | wc -l)" = "$1" ]; }
DB=$T/o/state.db
last=0
for n in 1 2; do ok "section 8 has its block $n" [ -n "$(block $n)" ]; done
ok "a scheduler runs on it" start_on
ok "a job" new_id
stop a
ok "the backup" walk 1
ok "it stops and starts the scheduler" asked "stop msschedd,start msschedd"
ok "it is there" cmp "$DB" "$T/o.backup/state.db"
sum=$(sha256sum <"$T/o.backup/state.db")
mv "$DB" "$T/o.aside"
ok "a backup that fails says so" fails walk 1
ok "the scheduler is started all the same" asked "stop msschedd,start msschedd"
ok "and the backup before is whole" [ "$(sha256sum <"$T/o.backup/state.db")" = "$sum" ]
mv "$T/o.aside" "$DB"
for n in 1 2 3; do
    ok "a scheduler runs on it" start_on
    ok "one that the backup lacks" new_id
    stop a
    [ "$n" -lt 3 ] || rm "$DB" # it is lost altogether
    ok "put back, time $n" walk 2
    ok "the scheduler is stopped and started" asked "stop msschedd,start msschedd"
    ok "what was there is kept, each time" folders "$n"
    ok "it starts without a word more" start_on
    ok "with the jobs of the backup" [ "$(ids)" = 1 ]
    ok "and says that it skips ahead" logged a "scheduler.skipped_ahead"
    ok "at an id that none of the others gave" far_id
    stop a
done
mv "$T/o.backup" "$T/o.unmounted"
sum=$(sha256sum <"$DB")
ok "without the backup it stops" fails walk 2
ok "before it starts anything" asked "stop msschedd"
ok "what is there stays" [ "$(sha256sum <"$DB")" = "$sum" ]

printf 'root:x:0:0:root:/root:/bin/bash\n' >"$T/passwd"
DB=$T/passwd
ok "a file that is no database is refused with 78" refused
ok "nothing is made beside it" [ "$(ls "$T"/passwd*)" = "$T/passwd" ]
finish
