#!/usr/bin/env bash
# t1241-follow-events.sh - msctl events: a job's life with real workers, and a follower that a kill -9 of
# the scheduler costs no event and gives none twice
# shellcheck disable=SC2016 # the texts for bash -c and python expand there
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

# events_are FILTER -- PYTHON: the expression about the list `j` and its kinds `k` must hold
events_are() {
    local words=()
    while [ "$1" != -- ]; do
        words+=("$1")
        shift
    done
    as alice --json events "${words[@]}" | python3 -c 'import json, sys
j = json.load(sys.stdin)
k = [e["kind"] for e in j]
assert eval(sys.argv[1]), j' "$2"
}
# followed NAME TEXT [N]: the follower's log has the text N times
followed() { [ "$(grep -cF -- "$2" "$T/$1.log")" = "${3:-1}" ]; }
on_tty() {
    local columns=$1
    shift
    NO_COLOR=1 LC_ALL=C.UTF-8 python3 "$ROOT/tests/e2e/on_tty.py" "$columns" "$MSCTL" --config "$T/alice.conf" "$@"
}

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
port=${HEAD##*:}
ok "a new list begins with the scheduler" events_are -- 'k == ["scheduler.started"]'
start_as follower alice --json events -f
start_as of_job alice events -f 2
ok "a follower shows what was" wait_for 60 followed follower scheduler.started
for node in n1 n2; do
    start_node $node
done
ok "two nodes are idle" wait_for 120 idle 2
ok "alice submits" [ "$(as alice submit "$T/short.yaml")" = 1 ]
ok "and her job succeeds" status 0 as alice wait --timeout 900 1
ok "another one is submitted" [ "$(as alice submit "$T/long.yaml")" = 2 ]
ok "and trains" wait_for 120 trains 2 5
ok "its end is asked for" as alice cancel --reason "seen enough" 2

# ---- lists
ok "a job's events are its life, in order" events_are 1 -- \
    'k == ["job.submitted", "job.placed", "job.started", "job.succeeded"] and {e["job"] for e in j} == {1}'
ok "so are those of one that was cancelled" events_are 2 -- \
    'k == ["job.submitted", "job.placed", "job.started", "job.cancel_asked", "job.cancelled"]'
ok "with the reason that was given" events_are 2 -- '"seen enough" in j[-1]["text"]'
ok "those of a node" events_are --node n1 -- 'k == ["node.registered"] and j[0]["node"] == "n1"'
ok "all of them, numbered without a gap" events_are -- \
    '[e["number"] for e in j] == list(range(1, len(j) + 1)) and len(j) == 12'
ok "the newest three" events_are -n 3 -- 'len(j) == 3 and k[-1] == "job.cancelled"'
ok "a job that there never was is refused with 4" status 4 ctl a events 77
ok "in words" says "job 77 does not exist, and no event of it is kept" ctl a events 77
ok "a node that there never was, too" says "nothing is known of node nope" ctl a events --node nope
ok "the table has a head and a line each" bash -c '[ "$(wc -l <<<"$1")" = 6 ] && grep -qE "^TIME +EVENT +JOB +NODE +WHAT" <<<"$1"' \
    - "$(as alice events 2)"
for columns in 40 60 80 132; do
    ok "it fits $columns columns" python3 -c 'import sys
for line in sys.stdin.read().replace("\r", "").split("\n"):
    assert len(line) <= int(sys.argv[1]), line' $columns <<<"$(on_tty $columns events)"
done
ok "on a narrow terminal today's date gives way" bash -c 'grep -qE "^[0-9:]{8}  job.placed" <<<"$1"' - "$(on_tty 70 events)"
ok "not on a wide one" bash -c 'grep -qE "^[0-9-]{10} [0-9:]{8}  job.placed" <<<"$1"' - "$(on_tty 200 events)"
ok "a job id is a number" status 2 as alice events one
ok "a worker's certificate may not ask" status 4 bash -c '
    printf "server = %s\ntls = on\ncertificate = %s\nca = %s\n" "$1" "$2" "$3" >"$4"
    exec "$MSCTL" --config "$4" events' - "$HEAD" "$T/tls/n1/node.p12" "$CA/ca.crt" "$T/worker.conf"

# ---- pipes
ok "events -f | head ends quietly" bash -c '"$MSCTL" --config "$1" events 1 -f 2>"$2" | true
    [ "${PIPESTATUS[0]}" = 141 ] && [ ! -s "$2" ]' - "$T/alice.conf" "$T/pipe.err"
# gone COMMAND...: its reader leaves after the first line, and nothing more happens; the bound is for who hangs
gone() {
    mkfifo "$T/fifo" || return 1
    { timeout 600 "$MSCTL" --config "$T/alice.conf" "$@" >"$T/fifo" 2>"$T/pipe.err"; echo $? >"$T/gone"; } &
    head -n 1 "$T/fifo"
    wait $!
    rm "$T/fifo"
    [ "$(cat "$T/gone")" = 141 ] && [ ! -s "$T/pipe.err" ]
}
ok "so it does where nothing happens any more" gone events -f
ok "and for another form" gone --json events -f -n 1
ok "a full disk is said" bash -c '"$MSCTL" --config "$1" events >/dev/full 2>"$2"
    [ $? = 1 ] && grep -q "No space left" "$2"' - "$T/alice.conf" "$T/full.err"

# ---- what follows
ok "the follower has seen the end of the job" wait_for 60 followed follower job.cancelled
ok "and who follows job 2 its life alone" wait_for 60 followed of_job job.cancelled
ok "of no other job" bash -c '! grep -E "job.succeeded|node\.|scheduler\." "$1"' - "$T/of_job.log"
stop a KILL
ok "the scheduler starts again after kill -9" start_head "127.0.0.1:$port"
ok "the follower has found it" wait_for 120 followed follower '"scheduler.started"' 2
ok "alice submits" [ "$(as alice submit "$T/short.yaml")" = 3 ]
ok "and her job succeeds" status 0 as alice wait --timeout 900 3
ok "the follower sees that, too" wait_for 60 followed follower job.succeeded 2
ok "Ctrl-C ends it with 130" status 130 stop follower INT
queued=$(as alice submit -n 900 "$T/short.yaml")
ok "watching a job that waits ends when nobody looks" gone watch "$queued"
ok "it is cancelled" as alice cancel "$queued"
as alice --json events -n 1000 >"$T/all.json"
ok "it has shown each event once, and as the list has them" python3 -c 'import json, sys
seen = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
listed = json.load(open(sys.argv[2]))
assert len(seen) > 15
assert seen == listed[:len(seen)], (seen, listed)
assert listed[len(seen):] == [] or listed[len(seen)]["number"] > seen[-1]["number"]' "$T/follower.log" "$T/all.json"

# ---- a copy that is put back: no number is given a second time
last=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[-1]["number"])' "$T/all.json")
start_as late alice --json events -f -n 1
ok "a late follower begins with the newest" wait_for 60 followed late "\"number\":$last,"
ok "TERM ends the scheduler" stop a
cp "$T/a.db" "$T/copy.db"
mv "$T/copy.db" "$T/a.db"
ok "it takes a copy up" start_head "127.0.0.1:$port"
ok "and says so" wait_for 60 events_are -n 5 -- '"scheduler.skipped_ahead" in k'
ok "numbers jump over those that the copy may lack" events_are -n 1 -- "j[0]['number'] > 100000000 > $last"
ok "a follower is told nothing twice" wait_for 120 followed late '"scheduler.skipped_ahead"'
ok "and has missed nothing" followed late '"scheduler.started"'
stop of_job INT
for node in n1 n2; do
    ok "TERM ends node $node" stop $node
done

# ---- another database: what was shown is not in it
ok "TERM ends the scheduler" stop a
rm -f "$T"/a.db*
ok "it begins anew" start_head "127.0.0.1:$port"
ok "the follower says that the list is another one" wait_for 120 followed late "it has another database"
ok "alice submits" [ "$(as alice submit "$T/short.yaml")" = 1 ]
ok "and goes on with that one's next event" wait_for 60 followed late '"job.submitted"'
ok "Ctrl-C ends it with 130" status 130 stop late INT
ok "TERM ends the scheduler" stop a
finish
