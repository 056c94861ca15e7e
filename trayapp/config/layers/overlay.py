"""The merge of the server entries of several files, entry by entry and field by field.

Imports are below servers.yaml, and a trusted project's file is above it. `merge_entry` merges one server's entries.
"""

from __future__ import annotations

from collections.abc import Mapping as Plain
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trayapp.config.layers.project import ProjectFile, TrustedFile
from trayapp.config.paths import CONFIG_NAME
from trayapp.config.problems import InvalidValueError, Report, UnparsableError
from trayapp.config.read import fields
from trayapp.config.read.command import split_command
from trayapp.config.read.entry import HTTP_ONLY, read_entry
from trayapp.config.read.fields import field_of, is_servers_key, snake
from trayapp.config.read.parse import read_top, server_pairs
from trayapp.config.urls import has_variable
from trayapp.config.yaml.nodes import Mapping, Node, Pair, Scalar, Sequence, follow, is_null, node_of, pairs, text_node
from trayapp.model.config import Config, Imported, ServerConfig, launch_settings
from trayapp.model.errors import Problem

Entry = Plain[str, Any]

STDIO_FIELDS = frozenset(("command", "args", "env", "cwd", "inherit_env", "type"))
HTTP_FIELDS = frozenset(("url", "type", *HTTP_ONLY))


def lay_over(config: Config, imported: tuple[Imported, ...], file: str) -> Config:
    """Return `config`, as parsed from `file`, merged over the imported layers, field by field.

    If several layers define the same server, the first layer counts. An unusable server of a layer is reported for that
    layer's file and otherwise ignored. It does not affect the server of that name in `file`.
    """
    top = _top(config)
    below, usable, problems = _usable(_with_lines(imported, top, file))
    own = server_pairs(top, CONFIG_NAME)
    report = Report(file)
    servers = {
        name: read_entry(merged_pair(below[name], pair), report) if name in below else config.servers.get(name)
        for name, pair in own.items()
    }
    foreign = {name: server for name, server in usable.items() if name not in own}
    laid = {name for name in own if name in below}
    kept = tuple(problem for problem in config.problems if problem.server not in laid)
    return replace(
        config,
        servers={name: server for name, server in (servers | foreign).items() if server is not None},
        problems=(*sorted((*kept, *report.sorted()), key=lambda problem: problem.line), *problems),
        imported=imported,
        foreign={name: _file_of(name, imported) for name in foreign},
    )


def user_pairs(user: Config) -> dict[str, Pair]:
    """Return the entries below a project's file, by name: those of servers.yaml merged over the imports."""
    own, below = server_pairs(_top(user), CONFIG_NAME), _pairs(user.imported)
    return below | {name: merged_pair(below[name], pair) if name in below else pair for name, pair in own.items()}


def merged_pair(lower: Pair, upper: Pair) -> Pair:
    """Return the upper entry merged over the lower one. If either is unreadable, return the upper one unchanged."""
    try:
        below = {pair.name: pair for pair in fields.mapping_pairs(lower.value)}
        above = {} if is_null(upper.value) else {pair.name: pair for pair in fields.mapping_pairs(upper.value)}
    except InvalidValueError:
        return upper
    below = _with_args_apart(below, above)
    kept = merge_entry(_plain(below), _plain(above))
    chosen = [above[name] if name in above else below[name] for name in kept]
    at = upper.key
    node = Mapping(at.start, at.end, at.line, at.column, None, 1, [(pair.key, pair.value) for pair in chosen], True)
    return Pair(upper.key, upper.name, node)


def merge_entry(lower: Entry, upper: Entry) -> dict[str, Any]:
    """Return `upper` merged over `lower`, field by field. A list or mapping replaces the whole lower value.

    If `upper` changes the transport or the url, the lower fields of the replaced transport, such as credentials, are
    dropped. Different spellings of a key count as the same key.
    """
    hidden = {field_of(key) for key in upper}
    command, url = _get(upper, "command"), _get(upper, "url")
    if url is not None:
        hidden |= STDIO_FIELDS if _get(lower, "command") is not None else set()
        hidden |= HTTP_FIELDS if _get(lower, "url") != url else set()
    if command is not None and _get(lower, "url") is not None:
        hidden |= HTTP_FIELDS
    kept = {key: value for key, value in lower.items() if field_of(key) not in hidden}
    return kept | dict(upper)


def _get(entry: Entry, field: str) -> Any:
    return next((value for key, value in entry.items() if field_of(key) == field), None)


def _with_args_apart(below: dict[str, Pair], above: dict[str, Pair]) -> dict[str, Pair]:
    """Return the lower entry without the arguments that the upper one replaces.

    Either entry may have its arguments in `command`. If the upper entry has a command line, the lower `args` are
    removed. If it has only `args`, a lower command line is reduced to its program.
    """
    said = {field_of(name) for name, pair in above.items() if not is_null(pair.value)}
    known = {field_of(name): name for name in below}
    if "command" in said and "args" not in said and len(_command_line(above)) > 1:
        return {name: pair for name, pair in below.items() if name != known.get("args")}
    line = _command_line(below) if "args" in said and "command" not in said else []
    if len(line) > 1:
        name = known["command"]
        return {**below, name: below[name]._replace(value=line[0])}
    return below


def _command_line(pairs: dict[str, Pair]) -> list[Node]:
    """Return the words of `command` if it is a list, or a command line without separate `args`. Otherwise return []."""
    by_field = {field_of(name): pair.value for name, pair in pairs.items()}
    command = by_field.get("command")
    if isinstance(command, Sequence):
        return command.items
    has_args = "args" in by_field and not is_null(by_field["args"])
    if not isinstance(command, Scalar) or is_null(command) or has_args:
        return []
    try:
        words = split_command(command.text)
    except ValueError:
        return []
    return [text_node(word, command.line) for word in words]


def _plain(pairs: dict[str, Pair]) -> dict[str, Any]:
    """Return values that can be compared: text for scalars, None for null, and nodes for everything else."""
    nodes = {name: None if is_null(pair.value) else pair.value for name, pair in pairs.items()}
    return {name: node.text if isinstance(node, Scalar) else node for name, node in nodes.items()}


def _top(config: Config) -> list[Pair]:
    try:
        return read_top(config.text, CONFIG_NAME)
    except UnparsableError:
        return []


def _with_lines(imported: tuple[Imported, ...], top: list[Pair], file: str) -> tuple[Imported, ...]:
    """Return the layers. Their problems of `file` that lack a line get that of their name in `settings.imports`."""
    settings: list[Pair] = []
    with suppress(InvalidValueError):
        settings += [inner for pair in top if snake(pair.name) == "settings" for inner in _members(pair.value)]
    said = [follow(pair.value) for pair in settings if snake(pair.name) == "imports"]
    words = [follow(word) for node in said for word in (node.items if isinstance(node, Sequence) else [node])]
    lines = {word.text.strip(): word.line for word in words if isinstance(word, Scalar)}

    def placed(layer: Imported, problem: Problem) -> Problem:
        is_ours = problem.file == file and not problem.line
        return replace(problem, line=lines.get(layer.client, 0)) if is_ours else problem

    return tuple(replace(layer, problems=tuple(placed(layer, one) for one in layer.problems)) for layer in imported)


def _usable(imported: tuple[Imported, ...]) -> tuple[dict[str, Pair], dict[str, ServerConfig], list[Problem]]:
    """Return the usable entries of the layers, the servers that they define, and all problems."""
    problems = [problem for layer in imported for problem in layer.problems]
    entries: dict[str, Pair] = {}
    servers: dict[str, ServerConfig] = {}
    for name, pair in _pairs(imported).items():
        report = Report(_file_of(name, imported))
        if (server := read_entry(pair, report)) is not None:
            entries[name], servers[name] = pair, server
        problems += [replace(problem, fatal=False) for problem in report.sorted()]
    return entries, servers, problems


def _pairs(imported: tuple[Imported, ...]) -> dict[str, Pair]:
    found: dict[str, Pair] = {}
    for layer in imported:
        for name, entry in layer.entries.items():
            line = layer.lines.get(name, 0)
            found.setdefault(name, Pair(text_node(name, line), name, node_of(entry, line)))
    return found


def _file_of(name: str, imported: tuple[Imported, ...]) -> str:
    return next((layer.files.get(name, layer.client) for layer in imported if name in layer.entries), "")


@dataclass(frozen=True, slots=True)
class Overlay:
    """The configuration for one project's sessions: the user's settings, all servers, and the project's problems."""

    folder: Path
    config: Config
    named: tuple[str, ...] = ()  # usable servers of the project's file
    # The servers in `named` that only this project defines, starts differently or enables. They never use the user's
    # processes.
    own: frozenset[str] = frozenset()


def overlay(user: Config, trusted: TrustedFile) -> Overlay:
    """Return `user` with the project's servers merged over it.

    If the project's file cannot be parsed, the servers are those of `user`, and this is the only problem.
    """
    return preview(user, trusted.file)


def preview(user: Config, file: ProjectFile) -> Overlay:
    """Return the overlay of a file that may be untrusted. It is only for display: none of its servers may run."""
    name = str(file.path)
    report = Report(name)
    try:
        top = read_top(file.text(), name)
        above = server_pairs(top, name)
    except UnparsableError as error:
        return Overlay(file.folder, replace(user, problems=(error.problem,)))
    for pair in top:
        if not is_servers_key(pair.name):
            report.add(pair.key, "A project's file may define only servers", "Move this key to servers.yaml")
    below = user_pairs(user)
    servers = dict(user.servers)
    for key, pair in above.items():
        lower = below.get(key)
        merged = merged_pair(lower, pair) if lower else pair
        entry = read_entry(merged, Report(name), in_project=True)
        if lower and _starts_another(user.servers.get(key), entry):
            merged = merged_pair(_without_private(lower), pair)
        entry = read_entry(merged, report, in_project=True)
        if entry is None:
            servers.pop(key, None)  # do not replace the project's invalid entry with the user's server
            continue
        if _has_ask(pair):
            report.add(pair.key, f"{key}: ask is ignored in a project's file", "Set it in servers.yaml")
        servers[key] = _asking_as(user.servers.get(key), entry)
    named = tuple(key for key in above if key in servers)
    own = frozenset(key for key in named if _is_own(user.servers.get(key), servers[key]))
    for key in own:
        if key not in user.servers or any(field_of(pair.name) in _LAUNCH for pair in _members(above[key].value)):
            servers[key] = _at_home(servers[key], file.folder)
    return Overlay(file.folder, Config(user.settings, servers, report.sorted()), named, own)


# Fields of a user's entry that only its own program or address may receive
_PRIVATE = (HTTP_FIELDS | frozenset(("env", "cwd"))) - {"url", "type"}
_LAUNCH = frozenset(("command", "args", "env", "cwd"))  # a project's entry with one of these runs in its folder


def _starts_another(user: ServerConfig | None, server: ServerConfig | None) -> bool:
    """Return True if the merged server has another program or address than the user's, or if either is missing."""
    if user is None or server is None:
        return True
    return (user.command, user.args, user.cwd, user.url) != (server.command, server.args, server.cwd, server.url)


def _without_private(lower: Pair) -> Pair:
    """Return the user's entry without env, cwd, headers and credentials, which only its own server may receive."""
    if not isinstance(lower.value, Mapping):
        return lower
    kept = [(pair.key, pair.value) for pair in pairs(lower.value) if field_of(pair.name) not in _PRIVATE]
    return lower._replace(value=replace(lower.value, pairs=kept))


def _members(node: Node | None) -> list[Pair]:
    return pairs(node) if isinstance(node, Mapping) else []


def _has_ask(entry: Pair) -> bool:
    said = {field_of(pair.name): pair.value for pair in _members(entry.value)}
    tools = _members(said.get("tools"))
    return "ask" in said or any(inner.name == "ask" for tool in tools for inner in _members(tool.value))


def _asking_as(user: ServerConfig | None, server: ServerConfig) -> ServerConfig:
    """Return a project's server with the user's own `ask`, because a cloned file must not weaken it."""
    said = {name: switch.ask for name, switch in ((user.tools if user else None) or {}).items()}
    own = server.tools
    tools = own and {name: replace(switch, ask=said.get(name)) for name, switch in own.items()}
    return replace(server, ask=user.ask if user else None, tools=tools)


def _is_own(user: ServerConfig | None, server: ServerConfig) -> bool:
    """Return True if the project's server needs its own connection, separate from that of the user's server.

    A different lifecycle, idle_timeout or connect_timeout does not justify a second process: the user's values apply.
    The project's tools and request_timeout apply to its sessions even if the connection is shared.
    """
    if user is None or launch_settings(user) != launch_settings(server):
        return True
    return user.disabled and not server.disabled


def _at_home(server: ServerConfig, folder: Path) -> ServerConfig:
    """Return the server with its cwd below `folder`, unless the cwd is absolute, begins with `~` or has a variable."""
    cwd = server.cwd or ""
    if server.command is None or cwd.startswith("~") or has_variable(cwd):
        return server
    return replace(server, cwd=str(folder / cwd))
