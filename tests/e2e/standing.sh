# standing.sh - what the tests of a standing cluster share: certificates, scheduler, idle nodes, jobs
# shellcheck shell=bash

CA=$T/ca
# A node that is lost in these tests is killed, which its connection tells at once. Longer than a busy machine keeps a process still.
LEASE_MS=${LEASE_MS:-30000}
mkdir -p "$T/tls/sched" "$T/jobs"

issue() { "$MSCTL" certs --dir "$CA" issue "$@" >/dev/null; }

# A CA, and a certificate for the scheduler, two users and an admin.
make_certificates() {
    "$MSCTL" certs --dir "$CA" init >/dev/null &&
        cp "$CA/ca.crt" "$T/tls/sched/ca.crt" &&
        issue scheduler head --host 127.0.0.1 --out "$T/tls/sched/node.p12" &&
        issue user alice --out "$T/tls/alice.p12" &&
        issue user bob --out "$T/tls/bob.p12" &&
        issue admin root --out "$T/tls/root.p12"
}

# start_head [ADDRESS]: the scheduler "a"; its address afterwards in HEAD
start_head() {
    start_sched a --listen "${1:-127.0.0.1:$(free_port)}" --lease-ms "$LEASE_MS" --tls on --tls-crl none \
        --tls-ca "$T/tls/sched/ca.crt" --tls-cert "$T/tls/sched/node.p12" || return 1
    HEAD=$(address_of a)
}

# start_node NAME [option]...: an idle node with a certificate of its own; its log is $T/NAME.log
start_node() {
    local name=$1 tls=$T/tls/$1
    shift
    if [ ! -e "$tls/node.p12" ]; then
        mkdir -p "$tls"
        cp "$CA/ca.crt" "$tls/ca.crt"
        issue worker "$name" --host 127.0.0.1 --out "$tls/node.p12" || return 1
    fi
    start "$name" "$MSWORKER" --server "$HEAD" --tls-dir "$tls" --node-id "$name" --jobs-dir "$T/jobs" \
        --data-port-min 0 --data-port-max 0 --lease-ms "$LEASE_MS" "$@"
}

# The settings of WHO; in one move, for others of the same user read them meanwhile.
write_settings() {
    local settings="$T/$1.conf"
    [ -e "$settings" ] && grep -qxF "server = $HEAD" "$settings" && return
    printf 'server = %s\ntls = on\ncertificate = %s\nca = %s\n' "$HEAD" "$T/tls/$1.p12" "$CA/ca.crt" \
        >"$settings.$BASHPID"
    mv "$settings.$BASHPID" "$settings"
}
# as WHO word...: msctl with the certificate $T/tls/WHO.p12, over TCP
as() {
    local who=$1
    shift
    write_settings "$who"
    "$MSCTL" --config "$T/$who.conf" "$@"
}
# start_as NAME WHO word...: the same in the background, itself and no shell around it
start_as() {
    local name=$1 who=$2
    shift 2
    write_settings "$who"
    start "$name" "$MSCTL" --config "$T/$who.conf" "$@"
}

# json WORD... -- PYTHON: the expression about `j` must hold for what alice is told
json() {
    local words=()
    while [ "$1" != -- ]; do
        words+=("$1")
        shift
    done
    as alice --json "${words[@]}" | python3 -c 'import json, sys
j = json.load(sys.stdin)
assert eval(sys.argv[1]), j' "$2"
}
# state_of JOB, and the two that tests wait for
state_of() { as alice --json show "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])'; }
in_state() { [ "$(state_of "$1")" = "$2" ]; }
idle() { json status -- "j['nodes_idle'] == $1 and j['nodes_registered'] == $1"; }
idle_or_busy() { json status -- "j['nodes_registered'] == $1"; }
trains() { [ "$(grep -c '"step":' "$T/jobs/$1/metrics.jsonl" 2>/dev/null)" -ge "${2:-20}" ]; }

# make_job NAME WORKERS EPOCHS [RECOVERY]: the file $T/NAME.yaml; unless RECOVERY is true, losing a rank is its end
make_job() {
    cat >"$T/$1.yaml" <<YAML
name: $1
workers: $2
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
epochs: $3
loss: mse
optimizer: {kind: sgd, learning_rate: 0.0001}
recovery: ${4:-false}
YAML
}
make_job short 2 1
make_job long 2 1000000
