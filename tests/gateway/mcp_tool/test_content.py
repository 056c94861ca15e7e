"""Substitutes for content parts that a client's protocol revision does not know."""

from __future__ import annotations

from typing import Any

import pytest

from trayapp.gateway.mcp_tool.results import fitted, fitted_part, stand_in
from trayapp.wire.revisions import KNOWN_PARTS

FIRST, SECOND, NEWEST, UNKNOWN = "2024-11-05", "2025-03-26", "2025-11-25", "2099-01-01"
IMAGE = {"type": "image", "data": "QQ==", "mimeType": "image/jpeg"}
RESOURCE = {"type": "resource", "resource": {"uri": "u://1", "text": "body"}}
LINK = {"type": "resource_link", "uri": "u://2", "name": "N"}
AUDIO = {"type": "audio", "mimeType": "audio/wav"}


@pytest.mark.requirement("one-tool-content")
@pytest.mark.parametrize(
    ("case", "part", "text"),
    [
        ("content-05", RESOURCE, "[Resource: u://1]\nbody"),
        ("content-06", {"type": "resource", "resource": {"uri": "u://1"}}, '[Resource: u://1]\n{"uri":"u://1"}'),
        ("content-07", {"type": "resource"}, "[Resource: (no URI)]\n(no content)"),
        ("content-08", LINK, "[Resource Link: N]\nURI: u://2"),
        ("content-09", {"type": "resource_link", "uri": "u://2"}, "[Resource Link: u://2]\nURI: u://2"),
        ("content-10", {"type": "resource_link"}, "[Resource Link: unknown]\nURI: (no URI)"),
        ("content-11", AUDIO, "[Audio content: audio/wav]"),
        ("content-12", {"type": "audio"}, "[Audio content: audio/*]"),
        ("content-13", {"type": "weird", "foo": 1}, '{"type":"weird","foo":1}'),
        ("-", "text without a part", '"text without a part"'),
        ("-", {"no": "type"}, '{"no":"type"}'),
        ("-", {"type": 5}, '{"type":5}'),
    ],
)
def test_a_part_has_words_that_stand_for_it(case: str, part: Any, text: str) -> None:
    assert stand_in(part) == text


@pytest.mark.requirement("one-tool-content")
@pytest.mark.parametrize(
    ("protocol", "kept"),
    [
        (FIRST, [IMAGE, RESOURCE]),
        (SECOND, [IMAGE, RESOURCE, AUDIO]),
        ("2025-06-18", [IMAGE, RESOURCE, AUDIO, LINK]),
        (NEWEST, [IMAGE, RESOURCE, AUDIO, LINK]),
        ("2026-07-28", [IMAGE, RESOURCE, AUDIO, LINK]),
        (UNKNOWN, [IMAGE, RESOURCE, AUDIO, LINK, {"type": "weird"}]),
    ],
)
def test_each_revision_gets_what_it_knows_as_it_is_and_words_for_the_rest(protocol: str, kept: list[Any]) -> None:
    """A part becomes text only for clients whose revision does not have it."""
    parts = [IMAGE, RESOURCE, AUDIO, LINK, {"type": "weird"}]
    shown = [fitted_part(part, protocol) for part in parts]
    assert [part for part in shown if part in parts] == kept
    assert all(part["type"] == "text" for part in shown if part not in kept)


@pytest.mark.parametrize("protocol", [FIRST, NEWEST, UNKNOWN])
def test_what_a_text_or_an_image_must_have_is_there(protocol: str) -> None:
    """Strict clients drop the whole result if a part lacks a required member."""
    assert fitted_part({"type": "text"}, protocol) == {"type": "text", "text": ""}
    assert fitted_part({"type": "image", "x": 1}, protocol) == {
        "type": "image",
        "x": 1,
        "data": "",
        "mimeType": "image/png",
    }


@pytest.mark.parametrize(
    ("result", "protocol", "texts"),
    [
        ({"content": [], "structuredContent": {"a": 1}}, SECOND, ['{"a":1}']),
        ({"content": [], "structuredContent": None}, SECOND, []),
        ({"structuredContent": {"a": 1}}, FIRST, ['{"a":1}']),
        ({"content": [], "structuredContent": {"a": 1}}, NEWEST, ['{"a":1}']),
        ({"content": [{"type": "text", "text": "said"}], "structuredContent": {"a": 1}}, SECOND, ["said"]),
        ({}, NEWEST, []),
        ({"content": "no list"}, FIRST, []),
    ],
)
def test_structured_content_alone_becomes_text_as_well(result: dict[str, Any], protocol: str, texts: list[str]) -> None:
    assert [part["text"] for part in fitted(result, protocol)["content"]] == texts


@pytest.mark.parametrize("protocol", list(KNOWN_PARTS))
def test_a_result_that_fits_is_the_very_same_one(protocol: str) -> None:
    """If a part has to be replaced, the order, flags and unknown members stay."""
    result = {"content": [{"type": "text", "text": "a", "x": 1}, IMAGE], "isError": True, "_meta": {"m": 1}, "new": 2}
    assert fitted(result, protocol) is result
    other = fitted({**result, "content": [*result["content"], {"type": "weird"}]}, protocol)  # type: ignore[misc]
    assert {key: other[key] for key in ("isError", "_meta", "new")} == {"isError": True, "_meta": {"m": 1}, "new": 2}
    assert other["content"][:2] == result["content"]
