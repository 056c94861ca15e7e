"""`multi-mcp find`: search the registry that settings.registry names, which is never queried in the background."""

from __future__ import annotations

import os
from typing import Any

import click

from trayapp.cli.edit import own_settings
from trayapp.cli.options import verb
from trayapp.cli.output import Table, note, print_json, print_table, say, waiting
from trayapp.config.paths import find_paths
from trayapp.model.errors import UsageError
from trayapp.model.text import ago, count, one_line
from trayapp.service.registry import RegistryAnswer, ServerRegistry

SHOWN = 20


@verb("find", "multi-mcp find github", "multi-mcp find postgres database --limit 50")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=SHOWN, show_default=True, help="How many to show.")
def find_verb(words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find servers in the registry.

    Asks the official registry of MCP servers, or the one that settings.registry names. It matches WORDS against names.
    To add what you found: multi-mcp add NAME
    """
    text = " ".join(words)
    if not text.strip():
        raise UsageError("No words to search for", "For example: multi-mcp find github")
    with waiting("Asking the registry", quiet=as_json):
        found = own_registry().find(text)
    shown = found.entries[:limit]
    if as_json:
        rows: list[dict[str, Any]] = [
            {
                "name": one.name, "version": one.version, "title": one.title, "description": one.description,
                "status": one.status, "why": one.status_message, "updated": one.updated, "ways": list(one.ways),
            }
            for one in shown
        ]  # fmt: skip
        whole = {"found": len(found.entries), "cut": found.cut or None}
        print_json({"servers": rows} | whole | {"old_s": found.old_s, "problem": found.why or None})
        return
    note_old(found)
    if not shown:
        say(one_line(f"The registry has no server with a name like {text}"))
        return
    lines = []
    for one in shown:
        why = f" ({one.status_message})" if one.status_message else ""
        state = "" if one.status == "active" else f"{one.status.upper()}{why}: "
        ways = ", ".join(one.ways) or "nothing to run"
        lines.append((one.name, one.version, ways, one_line(state + (one.description or one.title))))
    print_table(Table(("NAME", "VERSION", "RUNS AS", "WHAT IT DOES"), lines, wraps=True))
    note(one_line(f"To add one: multi-mcp add {shown[0].name if len(shown) == 1 else 'NAME'}"))
    if len(found.entries) > limit:
        note(f"{count(len(found.entries) - limit, 'more server')}: give more words, or --limit")
    if found.cut:
        note(one_line(f"{found.cut}: give more of the name"))


def note_old(answer: RegistryAnswer) -> None:
    """If the answer is cached, print a note with the reason and its age."""
    if answer.old_s is not None:
        note(one_line(f"Cannot query the registry ({answer.why}): this is its answer from {ago(answer.old_s)} ago"))


def own_registry() -> ServerRegistry:
    """Return the registry from the settings; the default one if servers.yaml is unreadable. Raises UnparsableError."""
    return ServerRegistry(own_settings().registry, find_paths(os.environ).cache_dir / "registry")
