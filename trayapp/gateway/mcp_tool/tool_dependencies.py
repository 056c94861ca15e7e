"""Keep the whole texts of the one tool's long results, and connect servers that are likely to be called.

The tool itself is loaded at its first call, because lists do not need it.
"""

from __future__ import annotations

import logging
import secrets
from codecs import utf_8_decode
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trayapp.backends.connection import Connection
from trayapp.config.files import make_folder, new_file
from trayapp.gateway.services import Services
from trayapp.model.errors import MultiMcpError, ServerError
from trayapp.model.lifecycle import State

log = logging.getLogger(__name__)

RESULTS = "results"  # name of the folder for results, in the cache folder
LINES_MOST = 2_000  # lines on one page: thousands of short lines cost a model more than their bytes suggest
NOTE_BYTES = 200  # reserved for the note after a page
WHOLE_LINES = 0.8  # a page is shortened to end with a whole line if at least this share of it remains
KEPT_RESULTS = 8  # results kept per session. Older ones are dropped
KEPT_CHARACTERS = 32 << 20  # limit for all kept results of a session together


class ResultFiles:
    """Files in a folder that only gateways write to. A gateway removes its own at its end, and others at its start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = f"{secrets.token_hex(4)}-"  # prefix of this gateway's files

    def write(self, text: str) -> Path | None:
        """Write `text` to a new file, mode 0600, and return its path. If that fails, log why and return None.

        Blocks for less time than reading the answer took.
        """
        path = self._folder / f"{self._own}{secrets.token_hex(4)}.txt"
        try:
            make_folder(self._folder)
            with new_file(path) as file:
                file.write(text.encode("utf-8", "surrogatepass"))
        except OSError as error:
            log.warning("Cannot write a long result to a file: %s", error)
            self.remove(path)
            return None
        return path

    def remove(self, path: Path | None) -> None:
        """Remove a file, if there is one."""
        if path is not None:
            with suppress(OSError):
                path.unlink()

    def clear(self, *, own: bool) -> None:
        """Remove this gateway's files if `own`, otherwise all others, which earlier gateways left. Blocks."""
        with suppress(OSError):
            for path in list(self._folder.iterdir()):
                if path.name.startswith(self._own) is own:
                    self.remove(path)


class ResultNotFoundError(MultiMcpError):
    """Raised when the session has no cut result with that id, or no longer has it."""

    code = "result_not_found"

    def __init__(self, asked: str, known: Sequence[str]) -> None:
        listed = f"The results that can be read: {', '.join(known)}. For any other, call" if known else "Call"
        super().__init__(f"No result has the id {asked}", f"{listed} the tool again")


def cut_at(text: str, start: int, limit: int) -> int:
    """Return the end of the page of `text` from `start`: at most `limit` bytes of UTF-8 and LINES_MOST lines.

    The page has at least one character, and ends with a whole line if that leaves enough of it (WHOLE_LINES).
    """
    piece = text[start : start + limit]
    data = piece.encode("utf-8", "surrogatepass")
    if len(data) > limit:
        piece = utf_8_decode(data[:limit], "surrogatepass")[0] or text[start]  # drops a character that the limit splits
    lines = piece.split("\n", LINES_MOST)
    if len(lines) > LINES_MOST:
        return start + len(piece) - len(lines[-1])
    if start + len(piece) >= len(text):
        return len(text)
    end = piece.rfind("\n") + 1
    return start + (end if end >= len(piece) * WHOLE_LINES else len(piece))


@dataclass(frozen=True, slots=True)
class KeptText:
    """A long text, which can be read page by page with `name`, or whole from `file`, if that is not None."""

    name: str
    text: str
    file: Path | None


class CutResults:
    """The whole texts of the latest long results, either of one session or of all single requests."""

    def __init__(self, files: ResultFiles) -> None:
        self._files = files
        self._kept: dict[str, KeptText] = {}  # the oldest first
        self._last = 0

    def keep(self, text: str) -> KeptText:
        """Keep `text`, and return it with its name and file. Drop the oldest texts beyond the limits."""
        self._last += 1
        kept = KeptText(f"r{self._last}", text, self._files.write(text))
        self._kept[kept.name] = kept
        while len(self._kept) > 1 and (
            len(self._kept) > KEPT_RESULTS or sum(len(one.text) for one in self._kept.values()) > KEPT_CHARACTERS
        ):
            self._forget_oldest()
        return kept

    def drop(self) -> None:
        """Forget all texts and remove their files."""
        while self._kept:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        self._files.remove(self._kept.pop(next(iter(self._kept))).file)

    def get(self, name: str, offset: int, limit: int) -> str:
        """Return one page, followed by its note. Raises ResultNotFoundError.

        `offset`: in characters, corrected to the nearest valid one. `limit`: bytes of the page, 0 = no limit.
        """
        kept = self._kept.get(name)
        if kept is None:
            raise ResultNotFoundError(name, list(self._kept))
        text = kept.text
        start = min(max(0, offset), len(text))
        end = cut_at(text, start, page_bytes(limit)) if limit else len(text)
        return f"{text[start:end]}{note(name, start, end, len(text))}"


def page_bytes(limit: int, file: Path | None = None) -> int:
    """Return how many bytes of a page of `limit` bytes are left for text beside the note, which names `file` if given.

    The result is at least half of `limit`.
    """
    named = len(str(file).encode("utf-8", "surrogatepass")) if file is not None else 0
    return max(limit - NOTE_BYTES - named, limit // 2, 1)


def note(name: str, start: int, end: int, total: int, file: Path | None = None) -> str:
    """Return the note that follows a page: its range, and how to read the rest."""
    if end >= total:
        return f"\n\n[Characters {start}-{end} of {total}: the end]"
    whole = f". All of it: {file}" if file is not None else ""
    return f'\n\n[Characters {start}-{end} of {total}. More: {{"result":"{name}","offset":{end}}}{whole}]'


AT_ONCE = 4  # most servers that connect at a time: a search must not start all. The others start with their first call


class WarmUp:
    """Background connections to idle servers whose tools a model has just read about, because a call is likely."""

    def __init__(self, spawn: Callable[[Callable[[Connection], Awaitable[None]], Connection], object]) -> None:
        self._spawn = spawn
        self._under_way: set[Connection] = set()

    def warm(self, connection: Connection) -> None:
        """Connect the server in the background if it is idle, unless AT_ONCE servers are being connected already."""
        if connection.state is State.IDLE and connection not in self._under_way and len(self._under_way) < AT_ONCE:
            self._under_way.add(connection)
            self._spawn(self._connect, connection)

    async def _connect(self, connection: Connection) -> None:
        try:
            await connection.ensure()
        except ServerError as error:
            log.info("Cannot connect in the background: %s", error)
        finally:
            self._under_way.discard(connection)


@dataclass(frozen=True)
class ToolDependencies:
    """The dependencies of the one tool."""

    services: Services
    result_files: ResultFiles
    cut_results: CutResults  # shared by all sessions that consist of a single request
    warm_up: WarmUp
