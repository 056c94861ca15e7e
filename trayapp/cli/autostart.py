"""`multi-mcp autostart`: start the tray at login, or not.

Never here: how to set this on each desktop (service/autostart).
"""

from __future__ import annotations

import os

import click

from trayapp.cli.options import examples, json_option
from trayapp.cli.output import print_json, say
from trayapp.service.autostart import find_autostart
from trayapp.service.command_line import tray_command


@click.command("autostart", epilog=examples("multi-mcp autostart on"))
@click.argument("what", type=click.Choice(["on", "off", "status"]), default="status")
@json_option
def autostart_verb(what: str, as_json: bool) -> None:
    """Turn start at login on or off, or show its state.

    The desktop's own settings can also turn it off.
    """
    switch = find_autostart(os.environ, tray_command())
    if what != "status":
        switch.turn(what == "on")
    is_on = switch.is_on()
    if as_json:
        print_json({"autostart": is_on, "entry": switch.where})
    else:
        say(f"The tray {'starts' if is_on else 'does not start'} at login", *([switch.where] if is_on else []))
