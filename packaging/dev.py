#!/usr/bin/env python3
"""The entry point for developers. It rejects an old Python and leaves the rest to devtools.

This file uses only syntax that an old Python can read, and only the standard library.
"""

import sys

OLDEST = (3, 11)


def main():  # type: () -> int
    """Run the command in sys.argv. Return the exit code."""
    if sys.version_info < OLDEST:
        message = "error: multi-mcp needs Python %d.%d or newer; %s is Python %d.%d.\n"
        sys.stderr.write(message % (OLDEST + (sys.executable,) + tuple(sys.version_info[:2])))  # noqa: RUF005
        sys.stderr.write(
            "Install a newer one and start this file with it, for example: python3.12 packaging/dev.py run\n"
        )
        return 2
    from devtools.commands import main as run_command

    return run_command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
