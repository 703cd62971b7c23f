#!/usr/bin/env bash
# run_dynamic_cluster_1.sh - two machines with four workers each: this one starts the scheduler and workers 0-3
#
#     DATA_PATH=... MS_TLS_CONFIG=tls.json run_dynamic_cluster_1.sh ADDRESS_OF_THIS_HOST [JOB.yaml]
#
# The certificates: msctl certs init, then `msctl certs issue scheduler` and `worker`; MS_ENABLE_SSL=0 on both
# machines switches TLS off. On the other machine: run_dynamic_cluster_2.sh with the same address and job.
set -eu
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

mkdir -p device
MS_ROLE=MS_SCHED msschedd >device/scheduler.log 2>&1 &
scheduler=$!
logs[scheduler]=device/scheduler.log
# It is there once it listens. If it has ended instead, the last line of its log has the reason.
for ((i = 0; i < 100; i++)); do
    grep -q 'scheduler\.listen' device/scheduler.log && break
    kill -0 "$scheduler" 2>/dev/null || { tail -n 1 device/scheduler.log >&2; wait "$scheduler"; }
    sleep 0.1
done
for ((i = 0; i < MS_WORKER_NUM / 2; i++)); do
    MS_ROLE=MS_WORKER MS_NODE_ID=$i msworker --run-dir device "$job" >device/worker_$i.out 2>&1 &
    logs[$!]=device/worker_$i.out
done
# Who fails says why in the last line of its log.
status=
while [ -z "$status" ]; do
    ended=0
    wait -n -p pid || ended=$?
    pid=${pid:-$scheduler} # nobody is left
    [ $ended -eq 0 ] || echo "${logs[pid]}: $(tail -n 1 "${logs[pid]}")" >&2
    [ "$pid" != "$scheduler" ] || status=$ended # it ends with the job, with the job's status
done
exit "$status"
