"""Tests of the shim's ledger of a session: open calls, the replay, and the errors after a gateway is gone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.shim.ledger import (
    GATEWAY_LOST,
    LOST,
    PAUSED,
    REFUSED,
    Ledger,
    answer_id,
    lines_of,
    messages_of,
    quick_id,
)
from trayapp.wire.jsonio import dumps, loads

INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"x":1}}\n'
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
ANSWERED = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}\n'

texts = st.text(st.characters(exclude_categories=()), max_size=12)
numbers = st.integers(-(10**25), 10**25)
ids = st.one_of(numbers, texts, st.sampled_from([0, -1, 2**53, 10**17, 10**18, "", "0", "é", '"', "\\", "\u2028"]))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=5,
)
spaces = st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : "), (",\r", ":\t")])


@st.composite
def lines(draw: st.DrawFn, message: dict[str, Any]) -> bytes:
    """Return the message as a line. Hypothesis draws the order of members, spacing, escaping and line end."""
    members = draw(st.permutations(list(message.items())))
    text = json.dumps(dict(members), separators=draw(spaces), ensure_ascii=draw(st.booleans()))
    return text.encode("utf-8", "surrogatepass") + draw(st.sampled_from([b"\n", b"\r\n", b" \n"]))


@st.composite
def requests(draw: st.DrawFn, method: str = "tools/call") -> tuple[Any, bytes]:
    request_id = draw(ids)
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {"name": draw(texts), "x": draw(values)}}
    return request_id, draw(lines(message))


def open_ids(ledger: Ledger) -> list[Any]:
    return [json.loads(id_json) for id_json in ledger.open]


def call(request_id: Any, method: str = "tools/call", **params: Any) -> bytes:
    return dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}) + b"\n"


def answer(request_id: Any) -> bytes:
    return dumps({"jsonrpc": "2.0", "id": request_id, "result": {}}) + b"\n"


def errors(data: bytes) -> list[tuple[Any, int, str]]:
    found = [json.loads(line) for line in data.splitlines()]
    return [(error["id"], error["error"]["code"], error["error"]["message"]) for error in found]


def started() -> Ledger:
    ledger = Ledger()
    ledger.record_client_lines(INITIALIZE)
    ledger.record_gateway_lines(ANSWERED)
    ledger.record_client_lines(INITIALIZED)
    return ledger


# -- open calls ------------------------------------------------------------------------------------------------------


@given(requests())
def test_a_request_is_open_under_its_id_however_it_is_written(request: tuple[Any, bytes]) -> None:
    ledger = Ledger()
    ledger.record_client_lines(request[1])
    assert open_ids(ledger) == [request[0]]


@given(requests(), st.booleans(), values)
def test_an_answer_as_gateway_and_servers_write_it_closes_it(
    request: tuple[Any, bytes], id_first: bool, result: Any
) -> None:
    line = request[1]
    ledger = Ledger()
    ledger.record_client_lines(line)
    as_the_gateway_read_it = dumps(loads(line)["id"])
    parts = [b'"id":' + as_the_gateway_read_it, b'"result":' + json.dumps(result).encode()]
    ledger.record_gateway_lines(b'{"jsonrpc":"2.0",' + b",".join(parts if id_first else reversed(parts)) + b"}\n")
    assert ledger.open == {}


def test_the_beginning_of_an_answer_closes_its_call_unless_it_may_be_one_of_our_own() -> None:
    ledger = started()
    ledger.record_client_lines(call(5, "tools/list") + call(6, "tools/list"))
    beginnings = (b'{"jsonrpc":"2.0","id":5,"method":"x', b'{"result":{"x', b'{"jsonrpc":"2.0","id":"5","result":')
    assert not any(map(ledger.begins_answer, beginnings))
    assert ledger.begins_answer(b'{"jsonrpc":"2.0","id":6,"result":{"x')
    assert open_ids(ledger) == [5]
    ledger.fail_open_calls()
    ledger.replay()
    assert not ledger.begins_answer(answer(1)[:-5])


@given(st.one_of(requests(), requests("tools/list")), st.binary(max_size=20))
def test_the_quick_look_says_what_the_parser_says_or_nothing(request: tuple[Any, bytes], junk: bytes) -> None:
    line = request[1]
    quick = quick_id(line, b'"method":"tools/call"', b'{"method":"tools/call"')
    assert quick in (None, dumps(json.loads(line)["id"]))
    quick_id(junk, b'"method":"tools/call"', b'{"method":"tools/call"')
    quick_id(line[: len(junk)] + junk, b'"method":"tools/call"', b'{"method":"tools/call"')


@pytest.mark.parametrize(
    ("line", "quick"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}\n', b"7"),
        (b'{"jsonrpc":"2.0","id":0,"method":"tools/call"}\n', b"0"),
        (b'{"method":"tools/call","params":{"id":1},"jsonrpc":"2.0","id":12}\n', b"12"),
        (b'{"method":"tools/call","params":{"a":1,"id":5}}\n', None),
        (b'{"method":"tools/call","params":{},"id":5 }\n', None),
        (b'{"jsonrpc":"2.0","id":007,"method":"tools/call"}\n', None),
        (b'{"jsonrpc":"2.0","id":-7,"method":"tools/call"}\n', None),
        (b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}\n', None),
        (b'{"jsonrpc":"2.0","id":"7","method":"tools/call"}\n', None),
        (b'{"jsonrpc":"2.0","id":1e2,"method":"tools/call"}\n', None),
        (b'{"jsonrpc":"2.0","id":7', None),
        (b'{"jsonrpc":"2.0","id":', None),
    ],
)
def test_the_quick_look_takes_only_the_two_usual_forms(line: bytes, quick: bytes | None) -> None:
    assert quick_id(line, b'"method":"tools/call"', b'{"method":"tools/call"') == quick


@given(st.lists(st.tuples(ids, st.sampled_from(["tools/call", "ping"])), max_size=4), st.lists(ids, max_size=2))
def test_a_batch_is_its_messages(batch: list[tuple[Any, str]], answers: list[Any]) -> None:
    parts: list[Any] = [{"jsonrpc": "2.0", "id": n, "method": m} for n, m in batch]
    parts += [{"jsonrpc": "2.0", "id": n, "result": {}} for n in answers]
    line = json.dumps([*parts, 7, None, {"method": 5}]).encode() + b"\n"
    ledger = Ledger()
    ledger.record_client_lines(line)
    assert open_ids(ledger) == list(dict.fromkeys(n for n, _ in batch))
    assert [error[0] for error in errors(Ledger().refuse_requests(line))] == [n for n, _ in batch]


@pytest.mark.parametrize(
    "line",
    [
        INITIALIZED,
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n',
        b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n',
        b'{"jsonrpc":"2.0","id":[1],"method":"ping"}\n',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n',
        b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":5}\n',
        b'{"id":1,"method"\n',
        b"[1,2]\n",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b"\n",
        b"",
    ],
)
def test_what_gets_no_answer_is_not_open_and_starts_no_gateway(line: bytes) -> None:
    ledger = Ledger()
    assert not ledger.has_request(line)
    assert ledger.refuse_requests(line) == b""
    ledger.record_client_lines(line)
    assert ledger.open == {}
    assert ledger.fail_open_calls() == b""


@given(ids)
def test_a_cancelled_call_is_not_open(request_id: Any) -> None:
    ledger = Ledger()
    ledger.record_client_lines(call(1000) + call(request_id))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
    ledger.record_client_lines(dumps(cancel) + b"\n")
    assert open_ids(ledger) == [n for n in [1000] if n != request_id]


def test_requests_of_servers_and_answers_of_the_client_change_nothing() -> None:
    ledger = Ledger()
    ledger.record_client_lines(call(1))
    ledger.record_gateway_lines(b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}\n')
    ledger.record_client_lines(b'{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}\n')
    ledger.record_gateway_lines(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":1}}\n')
    assert open_ids(ledger) == [1]
    ledger.record_gateway_lines(b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":""}}\n')
    assert ledger.open == {}


@given(st.binary())
def test_lines_are_ended_by_newlines_alone(data: bytes) -> None:
    whole = data + b"\n"
    assert b"".join(lines_of(whole)) == whole
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines_of(whole))
    assert lines_of(b"") == []


# -- the gateway is gone ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("shim-never-calls-twice", "shim-stdout-clean")
@given(st.lists(requests(), max_size=6, unique_by=lambda request: (type(request[0]), request[0])), st.integers(0, 6))
def test_each_open_call_gets_one_error_and_is_never_in_what_is_replayed(
    calls: list[tuple[Any, bytes]], answered: int
) -> None:
    ledger = started()
    ledger.record_client_lines(b"".join(line for _, line in calls if json.loads(line)["id"] != 0))
    sent = [request_id for request_id, _ in calls if request_id != 0]
    ledger.record_gateway_lines(b"".join(answer(request_id) for request_id in sent[:answered]))
    assert errors(ledger.fail_open_calls()) == [(request_id, LOST, GATEWAY_LOST) for request_id in sent[answered:]]
    assert ledger.fail_open_calls() == b""
    assert ledger.replay() == INITIALIZE + INITIALIZED


@pytest.mark.requirement("shim-replays-handshake")
def test_an_unanswered_initialize_is_no_error_but_sent_again_and_its_answer_passed_on() -> None:
    ledger = Ledger()
    ledger.record_client_lines(INITIALIZE + call(5, "ping"))
    assert errors(ledger.fail_open_calls()) == [(5, LOST, GATEWAY_LOST)]
    assert ledger.replay() == INITIALIZE
    assert not ledger.own_ids
    assert ledger.drop_own_answers(ANSWERED) == ANSWERED
    ledger.record_gateway_lines(ANSWERED)
    assert ledger.open == {}
    assert ledger.fail_open_calls() == b""
    assert ledger.replay() == INITIALIZE
    assert ledger.drop_own_answers(ANSWERED) == b""
    assert not ledger.own_ids


def test_an_initialize_that_nobody_can_answer_gets_an_error_and_is_forgotten() -> None:
    ledger = Ledger()
    ledger.record_client_lines(INITIALIZE)
    ledger.fail_open_calls()
    assert errors(ledger.fail_initialize()) == [(0, LOST, REFUSED)]
    assert ledger.fail_initialize() == b""
    assert ledger.replay() == b""


@pytest.mark.requirement("shim-replays-handshake")
def test_level_and_subscriptions_are_replayed_as_they_stand_under_ids_of_our_own() -> None:
    ledger = started()
    ledger.record_client_lines(call(1, "logging/setLevel", level="debug") + call(2, "resources/subscribe", uri="a://1"))
    ledger.record_client_lines(
        b"[" + call(3, "resources/subscribe", uri="a://2").strip() + b"," + call(4).strip() + b"]\n"
    )
    ledger.record_client_lines(
        call(5, "resources/unsubscribe", uri="a://1") + call(6, "logging/setLevel", level="error")
    )
    ledger.record_gateway_lines(b"".join(answer(n) for n in range(1, 7)))
    first, second, *rest = ledger.replay().splitlines(keepends=True)
    assert (first, second) == (INITIALIZE, INITIALIZED)
    replayed = [json.loads(line) for line in rest]
    assert [(m["method"], m["params"]) for m in replayed] == [
        ("logging/setLevel", {"level": "error"}),
        ("resources/subscribe", {"uri": "a://2"}),
    ]
    told = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
    answers = [answer(m["id"]) for m in replayed]
    assert ledger.drop_own_answers(told + ANSWERED + answers[1]) == told
    assert ledger.own_ids == {dumps(replayed[0]["id"])}
    refused = dumps({"jsonrpc": "2.0", "id": replayed[0]["id"], "error": {"code": 1, "message": "no"}}) + b"\n"
    assert ledger.drop_own_answers(refused + answer(9)) == answer(9)
    assert ledger.drop_own_answers(ANSWERED) == ANSWERED  # an answer is dropped only once


@pytest.mark.requirement("shim-replays-handshake")
def test_an_open_subscription_of_a_newer_client_is_no_error_but_sent_again_and_its_end_passed_on() -> None:
    ledger = Ledger()
    listens = [call(n, "subscriptions/listen", notifications={"toolsListChanged": True}) for n in (1, "2", 3, 4)]
    ledger.record_client_lines(b"".join(listens) + call(5))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}
    ledger.record_client_lines(dumps(cancel) + b"\n")
    ledger.record_gateway_lines(answer(4))
    for failed in ([(5, LOST, GATEWAY_LOST)], []):
        assert errors(ledger.fail_open_calls()) == failed
        assert ledger.replay() == listens[0] + listens[1]
    assert not ledger.has_open_handshake
    assert ledger.fail_initialize() == b""
    assert ledger.drop_own_answers(answer(1)) == answer(1)
    ledger.record_gateway_lines(answer(1))
    assert ledger.replay() == listens[1]


def test_a_second_handshake_takes_the_place_of_the_first() -> None:
    ledger = started()
    again = call(9, "initialize", protocolVersion="x")
    ledger.record_client_lines(again)
    ledger.record_gateway_lines(answer(9))
    assert ledger.replay() == again + INITIALIZED


@pytest.mark.requirement("shim-replays-handshake")
def test_that_the_client_is_ready_is_kept_even_when_nobody_hears_it() -> None:
    ledger = Ledger()
    ledger.record_client_lines(INITIALIZE)
    ledger.record_gateway_lines(ANSWERED)
    assert ledger.fail_open_calls() == b""
    assert ledger.refuse_requests(INITIALIZED) == b""
    assert ledger.replay() == INITIALIZE + INITIALIZED


@given(requests(), st.sampled_from(["initialize", "logging/setLevel", "tools/call"]))
def test_a_request_that_nobody_could_be_found_for_is_refused_and_not_remembered(
    request: tuple[Any, bytes], method: str
) -> None:
    ledger = Ledger()
    line = request[1].replace(b"tools/call", method.encode())
    assert ledger.has_request(line)
    assert [error[0] for error in errors(ledger.refuse_requests(INITIALIZED + line))] == [json.loads(line)["id"]]
    assert ledger.open == {}
    assert ledger.replay() == b""


@given(st.binary())
def test_no_junk_breaks_the_ledger(junk: bytes) -> None:
    ledger = started()
    data = junk + b"\n"
    ledger.record_client_lines(data)
    ledger.record_gateway_lines(data)
    ledger.replay()
    ledger.drop_own_answers(data)
    for line in (ledger.fail_open_calls() + ledger.refuse_requests(data)).splitlines():
        json.loads(line)
    for line in lines_of(data):
        answer_id(line)
        messages_of(line)


def test_while_multi_mcp_is_paused_the_error_says_so() -> None:
    ledger = Ledger()
    ledger.note_failed_start(is_paused=True)
    assert errors(ledger.refuse_requests(b'{"id":1,"method":"tools/call"}\n')) == [(1, LOST, PAUSED)]
    ledger.note_failed_start(is_paused=False)
    assert errors(ledger.refuse_requests(b'{"id":1,"method":"tools/call"}\n')) == [(1, LOST, REFUSED)]
