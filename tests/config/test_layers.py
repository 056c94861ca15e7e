"""Entries laid over each other."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.config.layers import merge_entry, merge_layers

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


def test_higher_layers_win() -> None:
    cursor, own, project = {"x": {"command": "1"}}, {"x": {"command": "2"}}, {"x": {"command": "3"}}
    assert merge_layers([own, project], [cursor]) == project  # config-01
    assert merge_layers([own], [cursor]) == own  # config-02


def test_the_first_import_that_has_a_name_wins_whole() -> None:
    cursor = {"same": {"command": "cursor"}}
    claude = {"same": {"command": "claude", "env": {"T": "secret"}}, "more": {"command": "m"}}
    assert merge_layers([], [cursor, claude]) == cursor | {"more": {"command": "m"}}  # config-03
    assert merge_layers([], [claude, cursor]) == claude  # config-04


def test_an_entry_that_is_no_mapping_is_kept_for_the_parser_to_name() -> None:
    assert merge_layers([{"x": {"command": "c"}}, {"x": 5}]) == {"x": 5}
    assert merge_layers([{"x": 5}, {"x": {"command": "c"}}]) == {"x": {"command": "c"}}
