"""Convert variable references from other programs' syntax to ours. Environment values are not read here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_INPUT = re.compile(r"\$\{input:([^}]+)\}")
_FOLDER = re.compile(r"\$\{(workspaceFolder|workspaceFolderBasename|workspaceRoot|userHome|pathSeparator|/)\}")
_PLACE = re.compile(r"\$?\{(?:file|command|config):[^{}]+\}")
_BARE = re.compile(r"\$(?!env:)([A-Za-z_]\w*)", re.ASCII)
_PERCENT = re.compile(r"%([A-Za-z_]\w*)%", re.ASCII)
_SECRET = re.compile(r"\$\{\{\s*(?:secrets|inputs)\.([A-Za-z_]\w*)\s*\}\}", re.ASCII)
_NOT_IN_KEY = re.compile(r"[:{}$]+")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a server's entry: its client, the folder that it is for, and VS Code's `inputs` (by id)."""

    client: str
    home: Path
    folder: Path | None = None
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    windows: bool = False


def inputs_of(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return VS Code's `inputs` by id."""
    listed = document.get("inputs")
    asked = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    return {str(item["id"]): item for item in asked if "id" in item}


def workspace_places(text: str) -> list[str]:
    """Return the workspace references left in a text. They mean nothing outside of a workspace."""
    return [found[0] for found in _FOLDER.finditer(text)]


def unknown_places(text: str) -> list[str]:
    """Return references such as `{file:PATH}`, which other programs resolve and we do not."""
    return _PLACE.findall(text)


def ours(text: str, context: Context) -> str:
    """Return the text with its variables in our syntax. References with the same meaning in both stay."""
    text = _INPUT.sub(lambda found: _input(found[1], context), text)
    text = _FOLDER.sub(lambda found: _place(found, context), text)
    if context.client in ("gemini-cli", "qwen-code"):
        text = _BARE.sub(r"${\1}", text)
        text = _PERCENT.sub(r"${\1}", text) if context.windows else text
    if context.client == "continue":
        text = _SECRET.sub(r"${\1}", text)
    return text


def _input(asked: str, context: Context) -> str:
    """Convert `${input:ID}` to a variable if the input has a default and is no password, else to a keyring entry."""
    known = context.inputs.get(asked, {})
    default = known.get("default")
    if isinstance(default, str) and known.get("password") is not True:
        return f"${{{_NOT_IN_NAME.sub('_', asked)}:-{default}}}"
    return f"${{keyring:{_NOT_IN_KEY.sub('-', asked)}}}"


def _place(found: re.Match[str], context: Context) -> str:
    """Resolve a reference of VS Code or Cursor. Those of a workspace stay if there is no folder."""
    folder = context.folder
    known: dict[str, Callable[[], str | None]] = {
        "userHome": lambda: str(context.home),
        "pathSeparator": lambda: "\\" if context.windows else "/",
        "/": lambda: "\\" if context.windows else "/",
        "workspaceFolderBasename": lambda: folder.name if folder else None,
    }
    return known.get(found[1], lambda: str(folder) if folder else None)() or found[0]
