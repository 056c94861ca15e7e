"""A tool's result as text. Never here: calling, printing."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.cli.call import result_text


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"type": "text", "text": "two\nlines"}, "two\nlines"),
        ({"type": "text", "text": "\x1b[31mred\x1b[0m"}, "red"),
        ({"type": "image", "mimeType": "image/png", "data": "A" * 16000}, "[image, image/png, 12 kB]"),
        ({"type": "audio", "mimeType": "audio/wav", "data": "AAA="}, "[audio, audio/wav, 2 bytes]"),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}, "inside"),
        ({"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA"}}, "[resource, file:///a, 3 bytes]"),
        ({"type": "resource_link", "name": "a.txt", "uri": "file:///a.txt"}, "[link, a.txt, file:///a.txt]"),
        ({"type": "hologram", "x": 1}, "[hologram]"),
        ({"type": "image\n\x1b[2J", "data": 5}, "[image]"),
        ({"no": "type"}, "[None]"),
        ({"type": "resource", "resource": "odd"}, "[resource]"),
    ],
)
def test_each_block_is_its_text_or_a_line_in_its_place(block: dict[str, Any], shown: str) -> None:
    assert result_text({"content": [block]}) == shown


def test_structured_content_is_shown_where_there_is_no_text() -> None:
    assert result_text({"content": [], "structuredContent": {"n": 1}}) == '{\n  "n": 1\n}'
    both = {"content": [{"type": "text", "text": "n is 1"}], "structuredContent": {"n": 1}}
    assert result_text(both) == "n is 1"


@pytest.mark.parametrize("result", [{}, {"content": None}, {"content": ["odd", 5]}])
def test_a_result_without_content_is_empty_text(result: dict[str, Any]) -> None:
    assert result_text(result) == ""
