"""A login session, and the programs that an AI tool starts in it with six environment variables.

These programs see another folder as /run (a mount namespace), because no variable names the session's runtime folder.
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
    """A login session. `desk` has its bus and its keyring. `run` is the folder that its programs see as /run."""

    desk: Desk
    run: Path

    @property
    def home(self) -> Path:
        """The user's home folder."""
        return self.desk.folder

    @property
    def environ(self) -> dict[str, str]:
        """The variables that the stdio clients of the MCP SDKs pass to a server."""
        own = {"HOME": str(self.home), "LOGNAME": "user", "USER": "user", "SHELL": "/bin/sh", "TERM": "dumb"}
        return own | {"PATH": os.environ["PATH"]}

    @property
    def gateway_run(self) -> str:
        """The gateway's runtime folder, as seen from outside the session."""
        return str(self.run / "user" / str(os.getuid()) / "multi-mcp")

    def gateway_pid(self) -> int:
        """Return the process id that the gateway has published, or 0."""
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
        """Return an AI tool that is connected through a shim."""
        return client_of(self.argv("stdio"), self.environ, self.home)

    def verb(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a verb of the command line and return the completed process."""
        return subprocess.run(
            self.argv(*words), env=self.environ, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
        )

    def kill_gateway(self) -> None:
        """Kill the gateway, as a crash would, and wait for its end."""
        process = psutil.Process(self.gateway_pid())
        process.kill()
        psutil.wait_procs([process], RUN_TIMEOUT_S)


def _unshare() -> list[str]:
    own = [] if os.getuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    return [require("unshare"), *own, "--mount"]


@contextmanager
def login_session(password: str = PASSWORD) -> Iterator[LoginSession]:
    """Yield a login session whose keyring is unlocked or, if `password` is empty, not created yet.

    At the end, stop everything in the session.
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
