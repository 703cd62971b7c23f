#!/usr/bin/env bash
# t4011-uneven-hosts.sh - hosts with different numbers of ranks, and one with fewer cores (network namespaces around a bridge):
# all ranks train with the threads of the fullest host, and have the bits of the same ranks on one host
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 ip taskset
[ "$(id -u)" -eq 0 ] || skip_all "network namespaces need root"
host_of=([0]=mua$$ [1]=mub$$ [2]=muc$$)
ip netns add "${host_of[0]}" 2>/dev/null || skip_all "no network namespaces here"
drop_hosts() {
    local host
    for host in "${host_of[@]}"; do
        ip netns pids "$host" 2>/dev/null | xargs -r kill -KILL 2>/dev/null
        ip netns del "$host" 2>/dev/null
    done
    cleanup
}
trap drop_hosts EXIT
ip netns exec "${host_of[0]}" true 2>/dev/null || skip_all "ip netns exec cannot enter a namespace here" # a chroot
ip -n "${host_of[0]}" link add lan type bridge 2>/dev/null || skip_all "no bridges here"
ip -n "${host_of[0]}" addr add 10.78.0.1/24 dev lan
for i in 1 2; do
    ip netns add "${host_of[i]}"
    ip link add "port$i" netns "${host_of[0]}" type veth peer name lan netns "${host_of[i]}"
    ip -n "${host_of[0]}" link set "port$i" master lan up
    ip -n "${host_of[i]}" addr add "10.78.0.$((i + 1))/24" dev lan
done
for host in "${host_of[@]}"; do
    ip -n "$host" link set lo up
    ip -n "$host" link set lan up
done

cat >"$T/job.yaml" <<'YAML'
network: cifar_small
dataset: {kind: shapes, samples: 480}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 8
epochs: 1
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}
YAML
sed '$athreads: 1' "$T/job.yaml" >"$T/one.yaml"
sed '$athreads: 2' "$T/job.yaml" >"$T/two.yaml"
cpu=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')

# spread NAME JOB HOST...: a rank on each of the hosts, on the one that SMALL names with one CPU; the exit status of all
spread() {
    local name=$1 job=$2 failed=0 rank=0 host program
    shift 2
    local -x MS_ENABLE_SSL=0 MS_WORKER_NUM=$# MS_SCHED_HOST=10.78.0.1 MS_SCHED_PORT=8118 # the namespaces are ours: no port is taken
    mkdir "$T/$name"
    start "$name-head" ip netns exec "${host_of[0]}" env MS_ROLE=MS_SCHED "$MSSCHEDD"
    for host in "$@"; do
        local bound=()
        [ "$host" != "${SMALL:-}" ] || bound=(taskset -c "$cpu")
        start "$name-$rank" ip netns exec "${host_of[host]}" "${bound[@]}" env MS_ROLE=MS_WORKER MS_NODE_ID="$rank" \
            "$MSWORKER" --run-dir "$T/$name" "$job"
        rank=$((rank + 1))
    done
    for program in $(seq 0 $((rank - 1))) head; do
        reap "$name-$program" || failed=1
        [ "$failed" = 0 ] || tail -n 3 "$T/$name-$program.log"
    done
    return "$failed"
}
plan() { field "$1" plan_sha256; }
both_same() { same "$(digest "$1")" "$(digest "$2")" && same "$(plan "$1")" "$(plan "$2")"; }

ok "three ranks with two threads on one host" run three-2 -n 3 "$T/two.yaml"
ok "2 + 1 ranks with two threads each" spread apart-2 "$T/two.yaml" 0 0 1
ok "have the same plan and weights, to the bit" both_same three-2 apart-2
ok "2 + 1 ranks with the threads that their hosts offer train" spread apart "$T/job.yaml" 0 0 1
ok "three ranks with one thread on one host" run three -n 3 "$T/one.yaml"
SMALL=1
ok "2 + 1 ranks, the second host with one core" spread small "$T/job.yaml" 0 0 1
SMALL=
ok "have the same plan and weights" both_same three small
ok "four ranks with one thread on one host" run four -n 4 "$T/one.yaml"
ok "1 + 1 + 2 ranks" spread four-apart "$T/one.yaml" 0 1 2 2
ok "have the same plan and weights" both_same four four-apart
ok "eight ranks with one thread on one host" run eight -n 8 "$T/one.yaml"
ok "3 + 5 ranks" spread eight-apart "$T/one.yaml" 0 0 0 1 1 1 1 1
ok "have the same plan and weights" both_same eight eight-apart
finish
