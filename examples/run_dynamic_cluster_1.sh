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
find_programs msschedd msworker
export MS_SCHED_HOST=${1:?the address of this host}
export MS_SCHED_PORT=${MS_SCHED_PORT:-8118}
export MS_WORKER_NUM=${MS_WORKER_NUM:-8} # over both machines
job=${2:-$(dirname "$0")/mnist.yaml}
[ -r "$job" ] || { echo "$0: there is no job file $job that can be read: name one" >&2; exit 2; }

check_port "$MS_SCHED_HOST" "$MS_SCHED_PORT"
recovers=${MS_ENABLE_RECOVERY:-0}
check_recovery "$recovers"
start_scheduler
left=0 # workers of this host that have not ended
for ((i = 0; i < MS_WORKER_NUM / 2; i++)); do
    [ "$recovers" = 1 ] || : >device/worker_$i.out
    MS_ROLE=MS_WORKER MS_NODE_ID=$i msworker --run-dir device "$job" >>device/worker_$i.out 2>&1 &
    logs[$!]=device/worker_$i.out
    again[$!]="MS_ROLE=MS_WORKER MS_NODE_ID=$i $(printf %q "$(command -v msworker)") --run-dir device $(printf %q "$job") >>device/worker_$i.out 2>&1 &"
    left=$((left + 1))
done
supervise
exit "$status"
