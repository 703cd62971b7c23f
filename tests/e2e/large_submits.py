"""large_submits.py SOCKET CLIENTS BYTES - clients that each submit job files of so many bytes, await the id, and
submit the next one, until they are refused. Prints "N taken" and the refusals, each once; exit status 1 where a
connection ends instead. Standard library only."""
import socket, struct, sys, threading

HELLO, WELCOME, ERROR, SUBMIT, SUBMITTED = 1, 2, 3, 50, 70
MAX_S = 600
path, clients, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
taken, refusals, cuts = [0] * clients, [""] * clients, []

def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])

def text(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value

def frame(kind, body):
    return b"MSC1" + struct.pack(">HHII", kind, 0, 7, len(body)) + body

def receive(sock, n):
    data = b""
    while len(data) < n:
        part = sock.recv(n - len(data))
        if not part:
            raise ConnectionError("the scheduler hung up")
        data += part
    return data

def ask(sock, data):
    sock.sendall(data)
    kind, _, _, length = struct.unpack(">HHII", receive(sock, 16)[4:])
    return kind, receive(sock, length)

def client(i):
    submit = frame(SUBMIT, text(1, b"{" + b" " * (size - 2) + b"}") + text(2, b"large") + b"\x18\x01")
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(MAX_S)
            sock.connect(path)
            ask(sock, frame(HELLO, b"\x08\x01\x10\x01"))
            kind, body = ask(sock, submit)
            while kind == SUBMITTED:
                taken[i] += 1
                kind, body = ask(sock, submit)
            refusals[i] = body[body.index(b"\x12"):].decode("utf-8", "replace")
    except OSError as why:
        cuts.append(str(why))

threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum(taken), "taken")
for words in sorted(set(refusals)):
    print(words)
for why in cuts[:1]:
    print("cut:", why)
sys.exit(1 if cuts else 0)
