"""The minimal client with the real null server: correct answers pass, and anything else breaks the measurement."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.benchmarks.client import BrokenError, Client, echo, verify_echo, verify_echoes
from tests.benchmarks.ways import NULL_SERVER, environment


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(NULL_SERVER, environment()) as client:
        client.initialize()
        yield client


def answer(number: int, text: str = "abc") -> bytes:
    result = {"content": [{"type": "text", "text": text}]}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


def test_the_null_server_lists_its_tool(client: Client) -> None:
    assert client.tools() == ["echo"]


@pytest.mark.parametrize("size", [0, 1, 100, 200_000])
def test_single_calls_are_timed_each(client: Client, size: int) -> None:
    assert len(client.timed("echo", size, 3)) == 3


@pytest.mark.parametrize(("calls", "in_flight"), [(1, 1), (5, 64), (300, 8), (301, 1)])
def test_many_calls_at_once_all_get_their_answer(client: Client, calls: int, in_flight: int) -> None:
    assert client.flood("echo", 10, calls, in_flight) > 0
    assert client.tools() == ["echo"]  # no answer was left unread


def test_an_unknown_method_breaks_the_measurement(client: Client) -> None:
    with pytest.raises(BrokenError, match="Method not found"):
        client.ask("resources/list", {})


def test_a_process_that_ends_breaks_the_measurement(client: Client) -> None:
    client.process.kill()
    client.process.wait()
    with pytest.raises(BrokenError, match=r"gone|went away"):
        client.ask("ping", {})


@pytest.mark.parametrize(
    "frame",
    [
        b"not JSON",
        b"[]",
        answer(8),
        answer(7, "ab"),
        b'{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":7,"result":{"isError":true,"content":[{"type":"text","text":"abc"}]}}',
        b'{"jsonrpc":"2.0","id":7,"result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":"7","result":{"content":[{"type":"text","text":"abc"}]}}',
    ],
)
def test_a_wrong_answer_cannot_count_as_a_fast_one(frame: bytes) -> None:
    verify_echo(answer(7), 7, 3)
    with pytest.raises(BrokenError):
        verify_echo(frame, 7, 3)


@pytest.mark.parametrize("numbers", [[1, 2], [1, 2, 2], [1, 2, 4], [1, 2, 3, 3]])
def test_each_request_must_be_answered_once(numbers: list[int]) -> None:
    verify_echoes([answer(number) for number in (3, 1, 2)], range(1, 4), 3)
    with pytest.raises(BrokenError):
        verify_echoes([answer(number) for number in numbers], range(1, 4), 3)


def test_a_request_is_one_line() -> None:
    assert echo(4, "null_echo", 100).count(b"\n") == 1
