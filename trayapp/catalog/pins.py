"""What each server's tools were when they were approved: one JSON file a server, which outlives the cache.

A tool is approved at first sight (trust on first use) unless it hides something, and from then on by the user.
Never here: what a held tool looks like to clients (gateway/exposure/approvals), the clock, the network. Only `save`
writes files; it blocks.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from trayapp.catalog.cache import file_name, read_file
from trayapp.config.files import replace_file
from trayapp.inspection.finding import Finding, Severity
from trayapp.model.errors import StorageError
from trayapp.model.offer import Item
from trayapp.wire.jsonio import JsonError, dumps, loads

log = logging.getLogger(__name__)

FOLDER_NAME = "approved"  # beside servers.yaml
VERSION = 3  # of the file's form; before, a definition was an object (1), and wording alone held tools back (2)
READ = (1, 2, VERSION)
HASH_BYTES = 16
BROKEN = ".broken"  # what the name of a file ends with that could not be read
PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
BESIDE_LARGEST = 16 * 1024  # bytes of the members beside these that are kept as they were approved; larger ones are not

# Of the members beside PINNED (`_meta`, `icons`, unknown ones) what differs from list to list is no change: numbers,
# digits and digests in texts, signatures in addresses. Words are.
PINNED_SET = frozenset(PINNED)
_VOLATILE = re.compile(
    r"(?<=[?&])(?:x-(?:amz|goog|ms)-[a-z-]+|expires|sig|signature|token|ts|date|policy)=[\w%+/=.~-]{0,2000}"
    r"|[0-9a-f]{8,}|[0-9]+",
    re.IGNORECASE,
)
_DEEPEST = 16  # of a member beside PINNED; what lies deeper counts as it is


@dataclass(frozen=True, slots=True)
class Pin:
    """One tool as it was approved; with `approved` false, as it was when it was held back for `findings`.

    An approved one with `findings` is served, and told of until the user has approved it.

    `text`: its definition as JSON, read again only when the server says something else. `beside`: the members beside
    PINNED count, too; in files of earlier versions they did not. `unread`: nobody has looked for orders in it yet.
    `declined`: hash of a later definition that the user does not want.
    """

    hash: str
    text: str
    approved: bool = True
    findings: tuple[Finding, ...] = ()
    beside: bool = True
    unread: bool = False
    declined: str = ""

    @property
    def definition(self) -> Item:
        """What of the tool counts, as it was; nothing where that cannot be read, and whatever it is now differs."""
        try:
            definition = loads(self.text.encode())
        except ValueError:  # JsonError is one
            return {}
        return definition if isinstance(definition, dict) else {}


@dataclass(slots=True)
class ServerPins:
    """All pins of a server by the tools' names. `known`: the server was seen before; `listed`: what it lists now;
    `dirty`: not on disk yet; `lost`: why the file that there was could not be read; `allowed`: what the user always
    allows."""

    server: str
    tools: dict[str, Pin] = field(default_factory=dict)
    known: bool = False
    listed: frozenset[str] = frozenset()
    dirty: bool = False
    lost: StorageError | None = None
    allowed: dict[str, str] = field(default_factory=dict)  # by tool: hash of the definition that is never asked about

    def pin(self, name: str, pin: Pin) -> None:
        """Keep one tool so."""
        self.tools[name] = pin
        self.dirty = True

    def forget_apart(self, names: Iterable[str]) -> None:
        """What is no tool, and is not listed any more, is not kept: such names may come and go by the thousand."""
        for name in list(names):
            del self.tools[name]
            self.dirty = True


def pinned(item: Item) -> str:
    """Return a definition as it may be served later, as JSON; without members beside PINNED where they are large."""
    beside = _beside(item)
    kept = {} if beside and len(dumps(beside)) > BESIDE_LARGEST else beside
    return dumps({**_counting(item), **kept}).decode()


def _counting(item: Item) -> Item:
    return {key: item[key] for key in PINNED if key in item}


def _beside(item: Item) -> Item:
    return {key: item[key] for key in item if key not in PINNED} if item.keys() - PINNED_SET else {}


def definition_hash(item: Item, *, beside: bool = True) -> str:
    """Return the same for equal definitions, whatever the order of keys. `beside`: with the members beside PINNED."""
    definition = _counting(item)
    others = _beside(item) if beside else {}
    if others:
        definition[""] = _steady(others, 0)  # no member's name
    try:
        data = orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate, a large integer, deep nesting: what the server sent, in its order
        data = dumps(definition)
    return hashlib.blake2b(data, digest_size=HASH_BYTES).hexdigest()


def _steady(value: Any, depth: int) -> Any:
    """Return a value without what differs from list to list."""
    if isinstance(value, str):
        return _VOLATILE.sub("#", value)
    if depth > _DEEPEST or value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return {key: _steady(inner, depth + 1) for key, inner in value.items()}
    return [_steady(inner, depth + 1) for inner in value] if isinstance(value, list) else 0


def load(folder: Path, server: str) -> ServerPins:
    """The pins of a server; none when the file cannot be used, which is set aside and told of. Blocks."""
    path = folder / file_name(server)
    try:
        tools, allowed = _parse(server, read_file(path))
        return ServerPins(server, tools, known=True, allowed=allowed)
    except FileNotFoundError:
        return ServerPins(server)
    except (OSError, JsonError, ValueError) as error:
        what = f"What was approved of {server} cannot be read, its tools count as new: {error}"
        log.warning("%s", what)
        with suppress(OSError):
            path.replace(path.with_name(f"{path.name}{BROKEN}"))
        return ServerPins(server, lost=StorageError(what, f"Look its tools over with: multi-mcp inspect {server}"))


def save(folder: Path, server: str, tools: Mapping[str, Pin], allowed: Mapping[str, str] | None = None) -> None:
    """Replace the server's file at once, or leave it as it is. Blocks. Raises StorageError."""
    path = folder / file_name(server)
    try:
        written = {"version": VERSION, "server": server, "tools": {name: _as_json(pin) for name, pin in tools.items()}}
        data = dumps({**written, **({"allowed": dict(allowed)} if allowed else {})})
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, data)
    except (OSError, TypeError, ValueError, RecursionError) as error:
        raise StorageError(
            f"Cannot note what is approved of {server}: {error}", f"Check the space and the permissions of {folder}"
        ) from error


def _as_json(pin: Pin) -> dict[str, Any]:
    findings = [asdict(found) for found in pin.findings]
    written = {"hash": pin.hash, "definition": pin.text, "approved": pin.approved, "findings": findings}
    rare = {**({"unread": True} if pin.unread else {}), **({"declined": pin.declined} if pin.declined else {})}
    return {**written, "beside": pin.beside, **rare}


def _parse(server: str, data: bytes) -> tuple[dict[str, Pin], dict[str, str]]:
    """Return the pins and what is always allowed.

    Raises ValueError (JsonError is one) for anything that `save` did not write for this server.
    """
    raw = loads(data)
    if not isinstance(raw, dict) or raw.get("version") not in READ or raw.get("server") != server:
        raise ValueError("not written by this version for this server")
    tools = raw.get("tools")
    if not isinstance(tools, dict):
        raise ValueError("tools is not an object")
    allowed = raw.get("allowed", {})
    if not isinstance(allowed, dict) or not all(isinstance(digest, str) for digest in allowed.values()):
        raise ValueError("allowed is not as it was written")
    pins = {name: _pin(value) for name, value in tools.items()}
    if raw["version"] < VERSION:  # what was held back then is looked at again
        pins = {name: pin for name, pin in pins.items() if pin.approved}
    return pins, allowed


def _pin(value: Any) -> Pin:
    if not isinstance(value, dict) or not isinstance(value.get("hash"), str):
        raise ValueError("a tool has no hash")
    definition, approved, findings = value.get("definition"), value.get("approved"), value.get("findings")
    text = pinned(definition) if isinstance(definition, dict) else definition
    if not isinstance(text, str) or not isinstance(approved, bool) or not isinstance(findings, list):
        raise ValueError("a tool is not as it was written")
    beside, unread = value.get("beside") is True, value.get("unread") is True
    declined = value.get("declined", "")
    if not isinstance(declined, str):
        raise ValueError("a tool is not as it was written")
    return Pin(value["hash"], text, approved, tuple(map(_finding, findings)), beside, unread, declined)


def _finding(value: Any) -> Finding:
    if not isinstance(value, dict) or not all(
        isinstance(value.get(name), str) for name in ("code", "where", "evidence")
    ):
        raise ValueError("a finding is not as it was written")
    severity: Severity = "medium" if value.get("severity") == "medium" else "high"
    more = {name: value[name] for name in ("reason", "marked") if isinstance(value.get(name), str)}
    return Finding(value["code"], severity, value["where"], value["evidence"], **more)
