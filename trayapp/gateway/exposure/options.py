"""Read the options by which a session narrows its view (from the shim or the query of its URL), and apply them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from trayapp.catalog.suggest import nearest
from trayapp.model.config import EXPOSE_MODES, Config, Expose, Profile
from trayapp.model.errors import MultiMcpError

OPTIONS = ("expose", "servers", "profile")
HELLO_MEMBERS = frozenset({"cwd", "pid", "token", "kind"})


class SessionOptions(NamedTuple):
    """Options as given; None = not given. `wrong`: the problem in one line, or empty."""

    expose: Expose | None = None
    servers: tuple[str, ...] | None = None
    profile: str | None = None
    wrong: str = ""


class Choice(NamedTuple):
    """The part of the catalog that a session sees, and in which mode.

    `defer_above`: the number of tools above which `auto` means search mode. `servers`: None = all. `wrong`: why the
    options cannot be applied. Then nothing is shown, since the session asked for less than everything. `unknown`: named
    servers that are not configured; the session has the others.
    """

    expose: Expose = "auto"
    defer_above: int = 15
    servers: frozenset[str] | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    wrong: str = ""
    unknown: tuple[str, ...] = ()

    def has(self, server: str) -> bool:
        """Return True if the session sees the server."""
        return not self.wrong and (self.servers is None or server in self.servers)


class UnknownOptionsError(MultiMcpError):
    """Raised when a session's options name something that does not exist. Such a session sees nothing."""

    code = "unknown_options"

    def __init__(self, wrong: str) -> None:
        super().__init__(wrong, "Change the options of multi-mcp stdio, or servers.yaml")


def session_options(given: Mapping[str, Any]) -> SessionOptions:
    """Read `expose`, `servers` (A,B) and `profile` of a hello, or of a URL's query.

    An empty filter (from an unset variable, say) or a misspelled one is an error: it must not show more than intended.
    """
    # Empty if the value is not text, None if it was not given.
    expose, servers, profile = (
        None if (value := given.get(name)) is None else value.strip() if isinstance(value, str) else ""
        for name in OPTIONS
    )
    named = tuple(name for part in (servers or "").split(",") if (name := part.strip()))
    mode = next((mode for mode in EXPOSE_MODES if mode == expose), None)
    wrong = ""
    for name in given:
        if name not in OPTIONS and name not in HELLO_MEMBERS and (near := nearest(name, OPTIONS)):
            wrong = f"{name} is not an option; did you mean {near[0]}?"[:200]
            break
    if expose and mode is None:
        wrong = f"expose must be one of {', '.join(EXPOSE_MODES)}, not {expose}"[:200]
    elif servers is not None and not named:
        wrong = "servers is empty, so nothing is shown; name servers as A,B, or leave it out for all"
    elif profile == "":
        wrong = "profile is empty, so nothing is shown; name a profile, or leave it out for everything"
    return SessionOptions(mode, named or None, profile or None, wrong)


def choose(options: SessionOptions, config: Config) -> Choice:
    """Return the choice that these options make under a configuration.

    A session's own `expose` wins over its profile's. If both name servers, the session sees those that both name. An
    unknown profile makes the choice `wrong`.
    """
    settings = config.settings
    profile = settings.profiles.get(options.profile) if options.profile is not None else Profile()
    if profile is None or options.wrong:
        wrong, known = options.wrong, list(settings.profiles)
        if not wrong:
            near = nearest(str(options.profile), known)
            hint = (
                f"did you mean {near[0]}?"
                if near
                else f"there are: {', '.join(known)}"
                if known
                else "there are no profiles"
            )
            wrong = f"No profile is named {options.profile}; {hint}"[:500]
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
