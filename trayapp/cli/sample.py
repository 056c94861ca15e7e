"""The hidden verb by which a packaged program, which has no interpreter for files, runs the bundled sample server.

Never here: the server.
"""

from __future__ import annotations

import runpy

import click

SAMPLE_MODULE = "trayapp.samples.server"  # by name: a packaged program holds no file of it


@click.command("sample-server")
def sample_server_verb() -> None:
    """Be the bundled sample server, on stdin and stdout."""
    runpy.run_module(SAMPLE_MODULE, run_name="__main__")
