"""`multi-mcp panel`: the pages about the gateway in the user's browser.

Never here: the pages (trayapp/panel).
"""

from __future__ import annotations

import os

import click

from trayapp.cli.options import ask, examples, json_option
from trayapp.cli.output import note, print_json, say
from trayapp.service.opener import open_url
from trayapp.wire.control import PANEL

OPENED_S = 0.5  # an opener that still runs after this time has found a browser


@click.command("panel", epilog=examples("multi-mcp panel", "multi-mcp panel --no-browser"))
@click.option("--no-browser", is_flag=True, help="Only print the link. It works once, within a minute.")
@json_option
def panel_verb(no_browser: bool, as_json: bool) -> None:
    """Open the panel: servers, calls, approvals and health in your browser."""
    url = str(ask(PANEL)["url"])
    if as_json:
        print_json({"url": url})
    elif no_browser:
        say(url)
    elif open_url(url, os.environ, OPENED_S):
        say("Opened the panel in your browser")
    else:
        note("No browser was found here. Open this link within a minute:")
        say(url)
