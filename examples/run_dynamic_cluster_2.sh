#!/usr/bin/env bash
# run_dynamic_cluster_2.sh - the second machine of run_dynamic_cluster_1.sh: workers 4-7, no scheduler
#
#     DATA_PATH=... MS_TLS_CONFIG=tls.json run_dynamic_cluster_2.sh ADDRESS_OF_THE_FIRST_HOST [JOB.yaml]
#
# MS_ENABLE_RECOVERY has to be what it is there.
set -eu
# shellcheck source=examples/run_dynamic_cluster_common.sh
. "$(dirname "$0")/run_dynamic_cluster_common.sh"
find_programs msworker
export MS_SCHED_HOST=${1:?the address of the first host}
export MS_SCHED_PORT=${MS_SCHED_PORT:-8118}
export MS_WORKER_NUM=${MS_WORKER_NUM:-8} # over both machines
job=${2:-$(dirname "$0")/mnist.yaml}
[ -r "$job" ] || { echo "$0: there is no job file $job that can be read: name one" >&2; exit 2; }

recovers=${MS_ENABLE_RECOVERY:-0}
check_recovery "$recovers"
mkdir -p device
for ((i = MS_WORKER_NUM / 2; i < MS_WORKER_NUM; i++)); do
    [ "$recovers" = 1 ] || : >device/worker_$i.out
    MS_ROLE=MS_WORKER MS_NODE_ID=$i msworker --run-dir device "$job" >>device/worker_$i.out 2>&1 &
    logs[$!]=device/worker_$i.out
    again[$!]="MS_ROLE=MS_WORKER MS_NODE_ID=$i $(printf %q "$(command -v msworker)") --run-dir device $(printf %q "$job") >>device/worker_$i.out 2>&1 &"
done
status=0
scheduler= # is another machine's
while [ ${#logs[@]} -gt 0 ]; do
    next_end
    log=${logs[pid]}
    unset "logs[$pid]"
    [ "$ended" -eq 0 ] || ! is_needless "$log" "$pid" || continue
    [ "$ended" -eq 0 ] || { status=$ended && tell "$log" "$ended"; }
    ! is_awaited "$log" "$ended" || tell_again "the job waits for that rank" "${again[pid]}"
done
exit "$status"
