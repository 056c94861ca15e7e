"""The click group that loads the requested verb.

A verb is the click command `NAME_verb` of its module.
"""

from __future__ import annotations

import importlib

import click

from trayapp.cli.output import guarded
from trayapp.cli.verbs import HIDDEN, PROGRAM, VERB_GROUPS, VERBS
from trayapp.model.errors import UsageError

EPILOG = f"""\b
Example: {PROGRAM} status
Help for one verb: {PROGRAM} VERB --help; the guide: {PROGRAM} help

\b
Exit codes: 0 fine, 1 failed, 2 usage, 3 servers.yaml invalid, 4 no gateway,
            5 server unavailable, 6 sign-in needed, 7 already running
Environment: MULTI_MCP_HOME=DIR keeps everything in DIR
             MULTI_MCP_LOG=debug logs more (debug, info, warning, error)
             MULTI_MCP_PASSPHRASE unlocks the file of token_store: file
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
        if verb.starts and not any("--no-start" in option.opts for option in command.params):
            from trayapp.cli.options import start_option  # imports the control client, which not every verb needs

            command.params.append(start_option())
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        asked = args[0]
        if asked not in VERBS and asked not in HIDDEN and not asked.startswith("-"):
            from difflib import get_close_matches

            near = [OTHER_WORDS[asked]] if asked in OTHER_WORDS else []
            near = near or [verb for verb in VERBS if len(asked) > 1 and verb.startswith(asked)]
            near = near or get_close_matches(asked, VERBS, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise UsageError(f"{PROGRAM} has no verb {asked}", f"{hint}See: {PROGRAM} --help")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        columns = max(map(len, VERBS))
        for title, verbs in VERB_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(columns), verb.summary) for name, verb in verbs.items()])


# Words that other programs use for our verbs, each with the verb to suggest
OTHER_WORDS = {
    "login": "auth", "logout": "auth", "signin": "auth", "account": "auth", "accounts": "auth", "tools": "list",
    "ls": "list", "search": "find", "install": "add", "uninstall": "remove", "rm": "remove", "upgrade": "update",
}  # fmt: skip


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

    Without a verb, run the app.
    """
    if context.invoked_subcommand is not None:
        return None
    from trayapp.cli.tray import run_app

    return run_app(autostart)


def run(argv: list[str]) -> int:
    """Run one command line and return its exit code."""
    return guarded(lambda words: program.main(words, PROGRAM, standalone_mode=False), argv)
