#!/usr/bin/env bash
# t2003-garbage.sh - bytes that are no frames: the peer hears why, the daemon goes on
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" python3

cat >"$T/peer.py" <<'PY'
"""peer.py PORT CASE: sends bytes that no client would; prints the answer, fails when none is due."""
import os, socket, struct, sys, time

port, case = int(sys.argv[1]), sys.argv[2]

def connect():
    s = socket.create_connection(("127.0.0.1", port))
    s.settimeout(60)
    return s

def frame(kind, body, ident=7, magic=b"MSC1", zero=0, length=None):
    return magic + struct.pack(">HHII", kind, zero, ident, len(body) if length is None else length) + body

def text(number, value):  # a protobuf string
    return bytes([number << 3 | 2]) + bytes([len(value)]) + value

HELLO = frame(1, b"\x08\x01\x10\x01" + text(3, b"garbage test"))

def drain(s):
    data = b""
    try:
        while True:
            part = s.recv(65536)
            if not part:
                return data
            data += part
    except ConnectionResetError:
        return data

cases = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "random": os.urandom(4096),
    "zeros": b"\0" * 4096,
    "tls": bytes.fromhex("1603010200010001fc0303") + b"\0" * 500,
    "rpc0": b"RPC0" + b"\0\0\0\1" * 4,
    "oversize": HELLO + frame(50, b"", length=0xFFFFFFFF),
    "above_its_type": HELLO + frame(11, b"", length=3 << 20),
    "reserved": HELLO + frame(11, b"", zero=1),
    "unknown_type": HELLO + frame(999, b""),
    "no_hello": frame(11, b""),
    "second_hello": HELLO + HELLO,
    "bad_protobuf": HELLO + frame(50, b"\xff" * 64),
    "control_bytes": HELLO + frame(54, text(1, b"a\x01b")),
    "wrong_protocol": frame(1, b"\x08\x63\x10\x63"),
    "not_a_request": HELLO + frame(33, b""),
}

if case == "half":  # a frame that never becomes whole, then a close
    s = connect()
    s.sendall(HELLO + frame(50, b"x" * 100)[:50])
    s.close()
elif case == "silent":  # a connection that says nothing is closed by the handshake's time limit
    s = connect()
    began = time.monotonic()
    drain(s)
    print("closed after", round(time.monotonic() - began), "s")
elif case == "many":  # hundreds of silent connections: more than fit into the handshake
    held = [connect() for _ in range(400)]
    s = connect()
    s.sendall(HELLO)
    print("welcomed" if b"MSC1" in s.recv(65536) else "not welcomed")
else:
    s = connect()
    s.sendall(cases[case])
    answer = b""
    if case == "not_a_request":  # refused, and the connection lives on
        while b"may not" not in answer:
            answer += s.recv(65536)
    else:
        answer = drain(s)
    print(answer)
PY
peer() { python3 "$T/peer.py" "$(port_of a)" "$@"; }

ok "a scheduler runs" start_sched a
while read -r case part; do
    ok "$case is answered: $part" says "$part" peer "$case"
done <<'LIST'
http HTTP
rpc0 MindSpore
oversize Submit
above_its_type Heartbeat
reserved reserved bits
unknown_type 999
no_hello Hello
second_hello Hello
bad_protobuf Submit
control_bytes NodeQuery
wrong_protocol install the same release
not_a_request may not send Start
LIST
ok "random bytes end the connection" peer random
ok "zeros end the connection" peer zeros
ok "a TLS client at a plain port hears of it" peer tls
ok "half a frame and a close" peer half
ok "a silent peer is not kept" says "closed after" peer silent
ok "400 silent peers do not keep others out for long" says welcomed peer many

ok "it is still the same process" kill -0 "${pid_of[a]}"
ok "it still answers" says welcomed peer many
ok "what happened is in its log, once in a while" \
    bash -c 'n=$(grep -c "conn.refused" "$1"); [ "$n" -ge 1 ] && [ "$n" -le 40 ]' - "$T/a.log"
ok "TERM still ends it with 0" bash -c 'kill -TERM "$1"' - "${pid_of[a]}"
ok "cleanly" reap a
finish
