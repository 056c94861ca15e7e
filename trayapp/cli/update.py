"""`multi-mcp update-check`: look for a newer version, but only if `settings.update_check` is on.

Never here: the request itself (service/version).
"""

from __future__ import annotations

from typing import Any

import click

from trayapp import __version__
from trayapp.cli.options import examples, json_option
from trayapp.cli.output import print_json, say
from trayapp.cli.servers_file import own_config, own_store
from trayapp.model.errors import StorageError
from trayapp.model.settings import Settings

OFF = "Not checked. To allow it, set update_check: true in the settings of servers.yaml"
NOBODY = "Not checked: this build was not published, so it has no address to ask"


@click.command("update-check", epilog=examples("multi-mcp update-check"))
@json_option
def update_check_verb(as_json: bool) -> None:
    """Check for a newer version.

    Contacts the network only if update_check is on in servers.yaml, and sends nothing about you.
    """
    outcome = look(_settings())
    if as_json:
        print_json(outcome)
        return
    newer = outcome["newer"]
    if newer:
        say(
            f"Version {newer['version']} is available; this is {__version__}", *([newer["url"]] if newer["url"] else [])
        )
    else:
        say(f"This is the newest version, {__version__}" if outcome["asked"] else outcome["reason"])


def look(settings: Settings, address: str | None = None) -> dict[str, Any]:
    """Look for a newer version. Raises MultiMcpError.

    Return `asked`, `reason` (why it did not ask), and `newer`: version and url, or None.
    """
    if not settings.update_check:
        return {"asked": False, "reason": OFF, "newer": None}
    from trayapp.service.version import is_newer, newest, releases_address

    where = releases_address() if address is None else address
    if not where:
        return {"asked": False, "reason": NOBODY, "newer": None}
    found = newest(where)
    newer = {"version": found.version, "url": found.url} if is_newer(found.version) else None
    return {"asked": True, "reason": None, "newer": newer}


def _settings() -> Settings:
    store = own_store()
    try:
        return own_config(store).settings
    except StorageError:
        return Settings()  # without a file the default settings apply
