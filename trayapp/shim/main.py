"""`multi-mcp stdio`: read the options, then run one session with this system's Shim."""

import os
import sys

from trayapp.shim.relay import Shim, greeting, say
from trayapp.wire.rundir import run_dir

USAGE = "usage: multi-mcp stdio [--expose auto|tools|search] [--servers A,B] [--profile NAME]"
OPTIONS = ("--expose", "--servers", "--profile")


def main(argv: list[str]) -> int:
    """Relay until the client ends, or print the usage. Return the exit code. `argv` does not include the verb."""
    if (options := parse(argv)) is None:
        say(USAGE)
        return 2
    if sys.platform == "win32":
        from trayapp.shim.windows import ThreadedShim

        ThreadedShim(options, run_dir(os.environ)).run()
        return 0
    if sys.platform == "linux":
        options["pipes"] = "1"  # requests two pipes from the gateway, which cost less than its socket
    Shim(greeting(options), run_dir(os.environ)).run()
    return 0


def parse(argv: list[str]) -> dict[str, str] | None:
    """Return `--name value` and `--name=value` pairs as a dictionary, or None if there is anything else."""
    options: dict[str, str] = {}
    words = list(argv)
    while words:
        name, given, value = words.pop(0).partition("=")
        if name not in OPTIONS or not (given or words):
            return None
        options[name[2:]] = value if given else words.pop(0)
    return options
