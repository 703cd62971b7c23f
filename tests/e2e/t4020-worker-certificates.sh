#!/usr/bin/env bash
# t4020-worker-certificates.sh - a worker's certificates: wrong ones of its own end it with words and 78, those
# of the other side are waited for, SIGHUP takes new ones
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" openssl python3

node() { # FOLDER [option]...: in the foreground
    local tls=$1
    shift
    "$MSWORKER" --server "$HEAD" --tls-dir "$tls" --node-id n9 --jobs-dir "$T/jobs" --data-port-min 0 "$@"
}
# empty_list WHEN FILE [NUMBER]: a revocation list of our CA without entries, and when it ends
empty_list() {
    local key
    key=$(grep -l 'PRIVATE KEY' "$CA"/*.key "$CA"/*.pem 2>/dev/null | head -n 1)
    printf '[ca]\ndefault_ca=c\n[c]\ndatabase=%s\ndefault_md=sha256\ncrlnumber=%s\n' \
        "$T/index.txt" "$T/number" >"$T/ca.cnf"
    : >"$T/index.txt"
    echo "${3:-01}" >"$T/number"
    openssl ca -config "$T/ca.cnf" -gencrl -keyfile "$key" -cert "$CA/ca.crt" -out "$2" \
        -crl_lastupdate "$(date -u -d '-9 days' +%y%m%d%H%M%SZ)" \
        -crl_nextupdate "$(date -u -d "$1" +%y%m%d%H%M%SZ)" 2>"$T/openssl.log"
}

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
mkdir -p "$T/tls/none" "$T/tls/user" "$T/tls/n1"

# ---- our own files: configuration
ok "a missing node.p12 is 78" status 78 node "$T/tls/none"
ok "in words with the command" says "msctl certs issue worker" node "$T/tls/none"
ok "with what puts one there" says "msctl certs install HOST.p12" node "$T/tls/none"
ok "--check-config says the same" status 78 node "$T/tls/none" --check-config
cp "$CA/ca.crt" "$T/tls/user/ca.crt"
cp "$T/tls/alice.p12" "$T/tls/user/node.p12"
ok "somebody else's certificate is 78" status 78 node "$T/tls/user"
ok "and says whose it is" says "that of user:alice" node "$T/tls/user" --check-config
cp "$CA/ca.crt" "$T/tls/n1/ca.crt"
issue worker n1 --host 127.0.0.1 --out "$T/tls/n1/node.p12"
chmod 0644 "$T/tls/n1/node.p12"
ok "a key that others can read is 78" status 78 node "$T/tls/n1"
chmod 0600 "$T/tls/n1/node.p12"
ok "with good files --check-config is content" status 0 node "$T/tls/n1" --check-config
"$MSCTL" certs --dir "$T/ca3" init >/dev/null
"$MSCTL" certs --dir "$T/ca3" crl >/dev/null
cp "$T/ca3/crl.pem" "$T/tls/n1/crl.pem"
ok "the list of another CA is 78" status 78 node "$T/tls/n1"
ok "and so --check-config says" status 78 node "$T/tls/n1" --check-config
ok "a list that is out of date" empty_list "-1 day" "$T/tls/n1/crl.pem"
ok "may be mended by its next one: 75" status 75 node "$T/tls/n1"
ok "which --check-config says, too" status 75 node "$T/tls/n1" --check-config
issue worker gone --host 127.0.0.1 --out "$T/gone.p12"
"$MSCTL" certs --dir "$CA" revoke "$T/gone.p12" --out "$T/gone.pem" >/dev/null
mkdir -p "$T/tls/gone"
cp "$CA/ca.crt" "$T/tls/gone/ca.crt"
cp "$T/gone.p12" "$T/tls/gone/node.p12"
cp "$T/gone.pem" "$T/tls/gone/crl.pem"
ok "a certificate of its own that is revoked is 78" status 78 node "$T/tls/gone"
ok "in words" says "is revoked by" node "$T/tls/gone"
rm "$T/tls/n1/crl.pem"
cat >"$T/worker.json" <<JSON
{"server_cert_path": "none.p12", "client_cert_path": "none.p12", "ca_cert_path": "$CA/ca.crt"}
JSON
ok "in the dynamic cluster a missing file is 78, too" status 78 env MS_ROLE=MS_WORKER MS_SCHED_HOST=127.0.0.1 \
    MS_SCHED_PORT=1024 MS_WORKER_NUM=1 MS_TLS_CONFIG="$T/worker.json" "$MSWORKER" "$T/short.yaml"
cat >"$T/two-hours.json" <<JSON
{"server_cert_path": "$T/tls/n1/node.p12", "client_cert_path": "$T/tls/n1/node.p12", "ca_cert_path": "$CA/ca.crt",
 "cert_check_interval_in_hour": 2}
JSON
ok "the first look at the certificates is as near as the JSON says" says "tls.next_look in_s=7200" env \
    MS_ROLE=MS_WORKER MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT=1024 MS_WORKER_NUM=1 MS_TOPO_TIMEOUT=3 \
    MS_TLS_CONFIG="$T/two-hours.json" "$MSWORKER" --log-level debug "$T/short.yaml"

# ---- the other side's: waited for
stop a
ends=$(date +%s -d "40 seconds")
ok "a list that ends soon" empty_list "@$ends" "$T/old.pem"
ok "and one that does not" empty_list "30 days" "$T/new.pem" 02
cp "$T/old.pem" "$T/tls/sched/crl.pem"
head=$HEAD
start_with_list() {
    start_sched a --listen "$head" --lease-ms "$LEASE_MS" --tls on --tls-crl "$T/tls/sched/crl.pem" \
        --tls-ca "$T/tls/sched/ca.crt" --tls-cert "$T/tls/sched/node.p12"
}
ok "a scheduler starts with the first" start_with_list
has_passed() { [ "$(date +%s)" -gt "$ends" ]; }
ok "which comes to its end" wait_for 60 has_passed
start_node n1
ok "its refusal does not end the worker" wait_for 60 logged n1 "agent.no_trust"
ok "which says why" logged n1 "refused our certificate"
ok "and lives" kill -0 "${pid_of[n1]}"
cp "$T/new.pem" "$T/tls/sched/crl.pem"
kill -HUP "${pid_of[a]}"
ok "the list renewed, it registers by itself" wait_for 120 idle 1
ok "being the same process" [ "$(grep -c agent.registered "$T/n1.log")" -eq 1 ]

# ---- SIGHUP
issue worker n1 --host 127.0.0.1 --out "$T/tls/n1/next.p12"
mv "$T/tls/n1/next.p12" "$T/tls/n1/node.p12"
kill -HUP "${pid_of[n1]}"
ok "SIGHUP reads the certificates again" wait_for 60 logged n1 "worker.reload certificates="
ok "the node stays" idle 1
mv "$T/tls/n1/node.p12" "$T/tls/n1/away.p12"
kill -HUP "${pid_of[n1]}"
ok "bad ones are not taken" wait_for 60 logged n1 "worker.reload_failed"
ok "and the old ones go on" kill -0 "${pid_of[n1]}"
mv "$T/tls/n1/away.p12" "$T/tls/n1/node.p12"

# a worker that trusts the wrong CA, and learns better while it waits
"$MSCTL" certs --dir "$T/ca2" init >/dev/null
mkdir -p "$T/tls/n2"
cp "$T/ca2/ca.crt" "$T/tls/n2/ca.crt"
"$MSCTL" certs --dir "$T/ca2" issue worker n2 --host 127.0.0.1 --out "$T/tls/n2/node.p12" >/dev/null
start_node n2
ok "another CA is waited for, too" wait_for 60 logged n2 "agent.no_trust"
issue worker n2 --host 127.0.0.1 --out "$T/tls/n2/next.p12"
cp "$CA/ca.crt" "$T/tls/n2/ca.crt"
mv "$T/tls/n2/next.p12" "$T/tls/n2/node.p12"
kill -HUP "${pid_of[n2]}"
ok "with the right one it registers at once" wait_for 30 idle 2
ok "a job runs on both" status 0 as alice wait --timeout 900 "$(as alice submit "$T/short.yaml")"

# ---- a key is exchanged under a job, as docs/operations.md has it: the connection that stands shows the old one
job=$(as alice submit "$T/long.yaml")
ok "a long job trains on both" wait_for 120 trains "$job"
cp "$T/tls/n1/node.p12" "$T/old.p12"
issue worker n1 --host 127.0.0.1 --out "$T/tls/n1/next.p12"
mv "$T/tls/n1/next.p12" "$T/tls/n1/node.p12"
count() { grep -c "$2" "$T/$1.log"; }
more() { [ "$(count "$1" "$2")" -gt "$3" ]; } # NAME TEXT COUNT
reloads=$(count n1 "worker.reload certificates=")
kill -HUP "${pid_of[n1]}"
ok "a worker takes its new certificate" wait_for 60 more n1 "worker.reload certificates=" "$reloads"
stop a
ok "a list is there" "$MSCTL" certs --dir "$CA" --out "$T/live.pem" crl
ok "the scheduler starts again" start_sched a --listen "$HEAD" --lease-ms "$LEASE_MS" --tls on --tls-crl "$T/live.pem" \
    --tls-ca "$T/tls/sched/ca.crt" --tls-cert "$T/tls/sched/node.p12"
ok "the job goes on" wait_for 60 in_state "$job" RUNNING
ok "the old certificate is revoked" "$MSCTL" certs --dir "$CA" --out "$T/live.pem" revoke "$T/old.p12"
reloads=$(count a "scheduler.reload")
kill -HUP "${pid_of[a]}"
ok "the scheduler reads the list" wait_for 60 more a "scheduler.reload" "$reloads"
steps=$(grep -c '"step":' "$T/jobs/$job/metrics.jsonl")
ok "and the job trains on, with all its ranks" wait_for 60 trains "$job" $((steps + 50))
ok "in that state" in_state "$job" RUNNING
ok "nobody was cut off" bash -c '! grep -q "certificate revoked" "$1"' - "$T/a.log"
as alice cancel --now "$job" >/dev/null

ok "a node ends when asked" stop n1
ok "the other, too" stop n2
finish
