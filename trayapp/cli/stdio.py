"""`multi-mcp stdio`, for the list of verbs and its help. The program's entry point passes the verb to the shim.

Never here: the shim.
"""

from __future__ import annotations

import click

from trayapp.cli.options import examples


@click.command("stdio", epilog=examples("multi-mcp stdio --servers github,files"))
@click.option(
    "--expose", type=click.Choice(["auto", "tools", "search"]), help="List all tools, or one that finds them."
)
@click.option("--servers", metavar="A,B", help="Show only these servers.")
@click.option("--profile", metavar="NAME", help="Show only this profile of servers.yaml.")
def stdio_verb(expose: str | None, servers: str | None, profile: str | None) -> None:
    """Connect an AI tool: its configuration runs this.

    Speaks MCP on stdin and stdout. Starts the gateway when none runs.
    """
