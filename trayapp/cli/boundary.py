"""Where a verb's failure becomes two lines and an exit code: the one place of the command line that catches errors.

Never here: raising them, the texts.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress

import click

from trayapp.cli.output import has_colours, note, print_json, safe_streams
from trayapp.cli.text import one_line
from trayapp.model.errors import ExitCode, MultiMcpError, UsageError

OUTPUT_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # of stdout: our files' errors name the file
INTERRUPTED = 130  # what a shell reports of a program that Ctrl-C ended


def guarded(work: Callable[[list[str]], object], argv: list[str]) -> int:
    """Run `work` on the arguments; its exit code, whatever happens."""
    safe_streams()
    try:
        code = work(argv)
    except MultiMcpError as error:
        return report(error, as_json="--json" in argv)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        return report(usage_error(error), as_json="--json" in argv)
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None and error.errno in OUTPUT_FULL:
            raise
        return report(MultiMcpError(f"{error.filename or 'The system'}: {error.strerror}"), as_json="--json" in argv)
    return code if isinstance(code, int) else ExitCode.OK


def report(error: MultiMcpError, *, as_json: bool) -> int:
    """Say what happened and what to do, on stderr; with --json on stdout as well. The exit code."""
    title, hint = one_line(error.title), one_line(error.hint)
    if as_json:
        with suppress(OSError):  # what cannot be written there is what is reported
            print_json({"error": {"title": title, "hint": hint, "code": error.code}})
    head = click.style("Error:", fg="red", bold=True) if has_colours(sys.stderr, os.environ) else "Error:"
    note(f"{head} {title}", *([hint] if hint else []), styled=True)
    return int(error.exit_code)


def usage_error(error: click.ClickException) -> UsageError:
    """What click found wrong with the words of a command line, in our form."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else "multi-mcp"
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        verbs = ", ".join(error.ctx.command.list_commands(error.ctx))
        return UsageError(f"{command} wants one of: {verbs}", f"See: {command} --help")
    return UsageError(error.format_message().rstrip("."), f"See: {command} --help")
