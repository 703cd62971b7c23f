"""hasty.py - a scheduler that speaks byte by byte, and says at once what it has to say

    hasty.py MSWORKER FOLDER MOST_S    one rank ends; in one piece its Stop, the next Assign and the Stop of that
    hasty.py MSWORKER FOLDER MOST_S anew N    a rank, one with another instruction set, and TERM while the worker begins anew, N moments later

The next rank's peer never comes: who did not hear the second Stop waits for it. Surroundings: ROOT."""
import json, os, socket, struct, subprocess, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hostile import CODES, FIELDS, KINDS, NAMES, frame, message, parse, put

CANCELLED = next(code for code, name in CODES.items() if name == "cancelled")
def job(workers):
    return json.dumps({
        "name": "x", "workers": workers, "network": "linear", "dataset": {"kind": "nonlinear"}, "batch_size": 16,
        "epochs": 1, "loss": "mse", "optimizer": {"kind": "sgd", "learning_rate": 0.0001}}).encode()

def assign(job, spec, world, isa=b"sse41"):
    body = message("Assign", job=job, generation=job, world_size=world, job_json=spec, token=b"t" * 32, isa=isa)
    number = next(n for _, _, field, n in FIELDS["Assign"] if field == "members")
    for rank in range(world):
        body += put(number, "Member", message(
            "Member", rank=rank, node_id=b"n%d" % rank, incarnation=1, host_name=b"h%d" % rank,
            host_id=b"i%d" % rank, data_address=b"127.0.0.1:%d" % (1 + rank)))
    return frame(KINDS["Assign"], body, 0)

def stop(job):
    return frame(KINDS["Stop"], message("Stop", job=job, generation=job, code=CANCELLED, text=b"cancelled"), 0)

class Node:
    def __init__(self, sock):
        self.sock, self.data = sock, b""

    def take(self, size):
        while len(self.data) < size:
            part = self.sock.recv(65536)
            assert part, "the worker closed the connection"
            self.data += part
        piece, self.data = self.data[:size], self.data[size:]
        return piece

    def until(self, want):
        """Id and fields of the next message of that name; heartbeats are answered."""
        while True:
            _, kind, _, ident, length = struct.unpack(">4sHHII", self.take(16))
            body = self.take(length)
            if NAMES[kind] == "Heartbeat":
                self.say("HeartbeatAck", ident, lease_ms=10000, heartbeat_ms=1000)
            elif NAMES[kind] == want:
                return ident, parse(body)

    def say(self, name, ident, **values):
        self.sock.sendall(frame(KINDS[name], message(name, **values), ident))

def cross(node, most_s):
    node.sock.sendall(assign(1, b"{}", 1))  # no job: it fails at once
    node.until("RankDone")
    begun = time.monotonic()
    node.sock.sendall(stop(1) + assign(2, job(2), 2) + stop(2))
    _, done = node.until("RankDone")
    took = time.monotonic() - begun
    print("RankDone of job %d after %.2f s" % (done[1], took))
    assert done[1] == 2 and took < most_s

def renew(node, moments):
    leaving = next(n for _, _, field, n in FIELDS["RankDone"] if field == "leaving")
    node.sock.sendall(assign(1, job(1), 1))
    node.until("RankReady")
    node.sock.sendall(stop(1))
    node.until("RankDone")
    node.sock.sendall(assign(2, job(1), 1, b"avx"))
    _, done = node.until("RankDone")
    assert done[1] == 2 and done[leaving] == 1, done
    node.sock.sendall(stop(2))
    node.until("Leave")
    time.sleep(0.02 * moments)  # what it meets is spread over all that follows

def main(msworker, folder, most_s, what="cross", moments="0"):
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(300)
    worker = subprocess.Popen([
        msworker, "--server", "127.0.0.1:%d" % listener.getsockname()[1], "--tls", "off", "--node-id", "n0",
        "--jobs-dir", folder, "--data-port-min", "0"])
    try:
        node = Node(listener.accept()[0])
        node.sock.settimeout(300)
        ident, _ = node.until("Hello")
        node.say("Welcome", ident, protocol=1, software=b"hasty", cluster=b"standing")
        ident, _ = node.until("Register")
        node.say("Registered", ident, node_id=b"n0", lease_ms=10000, heartbeat_ms=1000)
        if what == "anew":
            renew(node, int(moments))
        else:
            cross(node, most_s)
    finally:
        worker.terminate()
        assert worker.wait(300) == 0

main(sys.argv[1], sys.argv[2], float(sys.argv[3]), *sys.argv[4:])
