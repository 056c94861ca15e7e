"""A process that has imported a program and forks for each run of it. Imports take most of a run's time.

`python forks.py NAME MODULE` listens on the abstract socket NAME. For each connection from tests/cli/start.py, it runs
`main` of MODULE in a child. It ends when its stdin closes.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import pkgutil
import select
import signal
import socket
import sys
import threading
import time
from typing import IO, Any

LATER = (  # modules that many runs of the command line import after their start
    "ctypes", "encodings.idna", "importlib_metadata", "jeepney.io.blocking", "keyring.backends.SecretService",
    "rich.live", "rich.status", "rich.table", "trayapp.auth.os_keyring", "trayapp.auth.sealed", "trayapp.auth.vault",
    "trayapp.backends.stdio.npx", "trayapp.catalog.tool_class", "trayapp.confinement.record",
    "trayapp.confinement.start", "trayapp.packages.locks", "trayapp.service.login_session",
)  # fmt: skip
STREAMS = (("stdin", "r", "strict"), ("stdout", "w", "strict"), ("stderr", "w", "backslashreplace"))


def main() -> None:
    """Fork a child for each connection until stdin closes."""
    program = importlib.import_module(sys.argv[2])
    importlib.import_module("anyio._backends._asyncio")  # otherwise, the first event loop of each run would import it
    if program.__package__ == "trayapp":
        import trayapp.cli

        for module in pkgutil.iter_modules(trayapp.cli.__path__):
            importlib.import_module(f"trayapp.cli.{module.name}")
        for name in LATER:
            importlib.import_module(name)
    gc.freeze()  # keeps the garbage collector from copying memory that all children share
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # lets the kernel reap the children
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + sys.argv[1])
        listener.listen()
        print(flush=True)
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            asking = listener.accept()[0]
            if os.fork() == 0:
                listener.close()
                _run(asking, program)
            asking.close()


def _run(asking: socket.socket, program: Any) -> None:
    """Run the program with the caller's streams, arguments, environment and working folder. Send the exit code back."""
    data, ends, _, _ = socket.recv_fds(asking, 1 << 16, 3)
    while len(data) < 4 + int.from_bytes(data[:4], "big"):
        data += asking.recv(1 << 16)
    argv, environment, folder = marshal.loads(data[4:])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    for number, (end, (name, mode, errors)) in enumerate(zip(ends, STREAMS, strict=True)):
        os.dup2(end, number)
        os.close(end)
        setattr(sys, name, _stream(number, mode, errors))
    sys.argv = [program.__file__, *argv]
    try:
        code = program.main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    sys.stdout.flush()
    asking.sendall(bytes([code]))
    os._exit(code)  # skips the interpreter's cleanup, because the caller waits until `asking` closes


def _stream(number: int, mode: str, errors: str) -> IO[str]:
    """Return a standard stream with the buffering and encoding that Python would choose."""
    buffering = 1 if mode == "w" and (os.isatty(number) or errors != "strict") else -1
    return open(number, mode, buffering, os.environ.get("PYTHONIOENCODING", "utf-8"), errors, closefd=False)


if __name__ == "__main__":
    main()
