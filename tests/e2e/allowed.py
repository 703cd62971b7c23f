#!/usr/bin/env python3
"""allowed.py FILE - records of kind `program` (docs/program-data.md), as many as the number in FILE

A job of them makes as many steps as a test allows, and no more: it is not over before anybody has looked, and not long after."""
import struct
import sys
import time

ROWS = 1600

out = sys.stdout.buffer
out.write(struct.pack("<8sIIQIIIII20x", b"MSDATA\r\n", 1, 1, ROWS, 2, 1, 1, 10, 0))
out.flush()
for n, line in enumerate(sys.stdin):
    row, epoch, _ = map(int, line.split())
    while True:
        with open(sys.argv[1], encoding="utf-8") as file:
            if n < int(file.read()):
                break
        time.sleep(0.02)
    out.write(struct.pack("<Qi2f", row, row % 10, row % 7 / 7, (row + epoch) % 5 / 5))
    out.flush()
