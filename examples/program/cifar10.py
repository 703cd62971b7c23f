#!/usr/bin/env python3
"""cifar10.py FOLDER - CIFAR-10's binary version as records of kind `program` (docs/program-data.md)

No module but Python's own: what a program of one's own needs is the header, and an answer to each line."""
import glob, os, struct, sys

RECORD = 1 + 3 * 32 * 32
PART = {"train": "data_batch_*.bin", "test": "test_batch.bin", "all": "*_batch*.bin"}

files = sorted(glob.glob(os.path.join(sys.argv[1], PART[os.environ["MSCHED_USAGE"]])))
data = b"".join(open(name, "rb").read() for name in files)
rows = len(data) // RECORD
print(f"{rows} records of {len(files)} files", file=sys.stderr)  # goes to the worker's log

out = sys.stdout.buffer
out.write(struct.pack("<8sIIQIIIII20x", b"MSDATA\r\n", 1, 0, rows, 3, 32, 32, 10, 0))
out.flush()
for line in sys.stdin:  # "ROW EPOCH SEED"
    row = int(line.split()[0])
    record = data[row * RECORD:(row + 1) * RECORD]
    out.write(struct.pack("<Qi", row, record[0]) + record[1:])
    out.flush()
