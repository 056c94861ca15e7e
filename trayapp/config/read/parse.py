"""Parsing of servers.yaml to a Config. Each problem has its line; one invalid entry affects no other (PRODUCT 4, 15).

Reads and writes no files. The only question about the machine is `exists`.
"""

from __future__ import annotations

import json
import os
from typing import Any

from trayapp.config.problems import InvalidValueError, Report, UnparsableError, nearest, problem_at, shown
from trayapp.config.read.command import Exists, path_exists
from trayapp.config.read.entry import EntryContext, read_entry
from trayapp.config.read.settings import read_settings
from trayapp.config.read.spelling import SETTING_KEYS, is_extension, is_servers_key, snake, spelled
from trayapp.config.read.text import BOM, MAX_BYTES
from trayapp.config.yaml.nodes import (
    MAX_DEPTH,
    MAX_NODES,
    Mapping,
    Node,
    Pair,
    compose,
    is_null,
    node_of,
    pairs,
    text_node,
)
from trayapp.model.plan import Config
from trayapp.model.settings import Settings

__all__ = ["UnparsableError", "parse", "top_level"]

EXAMPLE = "Write it as {servers: {name: {command: ...}}}"


def parse(text: str, file: str, *, exists: Exists = path_exists, windows: bool = os.name == "nt") -> Config:
    """Return the configuration in `text`, which may be empty. `file` names it in problems.

    Raise UnparsableError if the whole is unusable: not YAML, too large, not a mapping, or a duplicate key of the file
    or of `servers`. Config.problems has everything else: a fatal problem for each omitted server, others for unknown
    keys and invalid settings.
    """
    report = Report(file)
    top = read_top(text, file)
    entries = server_pairs(top, file).values()
    servers = [read_entry(entry, report, EntryContext(exists, windows)) for entry in entries]
    said = [pair for pair in top if snake(pair.name) == "settings"]
    for pair in said[1:]:
        message = f"{shown(pair.name)} says the same as {shown(said[0].name)} in line {said[0].key.line}"
        report.add(pair.key, message, "Keep one of them: the first one counts")
    for pair in top:
        if pair not in said and not is_servers_key(pair.name) and not is_extension(pair.name):
            near = nearest(pair.name, ("settings", "servers"))
            hint = f"Did you mean {near}?" if near else ""
            if spelled(pair.name, SETTING_KEYS) is not None:
                hint = f"Write it below settings: {shown(pair.name)} is one of them"
            report.add(pair.key, f"Unknown key {shown(pair.name)}", hint)
    settings = read_settings(said[0].value, report) if said else Settings()
    return Config(settings, {server.name: server for server in servers if server}, report.sorted(), text)


def read_top(text: str, file: str) -> list[Pair]:
    """Return the top-level pairs of the file. Raise UnparsableError.

    JSON is read as YAML, which is nearly a superset and gives line numbers. Text that only JSON allows
    (`"\\ud83d\\ude00"`, a very long key) is then read as JSON.
    """
    try:
        root = compose(text, file)
    except UnparsableError:
        root = _of_json(text) if file.endswith(".json") else None
        if root is None:
            raise
    return top_level(root, file)


def _of_json(text: str) -> Node | None:
    """Return the root node of a JSON text, each server at the line where its name first appears. None if not JSON."""
    try:
        document = json.loads(text.removeprefix(BOM), object_pairs_hook=_without_twins)
        if len(text) > MAX_BYTES or _size(document, MAX_DEPTH) > MAX_NODES:
            return None
        return _lined(text, document, 2) if isinstance(document, dict) else node_of(document, 1)
    except (ValueError, RecursionError):
        return None


def _lined(text: str, document: dict[str, Any], levels: int) -> Mapping:
    """Return a mapping whose keys have line numbers, down to `levels` levels."""
    made = Mapping(0, 0, 1, 0, None, 1, [], True)
    for key, value in document.items():
        line = text.count("\n", 0, max(text.find(json.dumps(key, ensure_ascii=False)), 0)) + 1
        deeper = levels > 1 and isinstance(value, dict)
        made.pairs.append((text_node(key, line), _lined(text, value, levels - 1) if deeper else node_of(value, line)))
    return made


def _without_twins(found: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found) != len(dict(found)):
        raise ValueError("a key is written twice")
    return dict(found)


def _size(value: Any, levels: int) -> int:
    """Return the number of values in a value, itself included. Raise ValueError below `levels` levels of nesting."""
    inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if inside and not levels:
        raise ValueError("nested too deeply")
    return 1 + sum(_size(item, levels - 1) for item in inside)


def server_pairs(top: list[Pair], file: str) -> dict[str, Pair]:
    """Return each server's unread entry by name. Raise UnparsableError for a duplicate name."""
    found: dict[str, Pair] = {}
    for pair in top:
        if not is_servers_key(pair.name) or is_null(pair.value):
            continue
        for entry in _pairs(pair.value, pair.name, file):
            if entry.name in found:
                raise UnparsableError(problem_at(file, entry.key, f"{shown(entry.name)} is written twice"))
            found[entry.name] = entry
    return found


def top_level(root: Node | None, file: str) -> list[Pair]:
    """Return the top-level pairs of the file. Raise UnparsableError if it is no mapping or has a duplicate key."""
    if root is None or is_null(root):
        return []
    return _pairs(root, "The file", file)


def _pairs(node: Node, what: str, file: str) -> list[Pair]:
    if not isinstance(node, Mapping):
        raise UnparsableError(problem_at(file, node, f"{what} must be a mapping", EXAMPLE))
    try:
        return pairs(node)
    except InvalidValueError as wrong:
        raise UnparsableError(problem_at(file, wrong.place, f"{what}: {wrong.message}", wrong.hint)) from None
