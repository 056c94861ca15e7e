"""The history file: its bounds and its searches. Calls go on even if the file is broken."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.model.test_redact import FORMS, SECRET
from trayapp.history import store
from trayapp.history.ended_call import Caller, EndedCall, ends_of
from trayapp.history.record import ERROR_MOST, TEXT_MOST, Row, RowMaker
from trayapp.history.store import WAL_BYTES, Filter, HistoryFile
from trayapp.model.errors import StorageError
from trayapp.model.redact import TAIL_DROPPED
from trayapp.wire.jsonio import dumps

SMALL = 2_000_000
NOW = 1_800_000_000.0


def a_row(number: int = 0, **more: Any) -> Row:
    made = Row(
        NOW + number, "claude-code", "stdio 1", "/src", "github", "create_issue", "write", "ok", 12.5,
        20, 300, 80, "", "", '{"title":"a bug"}', '{"content":[]}',
    )  # fmt: skip
    return made._replace(**more)


def frame(**result: object) -> bytes:
    return dumps({"jsonrpc": "2.0", "id": 1, "result": result})


def ended(arguments: object, answer: bytes) -> EndedCall:
    params = {"name": "echo", "arguments": arguments}
    return EndedCall(2.0, 1.5, None, "s", "tools/call", params, answer, len(answer), None, "", "")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[HistoryFile]:
    """Yield an empty history that keeps rows for a century, up to a small size."""
    made = HistoryFile(tmp_path / "state" / "history.db", lambda: (36_500.0, SMALL))
    yield made
    made.close()


@pytest.mark.requirement("history-harmless")
@pytest.mark.parametrize("removed", [("history.db",), ("history.db", "history.db-wal", "history.db-shm"), None])
def test_calls_after_somebody_deleted_the_file_are_kept_in_a_new_one(
    file: HistoryFile, removed: tuple[str, ...] | None
) -> None:
    file.add([a_row(0), a_row(1)])
    if removed is None:
        shutil.rmtree(file.path.parent)
    else:
        for name in removed:
            (file.path.parent / name).unlink()
    file.add([a_row(2, tool="newest")])
    assert [row["tool"] for row in file.find(Filter())] == ["newest"]
    file.close()
    assert [row["tool"] for row in file.find(Filter())] == ["newest"]
    assert file.set_aside is None


@pytest.mark.requirement("history-kept")
@pytest.mark.parametrize(
    ("tool", "typed", "found"),
    [
        ("create_issue", False, [2, 1]), ("create", False, []), ("github/create_issue", False, [1]),
        ("gitlab/create_issue", False, [2]), ("resources/read file:///a", False, [3]), ("github/", False, []),
        ("issue", True, [2, 1]), ("CREATE", True, [2, 1]), ("create%issue", True, []), ("createxissue", True, []),
        ("github/cre", True, [1]), ("gitlab/", True, [2]), ("read file", True, [3]),
    ],
)  # fmt: skip
def test_a_tool_is_named_as_it_is_shown_and_typed_in_part(
    file: HistoryFile, tool: str, typed: bool, found: list[int]
) -> None:
    file.add([a_row(0), a_row(1, server="gitlab"), a_row(2, server="fs", tool="resources/read file:///a")])
    assert [row["id"] for row in file.find(Filter(tool=tool, typed=typed))] == found


@pytest.mark.requirement("history-kept")
def test_the_newest_calls_that_fit_are_found(file: HistoryFile) -> None:
    file.add([a_row(0), a_row(1, server="fs", tool="read", outcome="error", error="no such file")])
    file.add([a_row(2, client="cursor")])
    assert [row["id"] for row in file.find(Filter())] == [3, 2, 1]
    assert [row["id"] for row in file.find(Filter(server="github"))] == [3, 1]
    assert [row["id"] for row in file.find(Filter(client="cursor"))] == [3]
    assert file.find(Filter(client="curs")) == []
    assert [row["id"] for row in file.find(Filter(client="CURS", typed=True))] == [3]
    assert [row["id"] for row in file.find(Filter(failed=True))] == [2]
    assert [row["id"] for row in file.find(Filter(since=NOW + 1.5))] == [3]
    assert [row["id"] for row in file.find(Filter(after=1))] == [3, 2]
    assert [row["id"] for row in file.find(Filter(before=3, limit=1))] == [2]
    assert [row["id"] for row in file.find(Filter(words="Bug titl"))] == [3, 2, 1]
    assert [row["id"] for row in file.find(Filter(words="github bug"))] == [3, 1]
    assert [row["id"] for row in file.find(Filter(words="such fil"))] == [2]
    assert file.find(Filter(words='"; DROP TABLE calls')) == []
    assert file.count_since(NOW) == (3, 1)
    assert file.used(0.0) == (NOW, {("github", "create_issue"), ("fs", "read")})
    assert file.used(NOW + 1.5) == (NOW + 1.5, {("github", "create_issue")})
    whole = file.get(2)
    assert whole is not None
    assert (whole["error"], whole["arguments"]) == ("no such file", '{"title":"a bug"}')
    assert file.get(99) is None


@pytest.mark.requirement("history-kept")
@pytest.mark.parametrize("few", [0, 2, 1000])
@pytest.mark.parametrize("words", ["bug", "odd", "bug od", "nothing"])
@pytest.mark.parametrize(
    "others",
    [
        {"client": "cursor"}, {"client": "CURS", "typed": True}, {"client": "nobody"}, {"server": "fs", "failed": True},
        {"tool": "create", "typed": True}, {"since": NOW + 5}, {"since": NOW + 99}, {"before": 8}, {"after": 3},
        {"after": 3, "server": "fs"},
    ],
)  # fmt: skip
def test_words_and_other_conditions_find_what_meets_both_however_many_meet_one(
    file: HistoryFile, monkeypatch: pytest.MonkeyPatch, few: int, words: str, others: dict[str, Any]
) -> None:
    monkeypatch.setattr(store, "FEW", few)
    file.add(
        [
            a_row(
                number,
                client="cursor" if number % 3 == 0 else "claude-code",
                server="fs" if number % 2 else "github",
                outcome="error" if number in (3, 8) else "ok",
                error="an odd one" if number % 4 == 3 else "",
            )
            for number in range(12)
        ]
    )
    with_words = {row["id"] for row in file.find(Filter(words=words))}
    expected = [row["id"] for row in file.find(Filter(**others)) if row["id"] in with_words]
    assert [row["id"] for row in file.find(Filter(words=words, **others))] == expected
    few_rows = file.find(Filter(words=words, limit=2, **others))
    assert [row["id"] for row in few_rows] == (expected[-2:] if "after" in others else expected[:2])


@pytest.mark.requirement("history-kept")
def test_the_calls_of_each_minute(file: HistoryFile) -> None:
    file.add([a_row(0), a_row(1), a_row(70)])
    assert file.per_minute(NOW + 100, 3) == [0, 2, 1]


@pytest.mark.requirement("history-bounded")
def test_the_file_stays_within_its_size_and_keeps_the_newest(file: HistoryFile, tmp_path: Path) -> None:
    text = "lorem ipsum dolor " * 100
    for batch in range(60):
        file.add([a_row(batch * 50 + one, result=f"{text} {batch}") for one in range(50)])
    assert file.path.stat().st_size <= SMALL
    assert file.path.with_name("history.db-wal").stat().st_size <= WAL_BYTES * 2
    rows = file.find(Filter(limit=1))
    assert rows[0]["id"] == 3000
    assert 100 < file.count_since(0.0)[0] < 3000
    assert file.find(Filter(words="59"))


@pytest.mark.requirement("history-bounded")
def test_a_hundred_thousand_calls_take_fifty_megabytes_at_most(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "history.db", lambda: (36_500.0, 1_000_000_000))
    result = '{"content":[{"type":"text","text":"Invoice 4711 of the client is open since March"}]}'
    for first in range(0, 100_000, 10_000):
        file.add([a_row(number, result=result) for number in range(first, first + 10_000)])
    assert file.count_since(0.0) == (100_000, 0)
    file.close()
    assert sum(part.stat().st_size for part in tmp_path.iterdir()) <= 50_000_000


@pytest.mark.requirement("history-bounded")
def test_calls_that_are_too_old_go(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "history.db", lambda: (30.0, SMALL))
    now = time.time()
    file.add([a_row(time=now - 31 * 86_400), a_row(time=now)])
    file._pruned_at = 0.0
    file.add([a_row(time=now)])
    assert [row["id"] for row in file.find(Filter())] == [3, 2]
    file.close()


@pytest.mark.requirement("history-bounded")
def test_modes_and_clear(file: HistoryFile, tmp_path: Path) -> None:
    file.add([a_row()])
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert {part.stat().st_mode & 0o777 for part in (tmp_path / "state").iterdir()} == {0o600}
    assert file.clear() == 1
    assert list((tmp_path / "state").iterdir()) == []
    assert file.find(Filter()) == []


@pytest.mark.requirement("history-harmless")
@pytest.mark.parametrize("damage", [b"no database at all " * 100, b""])
def test_a_corrupt_file_is_set_aside(file: HistoryFile, damage: bytes) -> None:
    file.add([a_row(one) for one in range(200)])
    file.close()
    data = file.path.read_bytes()
    file.path.write_bytes(damage or data[: len(data) // 2] + b"\xff" * 5000)
    for _ in range(2):
        with suppress(StorageError):
            file.add([a_row(), a_row()])
    file.add([a_row()])
    assert file.set_aside is not None
    assert file.set_aside.exists()
    assert len(file.find(Filter())) >= 1


@pytest.mark.requirement("history-harmless")
def test_a_file_that_another_program_holds_is_set_aside(file: HistoryFile) -> None:
    file.add([a_row()])
    holder = sqlite3.connect(file.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StorageError):
        file.add([a_row()])
    file.add([a_row()])
    assert file.set_aside is not None
    assert len(file.find(Filter())) == 1
    holder.close()


@pytest.mark.requirement("history-redacted")
@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_a_secret_is_in_a_row(form: str) -> None:
    text = form.format(SECRET)
    maker = RowMaker(with_texts=True)
    nested = ended({"text": text, "headers": [text]}, frame(content=[{"type": "text", "text": text}], isError=True))
    row = maker.row(nested, Caller(text, "1", text), NOW, "")
    assert not any(SECRET in str(value) for value in row)
    wide = ended(
        {"text": "x" * 1900 + "\n" + text}, frame(content=[{"type": "text", "text": "x" * 1900 + "\n" + text}])
    )
    assert not any(SECRET[:12] in str(value) for value in maker.row(wide, Caller("c"), NOW, ""))


@pytest.mark.requirement("history-redacted")
def test_half_a_secret_at_the_end_of_what_is_read_is_not_kept() -> None:
    shrinking = "note " + "ghp_0123456789abcdefghijABCDEFGHIJ012345 " * 20  # redaction shortens it to a quarter
    text = (shrinking + "x " * 10_000)[: TEXT_MOST + TAIL_DROPPED - 22] + " ghp_" + "Zq9" * 12
    row = RowMaker(with_texts=True).row(ended({"text": text}, frame(content=[])), Caller("c"), NOW, "")
    assert "x x" in row.arguments
    assert "Zq9" not in row.arguments


@pytest.mark.requirement("history-harmless")
def test_an_error_that_sets_no_file_aside_does_not_speak_of_a_new_history(file: HistoryFile) -> None:
    file.add([a_row()])
    read_only = sqlite3.connect(f"file:{file.path}?mode=ro", uri=True, check_same_thread=False)
    file.close()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(HistoryFile, "_opened", lambda _: read_only)
        with pytest.raises(StorageError) as caught:
            file.add([a_row()])
    assert "readonly" in caught.value.title
    assert (caught.value.hint, file.set_aside) == ("Calls continue without a history", None)


@pytest.mark.requirement("history-redacted")
def test_arguments_that_are_not_wanted_are_not_kept() -> None:
    row = RowMaker(with_texts=False).row(ended({"a": "secret words"}, frame(content=[])), Caller("c"), NOW, "")
    assert (row.arguments, row.result) == ("", "")
    assert row.sent == len('{"a":"secret words"}')


@pytest.mark.requirement("history-kept")
def test_what_came_of_a_call() -> None:
    maker = RowMaker(with_texts=True)

    def made(answer: bytes) -> Row:
        return maker.row(ended({}, answer), Caller("c", "stdio 3", "/p"), NOW, "read")

    good = made(frame(content=[{"type": "text", "text": "word " * 100}]))
    assert (good.outcome, good.ms, good.tool, good.kind, good.session) == ("ok", 500.0, "echo", "read", "stdio 3")
    assert 60 < good.tokens < 200
    bad = made(frame(content=[{"type": "text", "text": "it broke\x1b[31m"}], isError=True))
    assert (bad.outcome, bad.error) == ("error", "it broke")
    failed = made(dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}))
    assert (failed.outcome, failed.error) == ("failed", "no")
    large = frame(content=[{"type": "text", "text": "x" * 100_000}], isError=True)
    cut = maker.row(ended({}, ends_of(large))._replace(size=len(large)), Caller("c"), NOW, "")
    assert (cut.received, len(cut.result)) == (len(large), TEXT_MOST)
    assert (cut.outcome, cut.error) == ("error", "x" * ERROR_MOST)


@pytest.mark.requirement("history-kept")
def test_a_large_error_is_no_success() -> None:
    maker = RowMaker(with_texts=True)
    words = 'it "broke"\n' + "word " * 100_000
    large = dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": words}})
    failed = maker.row(ended({}, ends_of(large)), Caller("c"), NOW, "")
    assert failed.outcome == "failed"
    assert failed.error.startswith('it "broke" word word')
    assert failed.result.startswith('{"code":-1')
    told = frame(content=[{"type": "text", "text": '{"error": "none", "isError": true} ' * 1_000}], isError=False)
    assert maker.row(ended({}, ends_of(told)), Caller("c"), NOW, "").outcome == "ok"
    secret = FORMS[0].format(SECRET)
    leaked = frame(content=[{"type": "text", "text": secret + "x" * 100_000 + " " + secret}], isError=True)
    assert not any(SECRET[:12] in str(value) for value in maker.row(ended({}, ends_of(leaked)), Caller("c"), NOW, ""))
