"""Expansion of variables, in all their spellings, and of `~`.

The caller supplies the lookups. Errors never contain values.

The spellings: `${NAME}`, `${env:NAME}`, `$env:NAME`, `{env:NAME}`, `${NAME:-default}`, `${keyring:NAME}`,
`${cmd:COMMAND}` (the command's output, without a default; the command ends at the matching brace).

Rules:
- A value is never expanded again.
- A default may contain variables, but only one level deep. In `${A:-${B:-C}}`, C is plain text.
- A default also replaces an empty value, as in a shell.
- `${` without its `}`, and braces without a name, are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from trayapp.config.urls import url_fault
from trayapp.model.config import ServerConfig
from trayapp.model.errors import COMMAND, KEYRING, ConfigError, MissingVariableError

Lookup = Callable[[str], str | None]  # a name -> its value, or None

_TOKEN = re.compile(r"\$\{|\{env:([A-Za-z_]\w*)\}|\$env:([A-Za-z_]\w*)|[{}]", re.ASCII)
_BODY = re.compile(
    r"(?:(?:env:)?(?P<env>[A-Za-z_][\w()]*)|keyring:(?P<keyring>[^\s:{}$][^:{}$]*))(?::-(?P<default>.*))?"
    r"|cmd:\s*(?P<command>\S.*?)\s*",
    re.ASCII | re.DOTALL,
)

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # the name of a header (RFC 9110, 5.1)


class ExpandedText(NamedTuple):
    """A text with its variables replaced. `missing` names the variables without a value, each replaced by ""."""

    text: str
    missing: tuple[str, ...] = ()


def expand(text: str, lookup: Lookup, keyring: Lookup) -> ExpandedText:
    """Return `text` with all its variables replaced, and the names of the missing ones. Raises nothing itself.

    `keyring` is called with the name of a secret, or `cmd:COMMAND`. A missing secret is listed as `keyring:NAME`.
    """
    expander = _Expander(lookup, keyring)
    return ExpandedText(expander.text(text), tuple(expander.missing))


class _Expander:
    """A variable expander that collects the missing variables of all its texts."""

    def __init__(self, lookup: Lookup, keyring: Lookup) -> None:
        self._lookup = lookup
        self._keyring = keyring
        self.missing: dict[str, None] = {}

    def optional(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def text(self, text: str, levels: int = 1) -> str:
        """Return the text with its variables replaced, and those in defaults up to `levels` defaults deep."""
        if "$" not in text and "{" not in text:
            return text
        ends = _closings(text)
        parts: list[str] = []
        done = 0
        for token in _TOKEN.finditer(text):
            if token.start() < done:
                continue  # inside braces that were already replaced as a whole
            end = ends.get(token.start(), token.end())
            value = self._value(token, text[token.end() : end - 1], end > token.end(), levels)
            if value is not None:
                parts += [text[done : token.start()], value]
                done = end
        return "".join(parts) + text[done:]

    def _value(self, token: re.Match[str], inside: str, closed: bool, levels: int) -> str | None:
        """Return the value of one token, or None to leave it unchanged."""
        name = token[1] or token[2]
        if name:
            return self._or_missing(self._lookup(name), name)
        body = _BODY.fullmatch(inside) if closed and token[0] == "${" else None
        if body is None:
            return None
        if body["command"]:
            name = COMMAND + body["command"]
            return self._or_missing(self._keyring(name), name)
        name = body["env"] or KEYRING + body["keyring"]
        value = self._lookup(body["env"]) if body["env"] else self._keyring(body["keyring"])
        default = body["default"]
        if default is None:
            return self._or_missing(value, name)
        return value or (self.text(default, levels - 1) if levels else default)

    def _or_missing(self, value: str | None, name: str) -> str:
        if value is None:
            self.missing[name] = None
        return value or ""


def _closings(text: str) -> dict[int, int]:
    """Return start -> end for each pair of braces: the index of its opening brace, and the index after its `}`."""
    ends: dict[int, int] = {}
    open_at: list[int] = []
    for token in _TOKEN.finditer(text):
        if token[0] in ("${", "{"):
            open_at.append(token.start())
        elif token[0] == "}" and open_at:
            ends[open_at.pop()] = token.end()
    return ends


def resolve(server: ServerConfig, environ: Mapping[str, str], keyring: Lookup, home: str) -> ServerConfig:
    """Return the server with all its variables replaced and `~` (in command and cwd) expanded to `home`.

    A variable that only the server's own `env` sets is not replaced in the arguments. The program can read it itself,
    and other users can see arguments.

    Raises MissingVariableError, which names every variable without a value. Raises ConfigError for an invalid address,
    command or header, and for characters that cannot be sent.
    """
    resolver = _Expander(environ.get, keyring)

    def given(name: str) -> str | None:
        return environ.get(name, f"${{{name}}}" if name in server.env else None)

    arguments = _Expander(given, keyring)
    arguments.missing = resolver.missing  # both expanders collect into the same dict
    resolved = replace(
        server,
        command=_at_home(resolver.optional(server.command), home),
        args=tuple(map(arguments.text, server.args)),
        env={name: resolver.text(value) for name, value in server.env.items()},
        cwd=_at_home(resolver.optional(server.cwd), home),
        url=resolver.optional(server.url),
        headers={name: resolver.text(value) for name, value in server.headers.items()},
        client_id=resolver.optional(server.client_id),
        client_secret=resolver.optional(server.client_secret),
    )
    if server.bearer_token_env and not environ.get(server.bearer_token_env):
        resolver.missing[server.bearer_token_env] = None
    if resolver.missing:
        raise MissingVariableError(list(resolver.missing))
    _check(resolved)
    return resolved


def keyring_names(server: ServerConfig) -> tuple[str, ...]:
    """Return the names of the secrets in the keyring that the server's entry refers to."""
    return tuple(name for name in variable_names(server)[1] if not name.startswith(COMMAND))


def secret_commands(server: ServerConfig) -> tuple[str, ...]:
    """Return the commands of the server's entry whose output is a secret (`${cmd:COMMAND}`)."""
    return tuple(name.removeprefix(COMMAND) for name in variable_names(server)[1] if name.startswith(COMMAND))


def variable_names(server: ServerConfig) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the environment variables and of the secrets that the entry refers to, as two tuples.

    A command for a secret is listed as `cmd:COMMAND`.
    """
    variables: dict[str, None] = {}
    secrets: dict[str, None] = {}

    def note(name: str) -> str:
        secrets[name] = None
        return "x"

    # Without a value, a variable expands to its default, so variables in the default are also found.
    resolver = _Expander(variables.setdefault, note)
    texts = [server.command, server.cwd, server.url, server.client_id, server.client_secret]
    for text in (*texts, *server.args, *server.env.values(), *server.headers.values()):
        resolver.optional(text)
    return tuple(variables), tuple(secrets)


def _at_home(path: str | None, home: str) -> str | None:
    """Return the path with `~` or `~/x` expanded to `home`. `~user/x` is left alone."""
    return home + path[1:] if path is not None and (path == "~" or path.startswith(("~/", "~\\"))) else path


def _check(server: ServerConfig) -> None:
    fault = url_fault(server.url) if server.url is not None else None
    if fault:
        raise ConfigError(f"The url of {server.name} {fault}", "Check the variables in it")
    if server.command is not None and not server.command.strip():
        raise ConfigError(f"The command of {server.name} is empty", "Check the variables in it")
    if not all(_HEADER.fullmatch(name) for name in server.headers):
        raise ConfigError(f"A header of {server.name} has a name that cannot be sent", "Use only letters, digits and -")
    texts = [("command", text) for text in (server.command or "", server.cwd or "", *server.args)]
    texts += [(f"env {name}", value) for name, value in server.env.items()]
    texts += [(f"header {name}", value) for name, value in server.headers.items()]
    for where, text in texts:
        if "\0" in text or (where.startswith("header") and re.search(r"[^\t\x20-\x7e]", text)):
            raise ConfigError(f"The {where} of {server.name} contains a character that cannot be sent", "Remove it")
