"""Find the secret values in a server's entry with its variables replaced, by their names or their positions.

Patterns of secret names are in model/secret_patterns. Secrets are removed from texts in model/known_secrets.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from itertools import pairwise
from urllib.parse import parse_qsl, unquote, urlsplit

from trayapp.config.interpolate import variable_names
from trayapp.model.redact import REDACTED, redacted
from trayapp.model.secret_patterns import is_random
from trayapp.model.servers import ServerConfig

_AFTER_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey|bot)\s+(\S.*)", re.DOTALL)
_USERINFO = re.compile(r"://[^/\s:@]*:([^/\s]+)@")
_PATH = re.compile(r"(?:~|\.{0,2}|[A-Za-z]:)(?:[/\\][\w.@ -]+)+")
_FLAG = re.compile(r"(--?[A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)


def secrets_in(server: ServerConfig, headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the secret values of an entry whose variables are replaced; `headers` as they are sent."""
    yield from (value for name, value in server.env.items() if _is_secret(f"{name}=", value))
    for name, value in headers.items():
        if _is_secret(f"{name}: ", value):
            yield from _of_header(value)
    yield from _of_arguments((server.command or "", *server.args))
    yield from filter(None, (server.client_secret,))
    for text in (server.url or "", *server.args, *server.env.values()):
        yield from _of_address(text)


def secret_variables(server: ServerConfig, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of environment variables that the entry, as written, uses and whose names mark them secret."""
    asked = (name for name in variable_names(server)[0] if _is_secret(f"{name}=", environ.get(name, "")))
    yield from (environ[name] for name in asked)


def _is_secret(name: str, value: str) -> bool:
    """Return True if a value after that name is redacted. The path of a secrets file is not: errors must name it."""
    if not value or (_PATH.fullmatch(value) and not any(map(is_random, re.split(r"[/\\]", value)))):
        return False
    return REDACTED in redacted(name + value)


def _of_header(value: str) -> Iterator[str]:
    scheme = _AFTER_SCHEME.fullmatch(value.strip())
    yield scheme[1] if scheme else value
    if scheme and value.lower().startswith("basic"):
        try:
            yield b64decode(scheme[1]).decode().partition(":")[2]
        except (NotBase64, ValueError):
            return


def _of_arguments(words: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        flag = _FLAG.fullmatch(word)
        if flag and flag[2] and _is_secret(f"{flag[1]}=", flag[2]):
            yield flag[2]
    for before, word in pairwise(words):
        flag = _FLAG.fullmatch(before)
        if flag and flag[2] is None and _is_secret(f"{before} ", word):
            yield word


def _of_address(text: str) -> Iterator[str]:
    """Yield the passwords and keys in a URL."""
    if "://" not in text:
        return
    for found in _USERINFO.finditer(text):
        yield from (found[1], unquote(found[1]))
    try:
        pairs = parse_qsl(urlsplit(text).query)
    except ValueError:
        return
    yield from (value for name, value in pairs if _is_secret(f"?{name}=", value))
