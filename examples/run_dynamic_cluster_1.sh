#!/usr/bin/env bash
# run_dynamic_cluster_1.sh - two machines with four workers each: this one starts the scheduler and workers 0-3
#
#     DATA_PATH=... MS_TLS_CONFIG=tls.json run_dynamic_cluster_1.sh ADDRESS_OF_THIS_HOST [JOB.yaml]
#
# The certificates: msctl certs init, then `msctl certs issue scheduler` and `worker`; MS_ENABLE_SSL=0 on both
# machines switches TLS off. On the other machine: run_dynamic_cluster_2.sh with the same address and job.
set -eu
bin=${MSCHED_BIN:-$(dirname "$0")/../build}
export MS_SCHED_HOST=${1:?the address of this host}
export MS_SCHED_PORT=${MS_SCHED_PORT:-8118}
export MS_WORKER_NUM=${MS_WORKER_NUM:-8} # over both machines
job=${2:-$(dirname "$0")/mnist.yaml}

mkdir -p device
MS_ROLE=MS_SCHED "$bin/daemon/msschedd" >device/scheduler.log 2>&1 &
scheduler=$!
for ((i = 0; i < MS_WORKER_NUM / 2; i++)); do
    MS_ROLE=MS_WORKER MS_NODE_ID=$i "$bin/libworker/msworker" --run-dir device "$job" >device/worker_$i.out 2>&1 &
done
wait "$scheduler"
