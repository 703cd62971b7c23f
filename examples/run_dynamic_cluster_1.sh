#!/usr/bin/env bash
# run_dynamic_cluster_1.sh - two machines with four workers each: this one starts the scheduler and workers 0-3
#
#     DATA_PATH=... MS_TLS_CONFIG=tls.json run_dynamic_cluster_1.sh ADDRESS_OF_THIS_HOST [JOB.yaml]
#
# The certificates: msctl certs init, then `msctl certs issue scheduler` and `worker`; MS_ENABLE_SSL=0 on both
# machines switches TLS off. On the other machine: run_dynamic_cluster_2.sh with the same address and job.
# With MS_ENABLE_RECOVERY=1 on both machines a worker that is lost may be started again, and the job goes on; with
# MS_RECOVERY_PATH here the scheduler, too, and a second start of both scripts goes on with the job of the first.
set -eu
# shellcheck source=examples/run_dynamic_cluster_common.sh
. "$(dirname "$0")/run_dynamic_cluster_common.sh"
# the programs: of the build tree around us or of MSCHED_BIN, else those in PATH
build=${MSCHED_BIN:-$(dirname "$0")/../build}
PATH=$build/daemon:$build/libworker:${MSCHED_BIN:+$MSCHED_BIN:}$PATH
for program in msschedd msworker; do
    command -v $program >/dev/null || { echo "$0: $program is not in $build and not in PATH" >&2; exit 1; }
done
export MS_SCHED_HOST=${1:?the address of this host}
export MS_SCHED_PORT=${MS_SCHED_PORT:-8118}
export MS_WORKER_NUM=${MS_WORKER_NUM:-8} # over both machines
job=${2:-$(dirname "$0")/mnist.yaml}
[ -r "$job" ] || { echo "$0: there is no job file $job that can be read: name one" >&2; exit 2; }

recovers=${MS_ENABLE_RECOVERY:-0}
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
left=0 # workers of this host that have not ended
for ((i = 0; i < MS_WORKER_NUM / 2; i++)); do
    [ "$recovers" = 1 ] || : >device/worker_$i.out
    MS_ROLE=MS_WORKER MS_NODE_ID=$i msworker --run-dir device "$job" >>device/worker_$i.out 2>&1 &
    logs[$!]=device/worker_$i.out
    again[$!]="MS_ROLE=MS_WORKER MS_NODE_ID=$i $(command -v msworker) --run-dir device $job >>device/worker_$i.out 2>&1 &"
    left=$((left + 1))
done
# The scheduler ends with the job, with the job's status; but for workers that failed before they came to it, it
# would wait MS_TOPO_TIMEOUT. Where the job recovers, the other machine may hold what those knew that were killed here.
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
        [ "$recovers" != 1 ] || [ "$ended" -le 128 ] || [ -z "${MS_RECOVERY_PATH:-}" ] ||
            tell_again "the workers train on without their scheduler" "MS_ROLE=MS_SCHED $(command -v msschedd) >>device/scheduler.log 2>&1 &"
        continue
    fi
    left=$((left - 1))
    if [ "$recovers" = 1 ] && [ "$ended" -gt 128 ]; then
        tell_again "the job waits for that rank" "${again[pid]}"
    elif [ "$ended" -ne 0 ]; then
        failed=$ended
    fi
    if [ $left -eq 0 ] && [ "$failed" -ne 0 ] && [ $others -eq 0 ]; then
        kill "$scheduler" 2>/dev/null || true
        wait "$scheduler" || true
        status=$failed
    fi
done
exit "$status"
