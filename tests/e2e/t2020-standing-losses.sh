#!/usr/bin/env bash
# t2020-standing-losses.sh - a standing cluster loses nodes and its scheduler, and goes on
. "$(dirname "$0")/lib.sh"
LEASE_MS=10000 # of which three are the patience of a rank, 30 s
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

# next_job NUMBER: another long job, which trains on two of the nodes
next_job() {
    [ "$(as alice submit "$T/long.yaml")" = "$1" ] && wait_for 120 trains "$1"
}
# node_of JOB RANK
node_of() {
    as alice --json show "$1" | python3 -c 'import json, sys
print([r["node"] for r in json.load(sys.stdin)["ranks"] if r["rank"] == int(sys.argv[1])][0])' "$2"
}
registered_again() { [ "$(grep -c "node.registered node=\"$1\"" "$T/a.log")" -ge "$2" ]; }

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
start_node n1
start_node n2
ok "two nodes are idle" wait_for 120 idle 2

# ---- kill -9 of a worker
ok "a job trains" next_job 1
victim=$(node_of 1 1)
survivor=$(node_of 1 0)
start_as waiting alice wait 1
kill -KILL "${pid_of[$victim]}"
reap "$victim"
ok "kill -9 of a worker fails its job" status 1 reap waiting
ok "the reason names the rank" says "rank 1" as alice show 1
ok "and the node" says "node $victim" as alice show 1
ok "and its log" says "jobs/1/worker_1.log" as alice show 1
ok "the survivor's log says it, too" wait_for 60 grep -q "rank 1" "$T/jobs/1/worker_0.log"
ok "the survivor is idle" wait_for 60 idle 1
ok "its process lives" kill -0 "${pid_of[$survivor]}"
ok "a job of one rank runs on it" status 0 as alice wait --timeout 900 "$(as alice submit -n 1 "$T/short.yaml")"
start_node "$victim"
ok "the restarted worker registers under its old name" wait_for 120 idle 2
ok "and is used" status 0 as alice wait --timeout 900 "$(as alice submit "$T/short.yaml")"

# ---- TERM of a worker
ok "another job trains" next_job 4
leaver=$(node_of 4 0)
ok "a worker that is asked to end in its job does so with 0" status 0 stop "$leaver" TERM
ok "and its log says what ended it" logged "$leaver" 'worker.leaves reason="asked to end by signal 15 (Terminated)"'
ok "its job fails" status 1 as alice wait --timeout 900 4
ok "and the reason says that it was asked to" says "was asked to end" as alice show 4
ok "the other one is idle" wait_for 60 idle 1
start_node "$leaver"
ok "the leaver comes back" wait_for 120 idle 2

# ---- kill -9 of the scheduler, restarted within the lease
ok "a third job trains" next_job 5
head=$HEAD
start_as patient alice watch 5
ok "somebody watches it" wait_for 60 logged patient " step "
stop a KILL
steps=$(grep -c '"step":' "$T/jobs/5/metrics.jsonl")
start_head "$head"
ok "the restarted scheduler has the same address" [ "$HEAD" = "$head" ]
ok "the nodes come back to it" wait_for 60 idle_or_busy 2
ok "the job goes on" wait_for 60 in_state 5 RUNNING
ok "and trains" wait_for 120 trains 5 $((steps + 1000))
ok "the adoption is logged" logged a "adopted"
ok "its progress is seen" says "RUNNING" as alice show 5
ok "its logs are, too" says "epoch: 1 step: 1, loss is" as alice logs 5
ok "cancel reaches it" status 0 as alice cancel 5
ok "who watched hears of it" status 5 reap patient
ok "the nodes are idle" wait_for 60 idle 2

# ---- the same with a job that ends by itself
ok "a job of some seconds trains" [ "$(as alice submit --set epochs=300 "$T/short.yaml")" = 6 ]
wait_for 120 trains 6
stop a KILL
start_head "$head"
ok "it succeeds after the restart" status 0 as alice wait --timeout 900 6
ok "with every step" [ "$(grep -c '"step":' "$T/jobs/6/metrics.jsonl")" -eq 60000 ]
ok "the nodes are idle" wait_for 60 idle 2

# ---- a worker is lost while nobody looks
ok "a job trains" next_job 7
victim=$(node_of 7 1)
stop a KILL
kill -KILL "${pid_of[$victim]}"
reap "$victim"
start_head "$head"
ok "the restarted scheduler fails its job" status 1 as alice wait --timeout 900 7
ok "naming the rank and the node" says "rank 1 (node $victim" as alice show 7
ok "the survivor is idle" wait_for 60 idle 1
start_node "$victim"
ok "the restarted one as well" wait_for 60 idle 2

# ---- the scheduler stays away longer than the workers wait
ok "a fifth job trains" next_job 8
stop a KILL
ok "the first worker ends when its patience has passed" status 75 reap n1
ok "the second one, too" status 75 reap n2
ok "and says why" logged n1 "longer than a worker with a rank waits (30000 ms; the lease is $LEASE_MS ms)"
ok "in the job's log as well" grep -q "longer than a worker with a rank waits" "$T/jobs/8/worker_0.log"
start_head "$head"
ok "the job is FAILED when the scheduler comes back" status 1 as alice wait --timeout 900 8
start_node n1
start_node n2
ok "restarted workers are idle" wait_for 120 idle 2
ok "and train" status 0 as alice wait --timeout 900 "$(as alice submit "$T/short.yaml")"

# ---- an idle node outlives its scheduler by any time
stop a KILL
ok "idle nodes wait" wait_for 60 logged n1 "agent.waiting"
ok "and live" kill -0 "${pid_of[n1]}" "${pid_of[n2]}"
start_head "$head"
ok "they come back" wait_for 120 idle 2
stop a
ok "TERM of a node without a scheduler is a success" status 0 stop n1
finish
