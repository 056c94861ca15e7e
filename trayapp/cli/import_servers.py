"""`multi-mcp import`: show the servers in the files of AI tools, import them once the user agrees, and undo imports."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from trayapp.cli.add import project_file_is_trusted, runs_unconfined
from trayapp.cli.connect import restored_lines
from trayapp.cli.edit import own_store, own_trust, tell_gateway
from trayapp.cli.options import FLOW, quoted_folder, verb
from trayapp.cli.output import (
    Table,
    agreed,
    as_typed,
    is_terminal,
    note,
    print_json,
    print_result,
    print_table,
    require_answers,
    say,
    say_hints,
)
from trayapp.cli.secret import keep_all, keeps_secrets, may_keep
from trayapp.cli.shown_server import command_lines, unlocked
from trayapp.clients import project_file
from trayapp.clients.context import decline_offer, own_context
from trayapp.clients.conversion import KEPT, PERMISSIONS
from trayapp.clients.entry import words_of
from trayapp.clients.files import Machine, shown_path
from trayapp.clients.imports import (
    ImportedServer,
    ImportOffer,
    Move,
    as_server,
    first_offers,
    forget_imported,
    imported_record,
    imported_servers,
    move_out,
    offers,
    put_back,
    record_import,
    recorded_moves,
)
from trayapp.clients.imports import duplicates as duplicate_offers
from trayapp.clients.secrets import Secret, secrets_of, without_secrets
from trayapp.clients.servers import FoundServers, found_servers
from trayapp.clients.table import CLIENTS, find_client
from trayapp.config.edits import add_server
from trayapp.config.read.parse import parse
from trayapp.config.store import ConfigStore
from trayapp.config.urls import exposure
from trayapp.config.yaml.splices import EditRefusedError
from trayapp.model.config import Config, ServerConfig
from trayapp.model.errors import ExitCode, MultiMcpError, Problem, UsageError, problem_json
from trayapp.model.redact import redacted
from trayapp.model.text import count, one_line
from trayapp.service.secrets import delete_secret, secret_names


@verb("import", "multi-mcp import", "multi-mcp import cursor --move --yes")
@click.argument("client", metavar="[CLIENT]", required=False)
@click.option("--move/--copy", "move", default=None, help="Remove servers from the AI tool's file, or leave them.")
@click.option(
    "--keyring/--clear", "hide", default=None, help="Put secrets into the keyring, or leave them as they are."
)
@click.option("--yes", is_flag=True, help="Import without asking; copies unless --move is given.")
@click.option("--dry-run", is_flag=True, help="Only show what was found.")
@click.option("--undo", is_flag=True, help="Undo all imports: restore the AI tools' files and servers.yaml.")
@click.option(
    "--first", is_flag=True, help="Only what a first start offers: nothing if you have servers or have declined."
)
@click.option(
    "--doubled",
    is_flag=True,
    help="Only servers that multi-mcp has, but that connected AI tools still start themselves.",
)
@click.option("--no-offer", is_flag=True, help="Stop offering servers that could be imported.")
@click.option("--form", is_flag=True, hidden=True, help="Read the chosen servers from stdin, as JSON.")
def import_verb(
    client: str | None,
    move: bool | None,
    hide: bool | None,
    yes: bool,
    dry_run: bool,
    undo: bool,
    first: bool,
    doubled: bool,
    no_offer: bool,
    form: bool,
    as_json: bool,
) -> int:
    """Import servers from the files of one AI tool, or of all of them.

    Servers that a tool has for the current folder go into that project's file. Everything is shown first, and nothing
    is written before you confirm. With --json, nothing is written unless you pass --yes.
    """
    if no_offer:
        decline_offer(own_context())
        line = as_typed("Servers will not be offered again. To import them at any time: multi-mcp import")
        print_result(as_json, {"offers": False}, line)
        return 0
    if undo:
        return undo_imports(dry_run, as_json)
    if form:
        return _show_form() if dry_run else _take_form(sys.stdin.read())
    machine, store = Machine(), own_store()
    if first:
        text = store.read()
        config = None if text is None else parse(text, str(store.path))
        reading = FoundServers(tuple(offer.found for offer in first_offers(config, own_context())))
    elif doubled:
        config = parse(store.start(), str(store.path))
        reading = FoundServers(tuple(offer.found for offer in duplicate_offers(config, own_context())))
    else:
        reading = _read(client, machine)
    found, reading = _usable(reading, store)
    new = [offer for offer in found if offer.is_new]
    asks = not (as_json or yes)
    if not as_json:
        _show(found, reading, machine, numbered=asks and not dry_run and is_terminal(sys.stdin))
        if move and new:
            flow = "setup" if click.get_current_context().meta.get(FLOW) else "import"
            say_hints(
                f"Importing moves servers from the AI tools' files to servers.yaml. To undo it: multi-mcp {flow} --undo"
            )
    moved: list[Move] = []
    if not dry_run and (new or (move and found)) and (yes or asks):
        chosen = new
        if asks and new:
            chosen = [new[number - 1] for number in asked_numbers(f"Import {count(len(new), 'server')}?", len(new))]
        hidden = _hidden(chosen, hide, asks)
        if asks and move is None and chosen:
            move = agreed("Remove them from the AI tools' files (--move), so that each server runs only once?")
        elif asks and move and not new:
            move = agreed("Remove them from the AI tools' files (--move)?")
        _, moved = _take(chosen, hidden, _leaving(found, chosen) if move else [], store)
        if not as_json and (chosen or moved):
            _tell(chosen, moved, machine, store)
    if as_json:
        print_json(_as_json(found, reading, moved))
    return 0


def _show_form() -> int:
    """Print the import page of the panel as JSON: each server with its mark and remarks, and folders with more servers.

    `keeps_secrets`: true if there are secrets and this machine can keep them.
    """
    found, reading = _usable(_read(None, Machine()), own_store())
    elsewhere = {str(folder): names for folder, names in _by_folder(reading)}
    shown = _as_json(found, reading, ())
    for row, offer in zip(shown["servers"], found, strict=True):
        remarks = [] if offer.known else list(_remarks(offer))
        row |= {"known_as": offer.known, "there": offer.there, "remarks": remarks, "mark": _mark(offer)}
    keeps = any(offer.is_new and _secrets(offer) for offer in found) and keeps_secrets()
    print_json(shown | {"elsewhere": elsewhere, "keeps_secrets": keeps})
    return 0


def _take_form(text: str) -> int:
    """Import the servers that the user chose on a page of the panel, and remove them from the AI tools' files.

    The form is `{"servers": [mark], "keep": true}`. With `keep`, secrets go into the keyring. Raises UsageError.
    """
    try:
        form = json.loads(text)
        marks, keep = {str(mark) for mark in form["servers"]}, form["keep"] is True
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError("This form did not come from the panel", "Reload the page and try again") from None
    store = own_store()
    found, reading = _usable(_read(None, Machine()), store)
    chosen = [offer for offer in found if offer.is_new and _mark(offer) in marks]
    if len(chosen) != len(marks):
        raise UsageError("The servers changed after they were shown", "Review them again, then import them")
    taken, moved = _take(chosen, _hidden(chosen, keep, asks=False), _leaving(found, chosen), store)
    print_json(_as_json(taken, reading, moved))
    return 0


def _usable(reading: FoundServers, store: ConfigStore) -> tuple[list[ImportOffer], FoundServers]:
    """Return the servers that can be imported, and `reading` with a problem added for each server that cannot."""
    # raises UnparsableError for a configuration that cannot be parsed, so nothing is written to such a file
    existing: dict[Path | None, Config] = {None: parse(store.start(), str(store.path))}
    for folder in {found.folder for found in reading.servers if found.folder is not None}:
        existing[folder] = project_file.read_config(project_file.project_file_of(folder))
    every = offers(reading.servers, existing)
    problems = list(reading.problems)
    for found, fault in ((offer.found, offer.fault) for offer in every if offer.fault):
        message = f"{found.name} of {found.client.title}: {fault}"
        problems.append(Problem(str(found.file), found.line, message, "", 0, found.name, fatal=False))
    return [offer for offer in every if not offer.fault], replace(reading, problems=tuple(problems))


def asked_numbers(question: str, last: int) -> list[int]:
    """Ask which of the numbers 1 to `last` the user chooses. Raises UsageError if nobody can answer."""
    require_answers()
    whole = f"{question} (all, none, or numbers such as 1,3-5)"
    while (numbers := numbers_of(click.prompt(whole, default="", show_default=False), last)) is None:
        say("Enter all, none, or some of the numbers above")
    return numbers


def numbers_of(answer: str, last: int) -> list[int] | None:
    """Return the numbers from 1 to `last` that an answer names, sorted; None if the answer is invalid."""
    word = answer.strip().lower()
    if word in ("all", "a", "yes", "y"):
        return list(range(1, last + 1))
    if word in ("none", "no", "n"):
        return []
    found: set[int] = set()
    for part in re.split(r"[\s,]+", word):
        spans = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)
        span = range(int(spans[1]), int(spans[2] or spans[1]) + 1) if spans else range(0)
        if not span or span[0] < 1 or span[-1] > last:
            return None
        found.update(span)
    return sorted(found)


def _leaving(found: Sequence[ImportOffer], chosen: Sequence[ImportOffer]) -> list[ImportOffer]:
    """Return the offers to remove from the AI tools' files: the chosen ones, and those that our files already have."""
    names = {(offer.found.folder, offer.name) for offer in chosen}
    return [offer for offer in found if offer.there or (offer.found.folder, offer.name) in names]


def _take(
    chosen: Sequence[ImportOffer], hidden: Sequence[ImportOffer], leaving: Sequence[ImportOffer], store: ConfigStore
) -> tuple[list[ImportOffer], list[Move]]:
    """Write the chosen servers, remove the `leaving` ones from the AI tools' files, and record the changes for undo.

    `hidden`: the chosen servers as written, with their secrets moved to the keyring. Return the written servers and the
    moves.
    """
    written = _write(hidden, store)
    context = own_context()
    taken = []
    lost: list[ImportOffer] = []
    for before, offer in zip(chosen, hidden, strict=True):
        if offer in written:
            secrets = [name for name in _asked(offer) if name not in _asked(before)]
            taken.append(imported_record(_file_of(offer, store), offer, secrets))
        else:
            lost.append(before)
    kept = [move.backup for move in recorded_moves(context)]
    moved: list[Move] = []
    try:
        for client in {offer.found.client.name: None for offer in leaving}:
            theirs = [offer.found for offer in leaving if offer.found.client.name == client and offer not in lost]
            moved += move_out(theirs, kept)
    finally:
        record_import(context, taken, moved)
        tell_gateway()
    return written, moved


def _file_of(offer: ImportOffer, store: ConfigStore) -> Path:
    folder = offer.found.folder
    return store.path if folder is None else project_file.project_file_of(folder)


def _read(client: str | None, machine: Machine) -> FoundServers:
    clients = CLIENTS if client is None else (find_client(client),)
    reading = found_servers(machine, clients, Path.cwd())
    servers = (
        found
        for found in reading.servers  # sessions read a project's own file anyway
        if found.folder is None or found.file != project_file.project_file_of(found.folder)
    )
    return replace(reading, servers=tuple(servers))


# --- display


def _show(found: Sequence[ImportOffer], reading: FoundServers, machine: Machine, *, numbered: bool) -> None:
    numbers = iter(range(1, len(found) + 1))
    if found and numbered:
        rows = [(str(next(numbers)) if offer.is_new else "", *_row(offer, machine)) for offer in found]
        print_table(Table(("", "SERVER", "FROM", "STARTS"), rows, wraps=True))
    elif found:
        print_table(Table(("SERVER", "FROM", "STARTS"), [_row(offer, machine) for offer in found], wraps=True))
    else:
        say("No servers to import were found in the files of your AI tools")
    for offer in found:
        remarks = list(_remarks(offer))
        if remarks and not offer.known:
            say_hints(one_line(f"{offer.name}: {'; '.join(remarks)}"))
    for folder, names in _by_folder(reading):
        place = shown_path(folder, machine.home)
        say_hints(one_line(f"For sessions in {place}: {', '.join(names)} (run multi-mcp import there)"))
    for problem in reading.problems:
        note(one_line(f"{shown_path(Path(problem.file), machine.home)}, line {problem.line}: {problem.message}"))


def _by_folder(reading: FoundServers) -> list[tuple[Path, list[str]]]:
    """Return the other folders for which an AI tool has servers, with the servers' names."""
    found: dict[Path, list[str]] = {}
    for folder, name in reading.elsewhere:
        found.setdefault(folder, []).append(name)
    return list(found.items())


def _remarks(offer: ImportOffer) -> Iterator[str]:
    """Yield what the user should know about one server before it is imported."""
    entry = offer.found.entry
    if entry.get("disabled") is True:
        yield "is disabled there, and stays disabled"
    if entry.get("scope") == "session":
        yield f"has relative paths, so it runs in the folder of each session, as in {offer.found.client.title}"
    sandbox = [key.removeprefix(KEPT) for key in entry if key.startswith(KEPT)]
    if "confine" in entry and sandbox:
        yield f"keeps its sandbox as confine; to see what else it needs: multi-mcp confine {shlex.quote(offer.name)}"
    elif any(entry[KEPT + key] for key in sandbox):
        yield f"LESS SAFE: its sandbox ({', '.join(sandbox)}) is kept in its entry, but not applied"
    yield from filter(None, (exposure(str(entry.get("url", ""))), unlocked(entry)))
    server = as_server(offer.name, entry)
    yield from (f"{line} (multi-mcp asks you first)" for line in (command_lines(server) if server else ()))
    allowed = [key for key in offer.found.left_out if key in PERMISSIONS]
    left = [key for key in offer.found.left_out if key not in PERMISSIONS]
    if allowed:
        yield f"{', '.join(allowed)} {'is' if len(allowed) == 1 else 'are'} not imported: multi-mcp has its own rules"
    if left:
        yield f"{', '.join(left)} {'has' if len(left) == 1 else 'have'} no meaning here"
    if offer.found.from_project:
        yield "comes from this folder's own files, and starts only after: multi-mcp trust"
    yield from (f"needs a value that only you know: multi-mcp secret set {shlex.quote(name)}" for name in _asked(offer))
    if secrets := _secrets(offer):
        yield f"has {count(len(secrets), 'secret')} in clear text"


def _row(offer: ImportOffer, machine: Machine) -> tuple[str, str, str]:
    found, name, entry = offer.found, offer.name, offer.found.entry
    starts = redacted(str(entry["url"]) if "url" in entry else shlex.join(words_of(entry)))
    if offer.known:
        name = f"{offer.known} (already there)" if offer.there else f"{found.name} (same as {offer.known})"
    where = f" ({shown_path(found.folder, machine.home)})" if found.folder else ""
    return one_line(name), one_line(found.client.title + where), one_line(starts)


# --- changes


def _secrets(offer: ImportOffer) -> list[Secret]:
    return secrets_of(offer.name, offer.found.entry)


def _asked(offer: ImportOffer) -> list[str]:
    """Return the keyring names in an entry. In VS Code's entries, they stand for values that VS Code prompts for."""
    texts = json.dumps(offer.found.entry, ensure_ascii=False, default=str)
    return list(dict.fromkeys(re.findall(r"\$\{keyring:([^:{}$]+)\}", texts)))


def _hidden(new: list[ImportOffer], hide: bool | None, asks: bool) -> list[ImportOffer]:
    """Move the offers' secrets to the keyring, unless the user declines or the keyring cannot keep them.

    Return the offers with references in their place.
    """
    names = [secret.name for offer in new for secret in _secrets(offer)]
    if not names or not may_keep(names, hide, asks):
        return new
    try:
        taken = set(secret_names())
    except MultiMcpError:
        taken = set()  # then no secret can be stored either: keep_all reports it
    found: list[tuple[ImportOffer, set[str]]] = []
    secrets: list[Secret] = []
    for offer in new:  # servers of two folders may have the same name: each secret gets an unused name
        found.append((offer, set(taken)))
        secrets += (own := secrets_of(offer.name, offer.found.entry, taken))
        taken |= {secret.name for secret in own}
    kept = keep_all(secrets, insist=hide is True)
    return [o.with_entry(without_secrets(o.name, o.found.entry, before, kept)) for o, before in found]


def _write(taken: Sequence[ImportOffer], store: ConfigStore) -> list[ImportOffer]:
    """Write the servers, and return the written ones.

    The user's own servers go into servers.yaml in one edit, and those of a folder into its project file. Servers that
    cannot be written are skipped with a note. If none can be written, the first error is raised. Servers from a
    folder's own files need a separate approval.
    """
    refused: dict[int, MultiMcpError] = {}  # place in `taken` -> why it is not written
    mine = [(at, offer) for at, offer in enumerate(taken) if offer.found.folder is None]

    def change(text: str) -> str:
        refused.clear()
        for at, offer in mine:
            try:
                text = add_server(text, offer.name, offer.written(), store.path.name)
            except (EditRefusedError, UsageError) as error:
                refused[at] = error
        return text

    if mine:
        store.edit(change)
    for at, offer in enumerate(taken):
        if offer.found.folder is not None:
            trust = None if offer.found.from_project else own_trust()
            try:
                project_file.add_server(_file_of(offer, store), offer.name, offer.written(), trust)
            except MultiMcpError as error:
                refused[at] = error
    if taken and len(refused) == len(taken):
        raise next(iter(refused.values()))
    for at, reason in refused.items():
        note(one_line(f"{taken[at].name} was not imported: {reason.title}"))
    return [offer for at, offer in enumerate(taken) if at not in refused]


def _tell(taken: Sequence[ImportOffer], moved: Sequence[Move], machine: Machine, store: ConfigStore) -> None:
    for path in sorted({_file_of(offer, store) for offer in taken}):
        say(one_line(f"Imported into {shown_path(path, machine.home)}"))
    for folder in sorted({offer.found.folder for offer in taken if offer.found.folder}):
        if not project_file_is_trusted(project_file.project_file_of(folder)):
            say_hints(one_line(f"Nothing in it starts before you approve it: multi-mcp trust {quoted_folder(folder)}"))
    unusable = [offer.name for offer in taken if as_server(offer.name, offer.found.entry) is None]
    if unusable:
        note(one_line(f"Cannot be used as they are: {', '.join(unusable)}; see: multi-mcp doctor"))
    for move in moved:
        say(one_line(f"Removed from {shown_path(move.file, machine.home)} (backup: {move.backup.name})"))
    clear = sum(len(_secrets(offer)) for offer in taken)
    if clear:
        say_hints(f"{count(clear, 'secret')} in clear text. To use ${{keyring:NAME}}: multi-mcp secret set NAME")
    if click.get_current_context().meta.get(FLOW):
        return
    if taken and not moved:
        say_hints("The AI tools still start their own copies; to remove those: multi-mcp import --move")
    if any(offer.found.folder is None and runs_unconfined(offer.found.entry) for offer in taken):
        say_hints("To confine a server's program to its own folders: multi-mcp confine NAME")
    say_hints("Connect your AI tools to multi-mcp with: multi-mcp connect --all")
    say_hints("To put everything back: multi-mcp import --undo")


def _as_json(found: Sequence[ImportOffer], reading: FoundServers, moved: Sequence[Move]) -> dict[str, Any]:
    """Return `{"servers": [...], "problems": [...], "moved": [file]}`, without values of variables and headers."""
    return {
        "servers": [_server_json(offer) for offer in found],
        "problems": [problem_json(problem) for problem in reading.problems],
        "moved": [str(move.file) for move in moved],
    }


def _server_json(offer: ImportOffer) -> dict[str, Any]:
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


def _mark(offer: ImportOffer) -> str:
    """Return a hash of a server as it would be imported, without secrets: proof that the user saw it."""
    found = offer.found
    entry = without_secrets(offer.name, found.entry)
    shown = [offer.name, found.client.name, str(found.file), str(found.folder), entry]
    return hashlib.sha256(json.dumps(shown, default=str, sort_keys=True).encode()).hexdigest()


# --- undo


def undo_imports(dry_run: bool, as_json: bool) -> int:
    """Put moved servers back, and remove imported ones that have not changed since. Return the exit code.

    If any file cannot be restored, remove nothing. `dry_run`: only print what would be done.
    """
    context = own_context()
    taken, moves = imported_servers(context), recorded_moves(context)
    if dry_run:
        files, names = [str(move.file) for move in moves], [each.name for each in taken]
        lines = [f"{one_line(file)} would get its servers back" for file in files]
        lines.append(f"Would remove from multi-mcp: {one_line(', '.join(names))}" if names else "No server to remove")
        print_result(as_json, {"restored": files, "removed": names}, *lines)
        return ExitCode.OK
    done = put_back(context)
    failed = [each for each in done if each.why_not]
    removed = [] if failed else [each for each in taken if _remove(each)]
    if not failed:
        forget_imported(context)
    tell_gateway()
    if as_json:
        restored = [str(each.move.file) for each in done if not each.why_not]
        lines = list(restored_lines(failed, context))
        hint = "Correct that file, then run multi-mcp import --undo again"
        error = {"error": {"title": lines[0], "hint": hint}} if failed else {}
        print_json({"restored": restored, "removed": [each.name for each in removed], **error})
    else:
        say(*restored_lines(done, context))
        say(*(one_line(f"Removed {each.name} from {_shown(each.file)}") for each in removed))
        for each in taken if not failed else []:
            if each not in removed and _server(each) is not None:
                note(one_line(f"{each.name} was changed after its import, so it stays in {_shown(each.file)}"))
        if failed and taken:
            note("Nothing was removed from multi-mcp. Correct that file, then repeat: multi-mcp import --undo")
        if not (done or taken):
            say("No imports to undo")
    return ExitCode.FAILED if failed else ExitCode.OK


def _shown(path: Path) -> str:
    return shown_path(path, Machine().home)


def _server(taken: ImportedServer) -> ServerConfig | None:
    """Return the server's present configuration in our file; None if it is gone or the file cannot be read."""
    with suppress(MultiMcpError):
        store = own_store()
        own = taken.file == store.path
        config = parse(store.read() or "", str(store.path)) if own else project_file.read_config(taken.file)
        return config.servers.get(taken.name)
    return None


def _remove(taken: ImportedServer) -> bool:
    """Remove an imported server and its secrets. Return False if it was changed, is gone, or cannot be removed."""
    if not taken.is_untouched(_server(taken)):
        return False
    store = own_store()
    try:
        if taken.file == store.path:
            store.remove_server(taken.name)
        else:
            project_file.remove_server(taken.file, taken.name, own_trust())
    except MultiMcpError as error:
        note(one_line(str(error)))
        return False
    for name in taken.secrets:
        with suppress(MultiMcpError):
            delete_secret(name)
    return True
