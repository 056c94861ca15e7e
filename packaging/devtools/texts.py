"""The man page, the shells' completions and the licences of what a package holds, each made from its source.

Run inside .venv by path: `texts.py FOLDER`. Never here: where they are installed.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import re
import sys
import tomllib
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from trayapp import __version__
from trayapp.cli.app import program
from trayapp.cli.verbs import PROGRAM, VERBS

SHELLS = ("bash", "zsh", "fish")
LICENCE_FILES = re.compile(r"(?i)(licen[cs]e|copying|notice|authors)[^/]*$")
LICENCE_KEYS = ("License-Expression", "License")
VARIABLE = "_MULTI_MCP_COMPLETE"


def write_texts(folder: Path) -> None:
    """Write multi-mcp.1, completion.SHELL and third-party.txt into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{PROGRAM}.1").write_text(man_page(), encoding="utf-8")
    for shell in SHELLS:
        (folder / f"completion.{shell}").write_text(completion(shell), encoding="utf-8")
    (folder / "third-party.txt").write_text(third_party(), encoding="utf-8")


def completion(shell: str) -> str:
    """What the shell reads; it asks the program at each Tab."""
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(program, {}, PROGRAM, VARIABLE).source()


def man_page() -> str:
    """man(7): every verb with its text and options, as --help tells them."""
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    day = datetime.datetime.fromtimestamp(seconds, datetime.UTC).date()
    lines = [
        f'.TH MULTI-MCP 1 "{day}" "multi-mcp {__version__}" "User Commands"',
        ".SH NAME\nmulti-mcp \\- all your MCP servers behind one local endpoint",
        ".SH SYNOPSIS\n.B multi-mcp\n[\\fIVERB\\fR] [\\fIARGS\\fR]...\n.br\n.B multi-mcp-tray",
        ".SH DESCRIPTION\nA gateway that every AI tool on the machine shares: each MCP server runs once, starts when a "
        "tool of it is called, stops when idle, and is switched on and off in one file, servers.yaml. Without a verb "
        "it is the tray app, or without a desktop the gateway in the foreground.",
        ".SH VERBS",
    ]
    context = click.Context(program, info_name=PROGRAM)
    for name in VERBS:
        command = program.get_command(context, name)
        assert command is not None
        lines += verb_section(name, command, click.Context(command, parent=context, info_name=name))
    lines += [
        ".SH EXIT STATUS\n0 fine, 1 failed, 2 usage, 3 servers.yaml invalid, 4 no gateway, 5 server unavailable, "
        "6 sign-in wanted, 7 already running.",
        ".SH ENVIRONMENT\n.TP\n.B MULTI_MCP_HOME\nA folder that holds everything: servers.yaml, cache, logs, run.",
        ".SH FILES\n.TP\n.I ~/.config/multi-mcp/servers.yaml\nWhich servers there are.",
    ]
    return "\n".join(lines) + "\n"


def verb_section(name: str, command: click.Command, context: click.Context) -> list[str]:
    """One verb of the man page."""
    usage = " ".join(command.collect_usage_pieces(context)).replace("[OPTIONS]", "").strip()
    text = " ".join((command.help or "").replace("\b", "").split())
    lines = [".TP", f".B {name} \\fR{quoted(usage)}", quoted(text)]
    records = [option.get_help_record(context) for option in command.params if isinstance(option, click.Option)]
    for record in filter(None, records):
        lines += [".br", f"\\fB{quoted(record[0])}\\fR: {quoted(record[1])}"]
    return lines


def quoted(text: str) -> str:
    """As roff reads it literally."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def third_party() -> str:
    """Name, version and licence texts of Python and of every library that the program needs."""
    parts = [f"Python {sys.version.split()[0]}\n\n{python_licence()}"]
    for name in sorted(needed(own_requirements())):
        distribution = importlib.metadata.distribution(name)
        files = [path for path in distribution.files or [] if LICENCE_FILES.search(str(path))]
        texts = [Path(str(path.locate())).read_text("utf-8", "replace").strip() for path in sorted(files)]
        told = next((distribution.metadata[key] for key in LICENCE_KEYS if key in distribution.metadata), "")
        parts.append(f"{name} {distribution.version}\n\n" + "\n\n".join(texts or [told or "See its own project."]))
    return ("\n\n" + "=" * 78 + "\n\n").join(parts) + "\n"


def python_licence() -> str:
    """Of the interpreter that is packaged."""
    place = Path(os.__file__).parent / "LICENSE.txt"
    return place.read_text("utf-8").strip() if place.exists() else "PSF-2.0: https://docs.python.org/3/license.html"


def own_requirements() -> list[str]:
    """What pyproject.toml asks for."""
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    found: list[str] = tomllib.loads(text)["project"]["dependencies"]
    return found


def needed(requirements: list[str]) -> set[str]:
    """Names of the installed distributions that these need here, all the way down, in their canonical form."""
    from packaging.requirements import Requirement  # PyInstaller needs it, so it is there
    from packaging.utils import canonicalize_name

    found: set[str] = set()
    wants = list(requirements)
    while wants:
        want = Requirement(wants.pop())
        key = canonicalize_name(want.name)
        if key in found or (want.marker is not None and not want.marker.evaluate({"extra": ""})):
            continue
        found.add(key)
        wants += (importlib.metadata.requires(key) or []) if is_installed(key) else []
    return {key for key in found if is_installed(key)}


def is_installed(name: str) -> bool:
    """Whether it is there: a marker may have left it out."""
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    write_texts(Path(sys.argv[1]))
