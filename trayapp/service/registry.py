"""A client for registries of MCP servers, which searches and reads entries. Offline, it uses cached answers.

It uses API v0.1 of the official registry (github.com/modelcontextprotocol/registry, docs/reference/api). Entries are
untrusted, so sizes and types are checked here. sources/server_json turns an entry into a server.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from trayapp.config.files import make_folder, read_bytes, replace_file
from trayapp.model.errors import MultiMcpError, StorageError
from trayapp.model.text import one_line
from trayapp.service.web import WebError, read_json

Status = Literal["active", "deprecated", "deleted"]

FRESH_S = 3600.0  # searches repeated within this time are answered from the cache
KEPT_S = 7 * 86_400.0  # a cached answer up to this age is updated by requesting only later changes
PAGE = 100  # entries, the registry's own maximum
PAGES_MOST = 10  # pages to request for one word
LAST_PARTS_MOST = 40  # pages to request for the second search that follows if PAGES_MOST are not enough (_exact)
SEARCH_S = 20.0  # after this time, no further page of a search is requested
WORDS_MOST = 4
LARGEST = 8 << 20  # bytes of a page; a page of 100 entries has about 200,000
ENTRY_LARGEST = 100_000  # characters of one entry
CURSOR_LONGEST = 2000  # characters
CACHED_MOST = 100  # answers
_NAME = re.compile(r"[a-zA-Z0-9.-]{1,120}/[a-zA-Z0-9._-]{1,120}")
_ORDER: tuple[Status, ...] = ("active", "deprecated", "deleted")


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """One version of a server in the registry."""

    name: str
    version: str
    title: str
    description: str
    status: Status
    status_message: str  # the reason for the status
    updated: str
    ways: tuple[str, ...]  # types of packages (`npm`, `pypi`, ...), and `remote`
    document: Mapping[str, Any]  # server.json


@dataclass(frozen=True, slots=True)
class RegistryAnswer:
    """An answer from the registry."""

    entries: tuple[RegistryEntry, ...]
    old_s: float | None = None  # its age in seconds if it was taken from the cache because of an error
    why: str = ""  # the error
    cut: str = ""  # describes which matches were read, "" if all were


class _Kept(NamedTuple):
    """A cached answer."""

    at: float
    rows: list[Any]
    cut: bool  # True: the registry has further rows


def _answer(word: str, kept: _Kept) -> RegistryAnswer:
    cut = f"Only the first {len(kept.rows):,} names with {word} were read" if kept.cut else ""
    return RegistryAnswer(tuple(_entries(kept.rows)), cut=cut)


class ServerRegistry:
    """A client for one registry. Methods raise MultiMcpError if there is neither an answer nor a cached one."""

    def __init__(self, address: str, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._address = address
        self._folder = folder
        self._now = now

    def find(self, text: str) -> RegistryAnswer:
        """Search for the first WORDS_MOST words. Return entries with any of them in the name, best first (_rank)."""
        words = list(dict.fromkeys(text.lower().split()))[:WORDS_MOST]
        answers = [self._search(word, PAGES_MOST) for word in words]
        cuts = []
        for word, answer in zip(words, tuple(answers), strict=True):
            if answer.cut:
                exact = self._exact(word)
                answers.append(exact)
                more = "" if exact.cut else f", and all names whose last part begins with {word}"
                cuts.append(answer.cut + more)
        found = {entry.name: entry for answer in answers for entry in answer.entries}
        ranked = sorted(found.values(), key=lambda entry: _rank(entry, words))
        oldest = max(answers, key=lambda one: -1.0 if one.old_s is None else one.old_s, default=RegistryAnswer(()))
        return RegistryAnswer(tuple(ranked), oldest.old_s, oldest.why, "; ".join(cuts))

    def _exact(self, word: str) -> RegistryAnswer:
        """Return the entry with this name or, for a word without a slash, those whose last part begins with the word.

        A search with too many results may have missed these entries. `cut` is empty only if the answer has all of them.
        """
        whole = "/" in word
        try:
            answer = self.entry(word) if whole else self._search(f"/{word}", LAST_PARTS_MOST)
        except MultiMcpError:  # the registry has no such entry, or it stopped answering
            return RegistryAnswer((), cut=word)
        return replace(answer, cut=word) if whole else answer

    def entry(self, name: str, version: str = "") -> RegistryAnswer:
        """Return one version of an entry, the latest by default. Raises MultiMcpError if it is missing or invalid."""
        path = f"/v0.1/servers/{quote(name, safe='')}/versions/{quote(version or 'latest', safe='')}"
        key = f"{path}?include_deleted=true"
        try:
            raw = read_json(self._address + key, LARGEST)
        except WebError as error:
            if error.status == 404:
                what = f"{name} {version}".strip()
                raise MultiMcpError(f"The registry has no {what}", f"Search for it: multi-mcp find {name}") from None
            return self._kept_answer(key, error)
        answer = RegistryAnswer(tuple(_entries([raw])))
        if not answer.entries or answer.entries[0].name.lower() != name.lower():
            raise MultiMcpError(f"The registry's entry of {name} is not valid", "Ask the server's author")
        self._keep(key, [raw])
        return answer

    def _search(self, word: str, most: int) -> RegistryAnswer:
        """Return up to `most` pages of entries with the word in their names. The answer may come from the cache."""
        key = f"/v0.1/servers?{urlencode({'search': word, 'version': 'latest', 'limit': PAGE})}"
        kept = self._kept(key)
        if kept is not None and self._now() - kept.at < FRESH_S:
            return _answer(word, kept)
        since = ""  # time of the last change among the kept rows, by the registry's clock
        if kept is not None and self._now() - kept.at < KEPT_S:
            times = [_official(row).get("updatedAt") for row in kept.rows]
            valid = [time for time in times if isinstance(time, str) and re.fullmatch(r"[0-9T:.Z+-]{10,40}", time)]
            since = max(valid, default="")
        try:
            if kept is not None and since:
                changed, more = self._pages(f"{key}&{urlencode({'updated_since': since})}", most)
                rows = list({str(_inside(row, "server").get("name")): row for row in [*kept.rows, *changed]}.values())
                cut = kept.cut or more
            else:
                rows, cut = self._pages(key, most)
        except WebError as error:
            return self._kept_answer(key, error, word)
        self._keep(key, rows, cut)
        return _answer(word, _Kept(self._now(), rows, cut))

    def _pages(self, path: str, most: int) -> tuple[list[Any], bool]:
        """Request at most `most` pages. Return their rows, and True if there may be more. Raises WebError."""
        rows: list[Any] = []
        seen = {""}
        cursor = ""
        until = self._now() + SEARCH_S
        for _ in range(most):
            page = read_json(self._address + path + (f"&{urlencode({'cursor': cursor})}" if cursor else ""), LARGEST)
            listed = page.get("servers", 7) if isinstance(page, dict) else 7
            if not isinstance(listed, list | None):
                raise WebError("Its answer is not a list of servers")
            rows += listed or []
            following = _inside(page, "metadata").get("nextCursor")
            if not isinstance(following, str) or following in seen or len(following) > CURSOR_LONGEST:
                return rows, False
            cursor = following
            seen.add(cursor)
            if self._now() > until:
                break
        return rows, True

    def _kept_answer(self, key: str, error: WebError, word: str = "") -> RegistryAnswer:
        kept = self._kept(key)
        host = urlsplit(self._address).netloc
        why = one_line(error.title)[:200]
        if kept is None:
            hint = "Try again later, or paste the server's own snippet: multi-mcp add WHAT"
            raise MultiMcpError(f"Cannot query the registry {host}: {why}", hint) from None
        return replace(_answer(word, kept), old_s=max(0.0, self._now() - kept.at), why=why)

    def _file(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256((self._address + key).encode()).hexdigest()[:32]}.json"

    def _kept(self, key: str) -> _Kept | None:
        try:
            raw = read_bytes(self._file(key), LARGEST * 2)
            found = json.loads(raw) if raw and len(raw) <= LARGEST * 2 else None
        except (StorageError, ValueError, RecursionError):
            return None
        kept = found if isinstance(found, dict) else {}
        at, rows = kept.get("at"), kept.get("rows")
        if not isinstance(at, int | float) or not isinstance(rows, list):
            return None
        return _Kept(at, rows, kept.get("cut") is True)

    def _keep(self, key: str, rows: list[Any], cut: bool = False) -> None:
        kept = {"at": self._now(), "rows": [row for row in rows if _is_small(row)], "cut": cut}
        data = json.dumps(kept).encode()
        with suppress(OSError, StorageError):  # an answer that cannot be cached is requested again
            make_folder(self._folder)
            replace_file(self._file(key), data)
            files = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in files[:-CACHED_MOST]:
                path.unlink(missing_ok=True)


def _rank(entry: RegistryEntry, words: list[str]) -> tuple[int, bool, int, int, int, str]:
    """Return an entry's sort key for these search words. The best match sorts first."""
    own = entry.name.partition("/")[2].lower()  # the part after the slash
    text = f"{entry.name} {entry.title} {entry.description}".lower()
    parts = set(re.split(r"[^a-z0-9]+", f"{own} {entry.title.lower()}"))
    exact = [entry.name.lower()] == words or [part for part in re.split(r"[^a-z0-9]+", own) if part] == words
    return (
        _ORDER.index(entry.status),  # active first
        not exact,
        -sum(word in text for word in words),
        -sum(word in parts for word in words),  # as whole words
        -sum(word in own for word in words),
        entry.name,
    )


def _is_small(row: Any) -> bool:
    try:
        return len(json.dumps(row)) <= ENTRY_LARGEST
    except RecursionError:
        return False


def _inside(value: Any, *path: str) -> Mapping[str, Any]:
    """Return the object at a path of keys in untrusted JSON, or {} if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _official(row: Any) -> Mapping[str, Any]:
    return _inside(row, "_meta", "io.modelcontextprotocol.registry/official")


def _text(value: Any, most: int) -> str:
    return one_line(value)[:most] if isinstance(value, str) else ""


def _entries(rows: list[Any]) -> Iterator[RegistryEntry]:
    """Yield the usable entries of an answer's rows: those within the size limit and with a valid name."""
    for row in rows:
        server = _inside(row, "server")
        name = server.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not _is_small(row):
            continue
        official = _official(row)
        packages, remotes = server.get("packages"), server.get("remotes")
        parts = packages if isinstance(packages, list) else []
        ways = [_text(part.get("registryType"), 20) for part in parts if isinstance(part, dict)]
        ways += ["remote"] if isinstance(remotes, list) and remotes else []
        status = official.get("status", server.get("status", "active"))
        yield RegistryEntry(
            name,
            _text(server.get("version"), 100),
            _text(server.get("title"), 100),
            _text(server.get("description"), 300),
            status if status in _ORDER else "deprecated",  # do not recommend an entry of unknown status
            _text(official.get("statusMessage"), 300),
            _text(official.get("updatedAt"), 40),
            tuple(dict.fromkeys(filter(None, ways))),
            server,
        )
