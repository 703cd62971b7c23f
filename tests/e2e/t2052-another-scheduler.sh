#!/usr/bin/env bash
# t2052-another-scheduler.sh - a dynamic cluster that recovers, and a scheduler in the place of its own that knows
# nothing of it: nobody is ended, and the right one finds all as it was. Who needs one that never comes back ends
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

# It trains as far as this test allows: one that only is long makes its last step long after all that befalls it, or before.
cat >"$T/job.yaml" <<YAML
network: linear
dataset: {kind: program, path: $ROOT/tests/e2e/allowed.py, arguments: ['$T/allowed'], shape: [2, 1, 1], classes: 10, timeout: 1000}
batch_size: 16
epochs: 4
loss: softmax_cross_entropy
optimizer: {kind: sgd, learning_rate: 0.0001}
YAML
export MS_SCHED_HOST=127.0.0.1 MS_WORKER_NUM=2
MS_SCHED_PORT=$(free_port)
export MS_SCHED_PORT
recovering=(MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH="$T/recovery")
sched() { # NAME [VARIABLE=VALUE]...
    local name=$1
    shift
    start "$name" env MS_ROLE=MS_SCHED "$@" "$MSSCHEDD"
}
worker() { # ID [VARIABLE=VALUE]...
    local id=$1
    shift
    start "w$id" env MS_ROLE=MS_WORKER MS_NODE_ID="$id" MS_ENABLE_RECOVERY=1 "$@" "$MSWORKER" --run-dir "$T/run" "$T/job.yaml"
}
steps() { grep -c '"step":' "$T/run/metrics.jsonl" 2>/dev/null; }
trains() { [ "$(steps)" -ge "$1" ]; }
met() { [ "$(grep -c "agent.other_scheduler" "$T/w$1.log")" -ge 1 ]; }

mkdir "$T/run"
allow 50
sched right "${recovering[@]}"
for i in 0 1; do worker $i; done
ok "two workers train" wait_for 120 trains 20
stop right KILL
sched none
for i in 0 1; do ok "worker $i meets a scheduler without recovery" wait_for 120 met $i; done
ok "and is told what is to be done" logged w0 "started as it was, with its MS_ENABLE_RECOVERY and MS_RECOVERY_PATH"
ok "the scheduler says whom it lets be" logged none "topology.let_be"
ok "by worker and job" grep -qE 'worker [01] \(host .*, pid [0-9]+\) has rank [01] of job 1, which this scheduler does not know' "$T/none.log"
stop none
sched other MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH="$T/other"
ok "another database is no reason to end either" wait_for 120 logged other "topology.let_be"
ok "and is said once a minute, not at each knock" [ "$(grep -c "conn.foreign_stamp" "$T/other.log")" = 0 ]
ok "they have some steps to make" [ "$(steps)" -le 50 ]
allow 80
ok "they train on" wait_for 120 trains 80
stop other
allow 200
for i in 0 1; do ok "worker $i makes its last step without a scheduler" wait_for 600 logged w$i "rank.done"; done
sched late
ok "who is done is let be as well" wait_for 120 logged late "topology.let_be"
stop late
for i in 0 1; do ok "worker $i is there still" kill -0 "${pid_of[w$i]}"; done
sched again "${recovering[@]}"
ok "the right scheduler goes on to the end" reap again
for i in 0 1; do ok "worker $i ends with 0" reap w$i; done
ok "with the weights of an undisturbed run" run whole -n 2 "$T/job.yaml"
ok "to the bit" same "$(digest run)" "$(digest whole)"

# ---- a scheduler that nobody brings back, and one that slept through that
cat >"$T/job.yaml" <<'YAML'
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
epochs: 1000000
loss: mse
optimizer: {kind: sgd, learning_rate: 0.0001}
YAML
rm -rf "$T/run" && mkdir "$T/run"
rm -f "$T"/w?.log
sched sleepy "${recovering[@]}" MS_NODE_TIMEOUT=5
for i in 0 1; do worker $i MS_NODE_TIMEOUT=5 MS_RECEIVE_MSG_TIMEOUT=5 MS_CLUSTER_RETRY_NUM=2; done
ok "two workers train" wait_for 120 trains 20
kill -STOP "${pid_of[w1]}"
ok "one that sleeps is missed" wait_for 120 logged sleepy "job.rank_lost"
stop sleepy KILL
ok "a rank that holds waits for its scheduler as long as MS_CLUSTER_RETRY_NUM says, and ends with 3" status 3 reap w0
ok "in words" logged w0 "rank 0 of job 2 does nothing more without its scheduler"
kill -CONT "${pid_of[w1]}"
ok "one that slept so long, too" status 3 reap w1
ok "in the same words" logged w1 "rank 1 of job 2 does nothing more without its scheduler"
finish
