"""on_tty.py COLUMNS COMMAND...: runs a command on a terminal of its own and prints what it wrote there"""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
env = dict(os.environ, TERM="xterm")
process = subprocess.Popen(sys.argv[2:], stdin=slave, stdout=slave, stderr=slave, env=env)
os.close(slave)
while True:
    try:
        data = os.read(master, 65536)
    except OSError:  # EIO: the last writer has gone
        break
    if not data:
        break
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
sys.exit(process.wait())
