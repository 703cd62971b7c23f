#!/usr/bin/env bash
# t4001-certificates.sh - nobody gets in without a certificate, and everybody hears why
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSWORKER" "$MSCTL" python3 openssl

CA=$T/ca
tls=$T/tls
mkdir "$tls"
issue() { "$MSCTL" certs --dir "$CA" issue "$@"; }
ok "a certificate authority is made" "$MSCTL" certs --dir "$CA" init
cp "$CA/ca.crt" "$tls/ca.crt"
ok "a scheduler's certificate" issue scheduler head --host 127.0.0.1 --out "$tls/node.p12"
ok "a user's" issue user alice --out "$tls/alice.p12"
ok "an admin's" issue admin root --out "$tls/root.p12"
ok "a worker's" issue worker w1 --host 127.0.0.1 --out "$tls/w1.p12"
"$MSCTL" certs --dir "$T/ca2" init >/dev/null
"$MSCTL" certs --dir "$T/ca2" issue user mallory --out "$tls/mallory.p12" >/dev/null
"$MSCTL" certs --dir "$T/ca2" issue scheduler fake --host 127.0.0.1 --out "$tls/fake.p12" >/dev/null

start_tls() {
    local name=$1
    shift
    start_sched "$name" --tls on --tls-ca "$tls/ca.crt" --tls-cert "$tls/node.p12" --tls-crl none "$@"
}
# as NAME [CA]: msctl with that certificate over TCP
as() {
    local who=$1 ca=${2:-$tls/ca.crt}
    printf 'server = %s\ntls = on\ncertificate = %s\nca = %s\n' "$(address_of a)" "$tls/$who.p12" "$ca" \
        >"$T/$who.conf"
    shift $(($# < 2 ? $# : 2))
    "$MSCTL" --config "$T/$who.conf" "$@"
}

ok "it starts with certificates" start_tls a
ok "its log says that TLS is on" logged a "tls=on"
ok "a user gets in" says "standing" as alice "$tls/ca.crt" status
ok "an admin gets in" as root "$tls/ca.crt" nodes
ok "a certificate of another CA is refused" status 3 as mallory "$tls/ca.crt" status
ok "and the client hears why" says "certificate" as mallory "$tls/ca.crt" status
ok "a client that trusts another CA refuses the scheduler" status 3 as alice "$T/ca2/ca.crt" status
cat >"$T/plain.conf" <<CONF
server = $(address_of a)
tls = off
CONF
ok "a plain client is refused" status 4 "$MSCTL" --config "$T/plain.conf" status
ok "and told which setting of his to take back" says "here stands tls = off in $T/plain.conf" "$MSCTL" --config "$T/plain.conf" status
cat >"$T/bare.py" <<'PY'
import socket, ssl, sys
host, port = sys.argv[1].rsplit(":", 1)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
if len(sys.argv) > 2:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
try:
    with context.wrap_socket(socket.create_connection((host, int(port)))) as s:
        data = s.recv(100)  # TLS 1.3: the verdict comes with the first read
        print("got", data)
except ssl.SSLError as error:
    print("refused:", error)
PY
ok "a TLS client without any certificate is refused" says "refused:" python3 "$T/bare.py" "$(address_of a)"
ok "TLS 1.2 is refused" says "refused:" python3 "$T/bare.py" "$(address_of a)" 1.2
ok "the log says who was refused and why" logged a "conn.refused"
ok "msctl says that a worker's certificate is not for it" says "is no user's but that of worker:w1" as w1 "$tls/ca.crt" status
ok "the Unix socket needs no certificate" ctl a status

cat >"$T/job.yaml" <<'YAML'
name: waits
workers: 1
network: linear
dataset: {kind: nonlinear}
batch_size: 16
epochs: 1
loss: mse
optimizer: {kind: momentum, learning_rate: 0.005, momentum: 0.9}
YAML
# reload: a revoked certificate stays out, a broken one changes nothing
ok "the user's certificate is revoked" "$MSCTL" certs --dir "$CA" --out "$tls/crl.pem" revoke "$tls/alice.p12"
stop a
ok "it starts with the list of revoked certificates" start_tls a --tls-crl "$tls/crl.pem"
ok "the revoked user stays out" status 4 as alice "$tls/ca.crt" status
ok "others get in" as root "$tls/ca.crt" status
cp "$tls/node.p12" "$T/good.p12"
echo garbage >"$tls/node.p12"
kill -HUP "${pid_of[a]}"
ok "a broken certificate on reload is named" wait_for 60 logged a "keeping the old settings"
ok "and the old one goes on" as root "$tls/ca.crt" status
cp "$T/good.p12" "$tls/node.p12"
# a FIFO in the place of a file: nobody writes there, and nobody waits for that
cp "$tls/ca.crt" "$T/ca.copy"
for file in crl.pem ca.crt; do
    mv "$tls/$file" "$T/away"
    mkfifo "$tls/$file"
    kill -HUP "${pid_of[a]}"
    ok "a FIFO in the place of $file fails a reload" wait_for 60 logged a "$file is no regular file"
    ok "and holds nobody up" as root "$T/ca.copy" status
    rm "$tls/$file"
    mv "$T/away" "$tls/$file"
done
as root "$tls/ca.crt" submit "$T/job.yaml" >/dev/null
start watcher as root "$tls/ca.crt" watch 1
ok "an admin watches a job" wait_for 60 bash -c '"$MSCTL" --config "$1/empty.conf" --server "unix:$1/a.sock" --json status | grep -q "\"clients\":2"' - "$T"
"$MSCTL" certs --dir "$CA" --out "$tls/crl.pem" revoke "$tls/root.p12" >/dev/null
kill -HUP "${pid_of[a]}"
ok "a reload is logged" wait_for 60 logged a "scheduler.reload mode"
ok "what it revoked is thrown out" wait_for 60 logged a "conn.revoked"
ok "and stays out" wait_for 60 status 4 as root "$tls/ca.crt" status
stop watcher

# a handshake that began before a reload ends after it: its Hello is judged by what holds then
issue user carol --out "$tls/carol.p12" >/dev/null
openssl pkcs12 -in "$tls/carol.p12" -passin pass: -nodes -out "$T/carol.pem" 2>/dev/null
cat >"$T/slow.py" <<'PY'
import socket, ssl, struct, sys
host, port = sys.argv[1].rsplit(":", 1)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.load_cert_chain(sys.argv[2])
with context.wrap_socket(socket.create_connection((host, int(port)))) as s:
    print("shaken", flush=True)
    open(sys.argv[3]).read()  # until somebody has opened and closed it
    hello = b"\x08\x01\x10\x01\x1a\x04slow"  # protocol 1 to 1, software "slow"
    s.sendall(struct.pack(">4sHHII", b"MSC1", 1, 0, 0, len(hello)) + hello)
    head = s.recv(16)
    print("type", head[5], s.recv(4096))
PY
mkfifo "$T/go"
slow() { start "$1" python3 "$T/slow.py" "$(address_of a)" "$T/carol.pem" "$T/go"; }
slow early
ok "a user shakes hands" wait_for 60 grep -q shaken "$T/early.log"
: >"$T/go"
ok "and is welcome" wait_for 60 grep -q "type 2" "$T/early.log"
slow late
ok "and does so again" wait_for 60 grep -q shaken "$T/late.log"
"$MSCTL" certs --dir "$CA" --out "$tls/crl.pem" revoke "$tls/carol.p12" >/dev/null
reloads=$(grep -c "scheduler.reload mode" "$T/a.log")
kill -HUP "${pid_of[a]}"
more_reloads() { [ "$(grep -c "scheduler.reload mode" "$T/a.log")" -gt "$reloads" ]; }
ok "a reload revokes the certificate meanwhile" wait_for 60 more_reloads
: >"$T/go"
ok "and the Hello that comes after it is refused" wait_for 60 grep -q "type 3.*revoked" "$T/late.log"

# each program has a certificate of its own kind
cp "$tls/w1.p12" "$tls/node.p12"
kill -HUP "${pid_of[a]}"
ok "a worker's certificate is refused at a reload" wait_for 60 logged a "is no scheduler's but that of worker:w1"
cp "$T/good.p12" "$tls/node.p12"
stop a

# where a list may be missing, one that was in force is not lost by a reload
mkdir -p "$T/run/tls"
cp "$tls/ca.crt" "$tls/crl.pem" "$T/run/tls/"
cp "$T/good.p12" "$T/run/tls/scheduler.p12"
start r "$MSSCHEDD" --run-dir "$T/run"
ok "a scheduler finds a list at the place where one may be" wait_for 60 ready r
cat >"$T/carol.conf" <<CONF
server = $(address_of r)
tls = on
certificate = $tls/carol.p12
ca = $tls/ca.crt
CONF
revoked_stay_out() { says revoked "$MSCTL" --config "$T/carol.conf" status; }
ok "whom it names stays out" revoked_stay_out
mv "$T/run/tls/crl.pem" "$T/crl.away"
kill -HUP "${pid_of[r]}"
ok "a reload without the list fails, and says why" \
    wait_for 60 logged r "crl.pem is missing, and without it whoever was revoked would get in"
ok "and those that it names still stay out" revoked_stay_out
mv "$T/crl.away" "$T/run/tls/crl.pem"
kill -HUP "${pid_of[r]}"
ok "with the list in its place it is a reload again" wait_for 60 logged r "scheduler.reload mode"
ok "as before" revoked_stay_out
stop r

# TLS is not switched by a reload: who connected plain would be left behind
printf 'listen = 127.0.0.1:0\nsocket = %s\ndatabase = %s\ntls_cert = none\ntls_ca = %s\ntls_crl = none\n' \
    "$T/p.sock" "$T/p.db" "$tls/ca.crt" >"$T/p.conf"
start p "$MSSCHEDD" --config "$T/p.conf"
wait_for 60 logged p scheduler.start
kill -HUP "${pid_of[p]}" # before it listens or after: harmless
wait_for 60 ready p
ok "without a certificate it serves loopback plain" [ -n "$(address_of p)" ]
sed -i "s|^tls_cert = .*|tls_cert = $tls/node.p12|" "$T/p.conf"
kill -HUP "${pid_of[p]}"
ok "a certificate that appears takes a restart, and that is said" \
    wait_for 60 logged p "TLS cannot be switched on by a reload"
stop p

# starting with what cannot work: 78, and what to do
again() {
    "$MSSCHEDD" --config "$T/empty.conf" --listen 127.0.0.1:0 --socket none --database "$T/c.db" "$@"
}
with() { again --tls on --tls-ca "$tls/ca.crt" --tls-cert "$@" --tls-crl none; }
ok "a missing certificate is 78" status 78 with "$tls/none.p12"
ok "and says how to make one" says "msctl certs" with "$tls/none.p12"
ok "a worker's certificate is 78" status 78 with "$tls/w1.p12"
ok "and says what is needed" says "is no scheduler's but that of worker:w1: issue one with: msctl certs issue scheduler" with "$tls/w1.p12"
ok "a user's, too" status 78 with "$tls/alice.p12"
ok "--check-config says the same" says "is no scheduler's" with "$tls/w1.p12" --check-config
ok "and ends with 78" status 78 with "$tls/w1.p12" --check-config
mkdir -p "$T/worker" && cp "$tls/ca.crt" "$T/worker/" && cp "$tls/node.p12" "$T/worker/node.p12"
as_worker() { "$MSWORKER" --server 127.0.0.1:1 --tls-dir "$T/worker" "$@"; }
ok "a worker with the scheduler's certificate is 78" status 78 as_worker
ok "and says what it needs" says "is no worker's but that of scheduler:head" as_worker
ok "its --check-config, too" status 78 as_worker --check-config
ok "a certificate of another CA than ours is 78" status 78 with "$tls/fake.p12"
chmod 644 "$tls/node.p12"
ok "a key that others can read is 78" status 78 with "$tls/node.p12"
ok "and names the mode" says "chmod" with "$tls/node.p12"
chmod 600 "$tls/node.p12"
"$MSCTL" certs --dir "$CA" issue scheduler locked --password-file <(echo secret) \
    --out "$tls/locked.p12" >/dev/null 2>&1 || {
    echo secret >"$T/password"
    chmod 600 "$T/password"
    "$MSCTL" certs --dir "$CA" issue scheduler locked --password-file "$T/password" \
        --out "$tls/locked.p12" >/dev/null
}
ok "a wrong password is 78" status 78 with "$tls/locked.p12"
ok "a readable password file is refused" bash -c 'echo secret >"$1/open" && chmod 644 "$1/open"' - "$T"
ok "a password that nobody gave is asked for by the names of its settings" \
    says "tls_password_file" with "$tls/locked.p12" --check-config
ok "and a unit's is said not to be seen" says "LoadCredential=p12-password" with "$tls/locked.p12" --check-config
ok "with the command that mends it" says "chmod 0600" with "$tls/locked.p12" --tls-password-file "$T/open"
cat >"$T/tls.json" <<'JSON'
{"server_cert_path": "tls/node.p12", "client_cert_path": "tls/root.p12",
 "ca_cert_path": "tls/ca.crt", "crl_path": "",
 "cipher_list": "ECDHE-R SA-AES128-GCM-SHA256:DHE-DSS-AES128-GCM-SHA256",
 "cert_expire_warning_time_in_day": 90}
JSON
ok "the seed's JSON works, its cipher list is only warned about" start_sched j --tls on --tls-config "$T/tls.json"
stop j
sed -i 's/crl_path/crl_pth/' "$T/tls.json"
ok "a wrong key in it is refused with the nearest" says 'did you mean \"crl_path' \
    again --tls-config "$T/tls.json"
finish
