#!/usr/bin/env bash
# t2004-standstill.sh - a scheduler that stood still judges nobody for it; nodes outlive its restart
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSWORKER" "$MSCTL" python3

worker() {
    start "w$1" "$MSWORKER" --server "$(address_of a)" --tls off --slot "$1" --node-id "w$1" \
        --jobs-dir "$T/jobs" --data-port-min 0
}
# how many nodes are in the state
nodes() {
    ctl a nodes --json 2>/dev/null | python3 -c '
import json, sys
print(sum(node["state"] == sys.argv[1] for node in json.load(sys.stdin)))' "$1"
}
nodes_are() { [ "$(nodes "$1")" = "$2" ]; }

mkdir "$T/jobs"
cat >"$T/notified.py" <<'PY'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(s.recv(4096).decode().replace("\n", " "), flush=True)
PY
start notified python3 "$T/notified.py" "$T/notify.sock"
wait_for 60 logged notified bound
export NOTIFY_SOCKET=$T/notify.sock
ok "a scheduler with a lease of five seconds" start_sched a --lease-ms 5000
unset NOTIFY_SOCKET
port=$(port_of a)
for i in 0 1 2; do worker $i; done
ok "three nodes register" wait_for 60 nodes_are REGISTERED 3

ok "systemctl status shows them" wait_for 60 logged notified "3 nodes (3 idle, 0 lost or left)"

# Three leases: without the stretch all three would be judged silent. Standing still is what is tested;
# the nodes call again meanwhile, for to them it is the scheduler that is silent. What was before is the
# machine's: one that is slow may stand still itself.
kill -STOP "${pid_of[a]}"
before=$(wc -l <"$T/a.log")
sleep 15
kill -CONT "${pid_of[a]}"
ok "it says that it stood still" wait_for 60 logged a "scheduler.stood_still"
ok "all nodes are there" wait_for 60 nodes_are REGISTERED 3
ok "none was judged by its silence" bash -c '! tail -n "+$2" "$1" | grep "node.lost.*silent"' - "$T/a.log" $((before + 1))

kill -STOP "${pid_of[w1]}"
ok "a node that stands still alone is lost after its lease" wait_for 60 nodes_are LOST 1
ok "for its silence" grep -q 'node.lost node="w1".*silent' "$T/a.log"
kill -CONT "${pid_of[w1]}"
ok "and comes back" wait_for 60 nodes_are REGISTERED 3

stop w2 KILL
ok "a node that dies is noticed by its connection" wait_for 60 nodes_are LOST 1
worker 2
ok "the same id comes back at once" wait_for 60 nodes_are REGISTERED 3

stop a KILL
ok "the scheduler starts again at its address" start_sched a --lease-ms 5000 --listen "127.0.0.1:$port"
ok "the nodes come back by themselves" wait_for 120 nodes_are REGISTERED 3
ok "TERM ends the scheduler before its nodes" stop a
ok "a node ends when asked" stop w0
finish
