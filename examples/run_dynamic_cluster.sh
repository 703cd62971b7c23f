#!/usr/bin/env bash
# run_dynamic_cluster.sh - MindSpore's single-machine start script, with our programs in Python's place
#
#     DATA_PATH=/data/mnist examples/run_dynamic_cluster.sh [JOB.yaml] [WORKERS]
#
# One scheduler and eight workers on this host; logs in ./device. On loopback it needs no certificates.
# With MS_ENABLE_RECOVERY=1 and MS_RECOVERY_PATH a second start goes on with the job of the first: ./device, with its
# checkpoints, stays then, and workers of the first one that live go on in the place of ours. Without them it is made anew.
set -eu
# shellcheck source=examples/run_dynamic_cluster_common.sh
. "$(dirname "$0")/run_dynamic_cluster_common.sh"
# the programs: of the build tree around us or of MSCHED_BIN, else those in PATH
build=${MSCHED_BIN:-$(dirname "$0")/../build}
PATH=$build/daemon:$build/libworker:${MSCHED_BIN:+$MSCHED_BIN:}$PATH
for program in msschedd msworker; do
    command -v $program >/dev/null || { echo "$0: $program is not in $build and not in PATH" >&2; exit 1; }
done
job=${1:-$(dirname "$0")/mnist.yaml}
[ -r "$job" ] || { echo "$0: there is no job file $job that can be read: name one" >&2; exit 2; }
export MS_WORKER_NUM=${2:-8}     # number of workers in the cluster
export MS_SCHED_HOST=127.0.0.1   # scheduler's address
export MS_SCHED_PORT=${MS_SCHED_PORT:-8118}

recovers=${MS_ENABLE_RECOVERY:-0}
if [ "$recovers" != 1 ] || [ -z "${MS_RECOVERY_PATH:-}" ]; then
    rm -rf device
fi
mkdir -p device
[ ! -e device/scheduler.log ] || mv device/scheduler.log device/scheduler.before.log
: >device/scheduler.log # there before anybody reads it, and without an older one's lines
MS_ROLE=MS_SCHED msschedd >>device/scheduler.log 2>&1 &
scheduler=$!
logs[scheduler]=device/scheduler.log
# It is there once it listens. If it has ended instead, the last line of its log has the reason.
for ((i = 0; i < 100; i++)); do
    grep -q 'scheduler\.listen' device/scheduler.log && break
    kill -0 "$scheduler" 2>/dev/null || { tail -n 1 device/scheduler.log >&2; wait "$scheduler"; }
    sleep 0.1
done
echo "scheduler start success!"
left=0 # workers of this host that have not ended
for ((i = 0; i < MS_WORKER_NUM; i++)); do
    MS_ROLE=MS_WORKER MS_NODE_ID=$i msworker --run-dir device "$job" >>device/worker_$i.out 2>&1 &
    logs[$!]=device/worker_$i.out
    again[$!]="MS_ROLE=MS_WORKER MS_NODE_ID=$i $(command -v msworker) --run-dir device $job >>device/worker_$i.out 2>&1 &"
    left=$((left + 1))
    echo "worker $i start success with pid $!"
done
# The scheduler ends with the job, with the job's status; but for workers that failed before they came to it, it
# would wait MS_TOPO_TIMEOUT.
status=
failed=0
others=0 # workers of an earlier start, which go on
while [ -z "$status" ]; do
    next_end
    log=${logs[pid]}
    unset "logs[$pid]"
    if [ "$ended" -ne 0 ] && is_needless "$log" "$pid"; then
        others=$((others + 1))
        left=$((left - 1))
        continue
    fi
    [ "$ended" -eq 0 ] || tell "$log" "$ended"
    if [ "$pid" = "$scheduler" ]; then
        status=$ended
        [ "$recovers" != 1 ] || [ "$ended" -le 128 ] || [ $((left + others)) -eq 0 ] || [ -z "${MS_RECOVERY_PATH:-}" ] ||
            tell_again "the workers train on without their scheduler" "MS_ROLE=MS_SCHED $(command -v msschedd) >>device/scheduler.log 2>&1 &"
        continue
    fi
    left=$((left - 1))
    [ "$ended" -eq 0 ] || failed=$ended
    [ "$recovers" != 1 ] || [ "$ended" -le 128 ] || [ $((left + others)) -eq 0 ] || tell_again "the job waits for that rank" "${again[pid]}"
    if [ $left -eq 0 ] && [ "$failed" -ne 0 ] && [ $others -eq 0 ]; then
        kill "$scheduler" 2>/dev/null || true
        wait "$scheduler" || true
        status=$failed
    fi
done
exit "$status"
