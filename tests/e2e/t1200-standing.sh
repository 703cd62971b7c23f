#!/usr/bin/env bash
# t1200-standing.sh - a standing cluster over mutual TLS, as its operator and its users see it
# shellcheck disable=SC2016 # the texts for bash -c and python expand there
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
ok "no node is there" says "0 registered" as alice status
for node in n1 n2 n3; do
    start_node $node
done
ok "three nodes are idle" wait_for 120 idle 3
ok "nodes lists them" json nodes -- 'sorted(n["node"] for n in j) == ["n1", "n2", "n3"]'
ok "with what they are" json nodes -- 'all(n["state"] == "REGISTERED" and n["host"] for n in j)'
ok "an idle node says so" says "idle" as alice nodes

# ---- one job after the other on the same nodes
ok "submit prints the id alone" [ "$(as alice submit "$T/short.yaml")" = 1 ]
ok "wait returns its success" status 0 as alice wait --timeout 900 1
ok "every node is idle again" wait_for 60 idle 3
ok "show says who has submitted" says "alice" as alice show 1
ok "and how it ended" says "SUCCEEDED" as alice show 1
ok "each rank's last step" json show 1 -- '[r["step"] for r in j["ranks"]] == [200, 200]'
ok "the job's folder has the weights" [ -s "$T/jobs/1/weights.safetensors" ]
ok "the metrics end with the digests" bash -c 'tail -n 1 "$1/1/metrics.jsonl" | grep -q weights_sha256' - "$T/jobs"
ok "each rank has its loss lines" [ "$(grep -c '^epoch: 1 step: ' "$T/jobs/1/worker_1.log")" -eq 200 ]
ok "logs prints them" [ "$(as alice logs 1 | grep -c '^epoch: 1 step: ')" -eq 200 ]
ok "those of rank 1, too" says "epoch: 1 step: 200, loss is" as alice logs --rank 1 1
ok "the same job again, by another user" [ "$(as bob submit "$T/short.yaml")" = 2 ]
ok "succeeds" status 0 as bob wait --timeout 900 2
weights() { tail -n 1 "$T/jobs/$1/metrics.jsonl" | sed 's/.*weights_sha256":"\([0-9a-f]*\).*/\1/'; }
ok "and has the same weights, bit by bit" same "$(weights 1)" "$(weights 2)"
ok "submit refuses an invalid job with 2" status 2 as alice submit --set batch_size=0 "$T/short.yaml"
ok "a job that cannot work fails with 1" status 1 as alice wait --timeout 900 \
    "$(as alice submit --set 'dataset={kind: mnist, path: /nonexistent}' --set network=mnist \
        --set loss=softmax_cross_entropy "$T/short.yaml")"
ok "the reason names the path" says "/nonexistent" as alice show 3
ok "the nodes are idle after a failure" wait_for 60 idle 3
ok "a loss that is no number fails" status 1 as alice wait --timeout 900 \
    "$(as alice submit --set optimizer.learning_rate=1000 --set epochs=50 "$T/short.yaml")"
ok "with MindSpore's words" says "loss is NAN or INF" as alice show 4
ok "the nodes are idle again" wait_for 60 idle 3

# ---- a job that is larger than the cluster; the queue's order
ok "a job of nine ranks is accepted" [ "$(as alice submit -n 9 "$T/short.yaml")" = 5 ]
ok "it stays QUEUED" in_state 5 QUEUED
ok "and says that the cluster is too small for it" \
    wait_for 120 says "needs 9 nodes, the cluster has 3: waits until there are more" as alice jobs
ok "as JSON" json jobs -- 'len(j) == 1 and j[0]["state"] == "QUEUED" and "needs 9 nodes" in j[0]["reason"]'
ok "wait --timeout gives up with 124" status 124 as alice wait --timeout 0.3 5
ok "logs of a queued job are refused with 4" status 4 as alice logs 5
ok "a later, smaller job passes it" [ "$(as alice submit "$T/long.yaml")" = 6 ]
ok "and runs" wait_for 120 in_state 6 RUNNING
ok "a job for all nodes waits" [ "$(as alice submit -n 3 "$T/short.yaml")" = 7 ]
ok "with a reason that is true" says "waits for 3 idle nodes: 3 registered, 1 idle" as alice show 7
ok "a later, small one does not overtake" [ "$(as alice submit -n 1 "$T/short.yaml")" = 8 ]
ok "but waits behind it" says "job 7" as alice show 8
ok "one of a higher priority does" [ "$(as alice submit -n 1 --set priority=5 "$T/short.yaml")" = 9 ]
ok "and ends" status 0 as alice wait --timeout 900 9
ok "while the others still wait" json jobs -- '[x["state"] for x in j if x["id"] != 6] == ["QUEUED"] * 3'
ok "another user may not cancel" status 4 as bob cancel 5
ok "and hears who may" says "only its owner or an admin" as bob cancel 5
for id in 8 7 5; do
    ok "the owner of job $id may" status 0 as alice cancel $id
done
ok "a queued job that was cancelled is exit 5" status 5 as alice wait 5

# ---- follow and cancel a running one
ok "the running one trains" wait_for 120 trains 6
start_as follow alice logs -f 6
start_as watch alice watch 6
start_as watch_json alice --json watch 6
start_as waiting bob wait 6
ok "logs -f follows" wait_for 60 logged follow "epoch: 1 step: 1, loss is"
ok "watch shows steps" wait_for 60 logged watch " step "
ok "nodes says which job they have" json nodes -- 'sum("job 6" in n["activity"] for n in j) == 2'
ok "status counts it" json status -- 'j["jobs_running"] == 1 and j["nodes_idle"] == 1'
ok "show has its progress" json show 6 -- 'j["state"] == "RUNNING" and j["progress"]["step"] > 0'
ok "another user may not cancel it either" status 4 as bob cancel 6
ok "it goes on" in_state 6 RUNNING
ok "an admin may" status 0 as root cancel 6
ok "wait ends with 5" status 5 reap waiting
ok "watch, too" status 5 reap watch
ok "and its JSON form" status 5 reap watch_json
ok "logs -f ends with the job" status 0 reap follow
ok "the nodes are idle after a cancel" wait_for 60 idle 3
ok "and the log says who it was" says "cancelled" as alice show 6

# ---- who may do what
cp "$T/tls/n1/node.p12" "$T/tls/n1.p12"
ok "a worker's certificate may not submit" status 4 as n1 submit "$T/short.yaml"
ok "and hears so" says "worker" as n1 submit "$T/short.yaml"
mkdir -p "$T/tls/spy"
cp "$CA/ca.crt" "$T/tls/spy/"
cp "$T/tls/bob.p12" "$T/tls/spy/node.p12"
start_node spy
ok "a user's certificate is no worker's" status 78 reap spy
ok "which it says itself, before it knocks" logged spy "is no worker's but that of user:bob"
start_node n4
ok "a fourth node comes" wait_for 60 idle 4
start n4b "$MSWORKER" --server "$HEAD" --tls-dir "$T/tls/n4" --node-id n4 --jobs-dir "$T/jobs" \
    --data-port-min 0 --data-port-max 0
ok "a second process with its node id is refused" status 75 reap n4b
ok "in words" logged n4b "node n4 is registered already"
ok "the first one stays" idle 4
ok "TERM of an idle node is a success" status 0 stop n4
ok "its log says what ended it" logged n4 'worker.leaves reason="asked to end by signal 15 (Terminated)"'
ok "and takes it out of the cluster at once" wait_for 60 idle 3

# ---- nobody there
ok "an unreachable scheduler is exit 3" status 3 "$MSCTL" --config "$T/empty.conf" --server 127.0.0.1:1 jobs
ok "with a list of what was tried" says "looked for, in this order" \
    "$MSCTL" --config "$T/empty.conf" --server 127.0.0.1:1 jobs

# ---- twenty small jobs: the nodes do not grow
memory_of() { awk '/^VmRSS/ { print $2 }' "/proc/${pid_of[$1]}/status"; }
three() { as alice submit -n 3 "$T/short.yaml"; }
for _ in 1 2 3 4; do
    id=$(three)
done
ok "four jobs on all nodes succeed" status 0 as alice wait --timeout 900 "$id"
ok "and are over" wait_for 60 idle 3
declare -A before=()
for node in n1 n2 n3; do
    before[$node]=$(memory_of $node)
done
ids=()
for _ in $(seq 20); do
    ids+=("$(three)")
done
ok "twenty more succeed" status 0 as alice wait --timeout 900 "${ids[@]}"
wait_for 60 idle 3
for node in n1 n2 n3; do
    grown=$(($(memory_of $node) - before[$node]))
    # a sanitizer keeps what was freed
    grep -q __asan_init "$MSWORKER" || ok "$node has grown by $grown kB in them, at most 4000" [ $grown -le 4000 ]
done
ok "status has counted all" json status -- 'j["jobs_ended"] == 33'
for node in n1 n2 n3; do
    ok "TERM ends $node with 0" status 0 stop $node
done
ok "the scheduler ends with 0" status 0 stop a
finish
