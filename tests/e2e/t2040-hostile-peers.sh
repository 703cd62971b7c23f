#!/usr/bin/env bash
# t2040-hostile-peers.sh - every message in every state and role, damaged ones, floods: nothing but
# refusals and logged lines, bounded memory, and a normal client is served meanwhile
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSCTL" python3 openssl
. "$(dirname "$0")/standing.sh"
HOSTILE=$ROOT/tests/e2e/hostile.py

# Python takes PEM files.
make_pem() {
    local role
    export PEM=$T/pem
    mkdir -p "$PEM"
    make_certificates && issue worker worker --out "$T/tls/worker.p12" || return 1
    cp "$CA/ca.crt" "$PEM/ca.pem"
    for role in user:alice admin:root worker:worker; do
        openssl pkcs12 -in "$T/tls/${role#*:}.p12" -passin pass: -nodes -out "$PEM/${role%:*}.pem" \
            2>>"$T/openssl.log" || return 1
    done
}

# sched TLS|plain: one scheduler with TLS on TCP and one without
both() {
    LEASE_MS=600000 start_head "127.0.0.1:$(free_port)" && start_sched b --lease-ms 600000 || return 1
    TLS=$(port_of a)
    PLAIN=$(port_of b)
    export TLS PLAIN UNIX=$T/a.sock PID=${pid_of[a]}
}

same_table() {
    awk '/^<!-- every message, begin -->$/ { on = 1; next } /^<!-- every message, end -->$/ { on = 0 } on' \
        "$ROOT/docs/security.md" >"$T/table.docs"
    diff -u "$T/table.docs" "$T/table.now"
}

alive_and_well() { kill -0 "${pid_of[a]}" && kill -0 "${pid_of[b]}" && ctl a status && ctl b status; }

# under a sanitizer all takes longer and freed memory stays in quarantine
if grep -q libasan "/proc/$$/maps" || nm -D "$MSSCHEDD" 2>/dev/null | grep -q __asan_init; then
    wait_s=20 kib=2000000
else
    wait_s=3 kib=400000
fi

ok "certificates are made" make_pem
ok "two schedulers run, one of them without TLS" both
ok "every message in every state and role is answered" \
    bash -c 'python3 "$1" table >"$2"' - "$HOSTILE" "$T/table.now"
ok "as the table in docs/security.md says" same_table
ok "the schedulers are well" alive_and_well
ok "plans of who is not asked, twice, too late, too large or no text are answered as they should be" \
    python3 "$ROOT/tests/e2e/hostile_plans.py"
ok "the schedulers are well" alive_and_well
seed=${SEED:-$RANDOM}
ok "damaged messages are refused (seed $seed)" python3 "$HOSTILE" damage "$seed" 40
ok "the schedulers are well" alive_and_well
ok "floods, half frames and peers that read nothing keep nobody waiting for $wait_s s" \
    python3 "$HOSTILE" flood "$wait_s" "$kib"
sed 's/^/# /' "$T/ok.out" 2>/dev/null
ok "the schedulers are well" alive_and_well
ok "their logs are short" bash -c '[ "$(cat "$1" "$2" | wc -c)" -lt 1000000 ]' - "$T/a.log" "$T/b.log"
ok "what was left out of them is counted" wait_for 60 logged a "log.throttled event=node.refused"
ok "TERM still ends them" bash -c 'kill -TERM "$1" "$2"' - "${pid_of[a]}" "${pid_of[b]}"
ok "with 0" reap a
ok "both" reap b
finish
