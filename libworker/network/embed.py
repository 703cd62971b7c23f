#!/usr/bin/env python3
"""embed.py OUTPUT FILE.yaml... - the texts of known networks as a C file, in the order that is given

As bytes: C promises strings of 4,095 characters only."""
import os
import sys


def main(output, files):
    with open(output, "w", encoding="ascii") as out:
        out.write('#include "libworker/network/known.h"\n\n')
        rows = []
        for i, path in enumerate(files):
            with open(path, "rb") as file:
                text = file.read() + b"\0"
            out.write("static const char text_%d[] = {" % i)
            for k, byte in enumerate(text):
                out.write("%s%d," % ("\n    " if k % 20 == 0 else " ", byte))
            out.write("\n};\n")
            rows.append('    {"%s", text_%d},\n' % (os.path.splitext(os.path.basename(path))[0], i))
            if max(text) > 126:
                sys.exit("%s: a text in ASCII is wanted" % path)
        out.write("\nconst struct known_network known_networks[] = {\n%s};\n" % "".join(rows))
        out.write("const size_t n_known_networks = %d;\n" % len(files))


main(sys.argv[1], sys.argv[2:])
