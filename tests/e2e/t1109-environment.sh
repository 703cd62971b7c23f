#!/usr/bin/env bash
# t1109-environment.sh - the MS_* environment of a dynamic cluster: each variable does what it says, what is set in
# vain is named, and a scheduler with MS_RECOVERY_PATH comes back
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

make_job() { # NAME EPOCHS
    cat >"$T/$1.yaml" <<YAML
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
epochs: $2
loss: mse
optimizer: {kind: sgd, learning_rate: 0.0001}
YAML
}
make_job short 1
make_job long 1000000
# trains as far as this test allows
cat >"$T/middle.yaml" <<YAML
network: linear
dataset: {kind: program, path: $ROOT/tests/e2e/allowed.py, arguments: ['$T/allowed'], shape: [2, 1, 1], classes: 10, timeout: 1000}
batch_size: 16
epochs: 4
loss: softmax_cross_entropy
optimizer: {kind: sgd, learning_rate: 0.0001}
YAML
export MS_SCHED_HOST=127.0.0.1 MS_WORKER_NUM=2
begin() { # NAME [VARIABLE=VALUE]...: its scheduler, by the program of the workers
    local name=$1
    shift
    MS_SCHED_PORT=$(free_port)
    export MS_SCHED_PORT
    mkdir -p "$T/run_$name"
    start "$name" env MS_ROLE=MS_SCHED "$@" "$MSWORKER" "$T/short.yaml"
}
worker() { # CLUSTER ID JOB [VARIABLE=VALUE]...
    local name=$1 id=$2 job=$3
    shift 3
    start "${name}_$id" env MS_ROLE=MS_WORKER MS_NODE_ID="$id" "$@" "$MSWORKER" --run-dir "$T/run_$name" "$T/$job.yaml"
}
trains() { [ "$(grep -c '"step":' "$T/run_$1/metrics.jsonl" 2>/dev/null)" -ge "${2:-5}" ]; }
ends_with() { # STATUS NAME
    reap "$2"
    local got=$?
    [ "$got" -eq "$1" ] || {
        echo "$2 ended with $got, expected $1"
        return 1
    }
}

# ---- what is in force, and what is set in vain
begin a RANK_TABLE_FILE=/rank_table.json GLOG_v=1 MS_NODE_ID=7 MS_HCCL_CM_INIT=true MS_RECOVERY_PATH="$T/vain"
worker a 0 short RANK_ID=0 DEVICE_ID=0 RANK_SIZE=2 GRAPH_OP_RUN=1 MS_RECEIVE_MSG_TIMEOUT=77
worker a 1 short
ok "msworker with MS_ROLE=MS_SCHED is the scheduler, which ends with 0" ends_with 0 a
for i in 0 1; do ok "worker $i too" ends_with 0 "a_$i"; done
vain() { grep -F 'env.unused text="set, and not used by msched: ' "$T/$1.log" | sed 's/.*not used by msched: \(.*\)"$/\1/' | sed 's/ ([^)]*)//g; s/, /\n/g' | sort | paste -sd' '; }
ok "what the scheduler has in vain is named, once" same "$(vain a)" "GLOG_v MS_HCCL_CM_INIT MS_RECOVERY_PATH RANK_TABLE_FILE"
ok "with what replaces it" grep -qF "GLOG_v (--log-level instead)" "$T/a.log"
ok "what a worker has, too" same "$(vain a_0)" "DEVICE_ID GRAPH_OP_RUN RANK_ID RANK_SIZE"
ok "where there is nothing, nothing is said" same "none$(vain a_1)" none
ok "nothing is made of a path without recovery" [ ! -e "$T/vain" ]
ok "the start line has what is in force" grep -q "scheduler.start .* MS_WORKER_NUM=2 .*MS_ENABLE_RECOVERY=0" "$T/a.log"
ok "and nothing else" bash -c '! grep "scheduler.start" "$1" | grep -E "MS_NODE_ID|MS_RECEIVE|MS_HCCL|MS_RECOVERY_PATH"' - "$T/a.log"
ok "a worker's, too" grep -q "worker.settings .* MS_RECEIVE_MSG_TIMEOUT=77" "$T/a_0.log"
ok "a scheduler that is nowhere is looked for in two places" bash -c '
    cp "$1" "$2/msworker"
    [ ! -x /usr/local/bin/msschedd ] || exit 0 # installed here, and found
    MS_ROLE=MS_SCHED "$2/msworker" job.yaml 2>&1 | grep -q "neither $2/msschedd nor /.*/msschedd: install"' - "$MSWORKER" "$T"

# ---- times. Two clusters whose node 1 stands still: one judges silence, the other one does not
allow 50
begin never MS_NODE_TIMEOUT=5 MS_DISABLE_HEARTBEAT=1
for i in 0 1; do worker never $i middle MS_NODE_TIMEOUT=5 MS_DISABLE_HEARTBEAT=1; done
ok "a cluster without heartbeats trains" wait_for 120 trains never
kill -STOP "${pid_of[never_1]}"
begin node MS_NODE_TIMEOUT=5
for i in 0 1; do worker node $i long MS_NODE_TIMEOUT=5; done
ok "one with a lease of 5 s trains" wait_for 120 trains node
kill -STOP "${pid_of[node_1]}"
ok "MS_NODE_TIMEOUT: silence loses a node, and the job" ends_with 1 node
ok "by name" logged node "rank 1"
ok "the survivor ends with 1" ends_with 1 node_0
stop node_1 KILL
ok "MS_DISABLE_HEARTBEAT=1: a longer silence loses none" kill -0 "${pid_of[never]}" "${pid_of[never_0]}"
kill -CONT "${pid_of[never_1]}"
allow 200
ok "and the job ends well" ends_with 0 never
for i in 0 1; do ok "with worker $i" ends_with 0 "never_$i"; done

begin msg
for i in 0 1; do worker msg $i long MS_RECEIVE_MSG_TIMEOUT=5; done
ok "two workers that wait 5 s for each other train" wait_for 120 trains msg
kill -STOP "${pid_of[msg_1]}"
ok "MS_RECEIVE_MSG_TIMEOUT: one that makes no progress is given up, long before its lease" ends_with 1 msg_0
ok "by name" logged msg_0 "rank 1"
stop msg_1 KILL
ok "and the job fails" ends_with 1 msg
MS_SCHED_PORT=$(free_port)
ok "MS_CLUSTER_RETRY_NUM=1: one try of 3 s without a scheduler, and the end" status 3 \
    timeout 600 env -C "$T" MS_ROLE=MS_WORKER MS_CLUSTER_RETRY_NUM=1 "$MSWORKER" "$T/short.yaml"

# ---- recovery
begin odd MS_ENABLE_RECOVERY=1
ok "recovery without a folder: said once, and no warning" wait_for 60 logged odd "scheduler.no_database"
worker odd 0 short
ok "a worker without recovery is refused by a scheduler with it" ends_with 4 odd_0
ok "with both values" logged odd_0 "MS_ENABLE_RECOVERY is 0 on worker 0 (host"
ok "of both processes" logged odd_0 "and 1 on the scheduler"
stop odd
begin odd2
worker odd2 0 short MS_ENABLE_RECOVERY=1
ok "the other way round, too" ends_with 4 odd2_0
ok "with both values" logged odd2_0 "MS_ENABLE_RECOVERY is 1 on worker 0 (host"
stop odd2

recovering=(MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH="$T/new/recovery")
allow 50
begin back "${recovering[@]}"
for i in 0 1; do worker back $i middle MS_ENABLE_RECOVERY=1; done
ok "two workers train" wait_for 120 trains back
ok "the folder is the user's alone" same "$(stat -c %a "$T/new/recovery" "$T/new" "$T/new/recovery/state.db" | paste -sd' ')" "700 700 600"
port=$MS_SCHED_PORT
second() { env MS_ROLE=MS_SCHED MS_SCHED_PORT="$(free_port)" "${recovering[@]}" "$@" "$MSSCHEDD"; }
ok "a folder in use is refused by name" says "MS_RECOVERY_PATH: database $T/new/recovery/state.db is in use by another msschedd" second
stop back KILL
ok "another MS_WORKER_NUM is refused" status 78 second MS_WORKER_NUM=3
ok "with both numbers" says "MS_WORKER_NUM is 3, and job 1 in $T/new/recovery/state.db has 2 workers" second MS_WORKER_NUM=3
ok "--check-config finds the folder good" env MS_ROLE=MS_SCHED MS_SCHED_PORT="$port" "${recovering[@]}" "$MSSCHEDD" --check-config
ok "the workers train on meanwhile" kill -0 "${pid_of[back_0]}" "${pid_of[back_1]}"
start again env MS_ROLE=MS_SCHED MS_SCHED_PORT="$port" "${recovering[@]}" "$MSSCHEDD"
ok "a scheduler that was killed goes on with them" wait_for 60 bash -c '[ "$(grep -c node.registered "$1")" -ge 2 ]' - "$T/again.log"
allow 200
ok "to the end" ends_with 0 again
for i in 0 1; do ok "worker $i ends with 0" ends_with 0 "back_$i"; done
ok "with the weights of an undisturbed run" run whole -n 2 "$T/middle.yaml"
ok "to the bit" same "$(digest run_back)" "$(digest whole)"
ok "each step is there once" same "$(grep -o '"step":[0-9]*' "$T/run_back/metrics.jsonl" | sort | uniq -d)none" none

begin new "${recovering[@]}"
for i in 0 1; do worker new $i short MS_ENABLE_RECOVERY=1; done
ok "after its end the same folder begins a new job" ends_with 0 new
ok "with the next id" logged new "job=2"
for i in 0 1; do ok "worker $i ends with 0" ends_with 0 "new_$i"; done
mkdir -m 1777 "$T/open"
: >"$T/file"
refused() { # PATH WORDS
    status 78 second MS_RECOVERY_PATH="$1" && says "MS_RECOVERY_PATH=$1" second MS_RECOVERY_PATH="$1" && says "$2" second MS_RECOVERY_PATH="$1"
}
ok "a folder of everybody is refused" refused "$T/open" "everybody may write"
ok "a file, too" refused "$T/file" "Not a directory"
mkdir -p "$T/junk/state.db"
ok "and a folder in the place of the database, by the name of the variable" \
    says "state.db is no regular file: name another one with MS_RECOVERY_PATH" second MS_RECOVERY_PATH="$T/junk"
ok "and by --check-config" status 78 env MS_ROLE=MS_SCHED MS_SCHED_PORT="$port" MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH="$T/file" \
    "$MSSCHEDD" --check-config
finish
