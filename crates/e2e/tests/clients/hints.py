"""Types half a command into redis-cli on a terminal, and prints what comes back."""
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    os.environ["TERM"] = "xterm"
    os.execvp("redis-cli", ["redis-cli", "-p", sys.argv[1]])


def heard_until(text):
    heard = b""
    deadline = time.monotonic() + 10
    while text not in heard and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            heard += os.read(terminal, 4096)
    return heard


heard_until(b"> ")
os.write(terminal, sys.argv[2].encode())
print(heard_until(sys.argv[3].encode()).decode(errors="replace"))
os.kill(pid, 9)
os.waitpid(pid, 0)
