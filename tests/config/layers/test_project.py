"""A project's file is found from the session's folder upwards, and read once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trayapp.config.layers.overlay import preview
from trayapp.config.layers.project import ProjectFile, find_project, read_project
from trayapp.config.problems import UnparsableError
from trayapp.config.read.parse import parse
from trayapp.model.errors import StorageError
from trayapp.model.plan import Config


def put(folder: Path, name: str = ".multi-mcp.yaml", text: str = "servers: {}\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """home/a/b/c, resolved."""
    (tmp_path / "home" / "a" / "b" / "c").mkdir(parents=True)
    return tmp_path.resolve()


@pytest.mark.requirement("project-found")
def test_the_nearest_file_counts(tree: Path) -> None:
    home = tree / "home"
    deep = home / "a" / "b" / "c"
    assert find_project(deep, home) is None
    outer = put(home / "a", ".mcp.json", "{}")
    assert find_project(deep, home) == outer
    inner = put(home / "a" / "b")
    assert find_project(deep, home) == inner
    assert find_project(home / "a", home) == outer


@pytest.mark.requirement("project-found")
def test_in_one_folder_our_own_name_counts_first(tree: Path) -> None:
    put(tree / "home" / "a", ".mcp.json", "{}")
    own = put(tree / "home" / "a")
    assert find_project(tree / "home" / "a", tree / "home") == own


@pytest.mark.requirement("project-found")
def test_the_search_ends_with_the_home_folder(tree: Path) -> None:
    above = put(tree)
    assert find_project(tree / "home" / "a", tree / "home") is None
    own = put(tree / "home")
    assert find_project(tree / "home" / "a" / "b", tree / "home") == own
    assert find_project(tree, tree / "home") == above


def test_outside_the_home_folder_it_goes_up_to_the_root(tree: Path) -> None:
    above = put(tree)
    assert find_project(tree / "home" / "a" / "b", tree / "elsewhere") == above


def test_folders_and_pipes_of_that_name_are_no_files(tree: Path) -> None:
    (tree / "home" / "a" / ".multi-mcp.yaml").mkdir()
    os.mkfifo(tree / "home" / "a" / ".mcp.json")
    assert find_project(tree / "home" / "a", tree / "home") is None


def test_a_link_to_a_folder_is_the_folder(tree: Path) -> None:
    file = put(tree / "home" / "a")
    (tree / "link").symlink_to(tree / "home" / "a")
    assert find_project(tree / "link", tree / "home") == file


@pytest.mark.parametrize("folder", ["/nowhere/at/all", "a", "/a\0b"])
def test_odd_folders_have_no_project(folder: str, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree / "home")
    put(tree / "home" / "a")
    assert find_project(Path(folder), tree) is None


def test_a_file_is_its_bytes(tree: Path) -> None:
    path = put(tree, text="servers: {a: {command: x}}\n")
    file = read_project(path)
    assert file is not None
    assert (file.path, file.folder, file.data) == (path, tree, b"servers: {a: {command: x}}\n")
    assert file.digest == ProjectFile(tree / "other", file.data).digest
    assert file.digest != ProjectFile(path, file.data + b" ").digest


def test_a_file_that_went_away_is_none_and_one_that_is_none_says_so(tree: Path) -> None:
    assert read_project(tree / ".mcp.json") is None
    (tree / ".mcp.json").mkdir()
    with pytest.raises(StorageError, match="not a file"):
        read_project(tree / ".mcp.json")


def test_only_json_loses_its_comments_and_keeps_its_places() -> None:
    text = b'{ // one\n "a": "// kept", /* two\n */ "b": [1,],\n}'
    assert ProjectFile(Path("/p/.mcp.json"), text).text().split("\n")[1] == ' "a": "// kept",       '
    assert len(ProjectFile(Path("/p/.mcp.json"), text).text()) == len(text)
    assert ProjectFile(Path("/p/.multi-mcp.yaml"), b"a: //x\n").text() == "a: //x\n"


@pytest.mark.parametrize(
    ("entry", "args"),
    [
        (r'{"command": "x", "args": ["\ud83d\ude00"]}', ("\U0001f600",)),
        (r'{"command": "x", "env": {"\ud83d\ude00": "\ud83d\ude00"}}', ()),
        ('{"command": "x", "env": {"%s": "1"}}' % ("N" * 1100), ()),
        (r'{"command": "x", "args": ["a\/b"]}', ("a/b",)),
        ('{\n\t"command": "x",\n\t"args": ["\x7f"]}', ("\x7f",)),
    ],
)
def test_good_json_is_read_where_it_is_no_yaml(tmp_path: Path, entry: str, args: tuple[str, ...]) -> None:
    path = tmp_path / ".mcp.json"
    odd = r'{"command": "x", "args": ["\ud83d"]}'
    path.write_text(
        f'{{"mcpServers": {{\n"a": {{"command": "y"}},\n"odd": {odd},\n"s": {entry}\n}}}}', encoding="utf-8"
    )
    file = read_project(path)
    assert file is not None
    made = preview(Config(), file)
    assert made.named == ("a", "s")
    assert made.config.servers["s"].args == args
    assert made.config.servers["s"].line == 4
    (problem,) = (each for each in made.config.problems)
    assert (problem.line, problem.server, "lone surrogate" in problem.message) == (3, "odd", True)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2, "b": "\\ud83d"}', "{", '{"servers": %s}' % ("[" * 99 + "]" * 99)])
def test_what_is_no_good_json_either_is_told_as_before(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnparsableError):
        parse(text, str(tmp_path / ".mcp.json"))
