#!/usr/bin/env bash
# t4021-plain-on-loopback.sh - without certificates and without a word on TLS, scheduler and worker of a standing
# cluster meet on loopback, and nowhere else
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER"
place=$("$MSWORKER" --server 127.0.0.1:1 --tls off --jobs-dir "$T/jobs" --check-config | sed -n 's/^tls_dir = \([^ ]*\) .*/\1/p')
if [ -e "$place/node.p12" ] || [ -e "$place/ca.crt" ] || [ -e /etc/msched/tls/node.p12 ]; then
    skip_all "this host has certificates"
fi

words=(--jobs-dir "$T/jobs" --node-id n9 --data-port-min 0 --data-port-max 0)
plain() { "$MSWORKER" "${words[@]}" "$@"; }
start a "$MSSCHEDD" --config "$T/empty.conf" --listen 127.0.0.1:0 --socket "$T/a.sock" --database "$T/a.db"
ok "a scheduler without certificates serves loopback" wait_for 60 ready a
start w "$MSWORKER" "${words[@]}" --server "$(address_of a)"
ok "a worker without certificates registers there" wait_for 60 logged w "agent.registered"
stop w
start named "$MSWORKER" "${words[@]}" --server "localhost:$(port_of a)"
ok "by the name of loopback, too" wait_for 60 logged named "agent.registered"
stop named
ok "--check-config is content" status 0 plain --server "$(address_of a)" --check-config
ok "and shows what is built in" says "tls = auto   # from: built-in" plain --server "$(address_of a)" --check-config
ok "to another host it does not go without" status 78 plain --server 192.0.2.1:8118
ok "and names what makes certificates" says "msctl certs issue worker" plain --server 192.0.2.1:8118
ok "nor by a name that is not loopback's" status 78 plain --server head.example:8118
ok "--tls on is heeded on loopback" status 78 plain --server "$(address_of a)" --tls on
ok "so is MS_ENABLE_SSL=1" status 78 env MS_ENABLE_SSL=1 "$MSWORKER" "${words[@]}" --server "$(address_of a)"
mkdir "$T/none"
ok "a folder that is named has to have some" status 78 plain --server "$(address_of a)" --tls-dir "$T/none"
stop a

ok "certificates are made" make_certificates
ok "a scheduler with certificates starts" start_head
ok "a worker without is refused there, and ends with 78" status 78 timeout 600 "$MSWORKER" "${words[@]}" \
    --server "$HEAD"
ok "in words that say what is missing, and where" says "here is no certificate in $place" timeout 600 "$MSWORKER" \
    "${words[@]}" --server "$HEAD"
finish
