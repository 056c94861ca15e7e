"""A login session of its own, and what an AI tool starts in it: programs that get six variables. Never here: tests.

/run is another folder for these programs (a mount namespace): the session's runtime folder has no variable that names
it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.auth.places import PASSWORD, Desk
from tests.cli.running import RUN_TIMEOUT_S
from tests.e2e.client import RawClient, client_of
from tests.tools import missing, require
from trayapp.service.command_line import own_command
from trayapp.wire.greeting import read_endpoint

INSIDE = 'mount --bind "$0" /run && exec "$@"'


@dataclass
class LoginSession:
    """`desk` has the bus and the keyring; `run` is what its programs have for /run."""

    desk: Desk
    run: Path

    @property
    def home(self) -> Path:
        """Of the user."""
        return self.desk.folder

    @property
    def environ(self) -> dict[str, str]:
        """What the stdio clients of the MCP SDKs pass on to a server."""
        own = {"HOME": str(self.home), "LOGNAME": "user", "USER": "user", "SHELL": "/bin/sh", "TERM": "dumb"}
        return own | {"PATH": os.environ["PATH"]}

    @property
    def gateway_run(self) -> str:
        """The gateway's runtime folder, seen from outside."""
        return str(self.run / "user" / str(os.getuid()) / "multi-mcp")

    def gateway_pid(self) -> int:
        """Return the process id of the gateway that answers, or 0."""
        endpoint = read_endpoint(self.gateway_run)
        return endpoint.pid if endpoint else 0

    def write(self, text: str) -> None:
        """Save servers.yaml."""
        file = self.home / ".config" / "multi-mcp" / "servers.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def argv(self, *words: str) -> list[str]:
        """Return the command that runs multi-mcp inside the session."""
        return [*_unshare(), "sh", "-c", INSIDE, str(self.run), *own_command(), *words]

    def client(self) -> AbstractAsyncContextManager[RawClient]:
        """Return an AI tool with its shim."""
        return client_of(self.argv("stdio"), self.environ, self.home)

    def verb(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Return a verb of the command line, to its end."""
        return subprocess.run(
            self.argv(*words), env=self.environ, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
        )

    def kill_gateway(self) -> None:
        """Kill the gateway, as a crash does."""
        process = psutil.Process(self.gateway_pid())
        process.kill()
        psutil.wait_procs([process], RUN_TIMEOUT_S)


def _unshare() -> list[str]:
    own = [] if os.getuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    return [require("unshare"), *own, "--mount"]


@contextmanager
def login_session(password: str = PASSWORD) -> Iterator[LoginSession]:
    """Yield one with an unlocked keyring, ended at the end with what was started in it; with "" there is none
    made yet.
    """
    if sys.platform != "linux":
        missing("there are no mount namespaces here")
    folder = Path(tempfile.mkdtemp(prefix="mm-ls-", dir="/tmp"))
    runtime = folder / "run" / "user" / str(os.getuid())
    runtime.mkdir(mode=0o700, parents=True)
    made = LoginSession(Desk(folder), folder / "run")
    if subprocess.run([*_unshare(), "sh", "-c", INSIDE, str(made.run), "true"], check=False).returncode:
        missing("no mount namespace can be had here")
    try:
        made.desk.start_bus(runtime)
        made.desk.start_keyring(password)
        yield made
    finally:
        if made.gateway_pid():
            made.verb("stop")
        made.desk.stop()
        shutil.rmtree(folder, ignore_errors=True)
