"""hostile.py - a peer that speaks the control plane byte by byte, and means no good

    hostile.py table           every message in every state and role: the table of docs/security.md
    hostile.py damage [SEED]   the same with damaged bodies: refusals, closes, known answers, else nothing
    hostile.py flood           idle, half, slow and greedy connections at once; a normal client meanwhile

Surroundings: ROOT, and PLAIN (port), TLS (port), UNIX (path), PEM (folder with ca.pem, ROLE.pem), PID.
Messages and fields come from cluster.proto and wire.h, so a new message is tried without a word here.
Standard library only."""
import os, random, re, socket, ssl, struct, sys, time

ROOT = os.environ["ROOT"]
KINDS = {}   # name -> number
FIELDS = {}  # name -> [(repeated, type, name, number)]
CODES = {}
MAX_S = 300

def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()

for name, body in re.findall(r"^message (\w+) \{(.*?)^\}", read("proto/cluster.proto"), re.S | re.M):
    FIELDS[name] = [(bool(r), t, n, int(i)) for r, t, n, i in
                    re.findall(r"^\s*(repeated )?(\w+) (\w+) = (\d+);", body, re.M)]
for name, number in re.findall(r"MS_MSG_(\w+) = (\d+)", read("proto/wire.h")):
    KINDS["".join(part.capitalize() for part in name.split("_"))] = int(number)
for name, number in re.findall(r"MS_E_(\w+) = (-\d+)", read("proto/err.h")):
    CODES[int(number)] = name.lower().replace("_", " ")
NAMES = {number: name for name, number in KINDS.items()}
assert len(KINDS) > 30 and all(name in FIELDS for name in KINDS), "the schema reads otherwise"

# ---- bytes ----

def varint(value):
    out = b""
    value &= (1 << 64) - 1
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])

def put(number, kind, value):
    if kind in ("string", "bytes") or kind in FIELDS:
        return varint(number << 3 | 2) + varint(len(value)) + value
    if kind == "double":
        return varint(number << 3 | 1) + struct.pack("<d", value)
    return varint(number << 3) + varint(value)

def message(name_, **values):
    """The message with the values given; the others stay away."""
    out = b""
    for repeated, kind, field, number in FIELDS[name_]:
        if field in values:
            out += put(number, kind, values[field])
    return out

def full(name, number=999999, text=b"x", depth=0):
    """Every field once."""
    out = b""
    for repeated, kind, field, tag in FIELDS[name]:
        if kind in FIELDS:
            value = full(kind, number, text, depth + 1)
        else:
            value = {"string": text, "bytes": {"token": b"t" * 32, "state_digest": b"d" * 16}.get(field, b"{}"),
                     "double": 0.5, "bool": 1}.get(kind, number)
        out += put(tag, kind, value)
    return out

def frame(kind, body, ident=7, magic=b"MSC1", zero=0, length=None):
    return magic + struct.pack(">HHII", kind, zero, ident, len(body) if length is None else length) + body

HELLO = frame(KINDS["Hello"], message("Hello", protocol_min=1, protocol_max=1, software=b"hostile"))

def parse(body):
    """Numbers and strings of a message by field number."""
    out, at = {}, 0
    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = body[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(body):
        tag = number()
        if tag & 7 == 0:
            out[tag >> 3] = number()
        elif tag & 7 == 2:
            size = number()
            out[tag >> 3] = body[at:at + size]
            at += size
        else:
            at += 8 if tag & 7 == 1 else 4
    return out

# ---- connections ----

class Peer:
    def __init__(self, who, hello=True):
        self.who, self.data, self.job, self.generation, self.owner = who, b"", 0, 0, None
        if who in ("anyone", "plain"):
            self.sock = socket.create_connection(("127.0.0.1", int(os.environ["PLAIN"])))
        elif who == "socket":
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(os.environ["UNIX"])
        else:
            pem = os.environ["PEM"]
            context = ssl.create_default_context(cafile=pem + "/ca.pem")
            context.check_hostname = False
            context.load_cert_chain(f"{pem}/{who}.pem")
            self.sock = context.wrap_socket(socket.create_connection(("127.0.0.1", int(os.environ["TLS"]))))
        self.sock.settimeout(MAX_S)
        if hello:
            self.send(HELLO)
            assert self.next()[0] == KINDS["Welcome"]

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            pass  # closed already: what came back says why

    def next(self):
        """(type, id, body), or None at the end. Whatever comes is a frame of a known type."""
        while len(self.data) < 16 or len(self.data) < 16 + struct.unpack(">I", self.data[12:16])[0]:
            try:
                part = self.sock.recv(65536)
            except (ConnectionError, ssl.SSLError):
                part = b""
            if not part:
                return None
            self.data += part
        magic, kind, zero, ident, length = struct.unpack(">4sHHII", self.data[:16])
        assert magic == b"MSC1" and zero == 0 and kind in NAMES, self.data[:16]
        body, self.data = self.data[16:16 + length], self.data[16 + length:]
        return kind, ident, body

    def close(self):
        if self.owner is not None:
            ask(self.owner, frame(KINDS["Cancel"], message("Cancel", job=self.job)))
            self.owner.close()
        self.sock.close()

PROBE = 4242  # id of a question behind each frame: its answer says that there was no other

def probe(peer):
    name = "Heartbeat" if peer.who == "worker" else "StatusQuery"
    return frame(KINDS[name], b"" if peer.who != "worker" else message(
        name, job=peer.job, generation=peer.generation), PROBE)

def ask(peer, data, ident=7):
    """What a frame leads to: 'Ok', 'Error: refused', 'closed', or '' for no answer."""
    peer.send(data + probe(peer))
    said = []
    while True:
        got = peer.next()
        if got is None:
            return ", ".join(said + ["closed"])
        kind, answered, body = got
        if answered == PROBE:
            return ", ".join(said)
        if kind == KINDS["Assign"]:
            peer.job, peer.generation = parse(body)[1], parse(body)[2]
        if answered == ident and ident != 0 or kind == KINDS["Error"]:
            word = NAMES[kind]
            if kind == KINDS["Error"]:
                code = parse(body).get(1, 0)
                word += ": " + CODES.get(code - (1 << 64) if code >> 63 else code, "?")
            said.append(word)

serial = 0

def register(who):
    global serial
    serial += 1
    peer = Peer(who)
    node = b"worker-%d" % serial
    said = ask(peer, frame(KINDS["Register"], message(
        "Register", node_id=node, incarnation=serial, host_name=b"h", host_id=b"h",
        data_address=b"127.0.0.1:1", cores=1, isa=b"avx2", onednn=b"2.6.3", pid=1)))
    assert said == "Registered", said
    return peer

def hold(who, asker):
    """A registered worker that was given rank 0 of a job, which ends with it."""
    worker = register(who)
    worker.owner = Peer(asker)
    assert ask(worker.owner, frame(KINDS["Submit"], message(
        "Submit", job_json=b"{}", name=b"held", workers=1, priority=0))) == "Submitted"
    while worker.job == 0:
        kind, _, body = worker.next()
        if kind == KINDS["Assign"]:
            worker.job, worker.generation = parse(body)[1], parse(body)[2]
    return worker

def usual(name):
    """A body that is what its sender would send, about a job that does not exist."""
    if name == "Submit":  # more ranks than there are nodes: it stays in the queue
        return message("Submit", job_json=b"{}", name=b"hostile", workers=1000,
                       priority=-100)
    if name in ("JobQuery", "NodeQuery", "StatusQuery", "EventQuery"):
        return b""
    if name == "Register":
        return message("Register", node_id=b"worker:again", incarnation=1, host_name=b"h", host_id=b"h",
                       data_address=b"127.0.0.1:1", cores=1, isa=b"avx2", onednn=b"2.6.3")
    if name == "Hello":
        return message("Hello", protocol_min=1, protocol_max=1, software=b"hostile")
    if name in ("FetchRead",):
        return message(name, token=b"t" * 32)
    return full(name) if name not in ("Assign",) else message(name, job=1)

STATES = [
    ("before Hello", lambda: Peer("user", hello=False)),
    ("user", lambda: Peer("user")),
    ("admin", lambda: Peer("admin")),
    ("socket, as admin", lambda: Peer("socket")),
    ("anyone", lambda: Peer("anyone")),
    ("worker", lambda: Peer("worker")),
    ("worker, registered", lambda: register("worker")),
    ("worker with a rank", lambda: hold("worker", "user")),
    ("closing", lambda: closing()),
]

def closing():
    peer = Peer("user")
    peer.send(HELLO)  # a second one: refused, and the end
    return peer

def first_of_closing(said):
    return "closed" if said.endswith("closed") else said

# ---- the table ----

def table():
    print("| message | " + " | ".join(state for state, _ in STATES) + " |")
    print("|---|" + "---|" * len(STATES))
    for number in sorted(NAMES):
        cells = []
        for state, make in STATES:
            peer = make()
            said = ask(peer, frame(number, usual(NAMES[number])))
            if state == "closing":
                said = first_of_closing(said)
            cells.append(said or "-")
            peer.close()
        print(f"| {NAMES[number]} | " + " | ".join(cells) + " |")

# ---- damage ----

LONG = [64, 65, 256, 257, 320, 321, 384, 385, 1024, 1025, 4000]
WRONG_TEXT = [b"\xff", b"a\xed\xa0\x80", b"\xc0\x80", b"a\nb", b"\x1b[2J", b"\xc2\x9b", b"\xe2\x80\xae", b"a\0b"]
NUMBERS = [0, 1, 2, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 53) - 1, 1 << 53, (1 << 63), (1 << 64) - 1]

def damaged(name, rng):
    """A frame that no client would send: at its boundary, or beyond."""
    number = KINDS[name]
    body = full(name, rng.choice(NUMBERS), rng.choice([b"", b"a", b"x" * rng.choice(LONG), rng.choice(WRONG_TEXT)]))
    way = rng.randrange(9)
    if way == 0:
        return frame(number, body[:rng.randrange(len(body) + 1)])
    if way == 1:
        body = bytearray(body)
        for _ in range(rng.randrange(1, 8)):
            if body:
                body[rng.randrange(len(body))] = rng.randrange(256)
        return frame(number, bytes(body))
    if way == 2:
        return frame(number, body + body)  # singular fields twice
    if way == 3:
        return frame(number, b"".join(put(900 + i, "bytes", b"?") for i in range(rng.choice([16, 17, 400]))))
    if way == 4:
        return frame(number, rng.randbytes(rng.randrange(200)))
    if way == 5:
        return frame(number, body, zero=rng.choice([0, 1, 65535]))
    if way == 6:
        return frame(rng.choice([0, 2, 999, 65535, number]), body, rng.choice([0, 1, (1 << 32) - 1]))
    if way == 7:
        return frame(number, body, length=rng.choice([len(body), 0, 65536, 1 << 20, (1 << 32) - 1]))
    return frame(number, body)

def damage(seed, rounds):
    rng = random.Random(seed)
    print("seed", seed)
    n = 0
    for state, make in STATES:
        if state == "worker with a rank":
            continue
        for _ in range(rounds):
            peer = make()
            for name in rng.sample(sorted(KINDS), 4):
                peer.send(damaged(name, rng))
                n += 1
            peer.send(probe(peer))
            peer.sock.settimeout(5)
            try:
                while True:
                    got = peer.next()  # asserts that it is a frame of a known type
                    if got is None or got[1] == PROBE:
                        break
            except (TimeoutError, socket.timeout):
                pass  # a half frame: the daemon waits for the rest of it
            peer.close()
    print(n, "frames")

# ---- flood ----

def rss_kib(what="VmRSS"):
    for line in open(f"/proc/{os.environ['PID']}/status", encoding="utf-8"):
        if line.startswith(what):
            return int(line.split()[1])
    return 0

def ready_s():
    """Seconds in which the scheduler and this process wanted to run, and others had the processors."""
    total = 0
    for pid in os.environ["PID"], "self":
        try:
            with open(f"/proc/{pid}/schedstat", encoding="utf-8") as file:
                total += int(file.read().split()[1]) / 1e9
        except OSError:
            pass
    return total

def served():
    """Seconds that a normal client waits for its answer: over the Unix socket, from nothing; without those that are the machine's."""
    began, others = time.monotonic(), ready_s()
    peer = Peer("socket")
    assert ask(peer, frame(KINDS["StatusQuery"], b"")) == "StatusInfo"
    peer.close()
    return time.monotonic() - began - (ready_s() - others)

def flood(worst_s, worst_kib):
    before = rss_kib()
    maker = Peer("user")
    for _ in range(300):  # something to list
        maker.send(frame(KINDS["Submit"], message("Submit", job_json=b"{}" + b" " * 1000, name=b"n" * 64, workers=1000)))
    assert ask(maker, frame(KINDS["StatusQuery"], b""), 9).endswith("")
    job = frame(KINDS["JobQuery"], message("JobQuery", all=1))
    idle = []
    for _ in range(600):  # more than the doors hold
        sock = socket.create_connection(("127.0.0.1", int(os.environ[random.choice(["TLS", "PLAIN"])])))
        idle.append(sock)
    for _ in range(100):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(os.environ["UNIX"])
        idle.append(sock)
    # ten that ask 13 KiB of lists each and read nothing, ten that watch all and read nothing
    greedy = [Peer("user") for _ in range(10)] + [Peer("admin") for _ in range(10)]
    for i, peer in enumerate(greedy):
        peer.sock.settimeout(1)
        many = job * (13 * 1024 // len(job)) if i < 10 else b"".join(
            frame(KINDS["Watch"], message("Watch", job=k), k) for k in range(1, 100))
        peer.send(many)
    # half frames that announce much, slow bytes
    half = [Peer("user") for _ in range(80)]
    for peer in half:
        peer.send(frame(KINDS["Submit"], b"", length=200000) + b"\x0a")
    slow = Peer("user", hello=False)
    # floods of what is refused: the log
    refused = Peer("worker")
    refused.sock.settimeout(1)
    times = []
    for i in range(40):
        slow.send(HELLO[i % len(HELLO):i % len(HELLO) + 1])
        refused.send(frame(KINDS["Register"], message("Register", node_id=b"not-mine")) * 200)
        for peer in greedy[:10]:
            peer.send(job * 20) if i == 0 else None
        times.append(served())
    print("a normal client waited at most %.2f s; memory %d -> %d KiB, at most %d" % (
        max(times), before, rss_kib(), rss_kib("VmHWM")))
    assert max(times) <= worst_s, times
    assert rss_kib("VmHWM") <= worst_kib, rss_kib("VmHWM")

if __name__ == "__main__":
    what = sys.argv[1]
    if what == "table":
        table()
    elif what == "damage":
        damage(int(sys.argv[2]), int(sys.argv[3]))
    elif what == "flood":
        flood(float(sys.argv[2]), int(sys.argv[3]))
