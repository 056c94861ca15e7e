"""A quick start of the reference server over stdio: a running server forks, and its child gets our standard streams."""

import _socket
import sys


def main() -> None:
    """Hand over the standard streams and wait until the server ends."""
    parent = _socket.socket(_socket.AF_UNIX)  # socket itself would take a third of the start-up time
    parent.connect(sys.argv[1])
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    parent.sendmsg([sys.argv[2].encode()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    parent.recv(1)


if __name__ == "__main__":
    main()
