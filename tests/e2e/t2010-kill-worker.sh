#!/usr/bin/env bash
# t2010-kill-worker.sh - with recovery off, kill -9 of a worker ends the whole job within two seconds, in words; a signal to
# msctl run ends it too; nothing is left behind
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/long.yaml" <<'YAML'
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
epochs: 100000
loss: mse
optimizer: {kind: sgd, learning_rate: 0.0001}
recovery: false
YAML

trains() { [ "$(grep -c '"step":' "$T/$1/metrics.jsonl" 2>/dev/null)" -ge "${2:-20}" ]; }
# pid of the worker with node id $2 of the run $1
worker_pid() {
    "$MSCTL" --server "unix:$T/$1/scheduler.sock" --json nodes | python3 -c '
import json, sys
print(*[node["pid"] for node in json.load(sys.stdin) if node["node"] == sys.argv[1]])' "$2"
}
nobody() { [ -z "$(alive)" ]; }
nothing_left() {
    nobody && ! ls "$T/$1"/*.sock 2>/dev/null
}

for _ in 1 2 3; do # a machine that stands still just then does not do so three times
    rm -rf "$T/killed" "$T/killed.log"
    start killed "$MSCTL" run -n 4 --run-dir "$T/killed" "$T/long.yaml"
    ok "a job of four workers trains" wait_for 120 trains killed
    victim=$(worker_pid killed 2)
    ok "its third worker is known" [ -n "$victim" ]
    began=$(date +%s%N)
    kill -KILL "$victim"
    wait_for 60 has_ended "${pid_of[killed]}"
    took=$((($(date +%s%N) - began) / 1000000))
    reap killed
    result=$?
    echo "# ended $took ms after the kill"
    [ "$took" -ge 10000 ] || break
done
ok "kill -9 of a worker fails the run" [ "$result" -eq 1 ]
ok "within two seconds (ten on a busy machine)" [ "$took" -lt 10000 ]
ok "the message names the rank" logged killed "rank 2"
ok "and the log" logged killed "worker_2.log"
ok "and the node" logged killed "node 2"
ok "and the worker, once" bash -c 'grep -q "was lost: worker at " "$1" && ! grep -q "worker worker" "$1"' - "$T/killed.log"
ok "a survivor says so too" grep -q "rank 2" "$T/killed/worker_0.log"
ok "nothing is left" wait_for 20 nothing_left killed

start cut "$MSCTL" run -n 2 --run-dir "$T/cut" "$T/long.yaml"
ok "another job trains" wait_for 120 trains cut
kill -INT "${pid_of[cut]}"
reap cut
ok "INT ends it after a step with 130" [ $? -eq 130 ]
ok "nothing is left" wait_for 20 nothing_left cut
ok "no torn metrics" python3 -c "import json, sys; [json.loads(l) for l in open(sys.argv[1])]" "$T/cut/metrics.jsonl"

start dead "$MSCTL" run -n 2 --run-dir "$T/dead" "$T/long.yaml"
ok "a third job trains" wait_for 120 trains dead
stop dead KILL >/dev/null
ok "kill -9 of msctl takes its children along" wait_for 20 nobody

start lost "$MSCTL" run -n 2 --run-dir "$T/lost" "$T/long.yaml"
ok "a fourth job trains" wait_for 120 trains lost
for pid in $(alive); do
    [ "$(cat "/proc/$pid/comm")" = msschedd ] && kill -KILL "$pid"
done
reap lost
ok "kill -9 of the scheduler fails the run" [ $? -ne 0 ]
ok "and is said" logged lost "scheduler"
ok "nothing is left" wait_for 20 nothing_left lost

ok "a NaN ends the job with epoch and step" says "loss is NAN or INF" "$MSCTL" run -n 2 \
    --run-dir "$T/nan" --set optimizer.learning_rate=1000 "$T/long.yaml"
finish
