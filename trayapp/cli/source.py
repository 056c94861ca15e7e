"""`multi-mcp add WHAT`: show the server that a text names, ask for missing values, and add it if the user agrees.

Never here: recognizing it (sources), writing it (add).
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from trayapp.cli.find import note_old, own_registry
from trayapp.cli.output import is_terminal, note, print_json, say, waiting
from trayapp.cli.person import at_terminal
from trayapp.cli.secret_keeping import agreed, keep_all
from trayapp.cli.shown_server import decisive_lines
from trayapp.cli.text import count, one_line
from trayapp.clients.places import Machine
from trayapp.clients.secrets import Secret, secret_name
from trayapp.config.read.entry import name_fault, read_one
from trayapp.config.urls import unsafe_url
from trayapp.model.errors import MultiMcpError, UsageError
from trayapp.service.secrets import secret_names
from trayapp.sources.recognize import is_registry_name, recognize
from trayapp.sources.server_json import read_server_json
from trayapp.sources.source import LARGEST, Source, UnclearSourceError, Variable, with_value

Add = Callable[[str, dict[str, Any]], None]  # name and entry


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers given in advance: values by name, consent, the server's name, and if secrets go to the keyring (`hide`).

    `pick`: index of the chosen one of several servers, or of several ways to run one. `seen`: its mark when shown.
    """

    values: Mapping[str, str]
    yes: bool
    called: str | None
    hide: bool | None = None
    pick: int | None = None
    seen: str | None = None
    as_json: bool = False  # stdout then holds a single document


@dataclass(frozen=True, slots=True)
class Proposal:
    """A server that a text names. `lines`: what would run, in full. `warning`: the registry's warning."""

    source: Source
    lines: tuple[str, ...]
    warning: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the proposal as JSON, for the panel."""
        source = self.source
        wants = [
            {
                "name": one.name, "secret": one.secret, "required": one.required, "description": one.description,
                "choices": list(one.choices),
            }
            for one in source.wants
        ]  # fmt: skip
        return {
            "name": source.name, "kind": source.kind, "description": source.description, "lines": list(self.lines),
            "wants": wants, "left_out": list(source.left_out), "warning": self.warning, "seen": self.mark(),
        }  # fmt: skip

    def mark(self) -> str:
        """Return a hash of everything shown, so that only what the user saw can be added."""
        source = self.source
        shown = [source.name, self.lines, [(one.name, one.keys, one.secret) for one in source.wants]]
        return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def add_source(what: str, answers: Answers, add: Add) -> None:
    """Add the server that `what` names: a text, a file with the text, a name in the registry, or "-" for stdin.

    Raises UnclearSourceError, and UsageError if nobody can answer.
    """
    found, are_ways = proposals(_text_of(what))
    if answers.pick is not None:
        found = found[answers.pick : answers.pick + 1]
        if not found or found[0].mark() != answers.seen:
            raise UsageError("This is not what was shown", "Look at it again, then add it")
    elif are_ways:
        note(*(one_line(f"There is another way to run it: {one.lines[0]}") for one in found[1:]))
        found = found[:1]
    if answers.called and len(found) > 1:
        raise UsageError(f"This names {count(len(found), 'server')}", "Leave out --as, or paste one of them")
    for proposal in found:
        _add_one(proposal, answers, add)


def preview_source(what: str, *, as_json: bool) -> None:
    """Print what `add` would add, and what would run. Nothing is written or started."""
    found, are_ways = proposals(_text_of(what))
    if as_json:
        print_json({"servers": [one.as_json() for one in found], "ways": are_ways})
        return
    for proposal in found:
        _show(proposal.source.name, proposal, say)


def read_form(text: str) -> tuple[str, Answers]:
    """Return the text and the answers in a JSON form. Values are never command-line arguments. Raises UsageError."""
    try:
        form = json.loads(text)
        values = {str(name): str(value) for name, value in form.get("values", {}).items()}
        answers = Answers(
            values=values,
            yes=True,
            called=form.get("name") or None,
            hide=True,
            pick=max(0, int(form.get("pick", 0))),
            seen=form.get("seen"),
            as_json=True,
        )
        return str(form["what"]), answers
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError("This is not a form of the panel", "Reload the page and try again") from None


def proposals(text: str) -> tuple[list[Proposal], bool]:
    """Return the servers that a text names, all usable, and True if they are ways to run the same server."""
    machine = Machine()
    if is_registry_name(text):
        return _of_registry(text.strip()), True
    found = recognize(text, machine.home, windows=machine.platform == "win32")
    are_ways = len(found) > 1 and found[0].kind.startswith("server.json")
    return [Proposal(one, _decides(one)) for one in found], are_ways


def _of_registry(text: str) -> list[Proposal]:
    """Return the ways to run a server of the registry. Raises MultiMcpError if it was deleted from the registry."""
    name, _, version = text.partition("@")
    with waiting("Asking the registry"):
        answer = own_registry().entry(name, version)
    note_old(answer)
    (entry,) = answer.entries
    said = f": {entry.said}" if entry.said else ""
    if entry.status == "deleted":
        raise MultiMcpError(f"{entry.name} was deleted from the registry{said}", "Look for another one: multi-mcp find")
    warning = f"Its author calls it deprecated{said}" if entry.status == "deprecated" else ""
    found = read_server_json(entry.document, f"{entry.name} {entry.version}, of the registry")
    usable: list[Proposal] = []
    fault: MultiMcpError | None = None
    for one in found:
        try:
            usable.append(Proposal(one, _decides(one), warning))
        except UnclearSourceError as error:  # another way may be usable
            fault = error
    if not usable and fault is not None:
        raise fault
    return usable


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
        pass  # not a path
    return what


def _add_one(proposal: Proposal, answers: Answers, add: Add) -> None:
    source = proposal.source
    name = answers.called or source.name
    fault = name_fault(name)
    if fault:
        raise UsageError(fault, "Name it: --as NAME")
    _show(name, proposal, note if answers.as_json else say)
    missing = [one for one in source.wants if one.required and not answers.values.get(one.name)]
    if missing and not at_terminal():
        names = ", ".join(one.name for one in missing)
        raise UsageError(f"{name} needs {names}", f"Give each value: --set {missing[0].name}=...")
    if not answers.yes and not agreed("Add it? It is then started once to list its tools."):
        (note if answers.as_json else say)(f"Not added: {one_line(name)}")
        return
    add(name, _filled(name, source, answers))


def _decides(source: Source) -> tuple[str, ...]:
    """Return every fact that decides what would run. Raises UnclearSourceError for an unusable server."""
    name = source.name
    if fault := name_fault(name):
        raise UnclearSourceError(fault, "Give it another name, then add it again")
    url = source.entry.get("url")
    if isinstance(url, str) and not any(one.keys == ("url",) for one in source.wants) and (fault := unsafe_url(url)):
        raise UnclearSourceError(f"The url of {name} {fault}", "Or write it into servers.yaml by hand: multi-mcp edit")
    server, problems = read_one(name, source.entry)
    if server is None:
        raise UnclearSourceError(f"{name} cannot be used: {problems[0].message}", "Correct it, then add it again")
    return tuple(decisive_lines(server))


def _show(name: str, proposal: Proposal, tell: Callable[..., None]) -> None:
    """Print every fact that decides what would run, with `tell`."""
    source = proposal.source
    tell(one_line(f"{name}: {source.kind}" + (f": {source.description}" if source.description else "")))
    if proposal.warning:
        tell("  " + one_line(proposal.warning))
    tell(*(f"  {line}" for line in proposal.lines))
    for one in source.wants:
        kind = "secret" if one.secret else "value"
        why = f": {one.description}" if one.description else ""
        tell("  " + one_line(f"needs the {kind} {one.name}{'' if one.required else ' (optional)'}{why}"))
    if source.left_out:
        tell("  " + one_line(f"without {', '.join(source.left_out)}, which have no meaning here"))


def _filled(name: str, source: Source, answers: Answers) -> dict[str, Any]:
    """Return the entry with the user's values. Its secrets are kept in the keyring, unless --clear is given.

    Raises MultiMcpError if they cannot be kept, so that no requested secret ends up in a file by accident.
    """
    values = {
        variable: answers.values[variable.name] if variable.name in answers.values else _asked(variable)
        for variable in source.wants
    }
    for variable, value in values.items():
        if value and variable.choices and value not in variable.choices:
            raise UsageError(f"{variable.name} is one of: {', '.join(variable.choices)}", "Give one of them")
    secret = {variable: value for variable, value in values.items() if variable.secret and value}
    kept = _kept(name, secret) if secret and answers.hide is not False else {}
    entry = source.entry
    for variable, value in values.items():
        entry = with_value(entry, variable, kept.get(variable, value))
    return entry


def _kept(name: str, values: Mapping[Variable, str]) -> dict[Variable, str]:
    """Keep secrets and return references to them."""
    taken: list[str] = []
    with suppress(MultiMcpError):  # keep_all reports the problem
        taken += secret_names()
    secrets = {}
    for variable, value in values.items():
        free = _free_name(name, variable.name, taken)
        taken.append(free)
        secrets[variable] = Secret(free, variable.name, value)
    keep_all(list(secrets.values()), insist=True)
    return {variable: f"${{keyring:{secret.name}}}" for variable, secret in secrets.items()}


def _free_name(server: str, name: str, taken: Collection[str]) -> str:
    plain = secret_name(server, name)
    number = 1
    while (free := plain if number == 1 else f"{plain}-{number}") in taken:
        number += 1
    return free


def _asked(variable: Variable) -> str:
    if not is_terminal(sys.stdin):
        return ""
    kind = click.Choice(variable.choices) if variable.choices else None
    default = "" if not variable.required else None
    answer: str = click.prompt(
        one_line(variable.name), default=default, hide_input=variable.secret, type=kind, show_default=False
    )
    return answer
