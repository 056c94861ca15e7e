"""The default settings."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from trayapp.model.config import EXPOSE_MODES, PREFIX_MODES, HistorySettings, HttpSettings, Profile, Settings

DEFAULTS = {
    "expose": "auto", "defer_above": 15, "tool_prefix": "server", "idle_timeout": 10, "health_interval": 30,
    "failure_backoff": 60, "connect_timeout": 30, "request_timeout": 0, "linger": 10, "result_limit": 50 * 1024,
    "http": HttpSettings(True, 7461), "imports": (), "profiles": {}, "synonyms": {}, "token_store": "keyring",
    "approve_changes": "ask", "suspicious": "note", "write_tools": "all", "update_check": False,
    "registry": "https://registry.modelcontextprotocol.io", "min_age": 3,
    "client_metadata_url": None, "ask": "auto", "ask_timeout": 120, "confine": None,
    "history": HistorySettings(True, True, 30.0, 50_000_000),
}  # fmt: skip


@pytest.mark.parametrize("key", sorted(Settings.__dataclass_fields__))
def test_a_setting_that_is_not_given_has_its_default(key: str) -> None:
    assert getattr(Settings(), key) == DEFAULTS[key]


def test_the_modes_are_those_of_the_product() -> None:
    assert set(EXPOSE_MODES) == {"auto", "tools", "search"}
    assert set(PREFIX_MODES) == {"server", "short", "none", "mcp"}


def test_an_empty_profile_narrows_nothing() -> None:
    assert Profile() == Profile(servers=None, expose=None, include_tools=(), exclude_tools=())


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().expose = "tools"  # type: ignore[misc]
