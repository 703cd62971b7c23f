#!/usr/bin/env bash
# t1001-queue-survives-kill.sh - nothing acknowledged is forgotten: 100 queued jobs, kill -9, all there
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
seed: 1
YAML

# ids and names of what `msctl jobs --json` lists, one line a job, in its order
list() {
    ctl a jobs --json "$@" | python3 -c '
import json, sys
for job in json.load(sys.stdin):
    print(job["id"], job["name"], job["state"], job["workers"])'
}

ok "a scheduler runs" start_sched a
for i in $(seq 1 100); do
    ctl a submit --set "name=job$i" -n $((i % 7 + 1)) "$T/job.yaml" >>"$T/ids" || break
done
ok "100 submits were acknowledged with the ids 1 to 100" diff "$T/ids" <(seq 1 100)
list >"$T/before"
ok "100 jobs are listed" [ "$(wc -l <"$T/before")" -eq 100 ]

stop a KILL
ok "it starts again after kill -9" start_sched a
list >"$T/after"
ok "all 100 are there, in order, as they were" diff "$T/before" "$T/after"
ok "the next id was never used" [ "$(ctl a submit "$T/job.yaml")" = 101 ]

# kill -9 at any moment while submits come in. One that finds no scheduler fails, and is not there; one
# whose answer was lost is sent again with its key (msctl does that), and is there once.
before=$(list | wc -l)
(
    while [ ! -e "$T/enough" ]; do
        ctl a submit "$T/job.yaml" >>"$T/burst" 2>>"$T/burst.err"
    done
) &
submitter=$!
reached() { [ "$(wc -l <"$T/burst")" -ge "$1" ]; }
for round in 1 2 3 4 5 6 7 8; do
    ok "round $round: submits are acknowledged" wait_for 120 reached $((round * 6))
    stop a KILL
    start_sched a
done
touch "$T/enough"
wait $submitter
ok "$(wc -l <"$T/burst") submits under fire: no id was given twice" [ -z "$(sort "$T/burst" | uniq -d)" ]
ok "each is there once, nothing else is" \
    [ "$(list | tail -n +$((before + 1)) | cut -d' ' -f1 | sort)" = "$(sort "$T/burst")" ]

ok "a cancelled job stays cancelled" bash -c '
    "$MSCTL" --config "$1/empty.conf" --server "unix:$1/a.sock" cancel 50' - "$T"
stop a KILL
start_sched a
ok "across a kill -9" bash -c '[ "$1" = "50 job50 CANCELLED 2" ]' - "$(list --all | grep '^50 ')"
ok "TERM ends it cleanly" stop a
finish
