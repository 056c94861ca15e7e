"""The verbs that other programs run: `multi-mcp stdio`, and the hidden one for the bundled sample server.

`stdio` is here for the list of verbs and its help: the program's entry point passes it to the shim. `sample-server` is
for packaged programs, which cannot run a Python file.
"""

from __future__ import annotations

import runpy

import click

from trayapp.cli.options import examples

SAMPLE_MODULE = "trayapp.samples.server"  # by name: a packaged program does not contain its file


@click.command("stdio", epilog=examples("multi-mcp stdio --servers github,files"))
@click.option(
    "--expose", type=click.Choice(["auto", "tools", "search"]), help="List all tools, or one that finds them."
)
@click.option("--servers", metavar="A,B", help="Show only these servers.")
@click.option("--profile", metavar="NAME", help="Show only this profile of servers.yaml.")
def stdio_verb(expose: str | None, servers: str | None, profile: str | None) -> None:
    """Connect an AI tool: its configuration runs this.

    Speaks MCP on stdin and stdout. Starts the gateway if none is running.
    """


@click.command("sample-server")
def sample_server_verb() -> None:
    """Run the bundled sample server on stdin and stdout."""
    runpy.run_module(SAMPLE_MODULE, run_name="__main__")
