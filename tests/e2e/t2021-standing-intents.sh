#!/usr/bin/env bash
# t2021-standing-intents.sh - what was asked for outlives a lost node and a killed scheduler
# shellcheck disable=SC2016 # the texts for bash -c and python expand there
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
start_node n1
start_node n2
ok "two nodes are idle" wait_for 120 idle 2

# ---- a node dies while its ranks get ready
kill -STOP "${pid_of[n2]}"
ok "a job is submitted" [ "$(as alice submit "$T/short.yaml")" = 1 ]
ok "and placed on both nodes" wait_for 60 in_state 1 PLACING
kill -KILL "${pid_of[n2]}"
reap n2
ok "when one dies it goes back into the queue" wait_for 60 in_state 1 QUEUED
ok "and says why" says "it was placed 1 time before" as alice show 1
ok "naming the node" says "node n2" as alice show 1
ok "the other node lets go of its rank" wait_for 60 idle 1
start_node n3
ok "with another node it succeeds" status 0 as alice wait --timeout 900 1
ok "both are idle again" wait_for 60 idle 2

# ---- the scheduler dies between a cancel and the end of the step
ok "a long job is submitted" [ "$(as alice submit "$T/long.yaml")" = 2 ]
ok "and trains" wait_for 120 trains 2
kill -STOP "${pid_of[n1]}"
start_as cancelling alice cancel 2
ok "a cancel waits for the end of the step" wait_for 60 logged a "job.stopping job=2"
stop a KILL
head=$HEAD
start_head "$head"
kill -CONT "${pid_of[n1]}"
ok "the restarted scheduler cancels it" wait_for 120 in_state 2 CANCELLED
ok "and knows who asked for it" says "cancelled by" as alice show 2
ok "no rank is said to have failed" bash -c '! grep -q "job.failed" "$1"' - "$T/a.log"
ok "the nodes are idle" wait_for 60 idle 2
stop cancelling KILL

# ---- all hosts go down for maintenance, and nobody is left who holds the step
make_job kept 2 1000000 true
echo 'checkpoint: {every_steps: 1000000000}' >>"$T/kept.yaml"
ok "a job with checkpoints is submitted" [ "$(as alice submit "$T/kept.yaml")" = 3 ]
ok "and trains" wait_for 120 trains 3
kill -TERM "${pid_of[n1]}" "${pid_of[n3]}"
for node in n1 n3; do
    ok "TERM ends $node with 0" status 0 reap $node
done
saved=$(sed -n 's|^step \([0-9]*\) is saved: .*/checkpoints/.*|\1|p' "$T/jobs/3/worker_0.log")
ok "rank 0 saved the step that it held" [ "${saved:-0}" -gt 0 ]
start_node n1
start_node n3
ok "they come back, and go on from there" wait_for 120 logged a "goes on from the checkpoint of step $saved;"
ok "with no step twice" bash -c '! grep -q "trained again" "$1"' - "$T/jobs/3/worker_0.log"
ok "the job trains" wait_for 120 in_state 3 RUNNING
kill -STOP "${pid_of[n1]}"
start_as slowly alice cancel 3
ok "a cancel that takes its time says what it waits for" wait_for 60 logged slowly "job 3 has not ended yet: it "
kill -CONT "${pid_of[n1]}"
ok "it is cancelled" wait_for 120 in_state 3 CANCELLED
ok "and the cancel ends with 0" status 0 reap slowly
ok "both nodes are idle" wait_for 60 idle 2
for node in n1 n3; do
    ok "TERM ends $node with 0" status 0 stop $node
done
ok "the scheduler ends with 0" status 0 stop a
finish
