"""An approval covers one content at one path, and is kept where nobody else can write."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from trayapp.config.layers.project import ProjectFile
from trayapp.config.layers.trust import TrustStore, untrusted_problem
from trayapp.model.errors import StorageError

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
    with pytest.raises(StorageError, match="other users"):
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
