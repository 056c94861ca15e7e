"""Raw entries of several files merged over each other (PRODUCT 4, Layers)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trayapp.config.read.spelling import SERVER_KEYS, spelled

Entry = Mapping[str, Any]

STDIO_FIELDS = frozenset(("command", "args", "env", "cwd", "inherit_env", "type"))
HTTP_FIELDS = frozenset(
    (
        "url",
        "type",
        "headers",
        "auth",
        "bearer_token_env",
        "client_id",
        "client_secret",
        "scopes",
        "account",
        "callback_port",
    )
)
_SAME = {"enabled": "disabled", "always_on": "lifecycle"}  # pairs of keys with one meaning


def merge_entry(lower: Entry, upper: Entry) -> dict[str, Any]:
    """Merge `upper` over `lower`, per field. A list or mapping replaces the whole lower value (config-05, 06).

    A switch between command and url, or to a different url, drops the lower fields of that transport, above all
    credentials (config-07 to 09). Different spellings of a key count as one.
    """
    hidden = {field_of(key) for key in upper} | _dropped(lower, upper)
    kept = {key: value for key, value in lower.items() if field_of(key) not in hidden}
    return kept | dict(upper)


def _dropped(lower: Entry, upper: Entry) -> frozenset[str]:
    command, url = _get(upper, "command"), _get(upper, "url")
    dropped: frozenset[str] = frozenset()
    if url is not None:
        dropped |= STDIO_FIELDS if _get(lower, "command") is not None else dropped
        dropped |= HTTP_FIELDS if _get(lower, "url") != url else dropped
    if command is not None and _get(lower, "url") is not None:
        dropped |= HTTP_FIELDS
    return dropped


def field_of(key: str) -> str:
    """Return the canonical name of a key, shared by its spellings and its synonym. An unknown key is returned as is."""
    spelling = spelled(key, SERVER_KEYS)
    return _SAME.get(spelling.name, spelling.name) if spelling else key


def _get(entry: Entry, field: str) -> Any:
    return next((value for key, value in entry.items() if field_of(key) == field), None)
