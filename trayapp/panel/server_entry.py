"""The text of a server's entry in servers.yaml."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from textwrap import dedent

from trayapp.config.problems import InvalidValueError
from trayapp.config.yaml.nodes import Mapping, Node, Pair, compose, follow, pairs
from trayapp.model.errors import ConfigError
from trayapp.model.redact import redacted


def entry_of(path: Path, name: str) -> str:
    """Return a server's entry as it is written, redacted; "" if the file has none. Blocks."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        servers = _pair(compose(text, str(path)), "servers")
        entry = _pair(servers.value if servers else None, name)
    except (OSError, ValueError, ConfigError, InvalidValueError):
        return "# servers.yaml cannot be read now"
    return redacted(dedent(_written(text, entry))).rstrip() if entry is not None else ""


def _pair(node: Node | None, name: str) -> Pair | None:
    """Return the pair of that name in a mapping. Raise InvalidValueError."""
    found = follow(node) if node is not None else None
    return next((one for one in pairs(found) if one.name == name), None) if isinstance(found, Mapping) else None


def _written(text: str, pair: Pair) -> str:
    key, value = pair.key, pair.value
    start = text.rfind("\n", 0, key.start) + 1
    if text[start : key.start].strip():  # several on a line
        start = key.start
    first, *rest = text[start:].splitlines()
    if value.start < start:  # an alias of something further up
        return first
    if isinstance(value, Mapping) and not value.flow:  # a block: to the next line that is not deeper
        return "\n".join((first, *takewhile(lambda one: not one.strip() or _indent(one) > _indent(first), rest)))
    return text[start : value.end]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
