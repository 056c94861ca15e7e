"""servers.yaml's text to a Config: every problem with its line, one wrong entry leaves all others (PRODUCT 4, 15).

Never here: reading or writing files (the only question asked of the machine is `exists`), variables' values.
"""

from __future__ import annotations

import os

from trayapp.config.command import Exists, path_exists
from trayapp.config.compose import compose
from trayapp.config.entry import Surroundings, read_entry
from trayapp.config.nodes import Mapping, Node, Pair, is_null, pairs
from trayapp.config.options import read_settings
from trayapp.config.problems import Report, Unparsable, Wrong, nearest, problem_at, shown
from trayapp.config.spelling import is_extension, is_servers_key, snake
from trayapp.model.plan import Config
from trayapp.model.servers import ServerConfig
from trayapp.model.settings import Settings

__all__ = ["Unparsable", "parse", "top_level"]

EXAMPLE = "Write it as {servers: {name: {command: ...}}}"


def parse(text: str, file: str, *, exists: Exists = path_exists, windows: bool = os.name == "nt") -> Config:
    """The configuration that `text` holds; an empty one is fine. `file` names it in problems.

    Raises Unparsable when the whole cannot be used: no YAML, too large, no mapping, a key of the file or of `servers`
    written twice. Everything else is in Config.problems: a fatal one for each server left out, others for unknown keys
    and wrong settings.
    """
    report = Report(file)
    settings, servers = Settings(), dict[str, ServerConfig]()
    for pair in top_level(compose(text, file), file):
        if is_servers_key(pair.name):
            _read_servers(pair, servers, report, Surroundings(exists, windows))
        elif snake(pair.name) == "settings":
            settings = read_settings(pair.value, report)
        elif not is_extension(pair.name):
            near = nearest(pair.name, ("settings", "servers"))
            report.add(pair.key, f"Unknown key {shown(pair.name)}", f"Did you mean {near}?" if near else "")
    return Config(settings, servers, report.sorted())


def top_level(root: Node | None, file: str) -> list[Pair]:
    """The pairs of the file itself; raises Unparsable when it is no mapping or a key stands twice."""
    if root is None or is_null(root):
        return []
    return _pairs(root, "The file", file)


def _read_servers(pair: Pair, servers: dict[str, ServerConfig], report: Report, around: Surroundings) -> None:
    """Add the servers of one pair to those that the file named before."""
    for entry in [] if is_null(pair.value) else _pairs(pair.value, pair.name, report.file):
        if entry.name in servers:
            raise Unparsable(problem_at(report.file, entry.key, f"{shown(entry.name)} is written twice"))
        server = read_entry(entry, report, around)
        if server is not None:
            servers[server.name] = server


def _pairs(node: Node, what: str, file: str) -> list[Pair]:
    if not isinstance(node, Mapping):
        raise Unparsable(problem_at(file, node, f"{what} must be a mapping", EXAMPLE))
    try:
        return pairs(node)
    except Wrong as wrong:
        raise Unparsable(problem_at(file, wrong.place, f"{what}: {wrong.message}", wrong.hint)) from None
