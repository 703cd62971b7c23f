#!/usr/bin/env bash
# t4030-identity.sh - one person, one owner: by socket, by certificate, and anyone without TLS
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSWORKER" "$MSCTL" python3 setpriv
. "$(dirname "$0")/standing.sh"
[ "$(id -u)" = 0 ] || skip_all "other uids can only be had by root"
getent passwd nobody >/dev/null || skip_all "there is no user nobody"
NOBODY=$(id -u nobody)

chmod 755 "$T"
cp "$MSCTL" "$T/msctl" # where other uids can reach it
job() {
    make_job "$1" 9 1
    echo "priority: $2" >>"$T/$1.yaml"
    chmod 644 "$T/$1.yaml"
}
job plain 0
job urgent 500
# uid UID word...: msctl as another user, over the Unix socket
uid() {
    local as=$1
    shift
    setpriv --reuid "$as" --regid "$as" --clear-groups \
        "$T/msctl" --config "$T/empty.conf" --server "unix:$T/a.sock" "$@"
}
owner_is() { json show "$1" -- "j['owner'] == '$2'"; }

# ---- sockets and certificates ----
make_certificates
issue user nobody --out "$T/tls/nobody.p12"
export MSCHED_USER_MAP="carol=12346"
ok "the scheduler serves certificates and uids" start_head
chmod 666 "$T/a.sock"
ok "a uid with a name submits" says 1 uid "$NOBODY" submit "$T/plain.yaml"
ok "the owner is its name" owner_is 1 "user:nobody"
ok "a uid without a name submits" says 2 uid 12345 submit "$T/plain.yaml"
ok "the owner is its number" owner_is 2 "uid:12345"
ok "a uid that the operator has named submits" says 3 uid 12346 submit "$T/plain.yaml"
ok "the owner is what he said" owner_is 3 "user:carol"
ok "a table shows names" says " nobody " as alice jobs
ok "another uid may not cancel" status 4 uid 12345 cancel 1
ok "and hears who is who" says "belongs to user:nobody and you are uid:12345" uid 12345 cancel 1
ok "nor another certificate" status 4 as bob cancel 1
ok "the same person may, with a certificate" as nobody cancel 1
ok "what he submits with it ..." says 4 as nobody submit "$T/plain.yaml"
ok "... he cancels by socket" uid "$NOBODY" cancel 4
ok "root cancels the job of another uid" ctl a cancel 2
ok "the reason says who" json show 2 -- "j['reason'] == 'cancelled by root'"
ok "an admin's certificate, too" as root cancel 3
ok "a user's priority has a range" status 4 as alice submit "$T/urgent.yaml"
ok "which is said" says "users have -100 to 100 here" as alice submit "$T/urgent.yaml"
ok "an admin's is wider" says 5 ctl a submit "$T/urgent.yaml"
ok "root's jobs are an admin's" owner_is 5 "admin:root"
ok "and not a user's to cancel, whatever he is called" status 4 as alice cancel 5

# ---- files of another user ----
cp "$MSSCHEDD" "$MSWORKER" "$T"
mkdir "$T/nobodys" "$T/tls/node9" && chown "$NOBODY" "$T/nobodys"
issue worker node9 --out "$T/tls/node9/node.p12" && cp "$CA/ca.crt" "$T/tls/node9/"
as_nobody() { setpriv --reuid "$NOBODY" --regid "$NOBODY" --clear-groups env HOME=/nonexistent "$@"; }
nobodys_head() {
    as_nobody "$T/msschedd" --config "$T/empty.conf" --listen 127.0.0.1:0 --socket "$T/nobodys/s" \
        --database "$T/nobodys/db" --tls on --tls-crl none --tls-ca "$T/tls/sched/ca.crt" --tls-cert "$T/tls/sched/node.p12"
}
nobodys_node() {
    as_nobody "$T/msworker" --server "$HEAD" --tls-dir "$T/tls/node9" --jobs-dir "$T/nobodys"
}
ok "a scheduler that may not read its key is not tried again" status 78 nobodys_head
ok "and says what gives it the key" says "sudo chmod 640 $T/tls/sched/node.p12" nobodys_head
ok "nor is such a worker" status 78 nobodys_node
ok "which says so, too" says "sudo chmod 640 $T/tls/node9/node.p12" nobodys_node

# ---- node ids ----
mkdir -p "$T/tls/node7" && cp "$CA/ca.crt" "$T/tls/node7/"
issue worker node7 --host 127.0.0.1 --out "$T/tls/node7/node.p12"
node() {
    local name=$1
    shift
    start "$name" "$MSWORKER" --server "$HEAD" --tls-dir "$T/tls/node7" --jobs-dir "$T/jobs" \
        --data-port-min 0 --data-port-max 0 "$@"
}
has_node() { json nodes -- "any(n['node'] == '$1' for n in j)"; }
node first
ok "the built-in node id is the certificate's name and the slot" wait_for 60 has_node node7-0
node second --node-id node8-0
ok "an id of another name is refused" wait_for 60 logged second "node id node8-0 is for the certificate node8, and this one is node7"
ok "and the worker ends" wait_for 60 has_ended "${pid_of[second]}"
stop second
stop first
stop a
unset MSCHED_USER_MAP

# ---- without TLS ----
ok "a scheduler without TLS" start_sched b
plain() {
    printf 'server = %s\ntls = off\n' "$(address_of b)" >"$T/plain.conf"
    "$MSCTL" --config "$T/plain.conf" "$@"
}
ok "anyone submits" says 1 plain submit "$T/plain.yaml"
ok "anyone cancels it over another connection" plain cancel 1
ok "the reason says who" says "cancelled by anyone" plain show 1
stop b
ok "where anyone is a user only" start_sched b --anyone user
chmod 666 "$T/b.sock"
ok "his priority is a user's" says "users have -100 to 100 here" plain submit "$T/urgent.yaml"
ok "what root submits" says 2 ctl b submit "$T/plain.yaml"
ok "is not his to cancel" says "belongs to admin:root and you are anyone" plain cancel 2
start w "$MSWORKER" --server "$(address_of b)" --tls off --node-id w --jobs-dir "$T/jobs" --data-port-min 0 --data-port-max 0
ok "and he registers no node" wait_for 60 logged w "may not send Register"
stop w
stop b
ok "a word that is no role is 78" status 78 "$MSSCHEDD" --config "$T/empty.conf" --anyone root --check-config
ok "a range that is none is 78" status 78 "$MSSCHEDD" --config "$T/empty.conf" --priority-users 5 --check-config
ok "a map that is none is 78" status 78 "$MSSCHEDD" --config "$T/empty.conf" --user-map alice --check-config
finish
