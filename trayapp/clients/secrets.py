"""Secrets that stand in clear text in a server's entry: found by name and shape, and taken out for the keyring.

Never here: the keyring. No value ever gets into a text that is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trayapp.config.urls import has_variable
from trayapp.model.redact import redacted

_SCHEME = re.compile(r"(?i)((?:bearer|basic|token|apikey|bot)\s+)(\S.*)", re.DOTALL)
_FLAG = re.compile(r"(--?[A-Za-z][\w-]*=)(.+)", re.DOTALL)
_BARE_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
_NOT_IN_NAME = re.compile(r"[\s:{}$]+")

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Secret:
    """One value that should not stand in a file. `name`: in the keyring; `where`: for people."""

    name: str
    where: str
    value: str = field(repr=False)


def secrets_of(server: str, entry: Entry) -> list[Secret]:
    """The secrets that stand in clear text in an entry's env, headers and args."""
    found: list[Secret] = []

    def keep(secret: Secret) -> str:
        found.append(secret)
        return secret.value

    _walk(server, entry, keep)
    return found


def without_secrets(server: str, entry: Entry) -> dict[str, Any]:
    """The entry with `${keyring:NAME}` in the place of each of them."""
    return _walk(server, entry, lambda secret: f"${{keyring:{secret.name}}}")


def _walk(server: str, entry: Entry, become: Callable[[Secret], str]) -> dict[str, Any]:
    changed = dict(entry)
    for key, mark in (("env", "="), ("headers", ": ")):
        values = entry.get(key)
        if isinstance(values, Mapping):
            changed[key] = {name: _value(server, str(name), value, mark, become) for name, value in values.items()}
    args = entry.get("args")
    if isinstance(args, list):
        changed["args"] = [_argument(server, args, at, become) for at in range(len(args))]
    return changed


def _value(server: str, name: str, value: Any, mark: str, become: Callable[[Secret], str]) -> Any:
    if not isinstance(value, str) or has_variable(value) or redacted(f"{name}{mark}{value}") == f"{name}{mark}{value}":
        return value
    scheme = _SCHEME.fullmatch(value) if mark == ": " else None
    head, secret = (scheme[1], scheme[2]) if scheme else ("", value)
    return head + become(_secret(server, name, secret))


def _argument(server: str, args: list[Any], at: int, become: Callable[[Secret], str]) -> Any:
    """A word of a command line: after a flag that names a secret, behind its `=`, or one that shows by its shape."""
    word = args[at]
    if not isinstance(word, str) or has_variable(word):
        return word
    flag = _FLAG.fullmatch(word)
    if flag:
        clean = redacted(word) == word
        return word if clean else flag[1] + become(_secret(server, flag[1].strip("-="), flag[2]))
    before = args[at - 1] if at and isinstance(args[at - 1], str) and _BARE_FLAG.fullmatch(args[at - 1]) else ""
    shown = f"{before} {word}" if before else word
    if redacted(shown) == shown:
        return word
    return become(_secret(server, before.lstrip("-") or f"argument-{at + 1}", word))


def _secret(server: str, name: str, value: str) -> Secret:
    return Secret(_NOT_IN_NAME.sub("-", f"{server}.{name}"), name, value)
