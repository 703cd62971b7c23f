#!/usr/bin/env bash
# t1002-restart-under-a-job.sh - the scheduler is killed, and restarted, while a job trains: it goes on
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSWORKER" "$MSCTL" python3

# It trains as far as this test allows: one that only is long is over before anybody looks, or long after.
cat >"$T/job.yaml" <<YAML
name: long
workers: 2
threads: 1
network: linear
dataset: {kind: program, path: $ROOT/tests/e2e/allowed.py, arguments: ['$T/allowed'], shape: [2, 1, 1], classes: 10, timeout: 1000}
batch_size: 16
epochs: 4
loss: softmax_cross_entropy
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}
seed: 1
recovery: false
YAML
mkdir "$T/jobs0" "$T/jobs1"
worker() {
    start "w$1" "$MSWORKER" --server "$(address_of a)" --tls off --node-id "w$1" \
        --jobs-dir "$T/jobs$1" --data-port-min 0 --data-programs "$ROOT/tests/e2e"
}
# field of job 1
job() {
    ctl a show 1 --json 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}
job_is() { [ "$(job state)" = "$1" ]; }
steps() {
    ctl a show 1 --json 2>/dev/null | python3 -c '
import json, sys
job = json.load(sys.stdin)
print((job.get("progress") or {}).get("step", 0))'
}
has_steps() { [ "$(steps)" -ge "$1" ]; }

ok "a scheduler runs" start_sched a --lease-ms 30000 # which outlasts a busy machine's pauses
port=$(port_of a)
worker 0
worker 1
allow 50
ok "a job is submitted" [ "$(ctl a submit "$T/job.yaml")" = 1 ]
ok "it trains" wait_for 120 has_steps 10

stop a KILL
ok "the scheduler starts again after kill -9" start_sched a --listen "127.0.0.1:$port" --lease-ms 30000
ok "the job still runs" job_is RUNNING
ok "it was adopted with its generation" [ "$(job generation)" = 1 ]

ok "TERM ends the scheduler, not the job" stop a
ok "and it starts again" start_sched a --listen "127.0.0.1:$port" --lease-ms 30000
ok "the workers are the same processes" kill -0 "${pid_of[w0]}" "${pid_of[w1]}"
allow 100
ok "which tell it of their steps" wait_for 120 has_steps 100
ok "and have some to do still" job_is RUNNING
allow 200
ok "the job succeeds" ctl a wait --timeout 15m 1
ok "after all its steps" bash -c '[ "$1" -eq "$2" ]' - "$(job steps)" "$(wc -l < <(grep "^epoch: " "$T"/jobs0/1/worker_*.log))"
ok "no step was run twice" bash -c '[ -z "$(cat "$1"/jobs0/1/worker_*.log | grep "^epoch: " | cut -d, -f1 | sort | uniq -d)" ]' - "$T"
ok "both ranks have the same weights" [ -n "$(job weights_sha256)" ]
ok "the nodes are idle again" wait_for 60 bash -c '
    [ "$("$MSCTL" --config "$1/empty.conf" --server "unix:$1/a.sock" nodes --json | grep -o "\"activity\":\"idle\"" | wc -l)" = 2 ]' - "$T"
ok "TERM ends a worker" stop w0
finish
