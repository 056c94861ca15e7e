"""A quick start of the reference server over stdio: its parent forks one, which gets this process's ends.

`python -I -S start.py SOCKET --stdio | --older`.
"""

import socket
import sys


def main() -> None:
    """Hand over the standard streams, and last as long as the server does."""
    with socket.socket(socket.AF_UNIX) as parent:
        parent.connect(sys.argv[1])
        socket.send_fds(parent, [sys.argv[2].encode()], [0, 1, 2])
        parent.recv(1)


if __name__ == "__main__":
    main()
