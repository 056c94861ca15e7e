"""The click group that loads the requested verb, and the boundary where its failure becomes two lines and an exit code.

A verb is the click command `NAME_verb` of its module. Only the boundary catches all errors of the command line.
Never here: the table of verbs (verbs), what a verb does.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress

import click

from trayapp.cli.output import has_colors, note, print_json, safe_streams
from trayapp.cli.verbs import HIDDEN, PROGRAM, STARTING, VERB_GROUPS, VERBS
from trayapp.model.errors import ExitCode, MultiMcpError, UsageError
from trayapp.model.text import one_line

OUTPUT_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # of stdout; errors of files name the file
INTERRUPTED = 130  # the shell's exit code for a program ended by Ctrl-C

EPILOG = f"""\b
Example: {PROGRAM} status
Help for one verb: {PROGRAM} VERB --help; the guide: {PROGRAM} help

\b
Exit codes: 0 fine, 1 failed, 2 usage, 3 servers.yaml invalid, 4 no gateway,
            5 server unavailable, 6 sign-in wanted, 7 already running
Environment: MULTI_MCP_HOME=DIR keeps everything in DIR
             MULTI_MCP_LOG=debug logs more (debug, info, warning, error)
             MULTI_MCP_PASSPHRASE opens the file of token_store: file
"""


class Verbs(click.Group):
    """The click group of all verbs. It loads a verb's module on demand, and lists the verbs from the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = VERBS.get(cmd_name) or HIDDEN.get(cmd_name)
        if verb is None:
            return None
        module = importlib.import_module(f"trayapp.cli.{verb.module}")
        command = getattr(module, f"{cmd_name.replace('-', '_')}_verb")
        assert isinstance(command, click.Command)
        if cmd_name in STARTING and not any("--no-start" in option.opts for option in command.params):
            from trayapp.cli.options import start_option  # imports the control client, which not every verb needs

            command.params.append(start_option())
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        asked = args[0]
        if asked not in VERBS and asked not in HIDDEN and not asked.startswith("-"):
            raise UsageError(f"{PROGRAM} has no verb {asked}", f"{_did_you_mean(asked)}See: {PROGRAM} --help")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        columns = max(map(len, VERBS))
        for title, verbs in VERB_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(columns), verb.summary) for name, verb in verbs.items()])


# Words of other programs for what a verb of ours does.
OTHER_WORDS = {
    "login": "auth", "logout": "auth", "signin": "auth", "account": "auth", "accounts": "auth", "tools": "list",
    "ls": "list", "search": "find", "install": "add", "uninstall": "remove", "rm": "remove", "upgrade": "update",
}  # fmt: skip


def _did_you_mean(asked: str) -> str:
    from difflib import get_close_matches

    if asked in OTHER_WORDS:
        return f"Did you mean {OTHER_WORDS[asked]}? "
    near = [verb for verb in VERBS if len(asked) > 1 and verb.startswith(asked)] or get_close_matches(asked, VERBS, n=1)
    return f"Did you mean {near[0]}? " if near else ""


def _say_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from trayapp.service.version import version_text

        click.echo(f"{PROGRAM} {version_text()}")
        context.exit()


@click.command(
    cls=Verbs,
    invoke_without_command=True,
    subcommand_metavar="[VERB] [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog=EPILOG,
)
@click.option("--autostart", is_flag=True, hidden=True, help="Started at login: nothing is printed.")
@click.option(
    *("-V", "--version"),
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_say_version,
    help="Show the version and exit.",
)
@click.pass_context
def program(context: click.Context, autostart: bool) -> int | None:
    """All your MCP servers behind one endpoint.

    Without a verb: run the app.
    """
    if context.invoked_subcommand is not None:
        return None
    from trayapp.cli.tray import run_app

    return run_app(autostart)


def run(argv: list[str]) -> int:
    """Run one command line and return its exit code."""
    return guarded(lambda words: program.main(words, PROGRAM, standalone_mode=False), argv)


# --- the boundary


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
    """Print what happened and what to do on stderr, with --json on stdout too. Return the exit code."""
    title, hint = one_line(error.title), one_line(error.hint)
    if as_json:
        with suppress(OSError):  # stdout may be what failed
            print_json({"error": {"title": title, "hint": hint, "code": error.code}})
    head = click.style("Error:", fg="red", bold=True) if has_colors(sys.stderr, os.environ) else "Error:"
    note(f"{head} {title}", *([hint] if hint else []), styled=True)
    return int(error.exit_code)


def usage_error(error: click.ClickException) -> UsageError:
    """Return click's error about a command line as a UsageError."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else "multi-mcp"
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        verbs = ", ".join(error.ctx.command.list_commands(error.ctx))
        return UsageError(f"{command} needs one of: {verbs}", f"See: {command} --help")
    return UsageError(error.format_message().rstrip("."), f"See: {command} --help")
