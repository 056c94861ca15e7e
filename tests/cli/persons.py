"""A person with AI tools and a home folder, at a command line."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.cli.running import RUN_TIMEOUT_S, environment, quick_program
from tests.e2e.gateway import Gateway

STARTING = ("setup", "add")  # verbs that would start a gateway


class Person:
    """A person. `home` has multi-mcp's files, and `mine` everything else. Commands run in `folder`."""

    def __init__(self, home: Path, mine: Path) -> None:
        self.home = home
        self.mine = mine
        self.folder = mine / "src" / "shop"
        self.folder.mkdir(parents=True)
        moved = ("XDG_", "CLAUDE_", "CLINE_", "CODEX_", "COPILOT_", "OPENCODE_", "DBUS_")
        kept = {name: value for name, value in environment(home).items() if not name.startswith(moved)}
        self.env = kept | {"HOME": str(mine), "USERPROFILE": str(mine), "APPDATA": str(mine / "AppData" / "Roaming")}

    def starts_gateway(self) -> None:
        """Start a gateway as a fork, which is faster than letting the next command start one."""
        gateway = Gateway(self.home, forked=True)
        gateway.env = self.env
        gateway.start()

    def says(self, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run `multi-mcp ARGV...` to its end. The STARTING verbs do not start a gateway here."""
        argv = (argv[0], "--no-start", *argv[1:]) if argv[0] in STARTING else argv
        return subprocess.run(
            [*quick_program(), *argv],
            cwd=self.folder,
            env=self.env,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=RUN_TIMEOUT_S,
            check=False,
        )

    def answers(self, *argv: str, typed: str, env: dict[str, str] | None = None) -> str:
        """Run `multi-mcp ARGV...` on a terminal, type the text, and return what is shown."""
        import pty  # missing on Windows

        argv = (argv[0], "--no-start", *argv[1:]) if argv[0] in STARTING else argv

        ours, theirs = pty.openpty()
        with os.fdopen(ours, "r+b", buffering=0) as terminal:
            terminal.write(typed.encode())
            process = subprocess.Popen(
                [*quick_program(), *argv],
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                env=env or self.env,
                cwd=self.folder,
            )
            os.close(theirs)
            shown = b""
            with contextlib.suppress(OSError):  # raised when the other end closes
                while piece := terminal.read(4096):
                    shown += piece
            process.wait(RUN_TIMEOUT_S)
        return shown.decode()

    def gets(self, *argv: str) -> Any:
        """Run `multi-mcp VERB --json ...` and return the parsed output."""
        done = self.says(argv[0], "--json", *argv[1:])
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def file(self, name: str, text: str | None = None) -> Path:
        """Return the path of one of the person's files. Write the text to it, if any."""
        path = self.mine / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            path.write_text(text, encoding="utf-8")
        return path

    @property
    def servers(self) -> Path:
        """The path of servers.yaml."""
        return self.home / "servers.yaml"
