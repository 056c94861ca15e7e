"""The certificate authorities that a packaged program trusts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from certificates import name_them


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has a store of its own")
@pytest.mark.requirement("package-elsewhere")
def test_another_systems_authorities_are_named_unless_the_user_named_some(tmp_path: Path) -> None:
    theirs = tmp_path / "ca-bundle.crt"
    theirs.touch()

    def named(**environ: str) -> dict[str, str]:
        name_them(environ, (), (str(tmp_path / "none"), str(theirs)))
        return environ

    assert named() == {"SSL_CERT_FILE": str(theirs)}
    assert named(SSL_CERT_FILE="/mine") == {"SSL_CERT_FILE": "/mine"}
    assert named(SSL_CERT_DIR="/mine") == {"SSL_CERT_DIR": "/mine"}
    at_home: dict[str, str] = {}
    name_them(at_home, (str(tmp_path),) if sys.platform == "linux" else (), () if sys.platform != "linux" else ("/",))
    assert at_home == {}
