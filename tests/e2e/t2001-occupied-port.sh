#!/usr/bin/env bash
# t2001-occupied-port.sh - a port, a socket or a database that somebody else has
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD"

ok "a scheduler has a port" start_sched a
port=$(port_of a)
second() {
    "$MSSCHEDD" --config "$T/empty.conf" --tls off --database "$T/b.db" "$@"
}
ok "a second one on it ends with 75: it may pass" \
    status 75 second --listen "127.0.0.1:$port" --socket none
ok "it names the port" says "port $port is in use" second --listen "127.0.0.1:$port" --socket none
ok "and the command that finds who has it" says "ss -ltnp 'sport = :$port'" \
    second --listen "127.0.0.1:$port" --socket none
ok "a dynamic cluster says the same" says "ss -ltnp 'sport = :$port'" \
    env MS_ROLE=MS_SCHED MS_SCHED_HOST=127.0.0.1 "MS_SCHED_PORT=$port" MS_WORKER_NUM=1 "$MSSCHEDD"
ok "a Unix socket that is served is not taken away" \
    says "another process listens on $T/a.sock" second --listen none --socket "$T/a.sock"
ok "the first one still listens there" [ -S "$T/a.sock" ]

kill -KILL "${pid_of[a]}"
ok "kill -9 leaves the socket file behind" bash -c '! wait "$1"; [ -S "$2" ]' - "${pid_of[a]}" "$T/a.sock"
reap a
ok "the next one takes it over" start_sched a
echo "keep me" >"$T/file"
ok "a file that is no socket is never removed" says "is no socket" second --listen none --socket "$T/file"
ok "it is still there" grep -q "keep me" "$T/file"
finish
