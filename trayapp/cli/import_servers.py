"""`multi-mcp import`: the servers that AI tools have in their own files, shown, and taken over after a yes.

Never here: reading those files (clients), how servers.yaml is edited.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from trayapp.cli.add import own_trust
from trayapp.cli.options import examples, json_option
from trayapp.cli.output import Table, is_terminal, note, print_json, print_table, say
from trayapp.cli.servers_file import own_store
from trayapp.cli.switch import tell_gateway
from trayapp.cli.text import count, one_line
from trayapp.clients import project_file
from trayapp.clients.connect import find_client
from trayapp.clients.entry import words_of
from trayapp.clients.importing import Offer, as_server, first_offers, offers, take_away, with_entry
from trayapp.clients.places import Machine, shown_path
from trayapp.clients.secrets import Secret, secrets_of, without_secrets
from trayapp.clients.servers import Found, Reading, read_servers
from trayapp.clients.table import CLIENTS
from trayapp.clients.world import say_no, this_world
from trayapp.config.edits import add_server
from trayapp.config.parse import parse
from trayapp.config.store import Store
from trayapp.model.errors import MultiMcpError, UsageError
from trayapp.model.plan import Config
from trayapp.model.redact import redacted
from trayapp.model.status import problem_json
from trayapp.service.secrets import secret_names, store_secret


@click.command("import", epilog=examples("multi-mcp import", "multi-mcp import cursor --move --yes"))
@click.argument("client", metavar="[CLIENT]", required=False)
@click.option("--move/--copy", "move", default=None, help="Take them out of the AI tool's file, or leave them there.")
@click.option(
    "--keyring/--clear", "hide", default=None, help="Put secrets into the keyring, or leave them as they are."
)
@click.option("--yes", is_flag=True, help="Do it without asking; copies unless --move is given.")
@click.option("--dry-run", is_flag=True, help="Only show what was found.")
@click.option("--first", is_flag=True, help="Only what a first start offers: none once you have servers, or said no.")
@click.option("--no-offer", is_flag=True, help="Do not tell of servers any more that could be taken over.")
@json_option
def import_verb(
    client: str | None,
    move: bool | None,
    hide: bool | None,
    yes: bool,
    dry_run: bool,
    first: bool,
    no_offer: bool,
    as_json: bool,
) -> int:
    """Take over the servers that an AI tool, or every one, has in its own file.

    Servers that a tool has for the folder you are in go into that project's file. Nothing is written before you have
    seen it and said yes. With --json and without --yes: only show.
    """
    if no_offer:
        return _no_offer(as_json)
    machine, store = Machine(), own_store()
    reading = _first(store) if first else _read(client, machine)
    found = offers(reading.servers, _existing(store, reading))
    new = [offer for offer in found if not offer.known]
    asks = not (as_json or yes)
    if not as_json:
        _show(found, reading, machine)
    moved: list[Path] = []
    if not dry_run and (new or (move and found)) and (yes or (asks and _agreed(_question(new)))):
        taken = _hidden(new, hide, asks)
        _write(taken, store)
        if move or (move is None and asks and _agreed("Remove them from where they were found?")):
            moved = take_away(offer.found for offer in found)
        tell_gateway()
        if not as_json:
            _tell(taken, moved, machine, store)
    if as_json:
        print_json(_as_json(found, reading, moved))
    return 0


def _question(new: Sequence[Offer]) -> str:
    return f"Take over {count(len(new), 'server')}?" if new else "Remove them from where they were found?"


def _read(client: str | None, machine: Machine) -> Reading:
    clients = CLIENTS if client is None else (find_client(client),)
    readings = [read_servers(one, machine, Path.cwd()) for one in clients]
    servers = [found for reading in readings for found in reading.servers if not _is_read_anyway(found)]
    problems = tuple(problem for reading in readings for problem in reading.problems)
    return Reading(tuple(servers), problems)


def _first(store: Store) -> Reading:
    """What a first start offers; nothing that sessions in one folder alone would see."""
    loaded = store.read()
    config = parse(loaded.text, str(store.path)) if loaded.exists else None
    return Reading(tuple(offer.found for offer in first_offers(config, this_world())))


def _no_offer(as_json: bool) -> int:
    say_no(this_world())
    if as_json:
        print_json({"offers": False})
    else:
        say("Not told of any more; take servers over at any time with: multi-mcp import")
    return 0


def _is_read_anyway(found: Found) -> bool:
    """A project's own file that counts for sessions: its servers are there without an import."""
    return found.folder is not None and found.file == project_file.project_file_of(found.folder)


def _existing(store: Store, reading: Reading) -> dict[Path | None, Config]:
    """What is configured now, by folder. Raises Unparsable: nothing is written beside what cannot be read."""
    existing: dict[Path | None, Config] = {None: parse(store.start(), str(store.path))}
    for folder in {found.folder for found in reading.servers if found.folder is not None}:
        existing[folder] = project_file.read_config(project_file.project_file_of(folder))
    return existing


# --- what is shown


def _show(found: Sequence[Offer], reading: Reading, machine: Machine) -> None:
    if found:
        rows = [_row(offer, machine) for offer in found]
        print_table(Table(("SERVER", "FROM", "STARTS"), rows, wraps=True))
    else:
        say("No servers were found that multi-mcp does not have")
    for offer in found:
        said = ["is switched off there, and comes as disabled"] if offer.found.entry.get("disabled") is True else []
        said += [f"{', '.join(offer.found.left_out)} has no meaning here"] if offer.found.left_out else []
        said += [f"asks for what only you know: multi-mcp secret set {shlex.quote(name)}" for name in _asked(offer)]
        said += [f"holds {count(len(secrets), 'secret')} in clear text"] if (secrets := _secrets(offer)) else []
        if said:
            say(one_line(f"{offer.name}: {'; '.join(said)}"))
    for problem in reading.problems:
        note(one_line(f"{shown_path(Path(problem.file), machine.home)}, line {problem.line}: {problem.message}"))


def _row(offer: Offer, machine: Machine) -> tuple[str, str, str]:
    found = offer.found
    name = f"{offer.name} (there already)" if offer.known else offer.name
    where = f" ({shown_path(found.folder, machine.home)})" if found.folder else ""
    return one_line(name), one_line(found.client.title + where), one_line(_starts(found))


def _starts(found: Found) -> str:
    entry = found.entry
    return redacted(str(entry["url"]) if "url" in entry else shlex.join(words_of(entry)))


def _agreed(question: str) -> bool:
    if not is_terminal(sys.stdin):
        raise UsageError("Nobody is there to say yes", "Say it with --yes, or look with --dry-run")
    return click.confirm(one_line(question))


# --- what is done


def _secrets(offer: Offer) -> list[Secret]:
    return secrets_of(offer.name, offer.found.entry)


def _asked(offer: Offer) -> list[str]:
    """Names in the keyring that its entry comes with: VS Code asked its user for these."""
    texts = json.dumps(offer.found.entry, ensure_ascii=False, default=str)
    return list(dict.fromkeys(re.findall(r"\$\{keyring:([^:{}$]+)\}", texts)))


def _hidden(new: list[Offer], hide: bool | None, asks: bool) -> list[Offer]:
    """The offers, with their secrets in the keyring where that is wanted and can be; a lost secret is none."""
    secrets = [secret for offer in new for secret in _secrets(offer)]
    if not secrets or hide is False or (hide is None and not asks):
        return new
    names = ", ".join(secret.name for secret in secrets)
    if not hide and not _agreed(one_line(f"Put {count(len(secrets), 'secret')} into the keyring ({names})?")):
        return new
    kept, hidden = _named_anew(new)
    if _kept(kept, insist=hide is True):
        return hidden
    note("No keyring would keep them: they are taken over as they are. See: multi-mcp doctor")
    return new


def _named_anew(new: Sequence[Offer]) -> tuple[list[Secret], list[Offer]]:
    """The secrets, under names that nothing in the keyring has: a server of another folder may be named alike."""
    try:
        taken = set(secret_names())
    except MultiMcpError:
        taken = set()  # what cannot be listed cannot be kept either, which _kept tells
    secrets: list[Secret] = []
    hidden: list[Offer] = []
    for offer in new:
        found = secrets_of(offer.name, offer.found.entry, taken)
        hidden.append(with_entry(offer, without_secrets(offer.name, offer.found.entry, taken)))
        secrets += found
        taken |= {secret.name for secret in found}
    return secrets, hidden


def _kept(secrets: Sequence[Secret], *, insist: bool) -> bool:
    """Whether the keyring has all of them now. Raises MultiMcpError where the user said that it must."""
    try:
        if all(store_secret(secret.name, secret.value) for secret in secrets):
            return True
    except MultiMcpError:
        if insist:
            raise
    if insist:
        raise MultiMcpError("There is no keyring that would keep secrets", "Import them as they are with --clear")
    return False


def _write(taken: Sequence[Offer], store: Store) -> None:
    """All servers into servers.yaml at once; those of a folder into its project's file."""
    mine = [offer for offer in taken if offer.found.folder is None]

    def change(text: str) -> str:
        for offer in mine:
            text = add_server(text, offer.name, offer.found.entry, store.path.name)
        return text

    if mine:
        store.create()
        store.edit(change)
    for offer in taken:
        if offer.found.folder is not None:
            path = project_file.project_file_of(offer.found.folder)
            project_file.add_server(path, offer.name, offer.found.entry, own_trust())


def _tell(taken: Sequence[Offer], moved: Sequence[Path], machine: Machine, store: Store) -> None:
    files = {(offer.found.folder and project_file.project_file_of(offer.found.folder)) or store.path for offer in taken}
    for path in sorted(files):
        say(one_line(f"Taken over into {shown_path(path, machine.home)}"))
    unusable = [offer.name for offer in taken if as_server(offer.name, offer.found.entry) is None]
    if unusable:
        note(one_line(f"These cannot be used as they are: {', '.join(unusable)}; see: multi-mcp doctor"))
    for path in moved:
        say(one_line(f"Removed from {shown_path(path, machine.home)} (backup: {path.name}.before-import.bak)"))
    clear = sum(len(_secrets(offer)) for offer in taken)
    if clear:
        say(f"{count(clear, 'secret')} in clear text; for ${{keyring:NAME}} instead: multi-mcp secret set NAME")
    if taken and not moved:
        say("The AI tools still start their own copies; to take those out: multi-mcp import --move")
    say("Connect your AI tools to multi-mcp with: multi-mcp connect --all")


def _as_json(found: Sequence[Offer], reading: Reading, moved: Sequence[Path]) -> dict[str, Any]:
    """`{"servers": [...], "problems": [...], "moved": [file]}`; values of variables and headers are left out."""
    return {
        "servers": [_server_json(offer) for offer in found],
        "problems": [problem_json(problem) for problem in reading.problems],
        "moved": [str(path) for path in moved],
    }


def _server_json(offer: Offer) -> dict[str, Any]:
    found, entry = offer.found, offer.found.entry
    return {
        "name": offer.name,
        "client": found.client.name,
        "title": found.client.title,
        "file": str(found.file),
        "folder": str(found.folder) if found.folder else None,
        "command": [redacted(word) for word in words_of(entry)] if "command" in entry else None,
        "url": redacted(str(entry["url"])) if "url" in entry else None,
        "env": list(entry.get("env") or {}),
        "headers": list(entry.get("headers") or {}),
        "known": bool(offer.known),
        "secrets": [secret.name for secret in _secrets(offer)],
        "left_out": list(found.left_out),
    }
