"""`multi-mcp add WHAT`: show the server that a text names, ask for what it leaves open, and add it after a yes.

Never here: recognizing it (sources), writing it (add).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from trayapp.cli.output import is_terminal, note, say
from trayapp.cli.person import at_terminal
from trayapp.cli.secret_keeping import agreed
from trayapp.cli.shown_server import decisive_lines
from trayapp.cli.text import count, one_line
from trayapp.clients.places import Machine
from trayapp.config.read.entry import name_fault, read_one
from trayapp.config.urls import unsafe_url
from trayapp.model.errors import UsageError
from trayapp.sources.recognize import recognize
from trayapp.sources.source import LARGEST, Source, UnclearSourceError, Variable, with_value

Add = Callable[[str, dict[str, Any]], None]  # name and entry


@dataclass(frozen=True, slots=True)
class Answers:
    """What the user said beforehand: values by name, a yes, the server's name."""

    values: Mapping[str, str]
    yes: bool
    called: str | None


def add_source(what: str, answers: Answers, add: Add) -> None:
    """Add the server that `what` names: the text itself, a file that holds it, or "-" for stdin.

    Raises UnclearSourceError, and UsageError where nobody can answer.
    """
    machine = Machine()
    found = recognize(_text_of(what), machine.home, windows=machine.platform == "win32")
    if len(found) > 1 and found[0].kind.startswith("server.json"):
        note(f"There are other ways to run it: {', '.join(one.kind for one in found[1:])}")
        found = found[:1]
    if answers.called and len(found) > 1:
        raise UsageError(f"This names {count(len(found), 'server')}", "Leave out --as, or paste one of them")
    for source in found:
        _add_one(source, answers, add)


def _text_of(what: str) -> str:
    if what == "-":
        return sys.stdin.read(LARGEST + 1)
    try:
        path = Path(what).expanduser()
        if len(what) < 4096 and "\n" not in what and path.is_file():
            if path.stat().st_size > LARGEST:
                raise UnclearSourceError(f"{path} is too large", "Paste the server's own snippet")
            return path.read_text(encoding="utf-8")
    except (OSError, ValueError, RuntimeError):
        pass  # no path at all
    return what


def _add_one(source: Source, answers: Answers, add: Add) -> None:
    name = answers.called or source.name
    fault = name_fault(name)
    if fault:
        raise UsageError(fault, "Name it: --as NAME")
    say(one_line(f"{name}: {source.kind}" + (f": {source.description}" if source.description else "")))
    _show(name, source)
    entry = source.entry
    missing = [one for one in source.wants if one.required and one.name not in answers.values]
    if missing and not at_terminal():
        names = ", ".join(one.name for one in missing)
        raise UsageError(f"{name} needs {names}", f"Give each value: --set {missing[0].name}=...")
    if not answers.yes and not agreed("Add it? It is started once to see its tools."):
        say(f"Not added: {one_line(name)}")
        return
    for variable in source.wants:
        value = answers.values.get(variable.name)
        entry = with_value(entry, variable, value if value is not None else _asked(variable))
    add(name, entry)


def _show(name: str, source: Source) -> None:
    """Show all that decides what would run; refuse what could not be used."""
    url = source.entry.get("url")
    if isinstance(url, str) and not any(one.keys == ("url",) for one in source.wants) and (fault := unsafe_url(url)):
        raise UnclearSourceError(f"The url of {name} {fault}", "Or write it into servers.yaml by hand: multi-mcp edit")
    server, problems = read_one(name, source.entry)
    if server is None:
        raise UnclearSourceError(f"{name} cannot be used: {problems[0].message}", "Correct it, then add it again")
    say(*(f"  {line}" for line in decisive_lines(server)))
    for one in source.wants:
        kind = "secret" if one.secret else "value"
        why = f": {one.description}" if one.description else ""
        say("  " + one_line(f"needs the {kind} {one.name}{'' if one.required else ' (optional)'}{why}"))
    if source.left_out:
        say("  " + one_line(f"without {', '.join(source.left_out)}, which mean nothing here"))


def _asked(variable: Variable) -> str:
    if not is_terminal(sys.stdin):
        return ""
    kind = click.Choice(variable.choices) if variable.choices else None
    default = "" if not variable.required else None
    answer: str = click.prompt(
        one_line(variable.name), default=default, hide_input=variable.secret, type=kind, show_default=False
    )
    return answer
