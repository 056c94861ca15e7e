"""Find clear-text secrets in a server's entry, by name and shape, and replace them with keyring references."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from trayapp.config.urls import has_variable
from trayapp.model.redact import redacted

_SCHEME = re.compile(r"(?i)((?:bearer|basic|token|apikey|bot)\s+)(\S.*)", re.DOTALL)
_PAIR = re.compile(r"((?:--?)?[A-Za-z_][\w-]*=)(.+)", re.DOTALL)  # --token=x, or after `docker run -e`: TOKEN=x
_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*:(?!//)\s*)(.+)", re.DOTALL)  # after `--header`: Authorization: Bearer x
_BARE_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
_QUERY = re.compile(r"(?<=[?&])([^=&#]+)=([^&#]+)")
_STEP = re.compile(r"(?<=[^/:]/)[^/?#]+")  # a path segment, where some services put the key
_NOT_IN_NAME = re.compile(r"[\s:{}$]+")

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret value in a file. `name`: its name in the keyring; `where`: its place in the entry, for display."""

    name: str
    where: str
    value: str = field(repr=False)


def secrets_of(server: str, entry: Entry, taken: Collection[str] = ()) -> list[Secret]:
    """Return the clear-text secrets in an entry, each under a separate name that is not in `taken`."""
    found: list[Secret] = []

    def keep(secret: Secret) -> str:
        found.append(secret)
        return secret.value

    _SecretWalk(server, keep, taken).entry(entry)
    return list({secret.name: secret for secret in found}.values())


def without_secrets(
    server: str, entry: Entry, taken: Collection[str] = (), kept: Collection[str] | None = None
) -> dict[str, Any]:
    """Return the entry with `${keyring:NAME}` in place of each secret whose name is in `kept` (None: of all)."""

    def hide(secret: Secret) -> str:
        return f"${{keyring:{secret.name}}}" if kept is None or secret.name in kept else secret.value

    return _SecretWalk(server, hide, taken).entry(entry)


def secret_name(server: str, name: str) -> str:
    """Return the name under which the keyring keeps a server's secret."""
    return _NOT_IN_NAME.sub("-", f"{server}.{name}")


class _SecretWalk:
    def __init__(self, server: str, become: Callable[[Secret], str], taken: Collection[str]) -> None:
        self._server = server
        self._become = become
        self._taken = taken
        self._values: dict[str, str] = {}  # name -> value: two values never share a name

    def entry(self, entry: Entry) -> dict[str, Any]:
        changed = dict(entry)
        for key, mark in (("env", "="), ("headers", ": ")):
            if isinstance(values := entry.get(key), Mapping):
                changed[key] = {name: self._value(str(name), value, mark) for name, value in values.items()}
        if isinstance(args := entry.get("args"), list):
            changed["args"] = [self._argument(args, at) for at in range(len(args))]
        if isinstance(entry.get("url"), str):
            changed["url"] = self._url(entry["url"])
        if isinstance(secret := entry.get("client_secret"), str) and secret and not has_variable(secret):
            changed["client_secret"] = self._secret("client_secret", secret)
        return changed

    def _value(self, name: str, value: Any, mark: str) -> Any:
        if not isinstance(value, str) or has_variable(value) or _is_clean(f"{name}{mark}{value}"):
            return value
        scheme = _SCHEME.fullmatch(value) if mark == ": " else None
        head, secret = (scheme[1], scheme[2]) if scheme else ("", value)
        return head + self._secret(name, secret)

    def _argument(self, args: list[Any], at: int) -> Any:
        """Return an argument with its secret replaced. Its name, the flag before it or its shape shows a secret."""
        word = args[at]
        if not isinstance(word, str) or has_variable(word):
            return word
        if "://" in word and not all(_is_clean(pair[0]) for pair in _QUERY.finditer(word)):
            return self._url(word)
        for shape, mark in ((_PAIR, "="), (_HEADER, ": ")):
            pair = shape.fullmatch(word)
            if pair and not _is_clean(word):
                return pair[1] + self._value(pair[1].strip("-=: "), pair[2], mark)
        before = args[at - 1] if at and isinstance(args[at - 1], str) and _BARE_FLAG.fullmatch(args[at - 1]) else ""
        if _is_clean(f"{before} {word}" if before else word):
            return word
        return self._secret(before.lstrip("-") or f"argument-{at + 1}", word)

    def _url(self, url: str) -> str:
        """Return the URL with the secrets in its path and query replaced. Percent escapes in a secret stay escapes."""
        way, mark, rest = url.partition("?")
        way = _STEP.sub(
            lambda step: step[0] if has_variable(step[0]) or _is_clean(step[0]) else self._secret("url", step[0]), way
        )
        return way + _QUERY.sub(lambda pair: f"{pair[1]}={self._value(pair[1], pair[2], '=')}", mark + rest)

    def _secret(self, name: str, value: str) -> str:
        plain = secret_name(self._server, name)
        names = (one for n in count(1) if (one := f"{plain}-{n}" if n > 1 else plain) not in self._taken)
        free = next(one for one in names if self._values.setdefault(one, value) == value)
        return self._become(Secret(free, name, value))


def _is_clean(text: str) -> bool:
    return redacted(text) == text
