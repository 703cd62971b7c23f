#!/usr/bin/env bash
# t2005-standstill-under-a-job.sh - a scheduler that stood still for several leases fails no job
# shellcheck disable=SC2016,SC2034 # the texts for bash -c expand there; standing.sh reads LEASE_MS
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
LEASE_MS=5000
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

ok "certificates are made" make_certificates
ok "the scheduler starts, with a lease of five seconds" start_head
for node in n1 n2; do
    start_node $node
done
ok "two nodes are idle" wait_for 120 idle 2
ok "a job is submitted" [ "$(as alice submit "$T/long.yaml")" = 1 ]
ok "and trains" wait_for 120 trains 1

# Standing still is what is tested; the ranks train on meanwhile.
kill -STOP "${pid_of[a]}"
before=$(wc -l <"$T/a.log") # what was until now is the machine's: one that is slow may stand still itself
steps=$(grep -c '"step":' "$T/jobs/1/metrics.jsonl")
sleep 17
kill -CONT "${pid_of[a]}"
ok "the scheduler says that it stood still" wait_for 60 logged a "scheduler.stood_still"
ok "the job runs and waits for nobody" wait_for 60 json show 1 -- 'j["state"] == "RUNNING" and j["reason"] == ""'
ok "it trained meanwhile, and does still" wait_for 60 trains 1 $((steps + 40))
ok "its ranks were not lost" bash -c '! tail -n "+$2" "$1" | grep -E "node.lost|job.failed"' - "$T/a.log" $((before + 1))
ok "both nodes are there" idle_or_busy 2
ok "it can be cancelled at the step" status 0 as alice cancel 1
ok "and the nodes are idle again" wait_for 60 idle 2
for node in n1 n2; do
    ok "TERM ends $node with 0" status 0 stop $node
done
ok "the scheduler ends with 0" status 0 stop a
finish
