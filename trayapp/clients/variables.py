"""Variable references in clients' files: convert them to our syntax, and report those that only a client resolves.

References that mean the same in both syntaxes stay. The environment is not read, and no command is run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from trayapp.clients.table import Client

_INPUT = re.compile(r"\$\{input:([^}]+)\}")
_FOLDER = re.compile(r"\$\{(workspaceFolder|workspaceFolderBasename|workspaceRoot|userHome|pathSeparator|/)\}")
_PLACE = re.compile(r"\$?\{(?:file|command|config):[^{}]+\}")
_BARE = re.compile(r"\$(?!env:)([A-Za-z_]\w*)", re.ASCII)
_PERCENT = re.compile(r"%([A-Za-z_]\w*)%", re.ASCII)
_SECRET = re.compile(r"\$\{\{\s*(?:secrets|inputs)\.([A-Za-z_]\w*)\s*\}\}", re.ASCII)
_NOT_IN_KEY = re.compile(r"[:{}$]+")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_]+", re.ASCII)
# What a POSIX shell expands in a here-document: an escape, a command, a parameter with an operation, a parameter.
_EXPANSION = re.compile(
    r"\\(?P<escaped>\$(?:\{[^{}]*\})?|[`\\])|(?P<command>\$\((?!\()|`)|\$\{(?P<body>(?:[^{}]|\{[^{}]*\})*)\}|\$(?P<name>[A-Za-z_]\w*)",
    re.ASCII,
)
_PARAMETER = re.compile(r"(?:env:)?(?P<name>[A-Za-z_]\w*)(?:(?P<operator>:-|:\?)(?P<word>.*))?", re.ASCII | re.DOTALL)
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[()]", re.DOTALL)
_NEEDS_SHELL = re.compile(r"[|&;<>()$`\n]")  # operators and expansions; our commands run without a shell


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a server's entry: its client, the folder that it is for, and VS Code's `inputs` (by id)."""

    client: Client
    home: Path
    folder: Path | None = None
    inputs: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    windows: bool = False
    asks_folder: bool = False  # the user will be asked for the folder, so `${workspaceFolder}` stays


def with_our_variables(text: str, context: Context) -> tuple[str, list[str]]:
    """Return the text with its variables in our syntax, and the references that cannot be converted and stay.

    References to the workspace stay if there is no folder. They are not returned (see `workspace_places`).
    """
    unknown = _PLACE.findall(text)
    text = _INPUT.sub(lambda found: _input(found[1], context), text)
    text = _FOLDER.sub(lambda found: _place(found, context), text)
    syntaxes = context.client.variables
    if "shell" in syntaxes:
        text, more = _from_shell(text, context.windows)
        return text, [*unknown, *more]
    if "$NAME" in syntaxes:
        text = _BARE.sub(r"${\1}", text)
    if "%NAME%" in syntaxes and context.windows:
        text = _PERCENT.sub(r"${\1}", text)
    if "${{ secrets.NAME }}" in syntaxes:
        text = _SECRET.sub(r"${\1}", text)
    return text, unknown


def asked_inputs(text: str, context: Context) -> dict[str, Mapping[str, object]]:
    """Return keyring reference -> input definition, for each input in the text that becomes a keyring reference."""
    found = {_input(asked, context): {"id": asked, **context.inputs.get(asked, {})} for asked in _INPUT.findall(text)}
    return {mark: definition for mark, definition in found.items() if mark.startswith("${keyring:")}


def workspace_places(text: str) -> list[str]:
    """Return the workspace references left in a text. They mean nothing outside a workspace."""
    return [found[0] for found in _FOLDER.finditer(text)]


def _input(asked: str, context: Context) -> str:
    """Return what replaces `${input:ID}`: a variable if it has a default and is not secret, or a keyring reference."""
    known = context.inputs.get(asked, {})
    default = known.get("default")
    if isinstance(default, str) and known.get("password") is not True:
        return f"${{{_NOT_IN_NAME.sub('_', asked)}:-{default}}}"
    return f"${{keyring:{_NOT_IN_KEY.sub('-', asked)}}}"


def _place(found: re.Match[str], context: Context) -> str:
    """Return what a reference of VS Code or Cursor stands for, or the reference itself if that is unknown.

    References to the workspace are unknown if there is no folder.
    """
    folder = context.folder
    separator = "\\" if context.windows else "/"
    known = {"userHome": str(context.home), "pathSeparator": separator, "/": separator}
    if folder is not None:
        known |= {"workspaceFolderBasename": folder.name, "workspaceFolder": str(folder), "workspaceRoot": str(folder)}
    return known.get(found[1]) or found[0]


def _from_shell(text: str, windows: bool) -> tuple[str, list[str]]:
    """Return the text in our syntax, with `$(command)` as `${cmd:command}`, and the shell expansions that stay."""
    parts: list[str] = []
    unknown: list[str] = []
    done = 0
    while found := _EXPANSION.search(text, done):
        parts.append(text[done : found.start()])
        done = found.end()
        converted: str | None = None
        if found["escaped"]:
            converted = found["escaped"] if len(found["escaped"]) == 1 else None  # our syntax cannot escape `${NAME}`
        elif found["command"]:
            end = text.find("`", done) if found["command"] == "`" else _closing(text, done)
            converted = _secret_command(text[done:end].strip(), windows) if end >= 0 else None
            done = end + 1 if end >= 0 else done
        elif found["name"]:
            converted = f"${{{found['name']}}}"
        else:
            converted, more = _parameter(found["body"], windows)
            unknown += more
        if converted is None:
            unknown.append(text[found.start() : done])
        parts.append(text[found.start() : done] if converted is None else converted)
    return "".join(parts) + text[done:], unknown


def _parameter(body: str, windows: bool) -> tuple[str | None, list[str]]:
    """Return a shell's `${body}` in our syntax (None if the form is unknown), and the expansions in it that stay."""
    known = _PARAMETER.fullmatch(body)
    if known is None:
        return None, []
    if known["operator"] != ":-":
        return f"${{{known['name']}}}", []
    word, unknown = _from_shell(known["word"], windows)
    return f"${{{known['name']}:-{word}}}", unknown


def _closing(text: str, start: int) -> int:
    """Return the index of the parenthesis that closes a command, or -1 if none does."""
    depth = 1
    for found in _QUOTED.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if not depth:
            return found.start()
    return -1


def _secret_command(command: str, windows: bool) -> str | None:
    if _NEEDS_SHELL.search(command):
        if windows:
            return None
        command = f"sh -c {shlex.quote(command)}"
    depths = list(accumulate((letter == "{") - (letter == "}") for letter in command))
    return f"${{cmd:{command}}}" if depths and min(depths) >= 0 and not depths[-1] else None
