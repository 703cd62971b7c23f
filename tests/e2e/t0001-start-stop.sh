#!/usr/bin/env bash
# t0001-start-stop.sh - the daemon starts, says so, answers, reloads and ends; nothing is left over
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" python3

# systemd's side of sd_notify, for it says more than one thing
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

ok "it starts" start_sched a --socket-group "$(id -gn)"
ok "READY comes after the listeners" wait_for 60 logged notified READY=1
ok "STATUS says what goes on" wait_for 60 logged notified "0 jobs placed, 0 queued"
ok "the first line names version and settings" logged a 'scheduler.start version='
ok "no line of a good start is an error or a warning" \
    bash -c '! grep -E " (error|warning) " "$1"' - "$T/a.log"
ok "the Unix socket is for user and group" [ "$(stat -c %a "$T/a.sock")" = 660 ]
ok "the database is the service's alone" [ "$(stat -c %a "$T/a.db")" = 600 ]

ok "a second daemon on the database is refused with 75" \
    status 75 "$MSSCHEDD" --config "$T/empty.conf" --listen none --socket "$T/b.sock" --database "$T/a.db"
ok "and names the first one's pid" says "pid ${pid_of[a]}" \
    "$MSSCHEDD" --config "$T/empty.conf" --listen none --socket "$T/b.sock" --database "$T/a.db"

kill -HUP "${pid_of[a]}"
ok "a reload is told to systemd" wait_for 60 logged notified RELOADING=1
ok "and logged with its settings" wait_for 60 logged a "scheduler.reload mode=standing"
echo "lease_ms = 5" >"$T/empty.conf"
kill -HUP "${pid_of[a]}"
ok "a bad value on reload keeps the old settings" \
    wait_for 60 logged a "keeping the old settings"
ok "and names the legal range" logged a "1000 to 3600000"
echo "topo_timeout_s = 5000" >"$T/empty.conf"
kill -HUP "${pid_of[a]}"
ok "what needs a restart is named" wait_for 60 logged a 'settings="topo_timeout_s"'
times() { [ "$(grep -c "scheduler\.$1 " "$T/a.log")" = "$2" ]; }
kill -HUP "${pid_of[a]}"
ok "and named again by the next reload, for it still is not in force" wait_for 60 times reload_incomplete 2
ok "the log says what is in force" bash -c '! grep "scheduler\.reload " "$1" | grep -v "topo_timeout_ms=1800000"' - "$T/a.log"
: >"$T/empty.conf"
kill -HUP "${pid_of[a]}"
wait_for 60 times reload 4
ok "what was taken back is not warned of" times reload_incomplete 2

kill -TERM "${pid_of[a]}"
ok "TERM ends it with status 0" reap a
ok "STOPPING is told" wait_for 60 logged notified STOPPING=1
ok "its socket is gone" [ ! -e "$T/a.sock" ]
ok "its log of writes is folded in" bash -c '[ ! -s "$1" ]' - "$T/a.db-wal"
ok "it starts again on the same database" start_sched a

stop a
export WATCHDOG_USEC=100000
start_sched a
ok "the watchdog is fed from the loop" wait_for 60 logged notified WATCHDOG=1
unset WATCHDOG_USEC
ok "a scheduler whose cluster does not form ends" status 1 env MS_ROLE=MS_SCHED MS_SCHED_HOST=127.0.0.1 \
    MS_SCHED_PORT="$(free_port)" MS_WORKER_NUM=2 MS_TOPO_TIMEOUT=1 "$MSSCHEDD"
ok "and the service manager is told why" wait_for 60 logged notified "STATUS=stopping: 0 of 2 workers registered"
unset NOTIFY_SOCKET
# ---- what these tests rest on: a program of ours is seen by whoever runs them, root or not, with a parent or without
export BUILD
export -f alive
unprivileged() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid 65534 --regid 65534 --clear-groups bash -c '"$@"' - "$@"
    else
        "$@"
    fi
}
seen() { unprivileged alive | grep -qx "$1"; }
gone() { ! seen "$1"; }
# shellcheck disable=SC2016 # expanded over there
orphan=$(bash -c '"$@" >"$0" 2>&1 & echo $!' "$T/orphan.log" "$MSSCHEDD" --config "$T/empty.conf" --listen 127.0.0.1:0 \
    --socket "$T/orphan.sock" --database "$T/orphan.db" --tls off)
ok "a scheduler whose parent is gone runs" wait_for 60 ready orphan
ok "and is seen" seen "$orphan"
kill -TERM "$orphan"
ok "until it has ended" wait_for 60 gone "$orphan"
finish
