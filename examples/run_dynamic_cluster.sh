#!/usr/bin/env bash
# run_dynamic_cluster.sh - MindSpore's single-machine start script, with our programs in Python's place
#
#     DATA_PATH=/data/mnist examples/run_dynamic_cluster.sh [JOB.yaml] [WORKERS]
#
# One scheduler and eight workers on this host; logs in ./device. On loopback it needs no certificates.
# With MS_ENABLE_RECOVERY=1 and MS_RECOVERY_PATH a second start goes on with the job of the first, unless that has ended:
# ./device, with its checkpoints, stays then, and workers of the first one that live go on in the place of ours. Else it is made
# anew, and one with checkpoints or weights becomes ./device.before, or stays where the job names them (resume: device).
set -eu
# shellcheck source=examples/run_dynamic_cluster_common.sh
. "$(dirname "$0")/run_dynamic_cluster_common.sh"
find_programs msschedd msworker
job=${1:-$(dirname "$0")/mnist.yaml}
[ -r "$job" ] || { echo "$0: there is no job file $job that can be read: name one" >&2; exit 2; }
export MS_WORKER_NUM=${2:-8}     # number of workers in the cluster
export MS_SCHED_HOST=127.0.0.1   # scheduler's address
export MS_SCHED_PORT=${MS_SCHED_PORT:-8118}

check_port "$MS_SCHED_HOST" "$MS_SCHED_PORT"
recovers=${MS_ENABLE_RECOVERY:-0}
check_recovery "$recovers"
if [ "$recovers" != 1 ] || [ -z "${MS_RECOVERY_PATH:-}" ]; then
    make_room "$job"
fi
was_there=0
[ ! -e device ] || was_there=1
start_scheduler
# What is in ./device is of a job that has ended, or of none that this scheduler knows: it alone can say so. Its log is to lie in
# the new one.
if [ "$recovers" = 1 ] && [ -n "${MS_RECOVERY_PATH:-}" ] && [ $was_there = 1 ] && has_no_job device/scheduler.log; then
    kill "$scheduler" 2>/dev/null || true
    wait "$scheduler" || true
    unset "logs[$scheduler]"
    [ ! -e device/scheduler.before.log ] || mv device/scheduler.before.log device/scheduler.log
    make_room "$job"
    start_scheduler
fi
echo "scheduler start success!"
left=0 # workers of this host that have not ended
for ((i = 0; i < MS_WORKER_NUM; i++)); do
    MS_ROLE=MS_WORKER MS_NODE_ID=$i msworker --run-dir device "$job" >>device/worker_$i.out 2>&1 &
    logs[$!]=device/worker_$i.out
    again[$!]="MS_ROLE=MS_WORKER MS_NODE_ID=$i $(printf %q "$(command -v msworker)") --run-dir device $(printf %q "$job") >>device/worker_$i.out 2>&1 &"
    left=$((left + 1))
    echo "worker $i start success with pid $!"
done
supervise
exit "$status"
