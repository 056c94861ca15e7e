"""A recognized source: servers in the keys of servers.yaml, and the values that the user still has to give."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from trayapp.config.urls import name_of_url
from trayapp.model.errors import UsageError
from trayapp.model.redact import redacted

Entry = dict[str, Any]
Keys = tuple[str | int, ...]

LARGEST = 1_000_000  # characters of pasted text
LONGEST_NAME = 60
# Placeholders that authors write where the reader has to put a value.
_PLACEHOLDER = re.compile(
    r"""(?xi)
    <[^<>]{1,80}> | \{\{[^{}]{1,80}\}\} | \[[^\[\]]{1,80}\] | \.\.\. | x{3,} | \*{3,} | changeme | todo
    | (?:your|my|insert|enter|replace|put|add|paste)[ _-](?:[\w-]+[ _-]?){1,8} | [\w-]*[_-]here
    | [A-Za-z]{1,12}[-_](?:[\w-]{0,12})?(?:\.{3}|\u2026|x{3,}|\*{3,}) | (?:key|token)(?:\.{3}|\u2026|x{3,}|\*{3,})
    """
)
_PLACEHOLDER_PATH = re.compile(
    r"(?i)(?:[A-Z]:)?[/\\]?(?:absolute[/\\]|full[/\\])?(?:path[/\\]to)\b.*|(?:[A-Z]:)?[/\\]your\b.*"
    r"|(?:[A-Z]:)?[/\\](?:Users|home)[/\\](?:you|user|username|your[\w-]*|<[^>]*>)(?:[/\\].*)?"
)
_GENERIC = re.compile(
    r"(?:^(?:mcp[-_.]?server|server|mcp)[-_.])|(?:[-_.](?:mcp[-_.]?server|server[-_.]?mcp|mcp|server)$)"
)


class UnclearSourceError(UsageError):
    """Raised if a text names no server, or not clearly one. Its hint says what to do."""

    code = "unclear_source"


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that the user has to give. `keys` lead to it in the entry; `placeholder` is the text to replace."""

    name: str
    keys: Keys
    placeholder: str
    description: str = ""
    secret: bool = False
    required: bool = True
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """One server that was recognized. `kind`: the form it was read from, for people. `left_out`: keys that were
    ignored.

    `entry` is in the keys of servers.yaml.
    """

    name: str
    entry: Entry
    kind: str
    wants: tuple[Variable, ...] = ()
    left_out: tuple[str, ...] = ()
    description: str = ""
    more: Mapping[str, str] = field(default_factory=dict)


def with_value(entry: Entry, variable: Variable, value: str) -> Entry:
    """Return the entry with `value` in place of a variable's placeholder; without the variable if `value` is empty."""
    head, *rest = variable.keys
    if not rest:
        return {**entry, str(head): _replaced(entry[str(head)], variable.placeholder, value)}
    inner = entry[str(head)]
    key = rest[0]
    if isinstance(inner, list):
        assert isinstance(key, int)
        return {
            **entry,
            str(head): [
                _replaced(one, variable.placeholder, value) if at == key else one for at, one in enumerate(inner)
            ],
        }
    changed = {name: _replaced(one, variable.placeholder, value) if name == key else one for name, one in inner.items()}
    if not value:
        del changed[key]
    kept = {name: one for name, one in entry.items() if name != head}
    return kept | ({str(head): changed} if changed else {})


def _replaced(text: str, placeholder: str, value: str) -> str:
    return text.replace(placeholder, value, 1) if placeholder else value


def wanted(entry: Entry) -> tuple[Variable, ...]:
    """Return the placeholders of an entry, as authors write them, in the order in which the user is asked for them."""
    found: list[Variable] = []
    for place in ("env", "headers"):
        for name, value in (entry.get(place) or {}).items():
            if isinstance(value, str) and (mark := placeholder_in(value)) is not None:
                found.append(Variable(str(name), (place, str(name)), mark, secret=True))
    for at, word in enumerate(entry.get("args") or []):
        if isinstance(word, str) and (mark := placeholder_in(word)) is not None:
            before = entry["args"][at - 1] if at else ""
            name = word.partition("=")[0] if "=" in word else before if str(before).startswith("-") else mark
            plain = str(name).lstrip("-")
            found.append(
                Variable(plain, ("args", at), mark, secret=redacted(f"{plain}=plain-value") != f"{plain}=plain-value")
            )
    for key in ("command", "url"):
        text = entry.get(key)
        if isinstance(text, str) and (mark := placeholder_in(text)) is not None:
            found.append(Variable(key, (key,), mark))
    return tuple(found)


def placeholder_in(text: str) -> str | None:
    """Return the part of a text that is a placeholder; "" for an empty text; None if the text is a value."""
    if not text.strip():
        return text
    if _PLACEHOLDER.fullmatch(text) or _PLACEHOLDER_PATH.fullmatch(text):
        return text
    for part in re.split(r"(?<=[=:/?&])|\s+", text):
        part = part.strip("\"'/?&")
        if part and (re.fullmatch(r"<[^<>]{1,80}>|\{\{[^{}]{1,80}\}\}|[A-Z_]*YOUR_[A-Z_]+|YOUR-[A-Z-]+", part)):
            return part
    head, _, rest = text.partition(" ")
    if rest and head.lower() in ("bearer", "basic", "token") and _PLACEHOLDER.fullmatch(rest):
        return rest
    name, mark, value = text.partition("=")
    if (
        mark
        and re.fullmatch(r"-{0,2}\w[\w-]*", name)
        and (_PLACEHOLDER.fullmatch(value) or _PLACEHOLDER_PATH.fullmatch(value))
    ):
        return value
    return None


def name_for(entry: Mapping[str, Any]) -> str:
    """Return a name for a server that has none, from its package, program or address."""
    url = entry.get("url")
    if isinstance(url, str):
        return name_of_url(url)
    words = [str(entry.get("command") or ""), *(str(arg) for arg in entry.get("args") or [])]
    return name_of_package(package_of(words) or PurePosixPath(words[0].replace("\\", "/")).stem)


def name_of_package(package: str) -> str:
    """Return `filesystem` for `@modelcontextprotocol/server-filesystem@1.2.3`."""
    bare = re.sub(r"(?<=.)(?:@|==).*$|\[.*\]$", "", package)
    scope, _, last = bare.rpartition("/")
    last = last.partition(":")[0]
    short = last
    while (cut := _GENERIC.sub("", short)) not in ("", short):
        short = cut
    if short.lower() in ("mcp", "server", "mcp-server", ""):
        short = scope.rpartition("/")[2].lstrip("@") or last
    return re.sub(r"[^A-Za-z0-9._-]+", "-", short).strip("-._")[:LONGEST_NAME] or "server"


_WITH_VALUE = {
    "npx": {"-p", "--package", "-c", "--call"},
    "uvx": {"--from", "--with", "--python", "-p", "--index", "--index-url", "--extra-index-url"},
    "docker": {"-e", "--env", "-v", "--volume", "--mount", "--name", "-p", "--publish", "--network", "--add-host",
               "--env-file", "-w", "--workdir", "-u", "--user", "--pull", "--platform", "--entrypoint", "--memory",
                "--cpus"},
}  # fmt: skip


def package_of(words: list[str]) -> str:
    """Return the package or image that a command line runs, or "" if it cannot be determined."""
    if not words:
        return ""
    program = PurePosixPath(words[0].replace("\\", "/")).name.lower().removesuffix(".exe").removesuffix(".cmd")
    rest = words[1:]
    if program in ("pnpm", "yarn", "bun", "npm") and rest[:1] and rest[0] in ("dlx", "x", "exec"):
        program, rest = "npx", rest[1:]
    if program in ("bunx", "pnpx"):
        program = "npx"
    if (program == "pipx" and rest[:1] == ["run"]) or (program == "uv" and rest[:2] == ["tool", "run"]):
        program, rest = "uvx", rest[1 if program == "pipx" else 2 :]
    if program == "podman":
        program = "docker"
    if program == "docker":
        rest = rest[1:] if rest[:1] == ["run"] else []
    options = _WITH_VALUE.get(program)
    if options is None:
        return ""
    chosen = ""
    at = 0
    while at < len(rest):
        word = rest[at]
        if word in ("--package", "-p", "--from") and program != "docker" and at + 1 < len(rest):
            chosen = rest[at + 1]
        if word.startswith("--package=") or word.startswith("--from="):
            chosen = word.partition("=")[2]
        if word == "--":
            at += 1
            continue
        if word.startswith("-"):
            at += 2 if word in options else 1
            continue
        return chosen or word
    return chosen
