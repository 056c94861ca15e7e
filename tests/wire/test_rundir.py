"""Tests of the runtime folder, which gateway and shim find in the same place and which no other user may own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from trayapp.config.paths import find_paths
from trayapp.wire.rundir import SOCKET_PATH_LIMIT, run_dir, socket_folder, socket_path

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="XDG's folders are Linux's")
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no Unix socket here")

HOMES = ["here", "~/there", "~", ".", "a/../b", "  spaced out  ", "~nobody-at-all/x", "/abs/./x/", "/abs//x"]


@pytest.mark.requirement("path-home-moves-all")
@pytest.mark.parametrize("home", HOMES)
def test_it_lies_beside_servers_yaml_in_multi_mcp_home(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "me"))
    environ = {"MULTI_MCP_HOME": home, "XDG_RUNTIME_DIR": str(tmp_path)}
    config = os.path.normpath(find_paths(environ).config_file.parent)
    assert run_dir(environ) == str(Path(config) / "run")


@pytest.fixture
def without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give this process a temporary home, and return the runtime folder for an environment without variables."""
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    own = Path(f"/run/user/{os.getuid()}")
    return str(own / "multi-mcp" if own.is_dir() else tmp_path / "me" / ".cache" / "multi-mcp" / "run")


@linux_only
def test_a_sessions_runtime_folder_is_used(tmp_path: Path) -> None:
    assert run_dir({"XDG_RUNTIME_DIR": str(tmp_path)}) == str(tmp_path / "multi-mcp")
    assert run_dir({"XDG_RUNTIME_DIR": str(tmp_path), "MULTI_MCP_HOME": " "}) == str(tmp_path / "multi-mcp")


@linux_only
def test_without_one_it_is_where_the_session_has_it_or_in_the_home_folder(without: str) -> None:
    assert run_dir({}) == without


@linux_only
@pytest.mark.parametrize("value", ["", "relative", "{}/missing", "{}/file"])
def test_a_runtime_folder_that_is_no_folder_is_passed_over(value: str, tmp_path: Path, without: str) -> None:
    (tmp_path / "file").touch()
    assert run_dir({"XDG_RUNTIME_DIR": value.format(tmp_path)}) == without


@linux_only
def test_a_runtime_folder_of_another_user_is_passed_over(tmp_path: Path, without: str) -> None:
    theirs = Path("/usr")  # owned by root. If we are root, a folder of another user is created instead
    if os.getuid() == 0:
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        os.chown(theirs, 65534, 65534)
    assert run_dir({"XDG_RUNTIME_DIR": str(theirs)}) == without


# -- a path that is too long for a socket ------------------------------------------------------------------------


@posix_only
def test_a_short_path_has_its_socket_inside(tmp_path: Path) -> None:
    assert socket_folder("/run/user/1000/multi-mcp") == "/run/user/1000/multi-mcp"
    longest = "/" + "d" * (SOCKET_PATH_LIMIT - len("/gateway.sock") - 1)
    assert socket_path(longest) == f"{longest}/gateway.sock"
    assert len(os.fsencode(socket_path(longest))) == SOCKET_PATH_LIMIT
    assert socket_folder(f"{longest}d") != f"{longest}d"


@posix_only
def test_a_long_path_has_a_short_private_place_of_its_own(long_run: str) -> None:
    path = socket_path(long_run)
    assert len(os.fsencode(path)) <= SOCKET_PATH_LIMIT
    assert str(os.getuid()) in path
    assert path == socket_path(long_run)
    assert path != socket_path(f"{long_run}2")
    assert len(os.fsencode(socket_path("ü" * SOCKET_PATH_LIMIT))) <= SOCKET_PATH_LIMIT


@posix_only
def test_the_short_place_is_used_when_it_is_ours_alone(long_run: str) -> None:
    Path(socket_folder(long_run)).mkdir(mode=0o700)
    assert socket_path(long_run) == f"{socket_folder(long_run)}/gateway.sock"


@posix_only
@pytest.mark.parametrize("mode", [0o777, 0o750, 0o701])
def test_a_short_place_that_others_may_enter_is_refused(long_run: str, mode: int) -> None:
    place = Path(socket_folder(long_run))
    place.mkdir()
    place.chmod(mode)
    with pytest.raises(PermissionError):
        socket_path(long_run)


@posix_only
def test_a_short_place_that_is_a_link_is_refused(long_run: str, tmp_path: Path) -> None:
    target = tmp_path / "private"
    target.mkdir(mode=0o700)
    Path(socket_folder(long_run)).symlink_to(target)
    with pytest.raises(PermissionError):
        socket_path(long_run)


@posix_only
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a folder away")
def test_a_short_place_of_another_user_is_refused(long_run: str) -> None:
    place = Path(socket_folder(long_run))
    place.mkdir(mode=0o700)
    os.chown(place, 65534, 65534)
    with pytest.raises(PermissionError):
        socket_path(long_run)
