"""Names and errors that attack a terminal, a path or a format string: every verb treats them as plain text."""

from __future__ import annotations

import logging
import string
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.cli.running import FakeGateway, run_cli
from trayapp.catalog.cache import file_name
from trayapp.model.errors import Problem, ServerError
from trayapp.model.lifecycle import State
from trayapp.model.logs import log_name
from trayapp.model.status import GatewayStatus, ServerStatus, SessionStatus, Snapshot
from trayapp.model.text import CONTROLS
from trayapp.service.logging import RedactingFormatter, StderrFiles

HOSTILE = "a\x1b[2J\x1b]0;owned\x07\x9b31m\u202eb\U000e0041%s{0.__class__}$(id)`id`;../../x\r\nFAKE\x08\x00"
FORBIDDEN = "\x1b\x07\x9b\u202e\U000e0041\x08\x00\r"
ERROR = {"title": HOSTILE, "hint": HOSTILE, "code": "x", "exit_code": 5}
FINDING = {"code": HOSTILE, "severity": "high", "where": HOSTILE, "evidence": HOSTILE}
SNAPSHOT = Snapshot(
    1,
    GatewayStatus("running", 1, HOSTILE, 1.0, HOSTILE, (SessionStatus(HOSTILE, HOSTILE, HOSTILE, HOSTILE),)),
    (
        ServerStatus(
            HOSTILE,
            State.FAILED,
            HOSTILE,
            HOSTILE,
            HOSTILE,
            error={"title": HOSTILE, "hint": HOSTILE},
            failed_s_ago=1.0,
            project=HOSTILE,
            approvals=(HOSTILE,),
        ),
    ),
    (Problem(HOSTILE, 1, HOSTILE, HOSTILE, server=HOSTILE),),
).to_json()
ROW = {
    **{"server": HOSTILE, "name": HOSTILE, "exposed_name": HOSTILE, "enabled": False, "stale": False},
    **{"withheld": HOSTILE, "description": HOSTILE, "score": 1.0, "tool": HOSTILE, "held": True, **FINDING},
}
WAITING = {
    **ROW,
    "hash": "h",
    "reason": HOSTILE,
    "changed": True,
    "served": False,
    "findings": [FINDING],
    "difference": [HOSTILE],
}
CONTENT = {"content": [{"type": "text", "text": HOSTILE}, {"type": HOSTILE, "mimeType": HOSTILE}]}
ANSWERS: dict[str, Any] = {
    "snapshot": SNAPSHOT,
    "list": [ROW],
    "search": {
        "results": [[ROW]],
        "hits": [{"name": HOSTILE, "description": HOSTILE, "away": HOSTILE}],
        "missed": [HOSTILE],
    },
    "describe": {
        "server": HOSTILE,
        "name": HOSTILE,
        "exposed_name": HOSTILE,
        "tool": {"name": HOSTILE},
        "text": HOSTILE,
    },
    "index": {"text": HOSTILE},
    "call": {"server": HOSTILE, "tool": HOSTILE, "result": CONTENT},
    "prompt": {
        **{"server": HOSTILE, "prompt": HOSTILE},
        "result": {"description": HOSTILE, "messages": [{"role": HOSTILE, "content": CONTENT["content"][0]}]},
    },
    "refresh": {"servers": {HOSTILE: {"state": HOSTILE, "added": [HOSTILE], "gone": [], "back": [], "error": ERROR}}},
    "reconnect": {"servers": {HOSTILE: {"state": HOSTILE, "error": ERROR}}},
    "approvals": {"rows": [WAITING]},
    "approve": {"approved": [{"server": HOSTILE, "tool": HOSTILE}], "missed": [{"server": HOSTILE, "tool": HOSTILE}]},
    "inspect": {"rows": [ROW], "tools": 1},
    "secret_list": {"names": [HOSTILE], "keyring": "available"},
    "login": ServerError(HOSTILE, HOSTILE, HOSTILE),
    "logout": ServerError(HOSTILE, HOSTILE, HOSTILE),
}
VERBS = [
    ("status",), ("list",), ("search", "x"), ("describe", "x"), ("index",), ("call", "x"), ("prompt", "x"),
    ("refresh",), ("reconnect",), ("approve", "--yes"), ("inspect",), ("secret", "list"), ("auth",), ("auth", "x"),
    ("doctor",), ("auth", "x", "--logout"),
]  # fmt: skip


@pytest.mark.requirement("safe-output")
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_no_verb_lets_a_control_sequence_through(tmp_path: Path, verb: tuple[str, ...]) -> None:
    with FakeGateway(tmp_path, ANSWERS):
        for words in (verb, (*verb, "--json")):
            done = run_cli(tmp_path, *words)
            shown = done.stdout + done.stderr
            assert "Traceback" not in shown
            assert [letter for letter in FORBIDDEN if letter in shown] == []
            assert CONTROLS.search(shown) is None


@pytest.mark.requirement("safe-output")
def test_a_log_holds_no_control_sequence_and_no_line_that_a_server_made_up(tmp_path: Path) -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 0, "%s said: %s", ("s", HOSTILE), None)
    text = RedactingFormatter("%(levelname)s %(message)s").format(record)
    assert CONTROLS.search(text) is None
    assert all(line.startswith(("WARNING ", "    ")) for line in text.split("\n"))
    files = StderrFiles(tmp_path)
    sink = files.sink("s")
    sink(f"{HOSTILE}\n\x1b]0;without end\nnext line\n".encode())
    sink(b"")
    written = (tmp_path / "s.log").read_text()
    assert CONTROLS.search(written) is None
    assert "next line" in written


NAMES = st.text(min_size=0, max_size=300) | st.text(alphabet="./\\:~%$`;|&<>\n\x00-_a ", max_size=40)


@pytest.mark.requirement("safe-names")
@settings(deadline=None, max_examples=300)
@given(NAMES)
@example("../../etc/passwd")
@example("C:\\x")
@example("CON")
@example("a/b")
@example("\ud800")
@example("%s{0}")
def test_no_name_leads_out_of_a_folder_or_means_something_to_a_shell(name: str) -> None:
    plain = set(string.ascii_letters + string.digits + "._-%")
    for made in (file_name(name), log_name(name)):
        assert PurePosixPath(made).name == made == PureWindowsPath(made).name
        assert set(made) <= plain
        assert len(made.encode()) <= 200
        assert not made.startswith(".")
    assert file_name(name) != file_name(name + "x")


@pytest.mark.requirement("safe-names")
@settings(deadline=None, max_examples=100)
@given(NAMES)
@example("%s %d %(x)s {0.__class__}")
def test_no_name_is_taken_for_a_format(name: str) -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 0, "%s", (name,), None)
    RedactingFormatter("%(message)s").format(record)
    assert str(ServerError(name, name, name)) == (f"{name}. {name}" if name else name)
