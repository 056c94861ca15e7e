"""`multi-mcp panel`: open the gateway's pages in the user's browser."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path

import click

from trayapp.cli.options import ask, verb
from trayapp.cli.output import note, print_json, say
from trayapp.model.errors import UsageError
from trayapp.model.text import one_line
from trayapp.service.desktop_programs import open_url
from trayapp.wire.control import PANEL

LONGEST = 8000  # characters of a link; some browsers and desktops do not open longer ones
OPENED_S = 0.5  # seconds; if the command that opens a browser still runs after this time, it has found one


@verb("panel", "multi-mcp panel", "multi-mcp panel --no-browser")
@click.argument("what", required=False)
@click.option("--no-browser", is_flag=True, help="Only print the link. It works once, within a minute.")
def panel_verb(what: str | None, no_browser: bool, as_json: bool) -> None:
    """Open the panel: servers, calls, approvals and health in your browser.

    With WHAT, it opens the page for adding a server and shows what would run. WHAT is the same as for multi-mcp add, or
    a multi-mcp: link. Nothing is added or started before you confirm it there.
    """
    text = ""
    if what is not None:
        from trayapp.sources.recognize import text_of_link

        text = text_of_link(what)
        if len(text) > LONGEST:
            raise UsageError(
                f"The text has {len(text):,} characters, too many for a link", "Add it with: multi-mcp add -"
            )
        with suppress(OSError, ValueError):  # a URL or another source that is not a path
            if "\n" not in text and Path(text).is_file():
                text = str(Path(text).absolute())  # absolute, because the gateway runs in another folder
    url = str(ask(PANEL, {"what": text} if text else None)["url"])
    if as_json:
        print_json({"url": url})
    elif no_browser:
        say(url)
    elif open_url(url, os.environ, OPENED_S):
        say("Opened the panel in your browser")
    else:
        note("No browser was found here. Open this link within a minute:")
        say(url)
        if text:
            note(one_line(f"Or review it here: multi-mcp add {shlex.quote(text)}"))
