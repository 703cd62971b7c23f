#!/usr/bin/env bash
# t4010-two-hosts.sh - two hosts (network namespaces joined by a veth pair): the start scripts of examples/,
# mutual TLS on both planes, and the same bits as on one host
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 ip
[ "$(id -u)" -eq 0 ] || skip_all "network namespaces need root"
A=msa$$
B=msb$$
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
ip -n "$A" addr add 10.77.0.1/24 dev "v$A"
ip -n "$B" addr add 10.77.0.2/24 dev "v$B"
for host in $A $B; do
    ip -n "$host" link set lo up
    ip -n "$host" link set "v$host" up
done

cat >"$T/job.yaml" <<'YAML'
network: cifar_small
dataset: {kind: shapes, samples: 640}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 8
epochs: 1
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}
YAML
export MSCHED_BIN=$BUILD MS_WORKER_NUM=4 MS_SCHED_PORT=8118 # the namespaces are ours: no port is taken
mkdir "$T/one" "$T/two"
on() { # HOST FOLDER command...
    local host=$1 folder=$2
    shift 2
    ip netns exec "$host" env -C "$folder" "$@"
}

ok "without certificates it is refused" says "MS_ENABLE_SSL=0" on "$A" "$T/one" env MS_ROLE=MS_SCHED \
    MS_SCHED_HOST=10.77.0.1 "$MSSCHEDD"
ok "a CA" "$MSCTL" certs init --dir "$T/ca"
ok "a certificate for the head" "$MSCTL" certs issue scheduler head --dir "$T/ca" --host 10.77.0.1 --out "$T/server.p12"
ok "and one for the workers" "$MSCTL" certs issue worker node --dir "$T/ca" --out "$T/client.p12"
cat >"$T/tls.json" <<JSON
{"server_cert_path": "server.p12", "client_cert_path": "client.p12", "ca_cert_path": "ca/ca.crt"}
JSON
export MS_TLS_CONFIG=$T/tls.json
start second on "$B" "$T/two" "$ROOT/examples/run_dynamic_cluster_2.sh" 10.77.0.1 "$T/job.yaml"
start first on "$A" "$T/one" "$ROOT/examples/run_dynamic_cluster_1.sh" 10.77.0.1 "$T/job.yaml"
reap first
first=$?
ok "the job over two hosts ends well" [ $first -eq 0 ]
ok "ranks 2 and 3 trained on the second host" grep -q "^epoch: 1 step: 20, loss is" "$T/two/device/worker_3.log"
ok "no worker failed" bash -c '! grep -l "error" "$1"/*/device/*.out' - "$T"
unset MS_TLS_CONFIG MS_SCHED_PORT MS_WORKER_NUM
ok "the same job on one host" run alone -n 4 "$T/job.yaml"
ok "gives the same weights, to the bit" same "$(digest one/device)" "$(digest alone)"

ok "a certificate of another CA" bash -c '"$1" certs init --dir "$2/evil" && "$1" certs issue worker node --dir "$2/evil" \
    --out "$2/evil.p12"' - "$MSCTL" "$T"
sed 's/client.p12/evil.p12/' "$T/tls.json" >"$T/evil.json"
export MS_WORKER_NUM=4 MS_SCHED_PORT=8118 MS_SCHED_HOST=10.77.0.1
start head ip netns exec "$A" env -C "$T/one" MS_ROLE=MS_SCHED MS_TLS_CONFIG="$T/tls.json" "$MSSCHEDD"
ok "a scheduler waits" wait_for 60 logged head scheduler.listen
ok "a worker with another CA's certificate is refused in words" says "certificate" on "$B" "$T/two" \
    env MS_ROLE=MS_WORKER MS_TLS_CONFIG="$T/evil.json" timeout 600 "$MSWORKER" "$T/job.yaml"
ok "a worker without TLS is refused in words" says "TLS" on "$B" "$T/two" \
    env MS_ROLE=MS_WORKER MS_ENABLE_SSL=0 timeout 600 "$MSWORKER" "$T/job.yaml"
stop head TERM >/dev/null
finish
