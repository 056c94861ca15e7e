"""Merging an entry over the entry below it."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.config.layers.overlay import merge_entry

CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("config-05", {"command": "cursor", "args": ["1"]}, {"env": {"A": "1"}},
     {"command": "cursor", "args": ["1"], "env": {"A": "1"}}),
    ("config-06", {"env": {"A": "1"}}, {"args": ["2"], "env": {"B": "2"}}, {"args": ["2"], "env": {"B": "2"}}),
    ("config-07", {"command": "c", "args": ["1"]}, {"url": "https://z"}, {"url": "https://z"}),
    ("config-07, credentials", {"command": "c", "env": {"T": "s"}, "cwd": "/", "inheritEnv": False, "type": "stdio",
                                "title": "t"}, {"url": "https://z"}, {"url": "https://z", "title": "t"}),
    ("config-08", {"url": "https://a/mcp", "headers": {"Authorization": "secret"}}, {"url": "https://b/mcp"},
     {"url": "https://b/mcp"}),
    ("config-08, all", {"url": "https://a", "auth": "bearer", "bearerTokenEnv": "T", "client-secret": "s",
                        "clientId": "i", "scopes": "x", "type": "sse", "disabled": True}, {"serverUrl": "https://b"},
     {"serverUrl": "https://b", "disabled": True}),
    ("config-09", {"url": "https://a/mcp", "headers": {"Authorization": "s"}}, {"url": "https://a/mcp"},
     {"url": "https://a/mcp", "headers": {"Authorization": "s"}}),
    ("a slash more is another address", {"url": "https://a", "headers": {"A": "s"}}, {"url": "https://a/"},
     {"url": "https://a/"}),
    ("url to command", {"url": "https://a", "headers": {"A": "s"}, "env": {"E": "1"}}, {"command": "c"},
     {"env": {"E": "1"}, "command": "c"}),
    ("credentials without an address", {"headers": {"A": "s"}}, {"url": "https://a"}, {"url": "https://a"}),
    ("null is no switch", {"command": "c", "args": ["1"]}, {"url": None}, {"command": "c", "args": ["1"], "url": None}),
    ("spellings are one key", {"idleTimeout": 5, "requestTimeoutMs": 1}, {"idle-timeout": 6, "request_timeout": 2},
     {"idle-timeout": 6, "request_timeout": 2}),
    ("opposites are one key", {"disabled": True, "lifecycle": "eager"}, {"enabled": True, "always_on": False},
     {"enabled": True, "always_on": False}),
    ("unknown keys stay", {"foo": 1, "command": "c"}, {"bar": 2}, {"foo": 1, "command": "c", "bar": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("lower", "upper", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_an_entry_lies_over_another(lower: dict[str, Any], upper: dict[str, Any], expected: dict[str, Any]) -> None:
    before = (dict(lower), dict(upper))
    assert merge_entry(lower, upper) == expected
    assert (lower, upper) == before
