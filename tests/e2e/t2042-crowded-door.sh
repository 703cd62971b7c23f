#!/usr/bin/env bash
# t2042-crowded-door.sh - one process without a certificate and with thousands of addresses, in front of the TCP port:
# who has a certificate gets in all the same, and a restart adopts the job that runs
. "$(dirname "$0")/lib.sh"
LEASE_MS=10000
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

# more than the places to wait and the kernel's queue (4,096) take half of; as many as descriptors allow
N=3500
[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 5000 ] || skip_all "too few descriptors: $(ulimit -Hn)"

crowd() {
    rm -f "$T/there"
    start crowd python3 "$ROOT/tests/e2e/crowd.py" "$1" "${HEAD##*:}" "$N" "$T/there"
    wait_for 120 test -e "$T/there"
}
# each within the 5 s that msctl gives a handshake
three_times() {
    local i began=$SECONDS
    for i in 1 2 3; do
        as alice status || return 1
    done
    echo "$((SECONDS - began)) s"
}
restart() {
    stop a KILL
    start_head "$HEAD"
}
adopted() { logged a "job.adopted job=$1"; }

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
start_node n1
start_node n2
ok "two nodes are idle" wait_for 120 idle 2
ok "a job is submitted" [ "$(as alice submit "$T/long.yaml")" = 1 ]
ok "it trains" wait_for 120 trains 1

ok "a silent crowd comes" crowd silent
ok "msctl gets in, three times of three" three_times
sed 's/^/# /' "$T/ok.out" | tail -n 1
ok "the log says that the door is crowded" wait_for 60 logged a "door.crowded"
ok "and by whom" logged a 'most_of="loopback"'
ok "the scheduler is killed, and starts again amid the crowd" restart
ok "the job is adopted" wait_for 60 adopted 1
ok "and goes on" in_state 1 RUNNING
ok "msctl gets in" three_times
sed 's/^/# /' "$T/ok.out" | tail -n 1
stop crowd
ok "the job is cancelled" as alice cancel 1
finish
