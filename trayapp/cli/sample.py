"""The hidden verb by which a packaged program, which has no interpreter for files, runs the bundled sample server.

Never here: the server.
"""

from __future__ import annotations

import runpy

import click

from trayapp.service.command import sample_file


@click.command("sample-server")
def sample_server_verb() -> None:
    """Be the bundled sample server, on stdin and stdout."""
    runpy.run_path(sample_file(), run_name="__main__")
