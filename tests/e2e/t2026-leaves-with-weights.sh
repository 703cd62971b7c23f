#!/usr/bin/env bash
# t2026-leaves-with-weights.sh - all steps are made, the weights had no place, and the scheduler is gone for good: who is told to end tries once more
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: leaves
workers: 2
recovery: true
network: cifar_small
dataset: {kind: shapes, samples: 480}
batch_size: 16
epochs: 30
optimizer: {kind: adam, learning_rate: 0.001}
YAML
lines() { grep -c '"step":' "$T/$1/metrics.jsonl" 2>/dev/null; }
trains() { [ "$(lines "$1")" -ge 20 ]; }
blocks() { mkdir "$T/$1/weights.safetensors"; } # as good as a full disk
lacks_place() { grep -qF "all steps are made, and not all is saved: cannot write" "$T/$1/worker_$2.log"; }
log_says() { says "$2" cat "$T/$1/worker_0.log"; }

# ---- msctl run gives up, whose scheduler finds its database damaged
# loses_scheduler NAME: no rank has saved, and there is none any more; msctl hears it when it goes on
loses_scheduler() {
    kill -STOP "${pid_of[$1]}"
    echo junk >"$T/$1/scheduler.new"
    mv "$T/$1/scheduler.new" "$T/$1/scheduler.db"
    kill -KILL "$(children "$1" msschedd)"
}
for name in room full; do
    start $name "$MSCTL" run --run-dir "$T/$name" "$T/job.yaml"
    ok "a job trains" wait_for 120 trains $name
    blocks $name
    for rank in 0 1; do ok "rank $rank cannot save the weights" wait_for 120 lacks_place $name $rank; done
    loses_scheduler $name
    [ $name = full ] || rmdir "$T/$name/weights.safetensors"
    kill -CONT "${pid_of[$name]}"
    ok "without its scheduler the run gives up" status 1 reap $name
done
ok "where there is room by then rank 0 has saved them" [ -s "$T/room/weights.safetensors" ]
ok "and says so" log_says room "the weights of step 450, the last, are saved: $T/room/weights.safetensors"
ok "as does the summary" grep -q "^ *saved  *$T/room/weights.safetensors" "$T/room.log"
ok "they are those of the job" same "$(digest_of_file "$T/room/weights.safetensors")" "$(digest room)"
ok "where there is none rank 0 says what that costs" log_says full "the weights of step 450, the last, are not saved; what was trained is lost, unless another rank saved it: cannot write "
ok "as does the summary" logged full "not saved   the weights: what was trained is lost"

# ---- a dynamic cluster without its scheduler
export MS_SCHED_HOST=127.0.0.1 MS_WORKER_NUM=2 MS_ENABLE_RECOVERY=1
# loses_cluster NAME [VARIABLE=VALUE]...: two workers of one folder that hold the last step, and could not save it
loses_cluster() {
    local name=$1 rank
    shift
    mkdir "$T/$name"
    blocks "$name"
    MS_SCHED_PORT=$(free_port)
    export MS_SCHED_PORT
    start "$name" env MS_ROLE=MS_SCHED "$MSSCHEDD"
    for rank in 0 1; do
        start "${name}_$rank" env MS_ROLE=MS_WORKER MS_NODE_ID=$rank "$@" "$MSWORKER" --run-dir "$T/$name" "$T/job.yaml"
    done
    for rank in 0 1; do ok "rank $rank of a cluster cannot save the weights" wait_for 180 lacks_place "$name" $rank; done
    stop "$name" KILL
    rmdir "$T/$name/weights.safetensors"
}
loses_cluster told
for rank in 1 0; do
    ok "without a scheduler TERM ends worker $rank as ever" status 5 stop told_$rank
done
ok "the weights are there" same "$(digest_of_file "$T/told/weights.safetensors")" "$(digest room)"
ok "rank 1 left them to rank 0" says "another rank is in this folder still: it has to save the weights" cat "$T/told/worker_1.log"
ok "which says that it saved them" log_says told "the weights of step 450, the last, are saved: $T/told/weights.safetensors"
loses_cluster killed
stop killed_0 KILL
ok "nor is rank 0 there" status 5 stop killed_1
ok "then the last one saves them" same "$(digest_of_file "$T/killed/weights.safetensors")" "$(digest room)"
loses_cluster waits MS_CLUSTER_RETRY_NUM=1
for rank in 0 1; do
    ok "worker $rank that waits no longer ends as ever" status 3 reap waits_$rank
done
ok "and the weights are there, too" same "$(digest_of_file "$T/waits/weights.safetensors")" "$(digest room)"
finish
