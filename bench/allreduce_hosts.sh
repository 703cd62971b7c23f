#!/bin/sh
# allreduce_hosts.sh - all-reduce of 94 MiB over 2 x 2 ranks in two network namespaces, and what crosses
#
# allreduce_hosts.sh [BUILD_DIR [RATE]]
#
# For TCP and TLS: as it is, and as if each rank were alone on its host (--apart), which moves what a
# flat or a direct sum moves. `crossing` is the payload between the two namespaces. RATE, as tc writes it
# (2gbit), makes the link as slow as a network is, in both directions. Needs root.
set -eu
bench=${1:-build}/bench/allreduce
if [ ! -x "$bench" ]; then
    echo "allreduce_hosts.sh: $bench is missing: ninja -C ${1:-build} bench/allreduce" >&2
    exit 2
fi
if [ "$(id -u)" != 0 ]; then
    echo "allreduce_hosts.sh: network namespaces need root" >&2
    exit 2
fi
a=msba$$ b=msbb$$
drop() {
    ip netns del "$a" 2>/dev/null || :
    ip netns del "$b" 2>/dev/null || :
}
trap drop EXIT INT TERM
ip netns add "$a"
ip netns add "$b"
ip link add "v$a" netns "$a" type veth peer name "v$b" netns "$b"
ip -n "$a" addr add 10.78.0.1/24 dev "v$a"
ip -n "$b" addr add 10.78.0.2/24 dev "v$b"
for host in "$a" "$b"; do
    ip -n "$host" link set lo up
    ip -n "$host" link set "v$host" up
done
if [ -n "${2:-}" ]; then
    tc -n "$a" qdisc add dev "v$a" root tbf rate "$2" burst 1mb latency 20ms
    tc -n "$b" qdisc add dev "v$b" root tbf rate "$2" burst 1mb latency 20ms
fi
for transport in tcp tls; do
    for apart in '' --apart; do
        # shellcheck disable=SC2086 # a word or none
        "$bench" -n 4 -t "$transport" -s 98566144 -i 15 --on "$a=10.78.0.1" --on "$b=10.78.0.2" $apart |
            sed "s/\$/ ${apart:-by host}/"
    done
done
