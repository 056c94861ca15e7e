"""What a gateway pays for sign-ins and secrets that nobody uses. Never here: their behaviour."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("keyring", "secretstorage", "cryptography", "mcp", "httpx2", "pydantic")
LOAD = (
    f"import sys, trayapp.gateway.main, trayapp.cli.auth, trayapp.cli.secret; print(*(set(sys.modules) & set({HEAVY})))"
)


@pytest.mark.requirement("proc-import-weight")
def test_neither_gateway_nor_verbs_load_a_keyring_or_the_sdk_before_it_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
