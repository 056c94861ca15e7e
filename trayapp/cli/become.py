"""How this process becomes the gateway; for one that a client waits for, without the library of the command line.

Never here: what a gateway does. The only module outside the gateway that loads it, and only when it runs here.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TextIO

from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import own_command, sample_command
from trayapp.service.detached import gateway_environment
from trayapp.service.installed import is_followed
from trayapp.service.pause import refuse_out_of_turn, refuse_while_paused
from trayapp.wire.rundir import run_dir

if TYPE_CHECKING:
    from trayapp.clients.layers import ClientLayers

LINGERING = ["start", "--linger"]  # what service/command_line starts: a client waits, and nobody reads


def lingering_gateway() -> int:
    """`multi-mcp start --linger`: the exit code."""
    try:
        run = run_dir(os.environ)
        refuse_while_paused(run)
        refuse_out_of_turn(run)
        return run_here(True, lambda: None)
    except (MultiMcpError, OSError) as error:
        from trayapp.cli.boundary import guarded  # with click, 20 ms: for the few starts that fail

        return guarded(_raising(error), LINGERING)


def run_here(linger: bool, on_ready: Callable[[], None]) -> int:
    """Be the gateway until told to stop; the exit code. Raises AlreadyRunningError, StorageError."""
    gc.disable()  # a start makes many objects and no garbage; the gateway collects once its first client is served
    from trayapp.gateway.main import MAKES_ROOM, run_gateway

    code = run_gateway(
        dict(os.environ),
        linger=linger,
        sample=sample_command(),
        layers=client_layers,
        on_ready=on_ready,
        is_followed=bool if stays(sys.stdout) else partial(is_followed, time.time()),
    )
    return _become_the_new_one() if code == MAKES_ROOM else code


def stays(stdout: TextIO | None, platform: str = sys.platform) -> bool:
    """Whether this process is not to become another program by itself: a person has it before them on a terminal, or
    the system lets nobody replace a program that runs (Windows)."""
    return platform == "win32" or bool(stdout and stdout.isatty())


def _become_the_new_one() -> NoReturn:
    """This process goes on as the program that has our name now: whoever started and watches it sees no end."""
    argv = [*own_command(), *sys.argv[1:]]
    os.execve(argv[0], argv, gateway_environment(os.environ))


def client_layers() -> ClientLayers:
    """The reader of `settings.imports`, loaded when there are any."""
    from trayapp.clients.layers import ClientLayers

    return ClientLayers()


def _raising(error: Exception) -> Callable[[list[str]], NoReturn]:
    def work(argv: list[str]) -> NoReturn:
        raise error

    return work
