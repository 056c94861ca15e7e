"""The note at a first start that servers of the user's AI tools can be taken over.

Never here: taking them over.
"""

from __future__ import annotations

import sys

from trayapp.cli.output import is_terminal, note
from trayapp.cli.text import one_line
from trayapp.model.errors import MultiMcpError


def first_words() -> str:
    """Return the note in one line. Blocks.

    It is "" if servers.yaml has servers of the user's own, stderr is not a terminal, or no AI tool has servers.
    """
    if not is_terminal(sys.stderr):
        return ""
    from trayapp.cli.servers_file import own_store  # 50 ms with the imports below: only when a person reads it
    from trayapp.clients import imports
    from trayapp.clients.context import this_world
    from trayapp.config.read.parse import parse

    store = own_store()
    try:
        loaded = store.read()
        config = parse(loaded.text, str(store.path)) if loaded.exists else None
    except MultiMcpError:
        return ""
    words = imports.first_words(imports.names_by_client(imports.first_offers(config, this_world())))
    return one_line(f"{words}. Set them up with: multi-mcp setup") if words else ""


def say_first_words() -> None:
    """Print the note, if there is one."""
    words = first_words()
    if words:
        note(words)
