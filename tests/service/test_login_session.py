"""Tests of finding the variables of the user's session in a process that was started without them."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from trayapp.service.login_session import BUS, RUNTIME, find_login_session

pytestmark = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="only Linux has such a folder")


@pytest.fixture
def runtime(home: Path) -> Path:
    """Create this user's runtime folder with a bus socket below `home`, and return it."""
    folder = home / str(os.getuid())
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "bus"))
    return folder


def found(home: Path, **environ: str) -> dict[str, str]:
    """Return the environment after `find_login_session` has completed it."""
    find_login_session(environ, str(home))
    return environ


@pytest.mark.requirement("desk-session-found")
def test_the_users_own_runtime_folder_and_bus_are_found(home: Path, runtime: Path) -> None:
    assert found(home) == {RUNTIME: str(runtime), BUS: f"unix:path={runtime}/bus"}
    assert found(home, **{RUNTIME: str(runtime)})[BUS] == f"unix:path={runtime}/bus"


def test_what_is_set_stays_even_if_it_is_empty(home: Path, runtime: Path) -> None:
    assert found(home, **{RUNTIME: str(runtime), BUS: ""})[BUS] == ""
    assert found(home, **{RUNTIME: "", BUS: "x"}) == {RUNTIME: "", BUS: "x"}


def test_what_is_no_socket_is_no_bus(home: Path, runtime: Path) -> None:
    (runtime / "bus").unlink()
    (runtime / "bus").write_text("")
    assert found(home) == {RUNTIME: str(runtime)}


def test_without_a_session_nothing_is_set(home: Path) -> None:
    assert found(home) == {}


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_or_bus_is_not_used(home: Path, runtime: Path) -> None:
    os.chown(runtime / "bus", 1, 1)
    assert found(home) == {RUNTIME: str(runtime)}
    os.chown(runtime, 1, 1)
    assert found(home) == {}
