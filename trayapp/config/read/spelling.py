"""Spellings of keys: snake_case, camelCase, kebab-case, other programs' names, times with a unit in the name."""

from __future__ import annotations

import re
from typing import NamedTuple

SERVERS_KEYS = frozenset(("servers", "mcp_servers"))

SERVER_KEYS = frozenset(
    [
        "command", "args", "env", "cwd", "inherit_env", "url", "type", "headers", "auth", "bearer_token_env",
        "client_id", "client_secret", "scopes", "account", "callback_port", "disabled", "enabled", "lifecycle",
        "always_on", "idle_timeout", "scope", "connect_timeout", "request_timeout", "title", "tools", "include_tools",
        "exclude_tools", "direct_tools", "expose_resources", "new_tools", "ask", "confine", "lock",
    ]
)  # fmt: skip
SETTING_KEYS = frozenset(
    [
        "expose", "defer_above", "tool_prefix", "idle_timeout", "health_interval", "failure_backoff", "connect_timeout",
        "request_timeout", "linger", "result_limit", "http", "imports", "profiles", "synonyms", "token_store",
        "approve_changes", "suspicious", "update_check", "client_metadata_url", "write_tools", "ask", "ask_timeout",
        "confine", "history", "registry", "min_age",
    ]
)  # fmt: skip
HTTP_KEYS = frozenset(("enabled", "port", "token"))
HISTORY_KEYS = frozenset(("enabled", "arguments", "keep", "size"))
PROFILE_KEYS = frozenset(("servers", "expose", "include_tools", "exclude_tools"))
TOOL_KEYS = frozenset(("enabled", "stale", "ask"))
TOOL_NOTES = frozenset(("description",))  # for people; clients are served the server's own description

# names that other programs use for the same thing (Codex, OpenCode, Windsurf, Gemini, Cline)
ALIASES = {
    "bearer_token_env_var": "bearer_token_env",
    "http_headers": "headers",
    "environment": "env",
    "server_url": "url",
    "http_url": "url",
    "transport": "type",
    "transport_type": "type",
    "working_directory": "cwd",
    "enabled_tools": "include_tools",
    "allowed_tools": "include_tools",
    "disabled_tools": "exclude_tools",
    "startup_timeout": "connect_timeout",
    "tool_timeout": "request_timeout",
}
# keys whose value is a time, and the unit of a bare number in it
TIMES = {
    "idle_timeout": "min",
    "linger": "min",
    "connect_timeout": "s",
    "request_timeout": "s",
    "health_interval": "s",
    "failure_backoff": "s",
    "ask_timeout": "s",
}
_SAME = {"enabled": "disabled", "always_on": "lifecycle"}  # pairs of keys with one meaning
_UNIT = re.compile(r"(.+)_(ms|millis|milliseconds|s|secs?|seconds|mins?|minutes)")


class Spelling(NamedTuple):
    """The canonical name of a key, and the unit in its spelling, if any."""

    name: str
    unit: str | None = None


def snake(key: str) -> str:
    """Return `idle_timeout` for `idleTimeout`, `idle-timeout` and `idle_timeout`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).replace("-", "_").lower()


def spelled(key: str, known: frozenset[str]) -> Spelling | None:
    """Return which of the `known` keys is meant, or None."""
    name = snake(key)
    name = ALIASES.get(name, name)
    if name in known:
        return Spelling(name)
    timed = _UNIT.fullmatch(name)
    if timed is None:
        return None
    name = ALIASES.get(timed[1], timed[1])
    return Spelling(name, timed[2]) if name in known and name in TIMES else None


def field_of(key: str) -> str:
    """Return the canonical name of a server's key, shared by its spellings and its synonym; an unknown key as is."""
    spelling = spelled(key, SERVER_KEYS)
    return _SAME.get(spelling.name, spelling.name) if spelling else key


def is_extension(key: str) -> bool:
    """Return True for the user's own keys, for anchors: `x-anything`."""
    return key.startswith("x-")


def is_servers_key(key: str) -> bool:
    """Return True for `servers`, `mcpServers`, `mcp-servers`, `mcp_servers`."""
    return snake(key) in SERVERS_KEYS
