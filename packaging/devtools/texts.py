"""The man page, the shell completions and the third-party licenses of a package. `texts.py FOLDER` writes them."""

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

LICENSE_FILES = re.compile(r"(?i)(licen[cs]e|copying|notice|authors)[^/]*$")


def write_texts(folder: Path) -> None:
    """Write multi-mcp.1, completion.SHELL and third-party.txt into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{PROGRAM}.1").write_text(man_page(), encoding="utf-8")
    for shell in ("bash", "zsh", "fish"):
        kind = get_completion_class(shell)
        assert kind is not None
        script = kind(program, {}, PROGRAM, "_MULTI_MCP_COMPLETE").source()  # it runs the program at each Tab key
        (folder / f"completion.{shell}").write_text(script, encoding="utf-8")
    (folder / "third-party.txt").write_text(third_party(), encoding="utf-8")


def man_page() -> str:
    """Return the man page: every verb with the text and options of its --help."""
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    day = datetime.datetime.fromtimestamp(seconds, datetime.UTC).date()
    lines = [
        f'.TH MULTI-MCP 1 "{day}" "multi-mcp {__version__}" "User Commands"',
        ".SH NAME\nmulti-mcp \\- all your MCP servers behind one local endpoint",
        ".SH SYNOPSIS\n.B multi-mcp\n[\\fIVERB\\fR] [\\fIARGS\\fR]...\n.br\n.B multi-mcp-tray",
        ".SH DESCRIPTION\nA gateway that every AI tool on the machine shares: each MCP server runs once, starts when "
        "one of its tools is called, stops when idle, and is switched on and off in one file, servers.yaml. Without a "
        "verb it is the tray app, or without a desktop the gateway in the foreground.",
        ".SH VERBS",
    ]
    context = click.Context(program, info_name=PROGRAM)
    for name in VERBS:
        command = program.get_command(context, name)
        assert command is not None
        lines += verb_section(name, command, click.Context(command, parent=context, info_name=name))
    lines += [
        ".SH EXIT STATUS\n0 fine, 1 failed, 2 usage, 3 servers.yaml invalid, 4 no gateway, 5 server unavailable, "
        "6 sign-in required, 7 already running or port taken.",
        ".SH ENVIRONMENT\n.TP\n.B MULTI_MCP_HOME\nA folder that holds everything: servers.yaml, cache, logs, run.",
        ".SH FILES\n.TP\n.I ~/.config/multi-mcp/servers.yaml\nThe servers and settings.",
    ]
    return "\n".join(lines) + "\n"


def verb_section(name: str, command: click.Command, context: click.Context) -> list[str]:
    """Return the lines of the man page about one verb."""
    usage = " ".join(command.collect_usage_pieces(context)).replace("[OPTIONS]", "").strip()
    text = " ".join((command.help or "").replace("\b", "").split())
    lines = [".TP", f".B {name} \\fR{quoted(usage)}", quoted(text)]
    records = [option.get_help_record(context) for option in command.params if isinstance(option, click.Option)]
    for record in filter(None, records):
        lines += [".br", f"\\fB{quoted(record[0])}\\fR: {quoted(record[1])}"]
    return lines


def quoted(text: str) -> str:
    """Return a text escaped for roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def third_party() -> str:
    """Return the name, version and license texts of Python and of every library that the program needs."""
    place = Path(os.__file__).parent / "LICENSE.txt"
    python = place.read_text("utf-8").strip() if place.exists() else "PSF-2.0: https://docs.python.org/3/license.html"
    parts = [f"Python {sys.version.split()[0]}\n\n{python}"]
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    for name in sorted(needed(project["project"]["dependencies"])):
        distribution = importlib.metadata.distribution(name)
        files = [path for path in distribution.files or [] if LICENSE_FILES.search(str(path))]
        texts = [Path(str(path.locate())).read_text("utf-8", "replace").strip() for path in sorted(files)]
        keys = [key for key in ("License-Expression", "License") if key in distribution.metadata]
        told = distribution.metadata[keys[0]] if keys else ""
        parts.append(f"{name} {distribution.version}\n\n" + "\n\n".join(texts or [told or "See its own site."]))
    return ("\n\n" + "=" * 78 + "\n\n").join(parts) + "\n"


def needed(requirements: list[str]) -> set[str]:
    """Return the names of the installed distributions that the requirements need, directly or indirectly."""
    from packaging.requirements import Requirement
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
    """Return True if a distribution is installed. Those whose markers exclude this system are not."""
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    write_texts(Path(sys.argv[1]))
