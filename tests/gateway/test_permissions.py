"""When it starts, a gateway makes its files private and does not trust files of other users."""

from __future__ import annotations

import logging
import os
import stat
import sys
import time
from pathlib import Path

import pytest

from tests.fixtures.registry import entry, registry
from trayapp.config.files import make_folder
from trayapp.gateway.http.port import TOKEN_BYTES, ClientTokens
from trayapp.gateway.mcp_tool.tool_dependencies import ResultFiles
from trayapp.gateway.permissions import close_to_others
from trayapp.service.logging import start_logging
from trayapp.service.registry import ServerRegistry
from trayapp.tray.start import report_update

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
def test_what_we_make_ourselves_was_never_open_to_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = os.umask(0o022)
    try:
        for number, make in enumerate((make_folder, search_registry, tell_update, keep_result, keep_log)):
            cache = tmp_path / f"home{number}" / "multi-mcp"
            make(cache / "below")
            assert {mode(place) for place in (cache.parent, cache, cache / "below")} == {0o700}
            assert close_to_others([cache]) == []
    finally:
        os.umask(before)
    assert caplog.text == ""


def search_registry(folder: Path) -> None:
    with registry(entry("com.example/files")) as server:
        assert ServerRegistry(server.address, folder, now=time.time).find("files").entries


def tell_update(folder: Path) -> None:
    report_update(lambda: {"newer": {"version": "0.2.0", "url": ""}}, bool, folder / "told")
    assert (folder / "told").is_file()


def keep_result(folder: Path) -> None:
    assert ResultFiles(folder).write("x")


def keep_log(folder: Path) -> None:
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    try:
        start_logging(folder)
    finally:
        root.level, (handler, *_) = before[0], [one for one in root.handlers if one not in before[1]]
        root.removeHandler(handler)
        handler.close()


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
