"""The boundary where a verb's failure becomes two lines and an exit code.

This is the only place of the command line that catches all errors.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress

import click

from trayapp.cli.output import has_colors, note, print_json, safe_streams
from trayapp.model.errors import ExitCode, MultiMcpError, UsageError
from trayapp.model.text import one_line, without_code

OUTPUT_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # of stdout, if the error names no file
INTERRUPTED = 130  # the shell's exit code for a program ended by Ctrl-C


def guarded(work: Callable[[list[str]], object], argv: list[str]) -> int:
    """Run `work` on the arguments, and return its exit code or that of its error.

    It raises BrokenPipeError, and OSError if stdout is full.
    """
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
    """Print what happened and what to do on stderr, with --json also on stdout. Return the exit code."""
    title, hint = one_line(error.title), one_line(error.hint)
    if as_json:
        with suppress(OSError):  # stdout itself may be the cause
            print_json({"error": {"title": title, "hint": hint, "code": error.code}})
    head = click.style("Error:", fg="red", bold=True) if has_colors(sys.stderr, os.environ) else "Error:"
    note(f"{head} {without_code(title)}", *([hint] if hint else []), styled=True)
    return int(error.exit_code)


def usage_error(error: click.ClickException) -> UsageError:
    """Return click's error about a command line as a UsageError."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else "multi-mcp"
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        verbs = ", ".join(error.ctx.command.list_commands(error.ctx))
        return UsageError(f"{command} needs one of: {verbs}", f"See: {command} --help")
    if isinstance(error, click.NoSuchOption) and context and _takes_command(context.command):
        quoted = f"Put quotes around another program's command line, or -- before it. See: {command} --help"
        return UsageError(error.format_message().rstrip("."), quoted)
    return UsageError(error.format_message().rstrip("."), f"See: {command} --help")


def _takes_command(verb: click.Command) -> bool:
    return any(one.type is click.UNPROCESSED for one in verb.params)
