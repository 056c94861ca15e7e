"""Paths of multi-mcp's own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from trayapp.config.paths import Paths, find_paths


@pytest.mark.requirement("path-home-moves-all")
def test_one_variable_moves_everything(tmp_path: Path) -> None:
    found = find_paths({"MULTI_MCP_HOME": str(tmp_path)})
    assert found == Paths(tmp_path / "servers.yaml", tmp_path / "cache", tmp_path / "logs", tmp_path / "state")


def test_the_variable_may_be_relative_or_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_paths({"MULTI_MCP_HOME": "here"}).config_file == tmp_path / "here" / "servers.yaml"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert find_paths({"MULTI_MCP_HOME": "~/there"}).log_dir == tmp_path / "there" / "logs"
    assert find_paths({"MULTI_MCP_HOME": "~nobody-at-all/x"}).cache_dir.is_absolute()


@pytest.mark.parametrize("environ", [{}, {"MULTI_MCP_HOME": ""}, {"MULTI_MCP_HOME": "  "}])
def test_without_it_the_folders_of_the_platform_are_used(environ: dict[str, str]) -> None:
    found = find_paths(environ)
    assert found.config_file.name == "servers.yaml"
    assert all(
        "multi-mcp" in str(path) and path.is_absolute() for path in (found.config_file, found.cache_dir, found.log_dir)
    )
