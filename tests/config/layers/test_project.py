"""A project's file is searched for from the session's folder upwards, and read once with the programs that it names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from trayapp.config.layers.overlay import preview
from trayapp.config.layers.project import ProjectFile, TrustStore, find_project, read_project, untrusted_problem
from trayapp.config.problems import UnparsableError
from trayapp.config.read.parse import parse
from trayapp.model.config import Config
from trayapp.model.errors import StorageError


def put(folder: Path, name: str = ".multi-mcp.yaml", text: str = "servers: {}\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Create the folders home/a/b/c. Return the resolved folder above them."""
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


def project(folder: Path, entry: object) -> Path:
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"s": entry}}), encoding="utf-8")
    return file


def named(path: Path) -> list[str]:
    file = read_project(path)
    assert file is not None
    return [script.name for script in file.scripts]


@pytest.mark.requirement("trust-scripts")
@pytest.mark.parametrize(
    "entry",
    [
        {"command": "./run"},
        {"command": "bin/../run"},
        {"command": "./run", "cwd": "."},
        {"command": "sh", "args": ["-c", "exec ./run --fast"]},
        {"command": "sh -c 'cat x | ./run'"},
        {"command": "env", "args": ["A=b", "./run"]},
        {"command": "tool", "args": ["--exec=./run"]},
        {"command": "x", "env": {"BASH_ENV": "./run"}},
        {"command": "${NOPE:-./run}"},
        {"command": "${NOPE}./run"},
        {"command": "run", "cwd": "bin/.."},
    ],
)
def test_a_changed_program_makes_the_project_a_stranger_again(tmp_path: Path, entry: object) -> None:
    (tmp_path / "bin").mkdir()
    run = tmp_path / "run"
    run.write_text("#!/bin/sh\necho good\n")
    run.chmod(0o755)
    path = project(tmp_path, entry)
    store = TrustStore(tmp_path / "trusted.json")
    file = read_project(path)
    assert file is not None
    assert os.name == "nt" or [script.name for script in file.scripts] == ["run"]
    store.approve(file)
    assert store.check(file)
    run.write_text("#!/bin/sh\necho evil\n")
    changed = read_project(path)
    assert changed is not None
    assert os.name == "nt" or store.check(changed) is None


@pytest.mark.requirement("trust-scripts")
@pytest.mark.parametrize(
    ("entry", "files"),
    [
        ({"command": "python3", "args": ["srv/main.py"]}, ["srv/main.py"]),
        ({"command": "python3", "args": ["-m", "srv.main"]}, ["srv/main.py"]),
        ({"command": "python3", "args": ["main.py"], "cwd": "srv"}, ["srv/main.py"]),
        ({"command": "npm", "args": ["run", "mcp"]}, ["package.json"]),
        ({"command": "npx", "args": ["."]}, ["package.json"]),
        ({"command": "make mcp"}, ["Makefile"]),
        ({"command": "docker", "args": ["compose", "run", "x"]}, ["compose.yaml"]),
        ({"command": "docker", "args": ["run", "x"]}, []),
        ({"command": "npx", "args": ["-y", "pkg", "data.db", "conf.json"]}, []),
        ({"command": "node", "args": ["--env-file=.env", "x"]}, [".env"]),
        (
            {"command": "uv run --env-file dev.env.local --with-requirements requirements-dev.txt x"},
            ["dev.env.local", "requirements-dev.txt"],
        ),
        ({"command": "python3", "args": ["-u", "conf.txt", "data.txt"]}, ["conf.txt"]),
        ({"command": "sh -e conf.txt"}, ["conf.txt"]),
        ({"command": "env A=b /usr/bin/python3.11 ./conf.txt"}, ["conf.txt"]),
        ({"command": "python3", "args": ["-m", "srv.main", "conf.txt"]}, ["srv/main.py"]),
        ({"command": "python3 conf.txt", "cwd": "srv"}, ["conf.txt"]),
        ({"command": "srv"}, []),
        ({"url": "https://a.test/srv/main.py"}, []),
    ],
)
def test_programs_are_followed_and_data_is_not(tmp_path: Path, entry: object, files: list[str]) -> None:
    (tmp_path / "srv").mkdir()
    some = ("srv/main.py", "package.json", "Makefile", "compose.yaml", "data.db", "conf.json")
    for name in (*some, "conf.txt", "data.txt", ".env", "dev.env.local", "requirements-dev.txt"):
        (tmp_path / name).write_text("x")
    assert named(project(tmp_path, entry)) == [str(Path(name)) for name in files]


@pytest.mark.requirement("trust-scripts")
def test_a_program_that_comes_later_counts_and_one_above_the_folder_does_too(tmp_path: Path) -> None:
    (folder := tmp_path / "sub").mkdir()
    path = project(folder, {"command": "python3 ../tool.py late.py"})
    (tmp_path / "tool.py").write_text("x")
    assert named(path) == [str(Path("../tool.py"))]
    (folder / "late.py").write_text("x")
    assert named(path) == [str(Path("../tool.py")), "late.py"]


@pytest.mark.requirement("trust-scripts")
def test_a_link_is_followed_to_what_it_runs(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a")
    (tmp_path / "b.py").write_text("b")
    (tmp_path / "run.py").symlink_to("a.py")
    path = project(tmp_path, {"command": "python3 run.py"})
    first = read_project(path)
    (tmp_path / "run.py").unlink()
    (tmp_path / "run.py").symlink_to("b.py")
    second = read_project(path)
    assert first is not None
    assert second is not None
    assert first.digest != second.digest


FILE = ProjectFile(Path("/src/shop/.mcp.json"), b"{}")


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "config" / "trusted.json")


@pytest.mark.requirement("trust-content")
def test_nothing_is_trusted_until_it_was_approved(store: TrustStore) -> None:
    assert store.check(FILE) is None
    assert store.approve(FILE)
    trusted = store.check(FILE)
    assert trusted is not None
    assert trusted.file is FILE
    assert not store.approve(FILE)


@pytest.mark.requirement("trust-content")
@pytest.mark.parametrize(
    "other",
    [
        ProjectFile(FILE.path, b"{} "),
        ProjectFile(FILE.path, b""),
        ProjectFile(Path("/src/other/.mcp.json"), FILE.data),
        ProjectFile(FILE.path.with_name(".multi-mcp.yaml"), FILE.data),
    ],
)
def test_another_content_or_place_is_a_stranger(store: TrustStore, other: ProjectFile) -> None:
    store.approve(FILE)
    assert store.check(other) is None


def test_approving_a_new_content_forgets_the_old_one(store: TrustStore) -> None:
    new = ProjectFile(FILE.path, b"new")
    store.approve(FILE)
    store.approve(new)
    assert (store.check(FILE), store.paths()) == (None, [FILE.path])
    assert store.check(new) is not None


@pytest.mark.requirement("trust-content")
def test_an_approval_can_be_taken_back(store: TrustStore) -> None:
    other = ProjectFile(Path("/src/other/.mcp.json"), b"other")
    store.approve(FILE)
    store.approve(other)
    assert store.revoke(FILE.path)
    assert not store.revoke(FILE.path)
    assert store.check(FILE) is None
    assert store.check(other) is not None


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_the_store_is_the_users_alone(store: TrustStore) -> None:
    store.approve(FILE)
    assert store.path.stat().st_mode & 0o777 == 0o600
    assert list(store.path.parent.iterdir()) == [store.path]
    store.path.chmod(0o666)
    assert store.check(FILE) is None
    with pytest.raises(StorageError, match="another user"):
        store.approve(FILE)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"\xff", b'{"version": 2, "trusted": {}}', b'{"version": 1, "trusted": [1]}',
        b'{"version": 1}', b"[" * 100_000, b'{"version": 1, "trusted": {"/src/shop/.mcp.json": null}}',
        b'{"version": 1, "trusted": {"/src/shop/.mcp.json": true}}',
    ],
)  # fmt: skip
def test_a_store_that_is_not_ours_trusts_nothing_and_can_be_written_again(store: TrustStore, content: bytes) -> None:
    store.path.parent.mkdir()
    store.path.write_bytes(content)
    store.path.chmod(0o600)
    assert store.check(FILE) is None
    store.approve(FILE)
    assert store.check(FILE) is not None


def test_a_folder_in_its_place_trusts_nothing(store: TrustStore) -> None:
    store.path.mkdir(parents=True, mode=0o700)
    assert store.check(FILE) is None
    with pytest.raises(StorageError):
        store.approve(FILE)


def test_paths_that_are_no_text_are_kept(store: TrustStore) -> None:
    file = ProjectFile(Path(os.fsdecode(b"/src/\xff/.mcp.json")), b"{}")
    store.approve(file)
    assert store.check(file) is not None
    assert json.loads(store.path.read_bytes().decode("utf-8", "surrogatepass"))["version"] == 1


@pytest.mark.requirement("trust-ignored")
def test_the_problem_names_the_file_and_the_command() -> None:
    problem = untrusted_problem(FILE)
    assert (problem.file, problem.fatal) == (str(FILE.path), False)
    assert problem.hint.endswith(f"multi-mcp trust {FILE.folder}")
    assert untrusted_problem(ProjectFile(Path("/a b/.mcp.json"), b"")).hint.endswith('trust "/a b"')
