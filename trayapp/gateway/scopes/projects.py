"""Which project each session belongs to, and what was found in its folder: looked at when it comes, and from then on.

What is not trusted gives a problem and nothing else: servers come out of an Overlay alone, and that out of a Trusted.
Never here: what sessions see of it (view), asking the user.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from trayapp.backends.clock import Clock
from trayapp.config.files import signature
from trayapp.config.project import find_project, read_project
from trayapp.config.trust import TrustStore, untrusted_problem
from trayapp.gateway.scopes.folder_probes import FolderProbes
from trayapp.model.errors import StorageError
from trayapp.model.plan import Config
from trayapp.model.status import Problem

if TYPE_CHECKING:
    from trayapp.config.overlay import Overlay

LOOK_EVERY_S = 10.0  # who changes a project's file has to approve it, which tells us; this is for all else


@dataclass(frozen=True, slots=True)
class Finding:
    """What a folder's project file comes to: an overlay only if its very content is trusted."""

    overlay: Overlay | None = None
    problems: tuple[Problem, ...] = ()


Look = Callable[[Path, Config], Finding]  # a session's folder, the user's configuration; blocks
NOTHING = Finding()


def no_projects(folder: Path, user: Config) -> Finding:
    """A Look that finds nothing."""
    return NOTHING


def look_with(trust: TrustStore, home: Path) -> Look:
    """The Look of a real gateway: the bytes that are hashed for trust are those that are parsed.

    What is trusted is laid over `user` anew once the file, the approvals or `user` is another.
    """
    laid: dict[Path, tuple[object, tuple[Path, ...], Config, Finding]] = {}

    def look(folder: Path, user: Config) -> Finding:
        path = find_project(folder, home)
        if path is None:
            return NOTHING
        known = laid.get(path)
        if known is not None and known[0] == mark(path, known[1]) and known[2] is user:
            return known[3]
        return read(path, user)

    def mark(path: Path, watched: tuple[Path, ...]) -> object:
        return tuple(signature(each) for each in (path, trust.path, *watched))

    def read(path: Path, user: Config) -> Finding:
        try:
            file = read_project(path)
            seen = mark(path, file.watched if file else ())
        except StorageError as error:
            return Finding(problems=(Problem(str(path), 0, error.title, error.hint, fatal=False),))
        if file is None:
            return NOTHING
        trusted = trust.check(file)
        if trusted is None:
            return Finding(problems=(untrusted_problem(file),))
        from trayapp.config.overlay import (
            overlay,  # in the thread that looks: a start without projects needs none of it
        )

        found = overlay(user, trusted)
        finding = Finding(found, found.config.problems)
        with suppress(StorageError):
            if read_project(path) == file:  # else it was saved meanwhile, and its mark is that of another content
                laid[path] = seen, file.watched, user, finding
        return finding

    return look


class Visiting(Protocol):
    """Whoever sees a project's servers for a while: a session, or a control request."""

    @property
    def cwd(self) -> Any:
        """The folder in which its client runs, as far as it said."""


class Projects:
    """The sessions that said where they run. `changed` is called after what was found became different."""

    def __init__(self, look: Look, user: Callable[[], Config], changed: Callable[[], None], clock: Clock) -> None:
        self._look = look
        self._user = user
        self._changed = changed
        self._clock = clock
        self.looks = FolderProbes(NOTHING)
        self._folders: dict[Visiting, Path] = {}
        self._found: dict[Path, Finding] = {}  # by the sessions' folders
        self._some = anyio.Event()

    def problems_of(self, session: Visiting) -> tuple[Problem, ...]:
        """What is wrong with the file of that session's project."""
        return self._found.get(self._folders.get(session, Path()), NOTHING).problems

    def overlay_of(self, session: Visiting) -> Overlay | None:
        """What is laid over the user's servers for that session."""
        return self._found.get(self._folders.get(session, Path()), NOTHING).overlay

    @property
    def overlays(self) -> dict[Path, Overlay]:
        """The projects that have sessions now, by their folders."""
        laid = [self._found.get(folder, NOTHING).overlay for folder in self._folders.values()]
        return {overlay.folder: overlay for overlay in laid if overlay is not None}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the files of projects that have sessions, each once."""
        found = [problem for folder in self._folders.values() for problem in self._found.get(folder, NOTHING).problems]
        return tuple(dict.fromkeys(found))

    async def join(self, session: Visiting) -> None:
        """Find the project of a session that begins. One that did not say where it runs has none."""
        said = session.cwd
        if not isinstance(said, str) or not said or not Path(said).is_absolute():
            return
        folder = self._folders[session] = Path(said)
        self._some.set()
        await self._look_at(folder)
        if self._found.get(folder, NOTHING) != NOTHING:
            self._changed()

    def leave(self, session: Visiting) -> None:
        """A session ended. A project without sessions keeps no servers."""
        folder = self._folders.pop(session, None)
        if folder is None or folder in self._folders.values():
            return
        if self._found.pop(folder, NOTHING) != NOTHING:
            self._changed()

    async def refresh(self) -> None:
        """Look again: a file, an approval or the user's own servers may be others now."""
        before = dict(self._found)
        await self._look_at(*set(self._folders.values()))
        if any(before.get(folder, NOTHING) != found for folder, found in self._found.items()):
            self._changed()

    async def follow(self) -> None:
        """The task that looks again from time to time, while there are sessions."""
        while True:
            if not self._folders:
                self._some = anyio.Event()
                await self._some.wait()
            await self._clock.beat(LOOK_EVERY_S)
            await self.refresh()

    async def _look_at(self, *folders: Path) -> None:
        """Look at each; one that hangs stays what it was."""
        user = self._user()
        found = await self.looks.at(folders, lambda folder: self._look(folder, user))
        wanted = set(self._folders.values())
        self._found.update({folder: finding for folder, finding in found.items() if folder in wanted})
