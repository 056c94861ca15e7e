"""The table of verbs, and the click group that loads the requested one.

A verb is the click command `NAME_verb` of its module. Never here: what a verb does.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

import click

from trayapp.cli.boundary import guarded
from trayapp.model.errors import UsageError

PROGRAM = "multi-mcp"
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
# Verbs that need a gateway start one. `status`, `stop` and `doctor` report that none runs.
STARTING = frozenset(
    (
        "add",
        "list",
        "search",
        "describe",
        "call",
        "prompt",
        "index",
        "refresh",
        "reconnect",
        "approve",
        "inspect",
        "confine",
        "outdated",
        "update",
        "auth",
        "history",
        "panel",
    )
)


class VerbEntry(NamedTuple):
    """A verb's module, and its line in the list of verbs."""

    module: str
    summary: str


VERBS: dict[str, VerbEntry] = {
    "tray": VerbEntry("tray", "Run the tray app; on a desktop the same as no verb."),
    "start": VerbEntry("start", "Start the gateway, here or in the background."),
    "stop": VerbEntry("start", "Stop the gateway and all its servers."),
    "quit": VerbEntry("tray", "Quit the tray app and the gateway that it started."),
    "stdio": VerbEntry("stdio", "Connect an AI tool: its configuration runs this."),
    "status": VerbEntry("status", "Show the gateway, its servers and their problems."),
    "list": VerbEntry("tools", "List the tools of all servers, or of one."),
    "search": VerbEntry("tools", "Find tools by what they do."),
    "describe": VerbEntry("tools", "Describe a tool and its parameters."),
    "call": VerbEntry("call", "Call a tool and print its answer."),
    "asks": VerbEntry("asks", "Show the calls that wait for your answer."),
    "allow": VerbEntry("asks", "Allow one of these calls."),
    "deny": VerbEntry("asks", "Deny one of these calls."),
    "find": VerbEntry("find", "Find servers in the registry."),
    "add": VerbEntry("add", "Add a server."),
    "remove": VerbEntry("add", "Remove a server."),
    "prompt": VerbEntry("call", "Fill in a prompt and print it."),
    "enable": VerbEntry("edit", "Enable a server or some of its tools."),
    "disable": VerbEntry("edit", "Disable a server or some of its tools."),
    "index": VerbEntry("tools", "Print an index of all tools in Markdown."),
    "refresh": VerbEntry("refresh", "Ask servers for their tools again."),
    "reconnect": VerbEntry("refresh", "Reconnect servers at once."),
    "setup": VerbEntry("setup", "Set everything up: servers, then AI tools."),
    "import": VerbEntry("import_servers", "Import servers from the files of AI tools."),
    "connect": VerbEntry("connect", "Point an AI tool, or all of them, at multi-mcp."),
    "disconnect": VerbEntry("connect", "Remove multi-mcp from an AI tool."),
    "panel": VerbEntry("panel", "Open the panel in your browser."),
    "history": VerbEntry("history", "Show the calls of AI tools and their results."),
    "logs": VerbEntry("logs", "Show the gateway's log, or one server's."),
    "doctor": VerbEntry("doctor", "Find problems and say how to fix them."),
    "trust": VerbEntry("approve", "Approve the servers in a project's own file."),
    "approve": VerbEntry("approve", "Review changed tools and approve them."),
    "inspect": VerbEntry("approve", "Look for hidden text and orders in tools."),
    "confine": VerbEntry("confine", "Run a server confined and show what it needs."),
    "outdated": VerbEntry("update", "Show servers whose package has a newer release."),
    "update": VerbEntry("update", "Update the package of a server, or of all."),
    "auth": VerbEntry("auth", "Sign in to a server, or sign out."),
    "secret": VerbEntry("secret", "Keep secrets for servers.yaml in the keyring."),
    "edit": VerbEntry("edit", "Open servers.yaml."),
    "autostart": VerbEntry("tray", "Turn start at login on or off."),
    "demo": VerbEntry("demo", "Try everything out in a temporary folder."),
    "help": VerbEntry("help", "Show a page of the guide."),
    "update-check": VerbEntry("update", "Check for a newer version."),
}


HIDDEN: dict[str, VerbEntry] = {
    "sample-server": VerbEntry("stdio", "Run the bundled sample server."),
}


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
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.summary) for name, verb in VERBS.items()])


def _did_you_mean(asked: str) -> str:
    from difflib import get_close_matches

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
