"""`multi-mcp stdio`: read the options, then run one session with this system's Shim."""

import os
import sys

from trayapp.shim.relay import Shim, greeting, run, say
from trayapp.wire.rundir import run_dir


def main(argv: list[str]) -> int:
    """Relay until the client ends, and return the exit code. `argv` does not include the verb."""
    options: dict[str, str] | None = {}
    if argv:
        from trayapp.shim.options import USAGE, parse

        options = parse(argv)
        if options is None:
            say(USAGE)
    if options is None:
        return 2
    if sys.platform == "win32":
        from trayapp.shim.windows import ThreadedShim

        return run(ThreadedShim(options, run_dir(os.environ)))
    return run(Shim(greeting(options), run_dir(os.environ)))
