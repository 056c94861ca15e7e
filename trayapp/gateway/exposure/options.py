"""What one session asked for about its own view (the shim's options, or the query of its URL), and what that comes to.

Never here: listing tools, servers' own settings, other members of a hello (cwd, pid).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trayapp.catalog.suggest import nearest
from trayapp.model.errors import MultiMcpError
from trayapp.model.plan import Config
from trayapp.model.settings import EXPOSE_MODES, Expose, Profile

OPTIONS = ("expose", "servers", "profile")
HELLO_MEMBERS = frozenset({"cwd", "pid", "token", "kind"})


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """As asked; None = not asked. `wrong`: what cannot be understood, one line, else empty."""

    expose: Expose | None = None
    servers: tuple[str, ...] | None = None
    profile: str | None = None
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which part of the catalog a session sees, and how.

    `servers` None = all. `wrong`: the options cannot be followed: nothing is shown, for what was asked for was less
    than everything. `unknown`: named servers that are not configured; the session goes on with the others.
    """

    expose: Expose = "auto"
    defer_above: int = 15
    servers: frozenset[str] | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    wrong: str = ""
    unknown: tuple[str, ...] = ()

    def has(self, server: str) -> bool:
        """Whether the session sees that server."""
        return not self.wrong and (self.servers is None or server in self.servers)


class UnknownOptionsError(MultiMcpError):
    """A session's options name something that does not exist; it sees nothing."""

    code = "unknown_options"

    def __init__(self, wrong: str) -> None:
        super().__init__(wrong, "Change the options of multi-mcp stdio, or servers.yaml")


def session_options(given: Mapping[str, Any]) -> SessionOptions:
    """Read `expose`, `servers` (A,B) and `profile` of a hello, or of a URL's query.

    A filter that is empty, as with a variable that is not set, or misspelt is wrong: more than was meant must not show.
    """
    expose, servers, profile = (_text(given, name) for name in OPTIONS)
    named = tuple(name for part in (servers or "").split(",") if (name := part.strip()))
    mode = next((mode for mode in EXPOSE_MODES if mode == expose), None)
    wrong = _misspelt(given)
    if expose and mode is None:
        wrong = f"expose is one of {', '.join(EXPOSE_MODES)}, not {expose}"[:200]
    elif servers is not None and not named:
        wrong = "servers is empty, so nothing is shown; name servers as A,B, or leave it out for all"
    elif profile == "":
        wrong = "profile is empty, so nothing is shown; name a profile, or leave it out for everything"
    return SessionOptions(mode, named or None, profile or None, wrong)


def _text(given: Mapping[str, Any], name: str) -> str | None:
    """Return the option's text, empty for what is no text; None when it was not given."""
    value = given.get(name)
    return None if value is None else value.strip() if isinstance(value, str) else ""


def _misspelt(given: Mapping[str, Any]) -> str:
    for name in given:
        if name not in OPTIONS and name not in HELLO_MEMBERS and (near := nearest(name, OPTIONS)):
            return f"{name} is no option; did you mean {near[0]}?"[:200]
    return ""


def choose(options: SessionOptions, config: Config) -> Choice:
    """What the options come to under a configuration; a session's own word counts more than its profile's."""
    settings = config.settings
    profile = settings.profiles.get(options.profile) if options.profile is not None else Profile()
    if profile is None or options.wrong:
        wrong = options.wrong or _no_profile(str(options.profile), list(settings.profiles))
        return Choice(options.expose or settings.expose, settings.defer_above, wrong=wrong)
    asked = [frozenset(names) for names in (options.servers, profile.servers) if names is not None]
    named = dict.fromkeys((*(options.servers or ()), *(profile.servers or ())))
    return Choice(
        options.expose or profile.expose or settings.expose,
        settings.defer_above,
        frozenset.intersection(*asked) if asked else None,
        profile.include_tools,
        profile.exclude_tools,
        unknown=tuple(name for name in named if name not in config.servers),
    )


def _no_profile(asked: str, known: list[str]) -> str:
    near = nearest(asked, known)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}" if known else "there is none"
    return f"No profile is named {asked}; {hint}"[:500]
