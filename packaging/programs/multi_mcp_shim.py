"""The packaged program `multi-mcp-shim`: the shim, and two other small programs that need only the standard library.

`multi-mcp-shim [stdio] [OPTION ...]`, `multi-mcp-shim guardian REGISTRY`, `multi-mcp-shim sample-server`. Never here:
imports that slow the shim's start.
"""

import sys

import lasting

lasting.keep_archive()


def main(argv: list[str]) -> int:
    """Run the program that the first argument names; the default is the shim. Return the exit code."""
    verb = argv[0] if argv else ""
    if verb == "guardian":
        from trayapp.backends.stdio.guardian import main as guard

        guard(argv[1])
        return 0
    if verb == "sample-server":
        from trayapp.samples.server import main as sample

        return sample()
    from trayapp.shim.main import main as shim

    return shim(argv[1:] if verb == "stdio" else argv)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(0)
