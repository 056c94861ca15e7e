"""Servers' entries of several files merged over each other (PRODUCT 4, Layers).

Imports are below servers.yaml, a project's file is above it. `merge_entry` is the rule for one server.
"""

from __future__ import annotations

import os
from collections.abc import Mapping as Plain
from dataclasses import replace
from typing import Any

from trayapp.config.problems import InvalidValueError, Report, UnparsableError
from trayapp.config.read import fields
from trayapp.config.read.command import Exists, path_exists, split_command
from trayapp.config.read.entry import EntryContext, read_entry
from trayapp.config.read.parse import read_top, server_pairs
from trayapp.config.read.spelling import field_of, snake
from trayapp.config.yaml.nodes import Mapping, Node, Pair, Scalar, Sequence, follow, is_null, node_of, text_node
from trayapp.model.errors import Problem
from trayapp.model.plan import Config, Imported
from trayapp.model.servers import ServerConfig

OWN = "servers.yaml"
Entry = Plain[str, Any]

STDIO_FIELDS = frozenset(("command", "args", "env", "cwd", "inherit_env", "type"))
HTTP_FIELDS = frozenset(
    (
        "url",
        "type",
        "headers",
        "auth",
        "bearer_token_env",
        "client_id",
        "client_secret",
        "scopes",
        "account",
        "callback_port",
    )
)


def lay_over(
    config: Config,
    imported: tuple[Imported, ...],
    file: str = OWN,
    *,
    exists: Exists = path_exists,
    windows: bool = os.name == "nt",
) -> Config:
    """Merge `config`, as parsed from `file`, over the layers, per field. The first of two layers with one name wins.

    A layer's unusable server is reported for its file and otherwise ignored. None of our own servers is lost by it.
    """
    surroundings = EntryContext(exists, windows)
    top = _top(config)
    below, problems = _usable(_with_lines(imported, top, file), surroundings)
    own = server_pairs(top, OWN)
    report = Report(file)
    servers: dict[str, ServerConfig | None] = {}
    for name, pair in own.items():
        over = name in below
        merged = merged_pair(below[name], pair, surroundings) if over else None
        servers[name] = read_entry(merged, report, surroundings) if merged is not None else None
        servers[name] = servers[name] if over else config.servers.get(name)
    foreign = {name: pair for name, pair in below.items() if name not in own}
    quiet = Report(file)  # already reported, with the right file
    servers |= {name: read_entry(pair, quiet, surroundings) for name, pair in foreign.items()}
    laid = {name for name in own if name in below}
    kept = tuple(problem for problem in config.problems if problem.server not in laid)
    return replace(
        config,
        servers={name: server for name, server in servers.items() if server is not None},
        problems=(*sorted((*kept, *report.sorted()), key=lambda problem: problem.line), *problems),
        imported=imported,
        foreign={name: _file_of(name, imported) for name in foreign},
    )


def user_pairs(user: Config, surroundings: EntryContext) -> dict[str, Pair]:
    """Return the layer below a project's file: the entries of servers.yaml merged over the imports."""
    own, below = server_pairs(_top(user), OWN), _pairs(user.imported)
    merged = {n: merged_pair(below[n], pair, surroundings) if n in below else pair for n, pair in own.items()}
    return {**below, **merged}


def merged_pair(lower: Pair, upper: Pair, surroundings: EntryContext) -> Pair:
    """Merge the upper entry over the lower. If one is no mapping, return the upper, so that the parser reports it."""
    try:
        below = {pair.name: pair for pair in fields.mapping_pairs(lower.value)}
        above = {} if is_null(upper.value) else {pair.name: pair for pair in fields.mapping_pairs(upper.value)}
    except InvalidValueError:
        return upper
    below = _with_args_apart(below, above, surroundings)
    kept = merge_entry(_plain(below), _plain(above))
    chosen = [above[name] if name in above else below[name] for name in kept]
    at = upper.key
    node = Mapping(at.start, at.end, at.line, at.column, None, 1, [(pair.key, pair.value) for pair in chosen], True)
    return Pair(upper.key, upper.name, node)


def merge_entry(lower: Entry, upper: Entry) -> dict[str, Any]:
    """Merge `upper` over `lower`, per field. A list or mapping replaces the whole lower value (config-05, 06).

    A switch between command and url, or to a different url, drops the lower fields of that transport, above all
    credentials (config-07 to 09). Different spellings of a key count as one.
    """
    hidden = {field_of(key) for key in upper} | _dropped(lower, upper)
    kept = {key: value for key, value in lower.items() if field_of(key) not in hidden}
    return kept | dict(upper)


def _dropped(lower: Entry, upper: Entry) -> frozenset[str]:
    command, url = _get(upper, "command"), _get(upper, "url")
    dropped: frozenset[str] = frozenset()
    if url is not None:
        dropped |= STDIO_FIELDS if _get(lower, "command") is not None else dropped
        dropped |= HTTP_FIELDS if _get(lower, "url") != url else dropped
    if command is not None and _get(lower, "url") is not None:
        dropped |= HTTP_FIELDS
    return dropped


def _get(entry: Entry, field: str) -> Any:
    return next((value for key, value in entry.items() if field_of(key) == field), None)


def _with_args_apart(below: dict[str, Pair], above: dict[str, Pair], around: EntryContext) -> dict[str, Pair]:
    """Return the lower entry without the arguments that the upper one replaces (config-30, 31).

    Either entry may have the arguments in its command. A whole command line above removes `args` below. `args` above
    reduce a command line below to its program.
    """
    said = {field_of(name) for name, pair in above.items() if not is_null(pair.value)}
    known = {field_of(name): name for name in below}
    if "command" in said and "args" not in said and len(_command_line(above, around)) > 1:
        return {name: pair for name, pair in below.items() if name != known.get("args")}
    line = _command_line(below, around) if "args" in said and "command" not in said else []
    if len(line) > 1:
        name = known["command"]
        return {**below, name: replace(below[name], value=line[0])}
    return below


def _command_line(pairs: dict[str, Pair], around: EntryContext) -> list[Node]:
    """Return the words of a whole command line in `command`. Empty if `args` are separate or it is unreadable."""
    by_field = {field_of(name): pair.value for name, pair in pairs.items()}
    command = by_field.get("command")
    if isinstance(command, Sequence):
        return command.items
    if not isinstance(command, Scalar) or is_null(command) or not is_null(by_field.get("args", _NOTHING)):
        return []
    try:
        words = split_command(command.text, exists=around.exists, windows=around.windows)
    except ValueError:
        return []
    return [text_node(word, command.line) for word in words]


def _plain(pairs: dict[str, Pair]) -> dict[str, Any]:
    """Return comparable values: text for scalars, None for null, nodes for everything else."""
    nodes = {name: None if is_null(pair.value) else pair.value for name, pair in pairs.items()}
    return {name: node.text if isinstance(node, Scalar) else node for name, node in nodes.items()}


def _top(config: Config) -> list[Pair]:
    try:
        return read_top(config.text, OWN)
    except UnparsableError:
        return []


# --- layers as nodes


def _with_lines(imported: tuple[Imported, ...], top: list[Pair], file: str) -> tuple[Imported, ...]:
    """Return the layers, with the line of `settings.imports` added to our own problems about its words."""
    settings = [inner for pair in top if snake(pair.name) == "settings" for inner in _inner(pair.value)]
    said = [follow(pair.value) for pair in settings if snake(pair.name) == "imports"]
    words = [follow(word) for node in said for word in (node.items if isinstance(node, Sequence) else [node])]
    lines = {word.text.strip(): word.line for word in words if isinstance(word, Scalar)}

    def placed(layer: Imported, problem: Problem) -> Problem:
        is_ours = problem.file == file and not problem.line
        return replace(problem, line=lines.get(layer.client, 0)) if is_ours else problem

    return tuple(replace(layer, problems=tuple(placed(layer, one) for one in layer.problems)) for layer in imported)


def _inner(node: Node) -> list[Pair]:
    try:
        return fields.mapping_pairs(node)
    except InvalidValueError:
        return []


def _usable(imported: tuple[Imported, ...], surroundings: EntryContext) -> tuple[dict[str, Pair], list[Problem]]:
    """Return the layers' usable servers and all problems of the layers."""
    problems = [problem for layer in imported for problem in layer.problems]
    usable: dict[str, Pair] = {}
    for name, pair in _pairs(imported).items():
        report = Report(_file_of(name, imported))
        if read_entry(pair, report, surroundings) is not None:
            usable[name] = pair
        problems += [replace(problem, fatal=False) for problem in report.sorted()]
    return usable, problems


def _pairs(imported: tuple[Imported, ...]) -> dict[str, Pair]:
    found: dict[str, Pair] = {}
    for layer in imported:
        for name, entry in layer.entries.items():
            line = layer.lines.get(name, 0)
            found.setdefault(name, Pair(text_node(name, line), name, node_of(entry, line)))
    return found


def _file_of(name: str, imported: tuple[Imported, ...]) -> str:
    return next((layer.files.get(name, layer.client) for layer in imported if name in layer.entries), "")


_NOTHING = Scalar(0, 0, 0, 0, None, 1, "null", "", None)
