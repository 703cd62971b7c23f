#!/usr/bin/env bash
# t2031-worker-patience.sh - a scheduler that stood still longer than a lease costs no job
. "$(dirname "$0")/lib.sh"
LEASE_MS=6000
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
start_node n1
start_node n2
start_node n3
ok "three nodes are idle" wait_for 120 idle 3
ok "a job trains on two" [ "$(as alice submit "$T/long.yaml")" = 1 ]
ok "with metrics" wait_for 120 trains 1

# Standing still is what is tested: three leases, and less than the 30 s of a rank's patience.
kill -STOP "${pid_of[a]}"
sleep 19
steps=$(grep -c '"step":' "$T/jobs/1/metrics.jsonl")
kill -CONT "${pid_of[a]}"
ok "it says that it stood still" wait_for 60 logged a "scheduler.stood_still"
ok "the ranks noticed the silence" grep -q "agent.scheduler_silent" "$T/n1.log" "$T/n2.log" "$T/n3.log"
ok "the job runs" wait_for 20 in_state 1 RUNNING
ok "and trains on" wait_for 120 trains 1 $((steps + 1000))
ok "it is still running then" in_state 1 RUNNING
ok "all nodes are there" wait_for 60 idle_or_busy 3
ok "cancel ends it" status 0 as alice cancel 1
ok "all nodes are idle" wait_for 60 idle 3
for i in 1 2 3; do ok "node $i ends when asked" stop n$i; done
finish
