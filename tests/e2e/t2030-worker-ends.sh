#!/usr/bin/env bash
# t2030-worker-ends.sh - a worker that is asked to leave says so; one whose trainer hangs does not keep its node
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

state_is() { # STATE NUMBER: so many nodes are in it
    as alice --json nodes | python3 -c '
import json, sys
nodes = json.load(sys.stdin)
assert sum(n["state"] == sys.argv[1] for n in nodes) == int(sys.argv[2]), [n["state"] for n in nodes]' "$1" "$2"
}

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
for i in 1 2 3 4 5 6 7 8; do start_node "n$i"; done
ok "eight nodes are idle" wait_for 120 idle 8
for round in 1 2 3; do
    for i in 1 2 3 4 5 6 7 8; do kill -TERM "${pid_of[n$i]}"; done
    for i in 1 2 3 4 5 6 7 8; do ok "round $round: node $i ends with 0" status 0 reap "n$i"; done
    ok "all of them have LEFT, none is LOST" state_is LEFT 8
    for i in 1 2 3 4 5 6 7 8; do start_node "n$i"; done
    ok "they come back" wait_for 120 idle 8
done
for i in 3 4 5 6 7 8; do stop "n$i"; done

# A trainer that hangs: a debugger holds its thread, the agent's goes on.
cat >"$T/hold.py" <<'PY'
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
SEIZE, INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
pid = int(sys.argv[1])
if libc.ptrace(SEIZE, pid, None, None) != 0 or libc.ptrace(INTERRUPT, pid, None, None) != 0:
    sys.exit("cannot hold it: " + os.strerror(ctypes.get_errno()))
print("held", os.waitpid(pid, WALL)[1], flush=True)
while not os.WIFEXITED(os.waitpid(pid, WALL)[1]):
    pass
print("ended", flush=True)
PY
start hold python3 "$T/hold.py" "${pid_of[n2]}"
if ! wait_for 20 logged hold held; then
    diag <"$T/hold.log"
    finish # nobody may hold threads here
fi
stop hold KILL
ok "a job trains" [ "$(as alice submit "$T/long.yaml")" = 1 ]
ok "on both" wait_for 120 trains 1
start hold2 python3 "$T/hold.py" "${pid_of[n2]}"
ok "one of the trainers hangs" wait_for 20 logged hold2 held
begun=$SECONDS
ok "the job is cancelled" status 0 as alice cancel 1
ok "the node whose trainer lives is idle again" wait_for 20 json nodes -- \
    "[n['state'] for n in j if n['node'] == 'n1'] == ['REGISTERED'] and not [n for n in j if n['node'] == 'n1'][0].get('job')"
ok "while the other one hangs still" bash -c '! grep -q "hangs: it was told to end" "$1"' - "$T/n2.log"
ok "which ends by itself with 75" status 75 reap n2
ok "after the grace, not before" [ $((SECONDS - begun)) -ge 25 ]
ok "and says what hung" logged n2 "hangs: it was told to end 30 s ago"
start_node n2
ok "started again, it is idle" wait_for 60 idle 2
ok "and trains" status 0 as alice wait --timeout 900 "$(as alice submit "$T/short.yaml")"
stop n1
stop n2
finish
