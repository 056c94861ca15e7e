"""Heavy imports: the SDK and the keyring are loaded only when a sign-in or a secret needs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("keyring", "secretstorage", "cryptography", "mcp", "httpx2", "pydantic")
LOAD = (
    f"import sys, trayapp.gateway.main, trayapp.cli.auth, trayapp.cli.secret; print(*(set(sys.modules) & set({HEAVY})))"
)

HTTP = """
import sys, trayapp.backends.http.streamable, trayapp.gateway.http.server
print('mcp' in sys.modules, 'pydantic' in sys.modules)
"""


@pytest.mark.requirement("proc-import-weight")
def test_servers_over_http_do_not_load_the_sdk() -> None:
    """Importing the SDK takes 0.6 s and 35 MiB, which would delay the first lists."""
    done = subprocess.run([sys.executable, "-c", HTTP], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


SIGN_IN = """
import anyio, sys
from trayapp.auth.accounts import load_login
anyio.run(load_login)
from trayapp.auth import login
import mcp
from mcp.client import Client
assert mcp.Client is Client and hasattr(login, "authorize")
"""


def test_a_sign_in_loads_the_whole_sdk() -> None:
    """Loading the sign-in code leaves no package of the SDK partly imported."""
    subprocess.run([sys.executable, "-W", "error", "-c", SIGN_IN], check=True)


@pytest.mark.requirement("proc-import-weight")
def test_neither_gateway_nor_verbs_load_a_keyring_or_the_sdk_before_it_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
