"""Variables as other programs write them, in our spelling.

Never here: values of variables of the environment.
"""

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
    """What stands beside a server: the folder that it was written for, the questions that VS Code asks (by id)."""

    client: str
    home: Path
    folder: Path | None = None
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    windows: bool = False


def inputs_of(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """VS Code's `inputs`, by id."""
    listed = document.get("inputs")
    asked = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    return {str(item["id"]): item for item in asked if "id" in item}


def workspace_places(text: str) -> list[str]:
    """Return the places of a workspace that are left in a text: outside of a workspace they mean nothing."""
    return [found[0] for found in _FOLDER.finditer(text)]


def unknown_places(text: str) -> list[str]:
    """`{file:PATH}` and the like: what other programs read there and nothing of ours does."""
    return _PLACE.findall(text)


def ours(text: str, context: Context) -> str:
    """The text with its variables in our spelling; what means the same in both stays."""
    text = _INPUT.sub(lambda found: _input(found[1], context), text)
    text = _FOLDER.sub(lambda found: _place(found, context), text)
    if context.client in ("gemini-cli", "qwen-code"):
        text = _BARE.sub(r"${\1}", text)
        text = _PERCENT.sub(r"${\1}", text) if context.windows else text
    if context.client == "continue":
        text = _SECRET.sub(r"${\1}", text)
    return text


def _input(asked: str, context: Context) -> str:
    """`${input:ID}`: what VS Code asks for and keeps is kept in the keyring here; a plain question has its default."""
    known = context.inputs.get(asked, {})
    default = known.get("default")
    if isinstance(default, str) and known.get("password") is not True:
        return f"${{{_NOT_IN_NAME.sub('_', asked)}:-{default}}}"
    return f"${{keyring:{_NOT_IN_KEY.sub('-', asked)}}}"


def _place(found: re.Match[str], context: Context) -> str:
    """Places that VS Code and Cursor know; the folder only where there is one."""
    folder = context.folder
    known: dict[str, Callable[[], str | None]] = {
        "userHome": lambda: str(context.home),
        "pathSeparator": lambda: "\\" if context.windows else "/",
        "/": lambda: "\\" if context.windows else "/",
        "workspaceFolderBasename": lambda: folder.name if folder else None,
    }
    return known.get(found[1], lambda: str(folder) if folder else None)() or found[0]
