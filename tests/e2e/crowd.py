#!/usr/bin/env python3
"""crowd.py - one process that looks like a crowd in front of the scheduler's TCP port (t2042)

    crowd.py silent|hello PORT N READY

N connections from as many addresses of 127.0.0.0/8, opened anew when they are closed; silent ones send nothing,
others a ClientHello and nothing after it. The file READY is made when each was open once; TERM ends it."""
import os
import resource
import selectors
import signal
import socket
import ssl
import sys

def client_hello():
    context, sent = ssl.create_default_context(), ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="127.0.0.1").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()

def address(i):
    return "127.%d.%d.%d" % (1 + i % 250, i // 250 % 250, 2 + i // 62500)

def main(kind, port, n, ready):
    hello = client_hello() if kind == "hello" else b""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    watched, opened, anew = selectors.DefaultSelector(), 0, 0

    def come(i):
        sock = socket.socket()
        sock.setblocking(False)
        sock.bind((address(i), 0))
        sock.connect_ex(("127.0.0.1", port))
        watched.register(sock, selectors.EVENT_WRITE, i)

    def go(sock, i):
        nonlocal anew
        watched.unregister(sock)
        sock.close()
        come(i)
        anew += 1

    for i in range(n):
        come(i)
    while True:
        for key, events in watched.select(1):
            sock = key.fileobj
            try:
                if events & selectors.EVENT_WRITE:
                    sock.send(hello)
                    opened += 1
                    watched.modify(sock, selectors.EVENT_READ, key.data)
                elif not sock.recv(65536):
                    go(sock, key.data)
            except OSError:
                go(sock, key.data)
        if opened >= n and not os.path.exists(ready):
            open(ready, "x", encoding="utf-8").close()

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
