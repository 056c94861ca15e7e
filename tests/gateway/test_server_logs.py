"""The content of log files, and the bounds of their size."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from trayapp.model.redact import KNOWN
from trayapp.service.logging import (
    LOG_BYTES,
    RedactingFormatter,
    RotatedFile,
    StderrFiles,
    StderrSink,
    start_logging,
)

SECRET = "hX7q2Lk9ZpR4vT1s"


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.requirement("log-redacted")
def test_a_secret_that_arrives_in_pieces_is_not_in_the_file(tmp_path: Path) -> None:
    sink = StderrFiles(tmp_path).sink("github")
    for piece in (b"a\ntok", b"en=" + SECRET[:5].encode(), SECRET[5:].encode() + b"\n", b""):
        sink(piece)
    assert read(tmp_path / "github.log") == "a\ntoken=[redacted]\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.requirement("log-redacted")
def test_utf_16_is_read_as_such(tmp_path: Path, encoding: str) -> None:
    KNOWN.note(["plüm-tree-4-lantern"])
    sink = StderrSink(RotatedFile(tmp_path / "x.log"))
    for byte in "the key\r\nplüm-tree-4-lantern is wrong: Größe\r\n".encode(encoding):
        sink(bytes([byte]))
    sink(b"")
    assert read(tmp_path / "x.log") == "the key\n[redacted] is wrong: Größe\n"


@pytest.mark.requirement("log-redacted")
def test_a_log_that_turns_to_utf_16_holds_no_secret_either(tmp_path: Path) -> None:
    KNOWN.note(["plum-tree-4-lantern"])
    sink = StderrSink(RotatedFile(tmp_path / "x.log"))
    sink(b"begin\n" + "plum-tree-4-lantern\n".encode("utf-16-le") + b"\n")
    sink(b"")
    assert "plum-tree" not in read(tmp_path / "x.log").replace("\0", "")


@pytest.mark.requirement("log-redacted")
def test_latin_1_is_read_as_such_beside_utf_8(tmp_path: Path) -> None:
    KNOWN.note(["plüm-tree-4-lantern", "lantern-4-träumen-ß"])
    sink = StderrSink(RotatedFile(tmp_path / "x.log"))
    said = ["plüm-tree-4-lantern is wrong: Größe", "lantern-4-träumen-ß\tGröße"]
    for byte in b"".join(f"{line}\n".encode(encoding) for encoding in ("latin-1", "utf-8") for line in said):
        sink(bytes([byte]))
    sink(b"")
    assert read(tmp_path / "x.log") == "[redacted] is wrong: Größe\n[redacted]\tGröße\n" * 2


def test_an_unfinished_line_waits_for_its_end_or_for_the_end_of_the_process(tmp_path: Path) -> None:
    files = StderrFiles(tmp_path)
    files.sink("github")(b"one\ntwo")
    assert read(tmp_path / "github.log") == "one\n"
    files.sink("github")(b"three\n")
    assert read(tmp_path / "github.log") == "one\ntwo\nthree\n"
    files.sink("github")


@pytest.mark.requirement("one-name-of-a-server")
def test_processes_of_one_server_beside_each_other_write_whole_lines_into_one_file(tmp_path: Path) -> None:
    files = StderrFiles(tmp_path)
    first, second = files.sink("github"), files.sink("github", further=True)
    first(b"one, fir")
    second(b"two, first half")
    first(b"st half\n")
    second(b"")
    first(b"end")
    first(b"")
    assert read(tmp_path / "github.log") == "one, first half\ntwo, first half\nend\n"


def test_the_end_of_the_stream_writes_what_is_left(tmp_path: Path) -> None:
    sink = StderrSink(RotatedFile(tmp_path / "x.log"))
    sink(b"panic: no\xc3")
    sink(b"")
    assert read(tmp_path / "x.log") == "panic: no\ufffd\n"


def test_a_letter_in_two_pieces_is_one_letter(tmp_path: Path) -> None:
    sink = StderrSink(RotatedFile(tmp_path / "x.log"))
    for byte in "Größe\n".encode():
        sink(bytes([byte]))
    sink(b"")
    assert read(tmp_path / "x.log") == "Größe\n"


@pytest.mark.requirement("life-stderr-log")
def test_a_file_is_set_aside_once_it_is_large_and_two_are_kept(tmp_path: Path) -> None:
    sink = StderrSink(RotatedFile(tmp_path / "x.log"))
    for number in range(5):
        sink((f"{number} " + "y" * 1000 + "\n").encode() * (LOG_BYTES // 2000))
    sink(b"")
    kept = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(kept) <= {"x.log", "x.log.1"}
    assert all(size < LOG_BYTES * 2 for size in kept.values())


def test_a_file_that_cannot_be_set_aside_stays_bounded(tmp_path: Path) -> None:
    (tmp_path / "x.log.1" / "in the way").mkdir(parents=True)
    sink = StderrSink(RotatedFile(tmp_path / "x.log"))
    for _ in range(5):
        sink((b"y" * 1000 + b"\n") * (LOG_BYTES // 1500))
    sink(b"the end\n")
    sink(b"")
    assert (tmp_path / "x.log").stat().st_size < LOG_BYTES * 2
    assert read(tmp_path / "x.log").endswith("the end\n")


@pytest.mark.requirement("fault-disk-full")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_costs_lines_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "github.log").symlink_to("/dev/full")
    sink = StderrFiles(tmp_path).sink("github")
    for _ in range(3):
        sink(b"a line\n")
        sink(b"")


def test_a_folder_that_cannot_be_written_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sink = StderrFiles(tmp_path / "file").sink("github")
    sink(b"a line\n")
    sink(b"")


@pytest.mark.requirement("log-redacted")
def test_a_line_of_the_gateway_loses_its_secrets_in_its_traceback_too() -> None:
    try:
        raise ValueError(f"Authorization: Bearer {SECRET}")
    except ValueError as error:
        record = logging.LogRecord("x", 40, "f", 1, f"token={SECRET}", None, (ValueError, error, error.__traceback__))
    said = RedactingFormatter().format(record)
    assert SECRET not in said
    assert "Traceback" in said


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """Yield the root logger and restore it afterwards."""
    logger = logging.getLogger()
    level, handlers = logger.level, list(logger.handlers)
    yield logger
    for handler in set(logger.handlers) - set(handlers):
        logger.removeHandler(handler)
        with suppress(OSError):  # closing retries a write that a full disk refused
            handler.close()
    logger.setLevel(level)


@pytest.mark.requirement("log-redacted")
def test_the_gateway_s_own_log_is_a_file_that_is_rotated(
    tmp_path: Path, root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    start_logging(tmp_path / "logs")
    for number in range(5):
        logging.getLogger("trayapp.x").info("%s token=%s %s", number, SECRET, "y " * (LOG_BYTES // 4))
    kept = {path.name: path.stat().st_size for path in (tmp_path / "logs").iterdir()}
    assert kept.keys() == {"gateway.log", "gateway.log.1"}
    assert all(0 < size <= LOG_BYTES for size in kept.values())
    assert SECRET not in read(tmp_path / "logs" / "gateway.log")
    assert capsys.readouterr().err == ""


@pytest.mark.requirement("fault-disk-full")
def test_where_no_log_file_can_be_the_lines_go_to_stderr(
    tmp_path: Path, root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gateway.log").mkdir()
    start_logging(tmp_path)
    logging.getLogger("trayapp.x").warning("said once")
    assert capsys.readouterr().err.count("said once") == 1


@pytest.mark.requirement("fault-disk-full")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_line_of_the_gateway_that_cannot_be_written_is_dropped_in_silence(
    tmp_path: Path, root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gateway.log").symlink_to("/dev/full")
    start_logging(tmp_path)
    logging.getLogger("trayapp.x").warning("lost")
    assert capsys.readouterr().err == ""
