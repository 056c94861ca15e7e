"""The start of the gateway in this process, without the delay of importing click.

No other module outside the gateway imports the gateway.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TextIO

from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import own_command, sample_command
from trayapp.service.gateway_launch import gateway_environment
from trayapp.service.pause import refuse_during_tray_start, refuse_while_paused
from trayapp.service.version import is_followed
from trayapp.wire.lock import GatewayLock
from trayapp.wire.rundir import run_dir

if TYPE_CHECKING:
    from trayapp.clients.servers import ClientLayers


def run_start(linger: bool) -> int:
    """Run `multi-mcp start` in this process and return its exit code.

    `linger`: the gateway prints nothing, since a client started it, and ends some minutes after its last client.
    """
    try:
        run = run_dir(os.environ)
        if linger:
            refuse_while_paused(run)
            refuse_during_tray_start(run)
        return run_here(linger, (lambda: None) if linger else announce)
    except (MultiMcpError, OSError) as error:
        from trayapp.cli.output import report  # imports click, 20 ms and 1 MB: only for the few starts that fail

        return report(error, as_json=False)


def announce() -> None:
    """Print on stderr that the gateway is ready and, on a terminal, what to do next."""
    print(f"Gateway ready (process {os.getpid()})", file=sys.stderr, flush=True)
    if sys.stderr is not None and sys.stderr.isatty():
        from trayapp.cli.options import say_next_step

        threading.Thread(target=say_next_step, name="next step", daemon=True).start()


def run_here(linger: bool, on_ready: Callable[[], None]) -> int:
    """Run the gateway until it stops, and return the exit code. Raises AlreadyRunningError, StorageError."""
    lock = GatewayLock(run_dir(os.environ))
    lock.acquire()  # before the imports: if many gateways start at the same time, all but one end early
    gc.disable()  # a start makes many objects but no garbage; the gateway enables gc once it has served a client
    from trayapp.gateway.main import MAKES_ROOM, run_gateway

    code = run_gateway(
        dict(os.environ),
        lock,
        linger=linger,
        sample=sample_command(),
        layers=client_layers,
        on_ready=on_ready,
        is_followed=bool if stays(sys.stdout) else partial(is_followed, time.time()),
    )
    if code == MAKES_ROOM:  # exec the newly installed program, so the process id stays the same
        argv = [*own_command(), *sys.argv[1:]]
        os.execve(argv[0], argv, gateway_environment(os.environ))
    return code


def stays(stdout: TextIO | None, platform: str = sys.platform) -> bool:
    """Return True if this process must not replace itself with a newer program.

    This is so on a terminal, where a person watches this process, and on Windows, where a running program cannot be
    replaced.
    """
    return platform == "win32" or bool(stdout and stdout.isatty())


def client_layers() -> ClientLayers:
    """Return the reader of `settings.imports`. Its module is loaded only if servers.yaml has imports."""
    from trayapp.clients.servers import ClientLayers

    return ClientLayers()
