"""The contract of all record stores: gnome-keyring, the encrypted file, memory, and memory with Windows' limits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.auth.places import Desk, DyingEntries, MemoryEntries, WindowsEntries, desk, environment
from trayapp.auth.os_keyring import WINDOWS_LIMIT, ChunkedRecords, KeyringEntries, Records, length, split
from trayapp.auth.sealed import KEY_ENTRY, SealedFile
from trayapp.model.errors import KeyringUnavailableError

PLACES = ("gnome-keyring", "sealed, passphrase", "sealed, keyring", "memory", "windows")
BIG = "".join(chr(33 + number * number % 89) for number in range(16 * 1024))


@pytest.fixture(scope="module")
def session() -> Iterator[Desk]:
    with desk() as made:
        yield made


@pytest.fixture(params=PLACES)
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Records]:
    """Yield an empty store of each kind in turn."""
    place: str = request.param
    with ExitStack() as stack:
        if "keyring" in place:
            made: Desk = request.getfixturevalue("session")
            stack.enter_context(environment(made.environ))
        entries = KeyringEntries(f"multi-mcp-tests@{request.node.name}")
        if place == "gnome-keyring":
            yield ChunkedRecords(entries)
        elif place.startswith("sealed"):
            keyring = entries if place == "sealed, keyring" else None
            yield SealedFile(tmp_path / "home" / "secrets.sealed", "" if keyring else "correct horse", keyring)
        else:
            yield ChunkedRecords(WindowsEntries() if place == "windows" else MemoryEntries())


def test_a_written_text_is_read_back(records: Records) -> None:
    records.write("account:a", "one")
    records.write("account:b", "zwei 🔑 \n\x00")
    assert [records.read("account:a"), records.read("account:b")] == ["one", "zwei 🔑 \n\x00"]


def test_a_missing_text_is_none(records: Records) -> None:
    assert records.read("nobody") is None
    records.delete("nobody")
    assert records.read("nobody") is None


@pytest.mark.requirement("vault-long")
def test_16_kilobytes_survive(records: Records) -> None:
    records.write("big", BIG)
    assert records.read("big") == BIG


def test_a_later_write_replaces_an_earlier_one_of_any_length(records: Records) -> None:
    for text in ("short", BIG, BIG[:3000], "short again", BIG, ""):
        records.write("key", text)
        assert records.read("key") == text


def test_a_deleted_text_is_gone(records: Records) -> None:
    for text in ("short", BIG):
        records.write("key", text)
        records.write("other", "stays")
        records.delete("key")
        assert [records.read("key"), records.read("other")] == [None, "stays"]


# -- long texts ------------------------------------------------------------------------------------------------------


def test_no_part_is_over_the_limit_of_windows_and_none_is_left_behind() -> None:
    entries = WindowsEntries()
    records = ChunkedRecords(entries)
    for text in (BIG, "🔑" * 5000, BIG[: WINDOWS_LIMIT - 2], BIG[: WINDOWS_LIMIT - 1]):
        records.write("key", text)
        assert records.read("key") == text
        assert all(length(part) <= WINDOWS_LIMIT for part in entries.texts.values())
    records.write("key", "short")
    assert entries.texts == {"key": "1:short"}
    records.write("key", BIG)
    records.delete("key")
    assert entries.texts == {}


@pytest.mark.requirement("vault-torn")
@pytest.mark.parametrize("old", [None, "short", BIG[:5000], BIG])
def test_a_crash_at_any_write_leaves_the_old_text_or_the_new_one(old: str | None) -> None:
    new = BIG[::-1]
    for writes in range(20):
        entries = DyingEntries()
        records = ChunkedRecords(entries)
        if old is not None:
            records.write("key", old)
        entries.writes_left = writes
        try:
            records.write("key", new)
        except KeyboardInterrupt:
            assert records.read("key") == old
        else:
            assert records.read("key") == new
        entries.writes_left = 1 << 30
        records.write("key", BIG)
        assert records.read("key") == BIG
        records.delete("key")
        assert entries.texts == {}


@pytest.mark.requirement("vault-torn")
def test_a_text_with_a_missing_or_foreign_part_is_none() -> None:
    for spoil in ("missing", "foreign", "swapped"):
        entries = WindowsEntries()
        records = ChunkedRecords(entries)
        records.write("key", BIG)
        parts = sorted(name for name in entries.texts if "#" in name)
        if spoil == "missing":
            del entries.texts[parts[3]]
        elif spoil == "foreign":
            entries.texts[parts[3]] = "x" * 1200
        else:
            one, two = parts[1], parts[2]
            entries.texts[one], entries.texts[two] = entries.texts[two], entries.texts[one]
        assert records.read("key") is None


@pytest.mark.parametrize("head", ["", "3:x", "2:", "2:{}", '2:{"gen":1,"parts":99999999,"sum":""}', "2:[1]"])
def test_an_entry_of_another_form_is_none(head: str) -> None:
    entries = MemoryEntries()
    entries.set("key", head)
    assert ChunkedRecords(entries).read("key") is None


def test_a_reader_beside_a_writer_gets_the_old_text_or_the_new_one() -> None:
    entries, turns = WindowsEntries(), iter(range(1_000))
    writer = ChunkedRecords(entries)
    writer.write("key", BIG)

    class Reading(WindowsEntries):
        """Entries that a writer replaces in the middle of a read."""

        def get(self, name: str) -> str | None:
            if next(turns) == 3:
                writer.write("key", BIG[::-1])
            return entries.get(name)

    assert ChunkedRecords(Reading()).read("key") in (BIG, BIG[::-1])
    assert next(turns) > 3


@given(st.text(max_size=300), st.integers(min_value=2, max_value=40))
def test_parts_fit_and_make_the_whole(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert "".join(parts) == text
    assert all(0 < length(part) <= limit for part in parts)


# -- the encrypted file ----------------------------------------------------------------------------------------------


def test_the_file_is_encrypted_and_only_its_owner_can_access_it(tmp_path: Path) -> None:
    path = tmp_path / "secrets.sealed"
    SealedFile(path, "correct horse").write("account:https://a", "s3cr3t-token")
    data = path.read_bytes()
    assert b"s3cr3t" not in data
    assert b"account" not in data
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_two_writes_of_one_text_differ(tmp_path: Path) -> None:
    path = tmp_path / "secrets.sealed"
    file = SealedFile(path, "correct horse")
    file.write("a", "x")
    first = path.read_bytes()
    file.write("a", "y")
    file.write("a", "x")
    assert path.read_bytes() != first
    assert SealedFile(path, "correct horse").read("a") == "x"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda data: b"", "damaged"),
        (lambda data: b"[]", "damaged"),
        (lambda data: data[:-30], "damaged"),
        (lambda data: data.replace(b'"sealed": "', b'"sealed": "AAAA'), "does not open"),
        (lambda data: data.replace(b'"passphrase"', b'"keyring"'), "without a passphrase"),
    ],
)
def test_a_file_that_does_not_open_is_refused_and_left_alone(
    tmp_path: Path, spoil: Callable[[bytes], bytes], why: str
) -> None:
    path = tmp_path / "secrets.sealed"
    SealedFile(path, "correct horse").write("a", "x")
    path.write_bytes(spoil(path.read_bytes()))
    before = path.read_bytes()
    file = SealedFile(path, "correct horse")
    acts: list[Callable[[], object]] = [lambda: file.read("a"), lambda: file.write("a", "y"), lambda: file.delete("a")]
    for act in acts:
        with pytest.raises(KeyringUnavailableError, match=why) as caught:
            act()
        assert caught.value.state == "locked"
    assert path.read_bytes() == before


def test_another_passphrase_opens_nothing(tmp_path: Path) -> None:
    path = tmp_path / "secrets.sealed"
    SealedFile(path, "correct horse").write("a", "x")
    with pytest.raises(KeyringUnavailableError, match="does not open"):
        SealedFile(path, "wrong horse").read("a")
    with pytest.raises(KeyringUnavailableError, match="created with a passphrase"):
        SealedFile(path, "", MemoryEntries()).read("a")


def test_without_passphrase_and_keyring_the_file_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(KeyringUnavailableError, match="no key") as caught:
        SealedFile(tmp_path / "secrets.sealed", "").write("a", "x")
    assert caught.value.state == "missing"
    assert not list(tmp_path.iterdir())


def test_a_file_whose_key_was_lost_is_not_overwritten(tmp_path: Path) -> None:
    path, keyring = tmp_path / "secrets.sealed", MemoryEntries()
    SealedFile(path, "", keyring).write("a", "x")
    keyring.delete(KEY_ENTRY)
    with pytest.raises(KeyringUnavailableError, match="its key is no longer in the keyring"):
        SealedFile(path, "", keyring).write("a", "y")
    assert keyring.texts == {}


def test_a_read_only_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyringUnavailableError, match=r"cannot be (read|written)"):
        SealedFile(tmp_path / "file" / "secrets.sealed", "x").write("a", "b")


def test_a_backend_of_another_system_that_cannot_be_loaded_is_no_error_in_the_log(tmp_path: Path) -> None:
    """A packaged program lists all keyring backends, but lacks the modules of some."""
    facts = tmp_path / "broken-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[keyring.backends]\nbroken = keyring.backends.nowhere\n")
    program = f"import logging\nlogging.basicConfig()\n{ASK}"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "DBUS_SESSION_BUS_ADDRESS": ""}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False missing\n", "")


# -- the real keyring ------------------------------------------------------------------------------------------------

ASK = """
import sys
from trayapp.auth.os_keyring import KeyringEntries
from trayapp.model.errors import KeyringUnavailableError
entries = KeyringEntries("multi-mcp-tests")
def ask():
    try:
        return entries.get("key")
    except KeyringUnavailableError as error:
        return error.state
print(entries.would_ask(writing="writing" in sys.argv), ask(), flush=True)
if "again" in sys.argv:
    sys.stdin.readline()
    print(ask(), flush=True)
"""


def ask(made: Desk, *words: str, **more: str) -> str:
    """Access an entry in a new process that uses the session bus.

    Return whether the keyring would show a dialog, followed by the entry's value or the keyring's state.
    """
    environ = {**made.environ, **more}
    argv = [sys.executable, "-c", ASK, *words]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def keep(made: Desk) -> None:
    with environment(made.environ):
        KeyringEntries("multi-mcp-tests").set("key", "kept")


@pytest.mark.requirement("vault-states")
def test_without_a_secret_service_the_keyring_is_missing() -> None:
    with desk(keyring=False) as made:
        assert ask(made) == "False missing"
        # A keyring backend that is configured for another Python and not installed in ours counts as missing.
        assert ask(made, PYTHON_KEYRING_BACKEND="keyrings.of.nobody.Keyring") == "False missing"


@pytest.mark.requirement("vault-states")
def test_a_locked_keyring_is_reported_without_a_dialog() -> None:
    with desk() as made:
        keep(made)
        assert ask(made) == "False kept"
        made.stop_keyring()
        made.start_keyring(password="")
        assert ask(made) == "True locked"


@pytest.mark.requirement("vault-one-dialog")
def test_a_new_keyring_is_empty_and_needs_a_password_for_the_first_write() -> None:
    with desk(keyring=False) as made:
        made.start_keyring(password="")
        assert ask(made) == "False None"
        assert ask(made, "writing") == "True None"


@pytest.mark.requirement("vault-states")
def test_a_keyring_that_starts_after_us_is_found() -> None:
    with desk(keyring=False) as made:
        pipe = subprocess.PIPE
        argv = [sys.executable, "-c", ASK, "again"]
        with subprocess.Popen(argv, env=made.environ, stdin=pipe, stdout=pipe, text=True) as early:
            assert early.stdout is not None
            assert early.stdin is not None
            assert early.stdout.readline().strip() == "False missing"
            made.start_keyring()
            keep(made)
            early.stdin.write("\n")
            early.stdin.flush()
            assert early.stdout.readline().strip() == "kept"
