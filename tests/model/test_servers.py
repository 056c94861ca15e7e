"""The settings that identify the process or connection of an entry."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.model.config import (
    LAUNCH_FIELDS,
    LIFECYCLES,
    STARTS_AT_ONCE,
    ServerConfig,
    ToolSwitch,
    launch_hash,
    launch_settings,
)

STDIO = ServerConfig("s", command="npx", args=("-y", "x"), env={"TOKEN": "${TOKEN}"}, cwd="~/src")
HTTP = ServerConfig("s", url="https://x/mcp", headers={"X": "${X}"})

RELAUNCHES: list[dict[str, Any]] = [
    {"command": "node"},
    {"args": ("-y",)},
    {"env": {"TOKEN": "${OTHER}"}},
    {"env": {}},
    {"cwd": None},
    {"inherit_env": False},
    {"url": "https://y"},
    {"type": "sse"},
    {"headers": {"X": "1"}},
    {"auth": "oauth"},
    {"bearer_token_env": "T"},
    {"account": "work"},
]
ADJUSTS: list[dict[str, Any]] = [
    {"name": "other"},
    {"disabled": True},
    {"lifecycle": "eager"},
    {"idle_timeout": 5.0},
    {"connect_timeout": 5.0},
    {"request_timeout": 5.0},
    {"title": "t"},
    {"tools": {"a": ToolSwitch()}},
    {"include_tools": ("a",)},
    {"exclude_tools": ("a",)},
    {"direct_tools": True},
    {"expose_resources": False},
    {"new_tools": "disabled"},
    {"ask": "all"},
    {"callback_port": 7462},
    {"lock": False},
    {"line": 7},
]


@pytest.mark.parametrize("change", RELAUNCHES)
@pytest.mark.parametrize("server", [STDIO, HTTP])
def test_another_launch_setting_is_another_launch(server: ServerConfig, change: dict[str, Any]) -> None:
    changed = replace(server, **change)
    if changed != server:
        assert launch_settings(changed) != launch_settings(server)
        assert launch_hash(changed) != launch_hash(server)


@pytest.mark.parametrize(
    "change", [{"client_id": "i"}, {"client_secret": "s"}, {"scopes": ("a",)}, {"scope": "session"}]
)
def test_what_only_concerns_the_connection_keeps_the_catalog(change: dict[str, Any]) -> None:
    assert launch_settings(replace(HTTP, **change)) != launch_settings(HTTP)
    assert launch_hash(replace(HTTP, **change)) == launch_hash(HTTP)


@pytest.mark.requirement("file-unchanged-run-on")
@pytest.mark.parametrize("change", ADJUSTS)
def test_any_other_change_keeps_the_process(change: dict[str, Any]) -> None:
    assert launch_settings(replace(STDIO, **change)) == launch_settings(STDIO)
    assert launch_hash(replace(STDIO, **change)) == launch_hash(STDIO)


def test_every_field_is_in_one_of_the_lists() -> None:
    relaunching = {*LAUNCH_FIELDS, "client_id", "client_secret", "scopes", "account", "scope"}
    relaunching.add("confine")  # its effective value counts, which may come from the settings
    assert relaunching | {key for change in ADJUSTS for key in change} == set(ServerConfig.__dataclass_fields__)


@given(st.dictionaries(st.text(), st.text()))
def test_the_order_of_variables_does_not_count_and_the_hash_is_stable(env: dict[str, str]) -> None:
    one, other = (
        ServerConfig("s", command="x", env=env),
        ServerConfig("s", command="x", env=dict(reversed(env.items()))),
    )
    assert launch_hash(one) == launch_hash(other)
    assert launch_settings(one) == launch_settings(other)


@pytest.mark.requirement("cat-no-secrets")
def test_the_hash_holds_no_value() -> None:
    found = launch_hash(ServerConfig("s", url="https://x", headers={"Authorization": "hush-hush"}))
    assert "hush" not in found
    assert len(found) == len(LAUNCH_FIELDS) * 7  # a letter and 24 bits for each field


@pytest.mark.parametrize(
    ("server", "transport"),
    [(STDIO, "stdio"), (HTTP, "http"), (replace(HTTP, type="sse"), "sse"), (replace(HTTP, type="http"), "http")],
)
def test_the_transport_follows_from_the_entry(server: ServerConfig, transport: str) -> None:
    assert server.transport == transport


def test_entries_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        STDIO.command = "y"  # type: ignore[misc]
    assert set(LIFECYCLES) > STARTS_AT_ONCE
