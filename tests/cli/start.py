"""The client of forks.py: it asks that process to run the command line in a child.

`python -I -S start.py NAME [ARG ...]`. The child gets this process's streams, arguments, environment and working
folder.
"""

import _socket
import marshal
import os
import sys


def main() -> int:
    """Send the run to forks.py and wait for its end. Return its exit code."""
    parent = _socket.socket(_socket.AF_UNIX)
    parent.connect("\0" + sys.argv[1])
    asked = marshal.dumps((sys.argv[2:], dict(os.environ), os.getcwd()))  # noqa: PTH109 (pathlib costs more than this)
    asked = len(asked).to_bytes(4, "big") + asked
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    sent = parent.sendmsg([asked], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    if asked[sent:]:  # an empty send fails if the run has already ended
        parent.sendall(asked[sent:])
    for number in (0, 1):  # otherwise, readers of the run's output would wait for this process, too
        os.close(number)
    code = parent.recv(1)
    parent.recv(1)  # returns when the run's process has ended
    return code[0] if code else 1


if __name__ == "__main__":
    sys.exit(main())
