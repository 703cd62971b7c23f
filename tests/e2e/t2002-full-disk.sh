#!/usr/bin/env bash
# t2002-full-disk.sh - a full disk under the database: announced in time, nothing lost, over when freed
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSCTL" "$MSWORKER"

mkdir "$T/disk"
mount -t tmpfs -o size=28m,mode=700 msched-e2e "$T/disk" 2>/dev/null ||
    skip_all "mounting a small tmpfs takes root; test_store_full covers it with a disk of its own making"
MOUNTS=$T/disk
RESERVE=$((26 << 20)) # MS_STORE_RESERVE

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

start_on_disk() { start_sched a --database "$T/disk/state.db"; }
submit() { ctl a submit "$T/job.yaml"; }
# Submits until one is refused; prints nothing but the refusal.
fill() {
    local n=0
    while [ $((n += 1)) -le 2000 ]; do
        submit >>"$T/ids" 2>"$T/refusal" || return 0
    done
    return 1
}
count() { ctl a jobs --json | grep -o '"id":' | wc -l; }

ok "it starts on a small disk" start_on_disk
ok "it takes a job" bash -c 'cat >>"$1" </dev/stdin; [ -s "$1" ]' - "$T/ids" < <(submit)
ok "the reserve lies beside the database" [ "$(stat -c %s "$T/disk/state.db.reserve")" -ge $RESERVE ]
cancelled=2
for _ in {1..40}; do submit >>"$T/ids"; done
dd if=/dev/zero of="$T/disk/filler" bs=4096 2>/dev/null # until it is full
ok "new work is refused once the disk is full" fill
ok "with exit status 4" status 4 submit
ok "the refusal names the database" grep -qF "$T/disk/state.db" "$T/refusal"
ok "and what is left, of how much" grep -q "KiB free, new work needs [0-9]* KiB):" "$T/refusal"
ok "the status says so before anybody submits" says "disk space: the disk of the database" ctl a status
ok "the log says so once" [ "$(grep -c 'store.full' "$T/a.log")" = 1 ]
ok "everything else goes on: jobs are listed" [ "$(count)" = "$(wc -l <"$T/ids")" ]
ok "a cancel is no new work: it is stored with the reserve" ctl a cancel 1
refill() { dd if=/dev/zero bs=4096 2>/dev/null >>"$T/disk/filler" || true; }
refill # who fills the disk takes what that left free
ok "and the next one too, for a write takes no more of the reserve than it needs" ctl a cancel 2
ok "both have ended" [ "$(ctl a jobs --all | grep -c CANCELLED)" = 2 ]
held() { stat -c %s "$T/disk/state.db.reserve"; }
before=$(held)
while refill && [ "$cancelled" -lt 20 ] && ctl a cancel "$((cancelled += 1))" >/dev/null 2>"$T/refused"; do :; done
ok "and all that come after them" [ "$(ctl a jobs --all | grep -c CANCELLED)" = 20 ]
ok "which fold the log of writes in and begin it anew, and take at most a piece" [ $((before - $(held))) -le 524288 ]
# What is left free while nobody has filled the disk yet is the scheduler's as well: it stands still meanwhile. A cancel that comes
# before it has looked again counts, and so does one for which it folds its log in, which gives room back.
leave_half() {
    kill -STOP "${pid_of[a]}"
    truncate -s 524288 "$T/disk/state.db.reserve"
    refill
    kill -CONT "${pid_of[a]}"
}
refused_in_time() {
    next=21
    while [ "$next" -le 40 ]; do
        leave_half
        ctl a cancel "$next" >/dev/null 2>"$T/refused"
        case $? in
        0) next=$((next + 1)) ;;
        4) return 0 ;;
        *) return 1 ;;
        esac
    done
    return 1
}
ok "where less than 1 MiB is left, a cancel is refused" refused_in_time
ok "in words" grep -q "the end of job $next cannot be stored: .* 512 KiB are left for the last writes" "$T/refused"
ok "it is kept for the ends that nobody can refuse" [ "$(held)" -ge 524288 ]
truncate -s -512K "$T/disk/filler"
ok "with room for 1 MiB a cancel is taken at once" ctl a cancel "$next"
ok "and the scheduler goes on" ctl a status

stop a KILL
ok "it starts again on the full disk" start_on_disk
ok "nothing that was acknowledged is lost" [ "$(ctl a jobs --all --json | grep -o '"id":' | wc -l)" = "$(wc -l <"$T/ids")" ]
ok "it still refuses" status 4 submit

rm "$T/disk/filler"
ok "once there is space, it takes work again by itself" wait_for 60 submit
ok "and says so" logged a "store.space"
ok "the reserve is back" [ "$(stat -c %s "$T/disk/state.db.reserve")" -ge $RESERVE ]
ok "TERM ends it cleanly" stop a

# refused_at_last NAME: submits are refused with status 4 once its disk is full to the brim. Until then the scheduler may have
# folded its log in, which gives room back: what it takes in that moment counts.
refused_at_last() {
    local got
    for _ in {1..50}; do
        dd if=/dev/zero bs=4096 2>/dev/null >>"$T/$1/filler"
        ctl "$1" submit "$T/job.yaml" >/dev/null 2>"$T/refusal"
        got=$?
        [ "$got" = 0 ] || break
        taken=$((taken + 1))
    done
    [ "$got" = 4 ]
}

# ---- large texts: a log of writes that is too large to be folded in, many at once in one transaction
for case in "1 60000" "1 250000" "48 60000" "24 250000"; do
    read -r clients bytes <<<"$case"
    what="$clients at a time with $bytes bytes each"
    name=large$clients.$bytes
    mkdir "$T/$name"
    mount -t tmpfs -o size=80m,mode=700 msched-e2e "$T/$name" || break
    MOUNTS="$MOUNTS $T/$name"
    start_sched "$name" --database "$T/$name/state.db"
    ok "submits, $what, are refused once the disk is full" \
        python3 "$ROOT/tests/e2e/large_submits.py" "$T/$name.sock" "$clients" "$bytes"
    cp "$T/ok.out" "$T/large.out"
    ok "in words" grep -q "job large cannot be stored: the disk of the database is full" "$T/large.out"
    taken=$(sed -n 's/ taken$//p' "$T/large.out")
    ok "of msctl too, with exit status 4" refused_at_last "$name"
    ok "the scheduler goes on" ctl "$name" status
    ok "ends are stored, though somebody takes what is left" ctl "$name" cancel 1 2 3 4 5
    stop "$name" KILL
    rm "$T/$name/filler"
    start_sched "$name" --database "$T/$name/state.db"
    ok "each that was taken is there after a kill" \
        [ "$(ctl "$name" jobs --all --json | grep -o '"id":' | wc -l)" = "$taken" ]
    mount -o remount,size=160m "$T/$name"
    ok "once there is space, it takes work again" wait_for 60 ctl "$name" submit "$T/job.yaml"
    ok "TERM ends it cleanly" stop "$name"
    umount "$T/$name"
done

# ---- msctl run where there is room for some of its files: keys, then all but the logs
for size in 4k 12k; do
    mkdir "$T/tiny$size"
    mount -t tmpfs -o size=$size,mode=700 msched-e2e "$T/tiny$size" || break
    MOUNTS="$MOUNTS $T/tiny$size"
    timeout 600 "$MSCTL" run --run-dir "$T/tiny$size/run" "$T/job.yaml" >"$T/tiny.out" 2>&1
    ok "a run on a disk of $size fails" [ $? = 1 ]
    ok "and says that it is full" grep -qiE "no space (is )?left" "$T/tiny.out"
done

# ---- ... and then for all but the reserve of its scheduler
mkdir "$T/small"
if mount -t tmpfs -o size=20m,mode=700 msched-e2e "$T/small"; then
    MOUNTS="$MOUNTS $T/small"
    timeout 600 "$MSCTL" run --run-dir "$T/small/run" "$T/job.yaml" >"$T/small.out" 2>&1
    ok "a run on a disk without room for the reserve is refused" [ $? = 4 ]
    ok "in words that say how much it needs" grep -q "KiB free, new work needs [0-9]* KiB)" "$T/small.out"
    ok "before it trains" [ "$(grep -c epoch "$T/small.out")" = 0 ]
fi
finish
