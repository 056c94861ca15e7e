"""Find the project of each session, and check the project's file when the session begins and regularly after that.

A project's servers come only from an Overlay, and an Overlay only from a TrustedFile.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import anyio
import anyio.to_thread

from trayapp.backends.clock import Clock
from trayapp.config.files import signature
from trayapp.config.layers.project import TrustStore, find_project, read_project, untrusted_problem
from trayapp.model.config import Config
from trayapp.model.errors import Problem, StorageError

if TYPE_CHECKING:
    from trayapp.config.layers.overlay import Overlay

log = logging.getLogger(__name__)

LOOK_LIMIT_S = 2.0  # a folder whose check takes longer is left out
LOOK_EVERY_S = 10.0  # interval of checks for changes other than approvals, which are reported immediately


T = TypeVar("T")


class ProjectFinding(NamedTuple):
    """The result of checking a folder's project file. It has an overlay only if the checked content is trusted."""

    overlay: Overlay | None = None
    problems: tuple[Problem, ...] = ()


Look = Callable[[Path, Config], ProjectFinding]  # takes a session's folder and the user's configuration. Blocks
NOTHING = ProjectFinding()


def look_with(trust: TrustStore, home: Path) -> Look:
    """Return a Look that reads a folder's project file. The bytes that are hashed for trust are those that are parsed.

    The result for a trusted file is reused until the file, the files it depends on, the approvals or `user` change.
    """
    laid: dict[Path, tuple[object, tuple[Path, ...], Config, ProjectFinding]] = {}

    def look(folder: Path, user: Config) -> ProjectFinding:
        path = find_project(folder, home)
        if path is None:
            return NOTHING
        known = laid.get(path)
        if known is not None and known[0] == mark(path, known[1]) and known[2] is user:
            return known[3]
        return read(path, user)

    def mark(path: Path, watched: tuple[Path, ...]) -> object:
        return tuple(signature(each) for each in (path, trust.path, *watched))

    def read(path: Path, user: Config) -> ProjectFinding:
        try:
            file = read_project(path)
            seen = mark(path, file.watched if file else ())
        except StorageError as error:
            return ProjectFinding(problems=(Problem(str(path), 0, error.title, error.hint, fatal=False),))
        if file is None:
            return NOTHING
        trusted = trust.check(file)
        if trusted is None:
            return ProjectFinding(problems=(untrusted_problem(file),))
        from trayapp.config.layers.overlay import overlay  # imported here: a start without projects does not need it

        found = overlay(user, trusted)
        finding = ProjectFinding(found, found.config.problems)
        with suppress(StorageError):
            if read_project(path) == file:  # otherwise the file was just saved, and its signature is outdated
                laid[path] = seen, file.watched, user, finding
        return finding

    return look


class ProjectSession(Protocol):
    """A session or control request that uses a project's servers."""

    @property
    def cwd(self) -> Any:
        """Return the client's folder, or None if unknown. The value is unchecked and may have any type."""


class Projects:
    """The projects of the sessions that reported their folder. `changed` is called after a finding has changed."""

    def __init__(self, look: Look, user: Callable[[], Config], changed: Callable[[], None], clock: Clock) -> None:
        self._look = look
        self._user = user
        self._changed = changed
        self._clock = clock
        self.looks = FolderProbes(NOTHING)
        self._folders: dict[ProjectSession, Path] = {}
        self._found: dict[Path, ProjectFinding] = {}  # session's folder -> finding
        self._some = anyio.Event()

    def of(self, session: ProjectSession) -> ProjectFinding:
        """Return the finding for the session's project, or NOTHING if it has no project."""
        return self._found.get(self._folders.get(session, Path()), NOTHING)

    @property
    def overlays(self) -> dict[Path, Overlay]:
        """Return project folder -> overlay, for the trusted projects that have sessions now."""
        laid = (self.of(session).overlay for session in self._folders)
        return {overlay.folder: overlay for overlay in laid if overlay is not None}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return the problems with the files of projects that have sessions, each once."""
        return tuple(dict.fromkeys(problem for session in self._folders for problem in self.of(session).problems))

    async def join(self, session: ProjectSession) -> None:
        """Find the project of a new session. Do nothing if the session has not reported its folder."""
        said = session.cwd
        if not isinstance(said, str) or not Path(said).is_absolute():
            return
        folder = self._folders[session] = Path(said)
        self._some.set()
        await self._look_at(folder)
        if self.of(session) != NOTHING:
            self._changed()

    def leave(self, session: ProjectSession) -> None:
        """Forget a session that has ended, and the finding of its folder if that has no other session."""
        folder = self._folders.pop(session, None)
        if folder is None or folder in self._folders.values():
            return
        if self._found.pop(folder, NOTHING) != NOTHING:
            self._changed()

    async def refresh(self) -> None:
        """Check the projects of all sessions again. A file, an approval or the user's own servers may have changed."""
        before = dict(self._found)
        await self._look_at(*set(self._folders.values()))
        if any(before.get(folder, NOTHING) != found for folder, found in self._found.items()):
            self._changed()

    async def follow(self) -> None:
        """Refresh every LOOK_EVERY_S while any session has a folder. Runs until it is cancelled."""
        while True:
            if not self._folders:
                self._some = anyio.Event()
                await self._some.wait()
            await self._clock.beat(LOOK_EVERY_S)
            await self.refresh()

    async def _look_at(self, *folders: Path) -> None:
        """Check each folder. A folder that hangs keeps its last finding."""
        user = self._user()
        found = await self.looks.at(folders, lambda folder: self._look(folder, user))
        wanted = set(self._folders.values())
        self._found.update({folder: finding for folder, finding in found.items() if folder in wanted})


class FolderProbes(Generic[T]):
    """Probes of folders, in a thread that is abandoned if it hangs.

    A folder on an unreachable network can block a thread for minutes. Calls of `at` may overlap, but only one of them
    probes a folder at a time. The result of a probe that raises an error is `nothing`.
    """

    def __init__(self, nothing: T) -> None:
        self._nothing = nothing
        self.limit_s = LOOK_LIMIT_S
        self._under_way: dict[Path, anyio.Event] = {}  # set when the probe has ended or was abandoned

    async def at(self, folders: Collection[Path], look: Callable[[Path], T]) -> dict[Path, T]:
        """Call `look` for each folder in a thread, and return folder -> result. Folders that hang are missing."""
        for folder in folders:
            if earlier := self._under_way.get(folder):
                await earlier.wait()
        found: dict[Path, T] = {}
        waiting = [folder for folder in folders if folder not in self._under_way]
        while waiting:
            waiting = await self._probe_some(waiting, look, found)
        return dict(found)  # an abandoned thread may still write

    async def _probe_some(self, folders: list[Path], look: Callable[[Path], T], found: dict[Path, T]) -> list[Path]:
        """Probe folders in one thread, and store the results in `found`. Stop if the thread hangs.

        Return the folders that were not reached. Return [] if no folder was reached, because then no thread is free.
        """
        queue, ended = deque(folders), anyio.Event()
        self._under_way.update(dict.fromkeys(folders, ended))
        try:
            with anyio.move_on_after(self.limit_s):
                await anyio.to_thread.run_sync(self._probe, queue, look, found, abandon_on_cancel=True)
        finally:
            ended.set()
            left = list(queue)
            queue.clear()
            for folder in left:
                self._under_way.pop(folder, None)
        for folder in self._under_way.keys() & set(folders):
            log.warning("%s, where a client runs, does not answer. Its project cannot be checked", folder)
        return left if len(left) < len(folders) else []

    def _probe(self, queue: deque[Path], look: Callable[[Path], T], found: dict[Path, T]) -> None:
        """Probe the queued folders and store the results in `found`. Runs in a worker thread.

        Exception boundary: a failing folder does not affect the others.
        """
        with suppress(IndexError):
            while True:
                folder = queue.popleft()
                try:
                    found[folder] = look(folder)
                except Exception:
                    found[folder] = self._nothing
                    log.exception("Unexpected error while reading %s", folder)
                finally:
                    self._under_way.pop(folder, None)
