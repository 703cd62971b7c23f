# cores.sh - what the tests about a host's cores share: affinity, quotas of CPU time, a job that uses them
# shellcheck shell=bash

GROUP=
drop_group() {
    [ -z "$GROUP" ] || rmdir "$GROUP"
    cleanup
}
trap drop_group EXIT
# one CPU of each core that we may use
# shellcheck disable=SC2034 # for who sources this
mapfile -t cpus < <(lscpu -p=CPU,CORE,SOCKET | python3 -c '
import os, sys
cores = {}
for line in sys.stdin:
    if not line.startswith("#"):
        cpu, core, socket = line.split(",")
        if int(cpu) in os.sched_getaffinity(0):
            cores.setdefault((core, socket), cpu)
print(*cores.values(), sep="\n")')

plan() { field "$1" plan_sha256; }
bound_to() { # CPUS command...: with that affinity
    local all
    all=$(taskset -pc "$BASHPID") && taskset -pc "$1" "$BASHPID" >/dev/null || return
    shift
    "$@"
    local status=$?
    taskset -pc "${all##*: }" "$BASHPID" >/dev/null
    return "$status"
}
placed() { OMP_PROC_BIND=true "$@"; }
# A group with a limit of CPU time, of whichever hierarchy has them; false where none can be made.
make_group() {
    local mount
    for mount in /sys/fs/cgroup/cpu /sys/fs/cgroup; do
        mkdir "$mount/msched-$$" 2>/dev/null || continue
        GROUP=$mount/msched-$$
        [ -w "$GROUP/cpu.max" ] || [ -w "$GROUP/cpu.cfs_quota_us" ] && return
        rmdir "$GROUP"
        GROUP=
    done
    return 1
}
limited_to() { # PERCENT command...: within that quota
    local percent=$1
    shift
    if [ -w "$GROUP/cpu.max" ]; then
        echo "${percent}000 100000" >"$GROUP/cpu.max"
    else
        echo "${percent}000" >"$GROUP/cpu.cfs_quota_us"
    fi || return
    (echo "$BASHPID" >"$GROUP/cgroup.procs" && "$@")
}
