#!/usr/bin/env bash
# run_dynamic_cluster_2.sh - the second machine of run_dynamic_cluster_1.sh: workers 4-7, no scheduler
#
#     DATA_PATH=... MS_TLS_CONFIG=tls.json run_dynamic_cluster_2.sh ADDRESS_OF_THE_FIRST_HOST [JOB.yaml]
set -eu
# the programs: of the build tree around us or of MSCHED_BIN, else those in PATH
build=${MSCHED_BIN:-$(dirname "$0")/../build}
PATH=$build/daemon:$build/libworker:${MSCHED_BIN:+$MSCHED_BIN:}$PATH
command -v msworker >/dev/null || { echo "$0: msworker is not in $build and not in PATH" >&2; exit 1; }
export MS_SCHED_HOST=${1:?the address of the first host}
export MS_SCHED_PORT=${MS_SCHED_PORT:-8118}
export MS_WORKER_NUM=${MS_WORKER_NUM:-8} # over both machines
job=${2:-$(dirname "$0")/mnist.yaml}
[ -r "$job" ] || { echo "$0: there is no job file $job that can be read: name one" >&2; exit 2; }

mkdir -p device
for ((i = MS_WORKER_NUM / 2; i < MS_WORKER_NUM; i++)); do
    MS_ROLE=MS_WORKER MS_NODE_ID=$i msworker --run-dir device "$job" >device/worker_$i.out 2>&1 &
    logs[$!]=device/worker_$i.out
done
# Who fails says why in the last line of its log; who was killed could not.
tell() { # LOG STATUS
    [ "$2" -le 128 ] || echo "$1: ended by SIG$(kill -l "$2"); the last line of its log follows" >&2
    echo "$1: $(tail -n 1 "$1")" >&2
}
status=0
for pid in "${!logs[@]}"; do
    wait "$pid" || { status=$? && tell "${logs[pid]}" $status; }
done
exit $status
