"""servers.yaml on disk: no edit is lost or half written."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from trayapp.config import edits
from trayapp.config.files import LOCK_WAIT_S, QUIET_LOOKS, QUIET_S, _take_place, locked, signature, storage_error
from trayapp.config.problems import UnparsableError
from trayapp.config.read.parse import parse
from trayapp.config.read.text import MAX_BYTES
from trayapp.config.store import EDIT_S, ConfigStore, sample_text, with_sample
from trayapp.config.yaml.splices import EditRefusedError
from trayapp.model.config import Settings, ToolSwitch
from trayapp.model.errors import FileChangedError, StorageError
from trayapp.service.command_line import SAMPLE_VERB
from trayapp.tray.actions import VERB_S

TEXT = "# mine\r\nservers:\r\n  s: {command: 'x'}   # é\r\n"
posix_only = pytest.mark.skipif(os.name == "nt", reason="modes and links as on POSIX")
NOBODY = 65534  # an ordinary user, because file modes do not restrict root


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "servers.yaml"
    file.write_bytes(TEXT.encode())
    return file


@contextmanager
def nobody(folder: Path) -> Iterator[None]:
    """Run the block as an ordinary user. If this process is root's, switch to NOBODY, who then owns the folder."""
    if os.geteuid() != 0:
        yield
        return
    for place in (folder, *folder.iterdir()):
        os.chown(place, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def switch(store: ConfigStore, server: str, enabled: bool) -> bool:
    return store.edit(lambda text: edits.set_server_enabled(text, server, enabled))


def only_file_in(folder: Path) -> str:
    (file,) = folder.iterdir()
    return file.name


@pytest.mark.requirement("file-comments-kept")
def test_an_edit_keeps_every_other_byte(path: Path) -> None:
    assert switch(ConfigStore(path), "s", False)
    assert path.read_bytes() == TEXT.replace("'x'}", "'x', disabled: true}").encode()
    assert only_file_in(path.parent) == "servers.yaml"


def test_an_edit_that_changes_nothing_writes_nothing(path: Path) -> None:
    before = signature(path)
    assert not switch(ConfigStore(path), "s", True)
    assert ConfigStore(path).merge_tools({"s": {}, "other": {"a": ToolSwitch()}}) == {
        "other": "other is not in servers.yaml"
    }
    assert signature(path) == before


def test_edits_at_the_same_moment_are_all_written(path: Path) -> None:
    store, names = ConfigStore(path), [f"t{number}" for number in range(24)]
    with ThreadPoolExecutor(len(names)) as threads:
        assert all(threads.map(lambda name: store.add_server(name, {"url": "https://x/"}), names))
    assert set(parse(store.read() or "", "servers.yaml").servers) == {"s", *names}


def test_every_edit_is_there(path: Path) -> None:
    store = ConfigStore(path)
    assert store.merge_tools({"s": {"a": ToolSwitch(), "b": ToolSwitch()}}) == {}
    assert store.edit(lambda text: edits.set_tools_enabled(text, "s", ["a"], False))
    assert store.add_server("t", {"url": "https://x/"})
    assert store.edit(lambda text: edits.set_setting(text, "expose", "search"))
    config = parse(store.read() or "", "servers.yaml")
    assert config.problems == ()
    assert config.servers["s"].tools == {"a": ToolSwitch(False), "b": ToolSwitch()}
    assert config.servers["t"].url == "https://x/"
    assert config.settings.expose == "search"
    assert store.remove_server("t")
    assert "t" not in parse(store.read() or "", "f").servers


@pytest.mark.requirement("file-changed-refused")
def test_a_write_is_refused_when_the_file_changed_since_it_was_read(path: Path) -> None:
    store = ConfigStore(path)
    seen = store.read()
    path.write_bytes(b"servers: {}\n")
    with pytest.raises(FileChangedError):
        store.write("mine", seen)
    path.unlink()
    with pytest.raises(FileChangedError):
        store.write("mine", seen)
    path.write_bytes(b"")
    with pytest.raises(FileChangedError):
        store.write("mine", None)
    assert path.read_bytes() == b""
    assert only_file_in(path.parent) == "servers.yaml"


def test_an_edit_starts_again_when_somebody_saved_in_between(path: Path) -> None:
    saves = iter([b"servers: {s: {command: y}}\n", b"servers: {s: {command: z}}\n"])

    def change(text: str) -> str:
        save = next(saves, None)
        if save:
            path.write_bytes(save)
        return text + "# edited\n"

    assert ConfigStore(path).edit(change)
    assert path.read_bytes() == b"servers: {s: {command: z}}\n# edited\n"


@pytest.mark.requirement("file-slow-editor")
def test_a_file_that_is_emptied_to_be_saved_as_it_is_read_is_read_again(path: Path) -> None:
    editors: list[threading.Thread] = []

    def save(file: BinaryIO) -> None:
        with file:
            time.sleep(0.05)
            file.write(TEXT.encode())

    class EmptiedMeanwhile(ConfigStore):
        def read(self) -> str | None:
            if not editors:
                editors.append(threading.Thread(target=save, args=(self.path.open("wb"),)))
                editors[0].start()
            return super().read()

    assert EmptiedMeanwhile(path).merge_tools({"s": {"found": ToolSwitch()}}) == {}
    editors[0].join()
    assert (parse(path.read_text(encoding="utf-8"), "f").servers["s"].tools or {}).keys() == {"found"}


def test_an_edit_gives_up_against_an_editor_that_never_rests(path: Path) -> None:
    saved = 0

    def change(text: str) -> str:
        nonlocal saved
        saved += 1
        path.write_text(f"# save {saved}\n")
        return text + "x: 1\n"

    with pytest.raises(FileChangedError, match="kept saving it") as caught:
        ConfigStore(path).edit(change, within_s=1.0)
    assert caught.value.hint
    assert saved > 1
    assert path.read_text() == f"# save {saved}\n"
    assert only_file_in(path.parent) == "servers.yaml"


def test_an_edit_ends_before_the_tray_gives_it_up() -> None:
    """The last attempt may wait for an editor four times: before it reads, before and after it writes, and to read
    again.
    """
    last_attempt_s = 4 * QUIET_LOOKS * QUIET_S
    assert EDIT_S + last_attempt_s < VERB_S
    assert LOCK_WAIT_S < VERB_S


def test_an_edit_waits_for_other_programs_edits_no_longer_than_for_all(home: Path) -> None:
    store = ConfigStore(home / "servers.yaml")
    with locked(store.path), pytest.raises(StorageError, match="Cannot change") as caught:
        store.edit(lambda text: text + "x: 1\n", within_s=0.05)
    assert caught.value.hint
    assert not store.path.exists()


def test_a_file_that_cannot_be_read_is_left_alone(path: Path) -> None:
    path.write_bytes(b"servers: [\n")
    with pytest.raises(UnparsableError) as caught:
        switch(ConfigStore(path), "s", False)
    assert caught.value.problem.file == "servers.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnparsableError, match="UTF-8"):
        ConfigStore(path).add_server("t", {"command": "x"})
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(UnparsableError, match="10 MB"):
        ConfigStore(path).read()
    assert path.stat().st_size == MAX_BYTES + 1


def test_an_edit_that_is_refused_leaves_the_file_alone(path: Path) -> None:
    path.write_bytes(b"servers:\n  a: &a {command: x}\n  s: *a\n")
    with pytest.raises(EditRefusedError):
        switch(ConfigStore(path), "s", False)
    assert path.read_bytes() == b"servers:\n  a: &a {command: x}\n  s: *a\n"


# --- the first file


@pytest.mark.requirement("file-first-run")
def test_a_missing_file_is_made_from_the_first_text(tmp_path: Path) -> None:
    store = ConfigStore(tmp_path / "a" / "b" / "servers.yaml", sample_text)
    assert store.read() is None
    assert store.signature() is None
    assert store.create()
    assert not store.create()
    assert parse(store.read() or "", "f").servers["sample"].command == "multi-mcp"
    assert store.signature() is not None


def test_the_first_edit_makes_the_file_too(tmp_path: Path) -> None:
    store = ConfigStore(tmp_path / "servers.yaml", sample_text)
    assert switch(store, "sample", False)
    assert parse(store.read() or "", "f").servers["sample"].disabled
    bare = ConfigStore(tmp_path / "bare.yaml")
    assert bare.add_server("s", {"command": "x"})
    assert bare.read() == "servers:\n  s:\n    command: x\n"


@posix_only
def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "servers.yaml"
    ConfigStore(path).add_server("s", {"command": "x"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


# --- the file system


@posix_only
@pytest.mark.requirement("file-atomic-write")
def test_the_mode_of_a_file_is_kept(path: Path) -> None:
    path.chmod(0o640)
    switch(ConfigStore(path), "s", False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@posix_only
def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path, path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target = path.rename(tmp_path / "dotfiles" / "mine.yaml")
    path.symlink_to(tmp_path / "dotfiles" / "mine.yaml")
    before = signature(path)
    switch(ConfigStore(path), "s", False)
    assert path.is_symlink()
    assert b"disabled" in target.read_bytes()
    assert signature(path) != before


@posix_only
def test_a_link_that_leads_nowhere_gets_its_target(tmp_path: Path) -> None:
    link = tmp_path / "servers.yaml"
    link.symlink_to(tmp_path / "away" / "x.yaml")
    ConfigStore(link).add_server("s", {"command": "x"})
    assert link.is_symlink()
    assert (tmp_path / "away" / "x.yaml").exists()


def nowhere(folder: Path) -> Path:
    (folder / "file").write_bytes(b"")
    return folder / "file" / "servers.yaml"


def in_the_way(folder: Path) -> Path:
    (folder / "servers.yaml").mkdir()
    return folder / "servers.yaml"


def loop(folder: Path) -> Path:
    (folder / "servers.yaml").symlink_to(folder / "servers.yaml")
    return folder / "servers.yaml"


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "servers.yaml")
    return folder / "servers.yaml"


@posix_only
@pytest.mark.parametrize("make", [nowhere, in_the_way, loop, pipe])
def test_what_stands_in_the_way_is_named(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path)
    with pytest.raises(StorageError) as caught:
        ConfigStore(path).add_server("s", {"command": "x"})
    assert caught.value.hint
    with pytest.raises(StorageError):
        ConfigStore(path).write("x", None)


@posix_only
def test_a_read_only_folder_or_file_is_a_clear_error(home: Path) -> None:
    path = home / "servers.yaml"
    path.write_bytes(TEXT.encode())
    with nobody(home):
        home.chmod(0o500)
        with pytest.raises(StorageError, match="permission"):
            switch(ConfigStore(path), "s", False)
        home.chmod(0o700)
        path.chmod(0o400)
        with pytest.raises(StorageError, match="permission"):
            switch(ConfigStore(path), "s", False)
        assert path.read_bytes() == TEXT.encode()


@posix_only
@pytest.mark.requirement("file-slow-editor")
def test_what_cannot_be_replaced_yet_is_looked_at_again_before_the_next_try(home: Path) -> None:
    """Windows does not replace a file that an editor has open, and the editor may save before closing it."""
    path, fresh, looks = home / "servers.yaml", home / "fresh", list[bytes]()
    path.write_bytes(b"old")
    fresh.write_bytes(b"ours")

    def still_as_seen() -> None:
        looks.append(path.read_bytes())
        if looks[-1] != b"old":
            raise FileChangedError("changed")
        path.write_bytes(b"saved")

    with nobody(home):
        home.chmod(0o500)  # makes replacing fail, as for an open file
        with pytest.raises(FileChangedError):
            _take_place(fresh, path, still_as_seen, tries=3)
        home.chmod(0o700)
    assert looks == [b"old", b"saved"]


@posix_only
@pytest.mark.requirement("fault-disk-full")
def test_a_full_disk_leaves_the_old_file_whole(path: Path) -> None:
    import resource
    import signal

    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, limits[1]))  # a write stops after 8 bytes
    try:
        with pytest.raises(StorageError, match="Cannot write"):
            switch(ConfigStore(path), "s", False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, old)
    assert path.read_bytes() == TEXT.encode()
    assert only_file_in(path.parent) == "servers.yaml"


@pytest.mark.parametrize(("number", "word"), [(28, "full"), (30, "read-only"), (13, "permissions")])
def test_errors_of_the_system_say_what_to_do(number: int, word: str) -> None:
    error = storage_error(OSError(number, "x"), Path("servers.yaml"), "write")
    assert word in str(error)
    assert error.title.startswith("Cannot write servers.yaml: ")


def test_a_text_that_no_file_can_hold_is_refused(path: Path) -> None:
    store = ConfigStore(path)
    with pytest.raises(EditRefusedError):
        store.add_server("s2", {"command": "\ud800"})
    with pytest.raises(StorageError):
        store.write("\ud800", store.read())
    assert path.read_bytes() == TEXT.encode()


COMMANDS = [
    ["/usr/bin/python3", "-I", "-S", "/opt/trayapp/samples/server.py"],
    ["C:\\Program Files\\multi-mcp\\multi-mcp-shim.exe", "sample-server"],
]


@pytest.mark.requirement("file-first-run")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_sample_names_no_place_and_runs_wherever_this_installation_lies(command: list[str]) -> None:
    config = parse(sample_text(), "servers.yaml")
    assert config.problems == ()
    assert list(config.servers) == ["sample"]
    assert [config.servers["sample"].command, *config.servers["sample"].args] == ["multi-mcp", SAMPLE_VERB]
    server = with_sample(config, command).servers["sample"]
    assert [server.command, *server.args] == command
    assert not server.disabled


@pytest.mark.parametrize(
    ("entry", "is_ours"),
    [
        ("[/usr/lib/multi-mcp/multi-mcp-shim, sample-server]", True),  # the form of the first release
        ("[/usr/lib/multi-mcp/multi-mcp, sample-server]", True),
        ("[multi-mcp, sample-server, more]", False),
        ("[other, sample-server]", False),
        ("[multi-mcp, stdio]", False),
    ],
)
def test_the_sample_of_another_installation_is_that_of_this_one(entry: str, is_ours: bool) -> None:
    config = parse(f"servers: {{s: {{command: {entry}}}}}", "f")
    assert (with_sample(config, ["mine"]).servers["s"].command == "mine") == is_ours


def test_the_sample_says_the_defaults() -> None:
    assert parse(sample_text(), "f").settings == Settings()


def test_the_examples_in_the_comments_are_servers_too() -> None:
    text = sample_text()
    head, examples = text.split("    command: multi-mcp sample-server\n")
    live = "\n".join(line.replace("  # ", "  ", 1) for line in examples.splitlines() if not line.startswith("  # A"))
    live = "\n".join(line for line in live.splitlines() if not line.startswith("  Tools are"))
    config = parse(f"{head}    command: multi-mcp sample-server\n{live}\n", "f")
    assert config.problems == ()
    assert list(config.servers) == ["sample", "files", "docs", "github"]
    assert len(text.splitlines()) <= 45
