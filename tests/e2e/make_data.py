"""make_data.py SOURCE TARGET [ROWS] - the records of a folder in CIFAR-10's binary layout, as a user would have them

Below TARGET, with the same records in the same order (by class, as a folder of images has them): sorted/ (binary
layout), arrays/ (x_train.npy ...), tensors/ (train.safetensors ...), stored.npz, packed.npz (channels last),
png/train/CLASS/00000.png ... ROWS: of each part only the first ones. By zlib, struct and zipfile alone: what is read is not made by what reads."""
import glob, json, os, struct, sys, zipfile, zlib

RECORD, SIDE = 3073, 32
PLANE = SIDE * SIDE


def records(source, part, limit):
    rows = []
    for name in sorted(glob.glob(f"{source}/{part}*.bin")):
        raw = open(name, "rb").read()
        rows += [raw[i:i + RECORD] for i in range(0, len(raw), RECORD)]
    return sorted(rows[:limit], key=lambda row: row[0])  # stable


def npy(descr, shape, data):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def last(row):  # (3, 32, 32) as (32, 32, 3)
    out = bytearray(3 * PLANE)
    for c in range(3):
        out[c::3] = row[1 + c * PLANE:1 + (c + 1) * PLANE]
    return bytes(out)


def png(row):
    pixels = last(row)
    lines = b"".join(b"\0" + pixels[y * 96:(y + 1) * 96] for y in range(SIDE))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(lines, 1)) + chunk(b"IEND", b""))


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def tensors(path, members):  # name: dtype, shape, bytes
    head, data = {}, b""
    for name, (dtype, shape, values) in members.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(head).encode()
    write(path, struct.pack("<Q", len(text)) + text + data)


def archive(path, method, members):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)


def main(source, target, limit=None):
    classes = "airplane automobile bird cat deer dog frog horse ship truck".split()
    stored, packed = {}, {}
    for part, suffix in ("data_batch", "train"), ("test_batch", "test"):
        rows = records(source, part, limit and int(limit))
        n = len(rows)
        for k in range(0, n, 10000):
            write(f"{target}/sorted/{part}_{k // 10000}.bin", b"".join(rows[k:k + 10000]))
        x = npy("|u1", (n, 3, SIDE, SIDE), b"".join(row[1:] for row in rows))
        y = npy("<i8", (n,), b"".join(struct.pack("<q", row[0]) for row in rows))
        write(f"{target}/arrays/x_{suffix}.npy", x)
        write(f"{target}/arrays/y_{suffix}.npy", y)
        stored[f"x_{suffix}.npy"], stored[f"y_{suffix}.npy"] = x, y
        packed[f"{suffix}_images.npy"] = npy("|u1", (n, SIDE, SIDE, 3), b"".join(map(last, rows)))
        packed[f"{suffix}_labels.npy"] = npy("|u1", (n, 1), bytes(row[0] for row in rows))
        tensors(f"{target}/tensors/{suffix}.safetensors",
                {"images": ("U8", [n, 3, SIDE, SIDE], b"".join(row[1:] for row in rows)),
                 "labels": ("I64", [n], b"".join(struct.pack("<q", row[0]) for row in rows))})
        for i, row in enumerate(rows):
            write(f"{target}/png/{suffix}/{classes[row[0]]}/{i:05}.png", png(row))
    archive(f"{target}/stored.npz", zipfile.ZIP_STORED, stored)
    archive(f"{target}/packed.npz", zipfile.ZIP_DEFLATED, packed)


main(*sys.argv[1:])
