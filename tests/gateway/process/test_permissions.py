"""Files of ours that others could reach are closed at the start; those of others are not trusted."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from trayapp.gateway.http.tokens import TOKEN_BYTES, ClientTokens
from trayapp.gateway.process.permissions import close_to_others

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.requirement("safe-modes")
def test_what_others_could_reach_is_closed_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file, folder, gone = tmp_path / "file", tmp_path / "folder", tmp_path / "gone"
    file.write_text("x")
    file.chmod(0o664)
    folder.mkdir()
    folder.chmod(0o755)
    assert close_to_others([file, folder, gone]) == []
    assert (mode(file), mode(folder), gone.exists()) == (0o600, 0o700, False)
    assert caplog.text.count("Removed other users' permissions") == 2
    caplog.clear()
    assert (close_to_others([file, folder]), caplog.text) == ([], "")


@pytest.mark.requirement("safe-modes")
def test_a_link_is_neither_followed_nor_trusted(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("x")
    target.chmod(0o644)
    link.symlink_to(target)
    assert (close_to_others([link]), mode(target)) == ([link], 0o644)


@pytest.mark.requirement("safe-modes")
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root may give files away")
def test_a_file_of_another_user_is_not_trusted(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    os.chown(file, 12345, 12345)
    assert close_to_others([file]) == [file]


@pytest.mark.requirement("safe-modes")
def test_a_token_that_lies_behind_a_link_is_replaced_and_one_that_is_open_is_closed(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "http-token", tmp_path / "elsewhere"
    tokens = ClientTokens(tmp_path)
    token = tokens.take(7461, 7461, [])
    path.chmod(0o644)
    assert (tokens.take(7461, 7461, []), mode(path)) == (token, 0o600)
    elsewhere.write_text("k" * TOKEN_BYTES)
    path.unlink()
    path.symlink_to(elsewhere)
    assert tokens.take(7461, 7461, []) != "k" * TOKEN_BYTES
    assert (path.is_symlink(), elsewhere.read_text()) == (False, "k" * TOKEN_BYTES)
