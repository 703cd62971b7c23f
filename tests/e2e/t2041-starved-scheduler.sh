#!/usr/bin/env bash
# t2041-starved-scheduler.sh - without memory or descriptors the scheduler refuses and says so, neither
# aborts nor spins, and goes on when there is some again; what it acknowledged is there
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSCTL" python3
STARVE=$ROOT/tests/e2e/starve.py
if nm -D "$MSSCHEDD" 2>/dev/null | grep -q __asan_init; then
    skip_all "a sanitizer's shadow fits no limit of address space"
fi

use() {
    PLAIN=$(port_of "$1")
    export TLS=0 PLAIN UNIX=$T/$1.sock PID=${pid_of[$1]}
}
alive_and_well() { kill -0 "${pid_of[$1]}" && ctl "$1" status; }

ok "a scheduler runs" start_sched a
use a
ok "without memory it refuses, keeps what it took, and goes on" python3 "$STARVE" memory
sed 's/^/# /' "$T/ok.out"
ok "it is the same process, and well" alive_and_well a
ok "a second one runs" start_sched b
use b
ok "without descriptors it does not spin, and goes on" python3 "$STARVE" descriptors
sed 's/^/# /' "$T/ok.out"
ok "it is the same process, and well" alive_and_well b
ok "what was missing is in its log" logged b "Too many open files"
ok "once" bash -c '[ "$(grep -c accept.failed "$1")" -le 2 ]' - "$T/b.log"
finish
