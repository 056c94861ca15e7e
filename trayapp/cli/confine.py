"""`multi-mcp confine`: run a server once, confined, and show what it read, wrote and was refused.

With the user's consent, write the proposed `confine` key into its entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from trayapp.cli.edit import own_store, tell_gateway
from trayapp.cli.options import ask, verb
from trayapp.cli.output import at_terminal, print_json, require_person, say, waiting
from trayapp.clients.files import shown_path
from trayapp.config import edits
from trayapp.model.errors import ExitCode
from trayapp.model.text import count, one_line
from trayapp.wire.control import CONFINE

PLACES_NAMED = 8
SYSTEM = ("/usr/", "/etc/", "/lib", "/opt/", "/proc/", "/sys/", "/dev/", "/run/", "/bin/", "/sbin/", "/nix/")


@verb("confine", "multi-mcp confine github --try", "multi-mcp confine github")
@click.argument("server")
@click.option("--try", "only_try", is_flag=True, help="Write nothing.")
@click.option("--yes", is_flag=True, help="Write the entry without asking.")
def confine_verb(server: str, only_try: bool, yes: bool, as_json: bool) -> int:
    """Run SERVER once, confined, and list its tools.

    Shows which files it read and wrote and what was refused, and proposes a `confine` key for its entry in
    servers.yaml. No tool is called, but the proposal includes what earlier calls were refused.
    """
    if yes and not only_try:
        require_person("change what a server may reach")
    with waiting(f"Running {server}, confined", quiet=as_json):
        found: dict[str, Any] = ask(CONFINE, {"server": server}, timeout=None)
    works = found["tools"] is not None
    if not as_json:
        say(*map(one_line, _lines(server, found)))
    written = False
    if works and not only_try and (yes or (at_terminal() and not as_json and click.confirm("Write it?"))):
        written = own_store().edit(lambda text: edits.set_confine(text, server, found["confine"]))
        tell_gateway()
        if not as_json:
            say("Wrote the entry" if written else "The entry already has this confine key")
    if as_json:
        print_json(found | {"written_to_file": written})
    return ExitCode.OK if works else ExitCode.SERVER_UNAVAILABLE


def _lines(server: str, found: dict[str, Any]) -> Iterator[str]:
    if found["tools"] is None:
        error = found["error"]
        yield f"{server} does not work confined: {error['title']}"
        yield f"  {error['hint']}"
    else:
        yield f"{server}: {count(len(found['tools']), 'tool')}, confined by {found['way']}"
    yield from _places("Read", found["read"])
    yield from _places("Wrote", found["written"])
    yield from _refusals("Refused", found["refused"])
    yield from _refusals("Refused in calls", found["refused_in_calls"])
    if found["tools"] is not None:
        if found["refused"]:
            yield "The server can list its tools without the refused access"
        if found["confine"] is True and not any(one["access"] == "network" for one in found["refused"]):
            yield "If the tools need no network, write confine: {network: false}"
        yield f"The server's entry: {found['line']}"


def _refusals(what: str, refused: Sequence[dict[str, Any]]) -> Iterator[str]:
    for one in refused:
        word = f"{one['access']} " if one["access"] in ("read", "write") else ""
        doubt = " (protected: do not allow it only because the server asks)" if one["secret"] else ""
        yield f"{what}: {word}{one['what']}{doubt}; to allow it: {one['allow']}"


def _places(word: str, paths: Sequence[str]) -> Iterator[str]:
    """Yield one line that names the paths outside the system's folders; nothing if there are none."""
    named = [shown_path(Path(path), Path.home()) for path in paths if not f"{path}/".startswith(SYSTEM)]
    more = f", and {len(named) - PLACES_NAMED} more" if len(named) > PLACES_NAMED else ""
    if named:
        yield f"{word} outside the system's folders: {', '.join(named[:PLACES_NAMED])}{more}"
