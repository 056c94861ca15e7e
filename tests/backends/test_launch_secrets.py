"""Which values of an entry are secrets. Never here: what becomes of them (tests/model/test_known_secrets.py)."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from trayapp.auth.vault import Secrets
from trayapp.backends.launch import prepare
from trayapp.backends.launch_secrets import secrets_in
from trayapp.model.redact import REDACTED, redacted
from trayapp.model.servers import ServerConfig

SECRET = "plum tree 4 lantern"


@pytest.mark.parametrize(
    "entry",
    [
        {"env": {"API_TOKEN": SECRET, "LEVEL": "debug-and-more"}},
        {"env": {"DATABASE_URL": "postgres://me:plum%20tree%204%20lantern@db/x"}},
        {"args": ("--api-key", SECRET, "--level", "debug-and-more")},
        {"args": (f"--password={SECRET}", "--level=debug-and-more")},
        {"headers": {"X-Api-Key": SECRET, "X-Team": "debug-and-more"}},
        {"headers": {"Authorization": f"Bearer {SECRET}"}},
        {"headers": {"Authorization": f"Basic {b64encode(f'me:{SECRET}'.encode()).decode()}"}},
        {"url": "https://a.example/mcp?api_key=plum%20tree%204%20lantern&level=debug-and-more"},
        {"client_secret": SECRET},
    ],
)
def test_what_an_entry_holds_under_the_name_of_a_secret_is_one(entry: dict[str, Any]) -> None:
    server = ServerConfig("one", **entry)
    found = list(secrets_in(server, server.headers))
    assert SECRET in found
    assert "debug-and-more" not in found


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("/home/me/keys/service account.json", False),
        ("~/.aws/credentials", False),
        ("C:\\Users\\me\\key.pem", False),
        ("/mXq8Zt3vN0/pLw72KdE5rY1sGh4", True),
    ],
)
def test_the_path_of_a_file_with_secrets_is_none(value: str, secret: bool) -> None:
    server = ServerConfig("one", env={"APPLICATION_CREDENTIALS": value}, args=("--password", value))
    assert list(secrets_in(server, {})) == ([value, value] if secret else [])


def test_a_secret_of_the_keyring_and_of_the_environment_is_taken_out_of_every_text() -> None:
    entry = {"STAGE": "${keyring:stage}", "LEVEL": "${MY_TOKEN}", "PLACE": "${WHERE}"}
    server = ServerConfig("one", command="/bin/sh", env=entry, inherit_env=False)
    environ = {"MY_TOKEN": "green-8-elephants", "WHERE": "in-the-garden", "OTHER_TOKEN": "of-somebody-else-1"}
    prepare(server, environ, Secrets({"stage": "curtain-up-now"}))
    assert redacted("curtain-up-now and green-8-elephants") == f"{REDACTED} and {REDACTED}"
    assert redacted("in-the-garden") == "in-the-garden"
