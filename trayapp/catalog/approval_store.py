"""Pins: each server's tools as they were approved. One JSON file per server, which outlives the cache.

A tool is approved when it is first listed (trust on first use), unless it hides something. After that, only the user
can approve a changed definition. `load` and `save` block.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from trayapp.catalog.cache import file_name, read_own, write_own
from trayapp.inspection.finding import Finding, Severity
from trayapp.model.errors import StorageError
from trayapp.model.offer import Item
from trayapp.wire.jsonio import dumps, loads

log = logging.getLogger(__name__)

FOLDER_NAME = "approved"  # beside servers.yaml
VERSION = 3  # version of the file format; a file of another version counts as broken
BROKEN = ".broken"  # suffix of a file that could not be read
PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
BESIDE_LARGEST = 16 * 1024  # bytes; members other than PINNED are not kept if they are larger in total

# Parts of the members other than PINNED (`_meta`, `icons`, unknown ones) vary with each listing and do not count as
# changes. These are numbers, digits and digests in texts, and signatures in addresses. A different word is a change.
PINNED_SET = frozenset(PINNED)
_VOLATILE = re.compile(
    r"(?<=[?&])(?:x-(?:amz|goog|ms)-[a-z-]+|expires|sig|signature|token|ts|date|policy)=[\w%+/=.~-]{0,2000}"
    r"|[0-9a-f]{8,}|[0-9]+",
    re.IGNORECASE,
)
_DEEPEST = 16  # levels of a member not in PINNED; deeper values are compared as they are


class Pin(NamedTuple):
    """The pinned definition of one tool: approved or, if `approved` is false, held back because of `findings`.

    A tool that was approved at its first listing despite `findings` is served. It is reported until the user approves
    it.
    """

    hash: str
    text: str  # the definition as JSON, parsed only when the server sends a different one
    approved: bool = True
    findings: tuple[Finding, ...] = ()
    unread: bool = False  # not yet searched for orders to a model
    declined: str = ""  # hash of a later definition that the user declined
    seen: bool = True  # False if inspection was off when the tool was pinned

    @property
    def definition(self) -> Item:
        """Return the pinned definition. If `text` cannot be read, return {}, which differs from every definition."""
        try:
            definition = loads(self.text.encode())
        except ValueError:  # JsonError is a ValueError
            return {}
        return definition if isinstance(definition, dict) else {}

    @classmethod
    def from_json(cls, value: Any) -> Pin:
        """Return a pin from its JSON value in a server's file. Raises ValueError."""
        raw = {"declined": "", **value} if isinstance(value, dict) else {}
        if not all(isinstance(raw.get(name), kind) for name, kind in _KINDS.items()):
            raise ValueError("a tool has a value of the wrong type")
        unread, seen = raw.get("unread") is True, raw.get("seen") is not False
        findings = tuple(map(_finding, raw["findings"]))
        return cls(raw["hash"], raw["definition"], raw["approved"], findings, unread, raw["declined"], seen)

    def to_json(self) -> dict[str, Any]:
        findings = [found._asdict() for found in self.findings]
        written = {"hash": self.hash, "definition": self.text, "approved": self.approved, "findings": findings}
        rare = {name: getattr(self, name) for name in ("unread", "declined", "seen")}
        return written | {name: value for name, value in rare.items() if value != Pin._field_defaults[name]}


@dataclass(slots=True)
class ServerPins:
    """All pins of a server by tool name, and the calls that the user always allows."""

    server: str
    tools: dict[str, Pin] = field(default_factory=dict)
    known: bool = False  # the server was seen before
    listed: frozenset[str] = frozenset()  # the tools that the server lists now
    dirty: bool = False  # not on disk yet
    lost: StorageError | None = None  # why the previous file could not be read
    allowed: dict[str, str] = field(default_factory=dict)  # tool -> hash of the definition that is always allowed

    def pin(self, name: str, pin: Pin) -> None:
        """Set the pin of a tool."""
        self.tools[name] = pin
        self.dirty = True

    def forget_apart(self, names: Iterable[str]) -> None:
        """Delete the pins of these subjects, which are not tools and are no longer listed."""
        for name in list(names):
            del self.tools[name]
            self.dirty = True


def pinned(item: Item) -> str:
    """Return a definition as JSON that may be served later. Members other than PINNED are left out if too large."""
    if item.keys() <= PINNED_SET:
        return dumps(item).decode()
    beside = _beside(item)
    kept = {} if len(dumps(beside)) > BESIDE_LARGEST else beside
    return dumps({**_counting(item), **kept}).decode()


def _counting(item: Item) -> Item:
    return {key: item[key] for key in PINNED if key in item}


def _beside(item: Item) -> Item:
    return {key: item[key] for key in item if key not in PINNED_SET}


def definition_hash(item: Item) -> str:
    """Return a hash (hex) of a definition that ignores key order, and volatile parts of members other than PINNED."""
    definition = item
    if not item.keys() <= PINNED_SET:
        definition = {**_counting(item), "": _steady(_beside(item), 0)}  # no member has the name ""
    try:
        data = orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate, a large integer or deep nesting: inner keys keep the server's order
        data = dumps({key: definition[key] for key in (*PINNED, "") if key in definition})
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _steady(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _VOLATILE.sub("#", value)
    if depth > _DEEPEST or value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return {key: _steady(inner, depth + 1) for key, inner in value.items()}
    return [_steady(inner, depth + 1) for inner in value] if isinstance(value, list) else 0


def load(folder: Path, server: str) -> ServerPins:
    """Read the pins of a server. An unusable file is renamed and reported in `lost`. Blocks."""
    path = folder / file_name(server)
    try:
        raw = {"allowed": {}, **read_own(path, VERSION, server)}
        if not all(isinstance(raw.get(name), dict) for name in ("tools", "allowed")):
            raise ValueError("tools or allowed is not an object")
        tools = {name: Pin.from_json(value) for name, value in raw["tools"].items()}
        allowed = {tool: str(digest) for tool, digest in raw["allowed"].items()}
        return ServerPins(server, tools, known=True, allowed=allowed)
    except FileNotFoundError:
        return ServerPins(server)
    except (OSError, ValueError) as error:
        what = f"Cannot read the approvals of {server}: {error}. Its tools count as new"
        log.warning("%s", what)
        with suppress(OSError):
            path.replace(path.with_name(f"{path.name}{BROKEN}"))
        return ServerPins(server, lost=StorageError(what, f"Check its tools with: multi-mcp inspect {server}"))


def save(folder: Path, server: str, tools: Mapping[str, Pin], allowed: Mapping[str, str] | None = None) -> None:
    """Replace the server's file atomically, or leave it unchanged. Blocks. Raises StorageError."""
    written = {"version": VERSION, "server": server, "tools": {name: pin.to_json() for name, pin in tools.items()}}
    more = {"allowed": dict(allowed)} if allowed else {}
    write_own(folder / file_name(server), written | more, f"the approvals of {server}")


_KINDS = {"hash": str, "definition": str, "approved": bool, "findings": list, "declined": str}  # a pin's members


def _finding(value: Any) -> Finding:
    if not isinstance(value, dict) or not all(
        isinstance(value.get(name), str) for name in ("code", "where", "evidence")
    ):
        raise ValueError("a finding has the wrong type")
    severity: Severity = "medium" if value.get("severity") == "medium" else "high"
    more = {name: value[name] for name in ("reason", "marked") if isinstance(value.get(name), str)}
    return Finding(value["code"], severity, value["where"], value["evidence"], **more)
