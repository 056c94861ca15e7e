"""A quick start of the reference server over stdio: a running server forks, and its child gets our standard streams."""

import socket
import sys


def main() -> None:
    """Hand over the standard streams and wait until the server ends."""
    with socket.socket(socket.AF_UNIX) as parent:
        parent.connect(sys.argv[1])
        socket.send_fds(parent, [sys.argv[2].encode()], [0, 1, 2])
        parent.recv(1)


if __name__ == "__main__":
    main()
