"""The hidden verb that runs the bundled sample server, for packaged programs, which cannot run a Python file.

Never here: the server.
"""

from __future__ import annotations

import runpy

import click

SAMPLE_MODULE = "trayapp.samples.server"  # by name: a packaged program does not contain its file


@click.command("sample-server")
def sample_server_verb() -> None:
    """Run the bundled sample server on stdin and stdout."""
    runpy.run_module(SAMPLE_MODULE, run_name="__main__")
