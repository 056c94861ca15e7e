"""The program's entry point: passes the arguments to the shim or to the command line.

Never here: imports that would slow down the shim, or the work of a verb.
"""

import os
import sys

INTERRUPTED = 130  # the exit code that shells report for a program ended by Ctrl-C
HELP = ("--help", "-h")
FULL = "Free some space, or redirect the output elsewhere"


def main() -> int:
    """Run the program and return its exit code. Ctrl-C and a closed output pipe end it without a message."""
    code = 0
    try:
        code = dispatch(sys.argv[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:  # a failed write to stdout: verbs report all other errors themselves (cli/output)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # otherwise the interpreter reports an error at exit
        if not code and not isinstance(error, BrokenPipeError) and sys.stderr is not None:
            print(f"Error: Cannot write the output: {error.strerror}\n{FULL}", file=sys.stderr)
        return code or 1
    return code


def dispatch(argv: list[str]) -> int:
    """Run the shim, print the version, start the gateway, or run the command line. Return the exit code."""
    if argv[:1] == ["stdio"] and not any(word in HELP for word in argv):
        from trayapp.shim.main import main as shim

        return shim(argv[1:])
    if argv in (["--version"], ["-V"]):
        from trayapp.service.version import version_text

        print(f"multi-mcp {version_text()}")
        return 0
    from trayapp.service.login_session import find_login_session

    find_login_session(os.environ)
    if argv in (["start"], ["start", "--linger"]):  # this process becomes the gateway, which never needs click
        from trayapp.cli.run_gateway import run_start

        return run_start("--linger" in argv)
    from trayapp.cli.app import run

    return run(argv)


def find_package() -> None:
    """Make the package importable if this file is run by its path: replace its folder in sys.path with the parent."""
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0]) == here:
        del sys.path[0]
    parent = os.path.dirname(here)
    if parent not in sys.path:
        sys.path.append(parent)


if __name__ == "__main__":
    if not __package__:
        find_package()
    sys.exit(main())
