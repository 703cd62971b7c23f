#!/usr/bin/env python3
"""allowed.py FILE [CHANNELS] - records of kind `program` (docs/program-data.md), as many as the number in FILE: two values, or
images of 32 x 32 in so many channels

A job of them makes as many steps as a test allows, and no more: it is not over before anybody has looked, and not long after."""
import struct
import sys
import time

ROWS = 1600
SHAPE = (int(sys.argv[2]), 32, 32) if len(sys.argv) > 2 else (2, 1, 1)
N_PAIRS = SHAPE[0] * SHAPE[1] * SHAPE[2] // 2

out = sys.stdout.buffer
out.write(struct.pack("<8sIIQIIIII20x", b"MSDATA\r\n", 1, 1, ROWS, *SHAPE, 10, 0))
out.flush()
for n, line in enumerate(sys.stdin):
    row, epoch, _ = map(int, line.split())
    while True:
        with open(sys.argv[1], encoding="utf-8") as file:
            if n < int(file.read()):
                break
        time.sleep(0.02)
    out.write(struct.pack("<Qi", row, row % 10) + struct.pack("<2f", row % 7 / 7, (row + epoch) % 5 / 5) * N_PAIRS)
    out.flush()
