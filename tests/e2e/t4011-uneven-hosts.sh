#!/usr/bin/env bash
# t4011-uneven-hosts.sh - two ranks on one host and one on another (network namespaces joined by a veth pair), and a host with
# fewer cores: all train with the threads of the fullest host, and have the bits of three ranks on one host
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 ip taskset
[ "$(id -u)" -eq 0 ] || skip_all "network namespaces need root"
A=mua$$
B=mub$$
ip netns add "$A" 2>/dev/null || skip_all "no network namespaces here"
ip netns add "$B"
drop_hosts() {
    ip netns pids "$A" 2>/dev/null | xargs -r kill -KILL 2>/dev/null
    ip netns pids "$B" 2>/dev/null | xargs -r kill -KILL 2>/dev/null
    ip netns del "$A" 2>/dev/null
    ip netns del "$B" 2>/dev/null
    cleanup
}
trap drop_hosts EXIT
ip netns exec "$A" true 2>/dev/null || skip_all "ip netns exec cannot enter a namespace here" # a chroot
ip link add "v$A" netns "$A" type veth peer name "v$B" netns "$B"
ip -n "$A" addr add 10.78.0.1/24 dev "v$A"
ip -n "$B" addr add 10.78.0.2/24 dev "v$B"
for host in $A $B; do
    ip -n "$host" link set lo up
    ip -n "$host" link set "v$host" up
done

cat >"$T/job.yaml" <<'YAML'
network: cifar_small
dataset: {kind: shapes, samples: 480}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 8
epochs: 1
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}
YAML
sed '$athreads: 2' "$T/job.yaml" >"$T/two.yaml"
export MS_ENABLE_SSL=0 MS_WORKER_NUM=3 MS_SCHED_HOST=10.78.0.1 MS_SCHED_PORT=8118 # the namespaces are ours: no port is taken

# uneven NAME JOB [command...]: ranks 0 and 1 on host A, rank 2 on host B, there under the command; its exit status
uneven() {
    local name=$1 job=$2 failed=0 program
    shift 2
    mkdir "$T/$name"
    start "$name-head" ip netns exec "$A" env MS_ROLE=MS_SCHED "$MSSCHEDD"
    for i in 0 1; do
        start "$name-$i" ip netns exec "$A" env MS_ROLE=MS_WORKER MS_NODE_ID="$i" "$MSWORKER" --run-dir "$T/$name" "$job"
    done
    start "$name-2" ip netns exec "$B" env MS_ROLE=MS_WORKER MS_NODE_ID=2 "$@" "$MSWORKER" --run-dir "$T/$name" "$job"
    for program in 0 1 2 head; do
        reap "$name-$program" || failed=1
        [ "$failed" = 0 ] || tail -n 3 "$T/$name-$program.log"
    done
    return "$failed"
}
plan() { field "$1" plan_sha256; }
here() { # NAME JOB [command...]: three ranks on this host
    local name=$1 job=$2
    shift 2
    env -u MS_SCHED_HOST -u MS_SCHED_PORT -u MS_WORKER_NUM -u MS_ENABLE_SSL "$@" "$MSCTL" run -n 3 --run-dir "$T/$name" "$job"
}
cpu=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')

ok "2 + 1 ranks with two threads each train" uneven apart-2 "$T/two.yaml"
ok "three ranks with two threads on one host" here one-2 "$T/two.yaml"
ok "have the same weights, to the bit" same "$(digest apart-2)" "$(digest one-2)"
ok "and the same plan" same "$(plan apart-2)" "$(plan one-2)"
ok "2 + 1 ranks with the threads that their hosts offer train" uneven apart "$T/job.yaml"
ok "so they do where the second host has one core" uneven small "$T/job.yaml" taskset -c "$cpu"
ok "three ranks on one core" here one "$T/job.yaml" taskset -c "$cpu"
ok "have the same weights, for all had one thread" same "$(digest small)" "$(digest one)"
ok "and the same plan" same "$(plan small)" "$(plan one)"
finish
