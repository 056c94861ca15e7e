"""Difference between the running configuration and a saved one: which servers to start, stop or update in place.

backends/pool applies a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from trayapp.model.errors import Problem
from trayapp.model.servers import ServerConfig, launch_settings
from trayapp.model.settings import Settings, confine_of


@dataclass(frozen=True, slots=True)
class Imported:
    """A read-only layer below servers.yaml: one client's servers, converted to our keys, by name.

    `files` and `lines`: where each entry is defined. `problems`: errors in the client's files.
    """

    client: str
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """One whole configuration, as parsed. `servers` keeps the file's order.

    `imported`: the layers below, in the order listed. `foreign`: servers that only those layers define, with their
    files.
    """

    settings: Settings = Settings()
    servers: dict[str, ServerConfig] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    text: str = field(default="", repr=False, compare=False)  # as written, to be merged below a project's file
    imported: tuple[Imported, ...] = field(default=(), repr=False, compare=False)
    foreign: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


class Plan(NamedTuple):
    """Server names by what a change does to them. A name is in at most one field."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    relaunched: tuple[str, ...] = ()  # launch settings differ: the old process ends
    adjusted: tuple[str, ...] = ()  # only other settings differ: the process and its calls continue
    settings_changed: bool = False

    @property
    def empty(self) -> bool:
        """True if the plan contains no changes."""
        return not (self.added or self.removed or self.relaunched or self.adjusted or self.settings_changed)


def plan(old: Config, new: Config) -> Plan:
    """Return the plan that leads from `old` to `new`. Line numbers and problems do not count as changes."""
    both = [name for name in new.servers if name in old.servers]
    relaunched = [n for n in both if _launched(old, n) != _launched(new, n)]
    adjusted = [
        n for n in both if n not in relaunched and replace(old.servers[n], line=0) != replace(new.servers[n], line=0)
    ]
    return Plan(
        added=tuple(n for n in new.servers if n not in old.servers),
        removed=tuple(n for n in old.servers if n not in new.servers),
        relaunched=tuple(relaunched),
        adjusted=tuple(adjusted),
        settings_changed=old.settings != new.settings,
    )


def _launched(config: Config, name: str) -> tuple[object, ...]:
    server = config.servers[name]
    confine = confine_of(server.confine, config.settings.confine) if server.transport == "stdio" else None
    return (*launch_settings(server), confine)
