#!/usr/bin/env python3
"""starve.py - takes memory or descriptors away from a scheduler that runs, and floods it (t2041)

    starve.py memory           address space for 48 MiB more; large jobs, lists that nobody reads
    starve.py descriptors      no more than it has slots for (64 as a rule); 300 connections

Environment as for hostile.py, PID the scheduler's."""
import os
import resource
import socket
import sys
import time

from hostile import HELLO, KINDS, MAX_S, NAMES, Peer, ask, frame, message, parse, rss_kib, served

PID = int(os.environ["PID"])
NO_LIMIT = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
STATUS = frame(KINDS["StatusQuery"], b"")

def submit(peer, size):
    """(what came, job id): of one submit of so many bytes."""
    peer.send(frame(KINDS["Submit"], message("Submit", job_json=b"{}" + b" " * size, name=b"n", workers=1000)))
    got = peer.next()
    if got is None:
        return "closed", 0
    kind, _, body = got
    return NAMES[kind], parse(body).get(1, 0)

def greedy_peer(requests):
    try:
        peer = Peer("plain")
    except (OSError, AssertionError, TypeError):
        return None  # no memory for a connection
    peer.sock.settimeout(2)
    peer.send(requests)
    return peer

def memory():
    resource.prlimit(PID, resource.RLIMIT_AS, ((rss_kib("VmSize") + 48 * 1024) * 1024, NO_LIMIT[1]))
    maker, acknowledged, refused = Peer("plain"), [], 0
    for _ in range(400):
        kind, job = submit(maker, 200000)
        if kind == "Submitted":
            acknowledged.append(job)
        else:
            refused += 1
            if kind == "closed":
                maker = greedy_peer(b"") or maker
        if refused > 20:
            break
    assert acknowledged and refused > 0, (len(acknowledged), refused)
    lists = frame(KINDS["JobQuery"], message("JobQuery", all=1)) * 500
    greedy = [greedy_peer(lists) for _ in range(40)]
    for _ in range(20):  # whoever asks now hears something, be it that there is no memory
        peer = greedy_peer(b"")
        if peer is not None:
            peer.sock.settimeout(MAX_S)
            ask(peer, STATUS)
            peer.close()
    for peer in filter(None, greedy):
        peer.close()
    resource.prlimit(PID, resource.RLIMIT_AS, NO_LIMIT)
    print("%d large jobs taken, %d refused; served after %.2f s" % (len(acknowledged), refused, served()))
    asker = Peer("plain")
    for job in acknowledged:
        said = ask(asker, frame(KINDS["JobQuery"], message("JobQuery", job=job)))
        assert said == "JobList", (job, said)
    assert submit(asker, 10)[0] == "Submitted"

def cpu_s():
    fields = open(f"/proc/{PID}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

def descriptors():
    known = Peer("socket")
    slots = rss_kib("FDSize")  # to count what is open takes root: the scheduler lets nobody look into it
    assert slots < 300, slots
    resource.prlimit(PID, resource.RLIMIT_NOFILE, (slots, resource.prlimit(PID, resource.RLIMIT_NOFILE)[1]))
    crowd = []
    for _ in range(300):
        sock = socket.create_connection(("127.0.0.1", int(os.environ["PLAIN"])))
        sock.sendall(HELLO)
        crowd.append(sock)
    assert ask(known, STATUS) == "StatusInfo"
    before, began = cpu_s(), time.monotonic()
    while time.monotonic() - began < 3:  # not to wait for something: to see what passes meanwhile
        time.sleep(0.1)
    used = cpu_s() - before
    assert used < 0.6, used
    assert ask(known, STATUS) == "StatusInfo"
    for sock in crowd:
        sock.close()
    print("%.2f s of CPU in 3 s; served after %.2f s" % (used, served()))

if __name__ == "__main__":
    {"memory": memory, "descriptors": descriptors}[sys.argv[1]]()
