#!/usr/bin/env bash
# t1107-cores.sh - threads of a rank: what affinity and a quota of CPU time leave of the host's cores
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 taskset lscpu
GROUP=
drop_group() {
    [ -z "$GROUP" ] || rmdir "$GROUP"
    cleanup
}
trap drop_group EXIT
# one CPU of each core that we may use
mapfile -t cpus < <(lscpu -p=CPU,CORE,SOCKET | python3 -c '
import os, sys
cores = {}
for line in sys.stdin:
    if not line.startswith("#"):
        cpu, core, socket = line.split(",")
        if int(cpu) in os.sched_getaffinity(0):
            cores.setdefault((core, socket), cpu)
print(*cores.values(), sep="\n")')

cat >"$T/job.yaml" <<'YAML'
network: cifar_small
dataset: {kind: shapes, samples: 160}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 16
epochs: 1
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}
YAML
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

for n in 1 2; do
    ok "one rank with threads=$n" run of$n -n 1 --set threads=$n "$T/job.yaml"
done
ok "the number of threads is part of the plan" [ "$(plan of1)" != "$(plan of2)" ]
ok "a rank that is bound to one CPU" bound_to "${cpus[0]}" run bound1 -n 1 "$T/job.yaml"
ok "has one thread" same "$(plan bound1)" "$(plan of1)"
if [ ${#cpus[@]} -ge 2 ]; then
    ok "a rank that is bound to two cores" bound_to "${cpus[0]},${cpus[1]}" run bound2 -n 1 "$T/job.yaml"
    ok "has two" same "$(plan bound2)" "$(plan of2)"
    ok "two ranks with threads=1" run pair1 -n 2 --set threads=1 "$T/job.yaml"
    ok "two ranks that share two cores" bound_to "${cpus[0]},${cpus[1]}" run pair -n 2 "$T/job.yaml"
    ok "have one thread each" same "$(plan pair)" "$(plan pair1)"
fi
if make_group; then
    ok "a rank with a quota of 1.9 CPUs" limited_to 190 run quota1 -n 1 "$T/job.yaml"
    ok "has one thread" same "$(plan quota1)" "$(plan of1)"
    if [ ${#cpus[@]} -ge 2 ]; then
        ok "a rank with a quota of 2.5 CPUs" limited_to 250 run quota2 -n 1 "$T/job.yaml"
        ok "has two" same "$(plan quota2)" "$(plan of2)"
        ok "two ranks that share a quota of 2.5 CPUs" limited_to 250 run quotas -n 2 "$T/job.yaml"
        ok "have one each" same "$(plan quotas)" "$(plan pair1)"
    fi
else
    echo "# no group with a limit of CPU time can be made here: quotas are left out"
fi
finish
