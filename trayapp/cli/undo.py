"""`multi-mcp import --undo`: move imported servers from our files back to the AI tools' files.

Never here: how a file gets its servers back (clients/imports).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trayapp.cli.edit import tell_gateway
from trayapp.cli.output import note, print_json, say
from trayapp.cli.servers_file import own_store, own_trust
from trayapp.clients import project_file
from trayapp.clients.context import ClientsContext, own_context
from trayapp.clients.imports import (
    ImportedServer,
    RestoredFile,
    forget_imported,
    imported_servers,
    put_back,
    recorded_moves,
)
from trayapp.clients.places import Machine, shown_path
from trayapp.config.read.parse import parse
from trayapp.model.errors import ExitCode, MultiMcpError
from trayapp.model.servers import ServerConfig
from trayapp.model.text import one_line
from trayapp.service.secrets import delete_secret


def undo_imports(dry_run: bool, as_json: bool) -> int:
    """Put moved servers back, and remove imported ones that have not changed since. Return the exit code."""
    context = own_context()
    taken, moves = imported_servers(context), recorded_moves(context)
    if dry_run:
        files, names = [str(move.file) for move in moves], [each.name for each in taken]
        if as_json:
            print_json({"restored": files, "removed": names})
        else:
            say(*(f"{one_line(file)} would get back its servers" for file in files))
            say(f"Would be removed here: {one_line(', '.join(names))}" if names else "Nothing to remove here")
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
        error = {"error": {"title": lines[0], "hint": "Correct that file first, then repeat it"}} if failed else {}
        print_json({"restored": restored, "removed": [each.name for each in removed], **error})
    else:
        say(*restored_lines(done, context))
        say(*(one_line(f"Removed {each.name} from {_shown(each.file)}") for each in removed))
        for each in taken if not failed else []:
            if each not in removed and _server(each) is not None:
                note(one_line(f"{each.name} was changed since: it stays in {_shown(each.file)}"))
        if failed and taken:
            note("Nothing was removed here. Correct that file, then repeat: multi-mcp import --undo")
        if not (done or taken):
            say("No imports to undo")
    return ExitCode.FAILED if failed else ExitCode.OK


def restored_lines(done: list[RestoredFile], context: ClientsContext) -> Iterator[str]:
    """Yield the outcome for each file that servers were moved out of."""
    for each in done:
        path = shown_path(each.move.file, context.machine.home)
        if each.why_not:
            backup = shown_path(each.move.backup, context.machine.home)
            yield one_line(f"{path} did not get its servers back: {each.why_not} (backup: {backup})")
        else:
            how = "as it was before" if each.whole else "changes since then are kept"
            yield one_line(f"{path} has its own servers again ({how})")


def _shown(path: Path) -> str:
    return shown_path(path, Machine().home)


def _server(taken: ImportedServer) -> ServerConfig | None:
    """Return the server as our file has it now; None if it is gone or the file cannot be read."""
    with suppress(MultiMcpError):
        store = own_store()
        own = taken.file == store.path
        config = parse(store.read().text, str(store.path)) if own else project_file.read_config(taken.file)
        return config.servers.get(taken.name)
    return None


def _remove(taken: ImportedServer) -> bool:
    """Remove a server, with its secrets, if it is as it was imported. Return False if it was changed or is gone."""
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
