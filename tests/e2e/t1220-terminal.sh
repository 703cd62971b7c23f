#!/usr/bin/env bash
# t1220-terminal.sh - tables that fit, logs that command nothing, pipes that close, as a terminal sees them
# shellcheck disable=SC2016 # the texts for bash -c and python expand there
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

# on_tty COLUMNS WORD...: msctl as alice on a terminal; its colours are left out of the way
on_tty() {
    local columns=$1
    shift
    write_settings alice
    NO_COLOR=1 LC_ALL=C.UTF-8 python3 "$ROOT/tests/e2e/on_tty.py" "$columns" "$MSCTL" --config "$T/alice.conf" "$@"
}
# fits COLUMNS WORD...: no line is wider, wide characters counted as two
fits() {
    on_tty "$@" >"$T/fits.out" || return 1
    python3 -c 'import sys, unicodedata
for line in open(sys.argv[1], encoding="utf-8", newline="\n").read().replace("\r", "").split("\n"):
    width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
    assert width <= int(sys.argv[2]), (width, line)
    print(line)' "$T/fits.out" "$1"
}

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
for node in n1 a-node-with-quite-a-long-name-indeed; do
    start_node $node
done
ok "two nodes are idle" wait_for 120 idle 2
ok "alice submits" [ "$(as alice submit "$T/short.yaml")" = 1 ]
ok "and her job succeeds" status 0 as alice wait --timeout 900 1
as alice submit -n 9 --set priority=7 --set name=a-name-that-is-much-longer-than-a-column-should-be "$T/short.yaml" >/dev/null
as alice submit -n 8 "$T/short.yaml" >/dev/null

# ---- tables
for columns in 40 60 72 80 100 132; do
    ok "jobs fits $columns columns" fits $columns jobs --all
    ok "nodes fits $columns columns" fits $columns nodes
done
for columns in 80 100; do # a digest is one word
    ok "show of a job that waits fits $columns columns" fits $columns show 2
    ok "and of one that trained" fits $columns show 1
done
ok "its reason is whole, in as many lines as it takes" bash -c '[ "$(sed -n "/^reason/,/^workers/p" <<<"$1" | tr -d "\r" | wc -l)" -gt 2 ]' \
    - "$(on_tty 50 show 2)"
ok "at 80 the id, the name, the state and the reason are there" bash -c 'grep -qE "^ +2  a-name-th... +alice +7  QUEUED +9  (waits for|needs) 9 .{12}" <<<"$1"' - "$(on_tty 80 jobs)"
ok "and of a job that ran the numbers" bash -c 'grep -qE "^ +1  short +alice +SUCCEEDED +200/200 +[0-9.]+ +[0-9.]+ s  all 2" <<<"$1"' - "$(on_tty 80 jobs --all)"
ok "what happened to a node is told at 80, too" bash -c 'grep -qE "node.registered +a-node-wi...  on .*, pid [0-9]" <<<"$1"' - "$(on_tty 80 events)"
ok "a wide terminal shows all" says "SUBMITTED" on_tty 200 jobs
ok "a pipe gets all of a name" says "a-name-that-is-much-longer-than-a-column-should-be" as alice jobs
ok "jobs shows priorities" bash -c 'grep -qE "PRIO" <<<"$1" && grep -qE "alice +7 " <<<"$1"' - "$(as alice jobs)"
ok "and owners by name" bash -c '! grep -q "user:" <<<"$1"' - "$(as alice jobs)"

# ---- a log that would command the terminal
log=$(find "$T/jobs/1" -name worker_0.log)
printf 'evil \033]0;owned\007\033[2J \302\2332J \342\200\256txt\n' >>"$log"
on_tty 80 logs 1 >"$T/logs.out"
ok "on a terminal escape sequences are shown" grep -qF 'evil ?]0;owned??[2J ?2J ?txt' "$T/logs.out"
ok "and none arrives" bash -c '! grep -qP "\x1b" "$1"' - "$T/logs.out"
on_tty 80 logs --raw 1 >"$T/raw.out"
ok "nor in JSON, which is text" bash -c 'python3 -c "import json, sys
text = \"\".join(json.loads(line)[\"data\"] for line in sys.stdin)
assert \"evil ?]0;owned??[2J ?2J ?txt\" in text, text[-200:]" <<<"$1"' - "$(as alice --json logs 1)"
ok "--raw passes them on" grep -qP '\x1b\]0;owned' "$T/raw.out"
ok "a pipe gets every byte" cmp <(as alice logs 1) "$log"

# ---- readers that go
yes 'a line of a log that is long enough to fill every pipe' | head -c 2000000 >>"$log"
write_settings alice
ok "logs | head ends quietly" bash -c '"$MSCTL" --config "$1" logs 1 2>"$2" | head -n 1 >/dev/null
    [ "${PIPESTATUS[0]}" = 141 ] && [ ! -s "$2" ]' - "$T/alice.conf" "$T/pipe.err"
ok "so does logs -f" bash -c '"$MSCTL" --config "$1" logs -f 1 2>"$2" | head -n 1 >/dev/null
    [ "${PIPESTATUS[0]}" = 141 ] && [ ! -s "$2" ]' - "$T/alice.conf" "$T/pipe.err"
ok "a full disk is said" bash -c '"$MSCTL" --config "$1" jobs >/dev/full 2>"$2"
    [ $? = 1 ] && grep -q "No space left" "$2"' - "$T/alice.conf" "$T/full.err"

# ---- paths of the submitter
HERE_IS=/nonexistent ok "submit expands what is set here and says so" says \
    'dataset.path: ${HERE_IS}/x is /nonexistent/x, from your environment' \
    as alice submit --set 'dataset={kind: mnist, path: "${HERE_IS}/x"}' --set network=mnist \
    --set loss=softmax_cross_entropy -n 9 "$T/short.yaml"
ok "and warns of what is not on the scheduler's host" says "/nonexistent/x" \
    as alice submit --set 'dataset={kind: mnist, path: /nonexistent/x}' --set network=mnist \
    --set loss=softmax_cross_entropy -n 9 "$T/short.yaml"
ok "what is not set is left to the nodes" json show 4 -- 'j["job"]["dataset"]["path"] == "/nonexistent/x"'

# ---- JSON of what needs no scheduler
ok "help as JSON" bash -c '"$MSCTL" --json help | python3 -c "import json, sys
assert {\"run\", \"fetch\"} <= {c[\"name\"] for c in json.load(sys.stdin)[\"commands\"]}"'
ok "help of a command as JSON" bash -c '"$MSCTL" fetch --help --json | python3 -c "import json, sys
assert \"force\" in {o[\"name\"] for o in json.load(sys.stdin)[\"options\"]}"'
ok "the version as JSON" bash -c '"$MSCTL" --version --json | python3 -c "import json, sys; json.load(sys.stdin)[\"version\"]"'

# ---- words
ok "the summary of watch has averages" says "(average of the job)" as alice watch 1
ok "drain does not advise to stop a busy node" says "shows the node idle" "$MSCTL" drain n1
mv "$T/jobs/1/metrics.jsonl" "$T/jobs/1/kept"
mkfifo "$T/jobs/1/metrics.jsonl"
ok "a FIFO does not hang show" status 0 timeout 600 "$MSCTL" --config "$T/alice.conf" show 1

# ---- a scheduler that goes while a terminal watches
job=$(as alice submit --set priority=9 "$T/long.yaml")
start watcher on_tty 80 watch "$job"
ok "watch draws the job's line" wait_for 120 grep -q "workers 2:" "$T/watcher.log"
stop a KILL
ok "it says that the scheduler is gone" wait_for 60 grep -q "msctl: the scheduler is gone" "$T/watcher.log"
ok "on a line of its own" python3 -c 'import sys
before = open(sys.argv[1], "rb").read().split(b"msctl: the scheduler is gone")[0]
assert before.endswith(b"\x1b[J") or before.endswith(b"\n"), before[-200:]' "$T/watcher.log"
ok "the scheduler comes back" start_head "$HEAD"
ok "and watch sees the job end" as alice cancel --now "$job"
ok "with its status" status 5 reap watcher
finish
