"""The lists of a server for each kind of client, and their union."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from trayapp.catalog.variants import (
    Variant,
    as_json,
    best_variant,
    from_json,
    names_of,
    union_offer,
    with_eras,
    with_variant,
)
from trayapp.model.offer import Offer
from trayapp.wire.capabilities import ClientKind

pytestmark = pytest.mark.requirement("lists-for-each-kind")

ABLE = ClientKind(able=frozenset({"roots", "sampling"}))
WEAK = ClientKind()
NEWER = ClientKind(newer=True, able=ABLE.able)


def offer(*tools: str) -> Offer:
    return Offer(tuple({"name": name} for name in tools))


def tools(found: Offer) -> list[str]:
    """Return the names of the offer's tools, in order."""
    return [item["name"] for item in found.tools]


def test_one_reading_is_what_everybody_sees() -> None:
    variants = with_variant((), ABLE, names_of(offer("a")))
    assert best_variant(variants, WEAK) is None
    assert as_json(variants) == []


def test_each_kind_sees_what_was_listed_for_the_nearest_one() -> None:
    variants = with_variant((), NEWER, names_of(offer("a", "new")))
    variants = with_variant(variants, ABLE, names_of(offer("a", "ask")))
    variants = with_variant(variants, WEAK, names_of(offer("a")))
    seen = {kind: best_variant(variants, kind) for kind in (NEWER, ABLE, WEAK)}
    assert {kind: sorted(found.names["tools"]) for kind, found in seen.items() if found} == {
        NEWER: ["a", "new"], ABLE: ["a", "ask"], WEAK: ["a"],
    }  # fmt: skip
    nearly = best_variant(variants, ClientKind(able=frozenset({"sampling", "roots", "roots.listChanged"})))
    assert nearly is not None
    assert nearly.kind == ABLE
    variants = with_variant(variants, ABLE, names_of(offer("a", "ask")), {"name": "older"})
    assert from_json(as_json(variants)) == variants


def test_the_offer_is_what_all_kinds_are_listed_in_the_known_order() -> None:
    first = offer("a", "new", "z")
    variants = with_variant(with_variant((), NEWER, names_of(first)), ABLE, names_of(offer("z", "old")))
    union = union_offer(offer("z", "old"), first, variants, probed=True)
    assert tools(union) == ["a", "new", "z", "old"]
    again = with_variant(variants, NEWER, names_of(offer("a", "new", "z")))
    assert union_offer(first, union, again, probed=False) == union


def test_a_tool_that_is_gone_is_gone_for_every_kind() -> None:
    first = offer("a", "b", "new")
    variants = with_variant(with_variant((), NEWER, names_of(first)), ABLE, names_of(offer("a", "b")))
    later = with_variant(variants, NEWER, names_of(offer("a", "new")))
    assert tools(union_offer(offer("a", "new"), first, later, probed=False)) == ["a", "new"]
    found = best_variant(later, ABLE)
    assert found is not None
    assert found.names["tools"] == {"a"}


@pytest.mark.parametrize("raw", [None, 5, [{}], [{"newer": 1, "able": 2, "names": {}}]])
def test_a_file_that_says_something_else_says_nothing(raw: object) -> None:
    assert from_json(raw) == ()


# -- definitions of each era -----------------------------------------------------------------------------------------


def read(
    known: Offer | None, variants: tuple[Variant, ...], kind: ClientKind, probed: bool = False, **tools: str
) -> tuple[Offer, Any]:
    """Return the offer and variants after reading a server as that kind of client. `tools`: descriptions by name."""
    found = Offer(tuple({"name": name, "description": text} for name, text in tools.items()))
    after = with_variant(variants, kind, names_of(found))
    found = with_eras(found, known, variants, after, newer=kind.newer)
    return union_offer(found, known, after, probed=probed), after


def described(found: Offer, *, newer: bool) -> dict[str, str]:
    """Return the descriptions that clients of that era get."""
    older = {} if newer else {item["name"]: item["description"] for item in found.older.get("tools", ())}
    return {item["name"]: item["description"] for item in found.tools} | older


@pytest.mark.parametrize("order", [(NEWER, ABLE), (ABLE, NEWER)], ids=["newer first", "older first"])
def test_each_era_keeps_its_own_definition_whichever_is_read_last(order: tuple[ClientKind, ...]) -> None:
    says = {NEWER: {"a": "new", "same": "x"}, ABLE: {"a": "old", "same": "x"}}
    found, variants = None, tuple[Variant, ...]()
    for kind in (*order, *order, *reversed(order)):
        found, variants = read(found, variants, kind, probed=False, **says[kind])
    assert found is not None
    assert described(found, newer=True) == says[NEWER]
    assert described(found, newer=False) == says[ABLE]
    assert [item["name"] for item in found.older["tools"]] == ["a"]


SAYS: list[tuple[str, dict[ClientKind, Any]]] = [
    ("instructions", {NEWER: "new", ABLE: "old"}),
    ("instructions", {NEWER: None, ABLE: "old"}),
    ("instructions", {NEWER: "new", ABLE: None}),
    ("capabilities", {NEWER: {"extensions": {"tasks": {}}}, ABLE: {"tasks": {"list": {}}}}),
    ("capabilities", {NEWER: None, ABLE: {"tasks": {}}}),
    ("capabilities", {NEWER: {"tasks": {}}, ABLE: None}),
]


@pytest.mark.requirement("capabilities-of-each-era")
@pytest.mark.parametrize("probed", [False, True])
@pytest.mark.parametrize("order", [(NEWER, ABLE), (ABLE, NEWER)], ids=["newer first", "older first"])
@pytest.mark.parametrize(("member", "says"), SAYS)
def test_each_era_keeps_what_the_server_says_of_itself_whichever_is_read_last(
    member: str, says: dict[ClientKind, Any], order: tuple[ClientKind, ...], probed: bool
) -> None:
    known, variants = None, tuple[Variant, ...]()
    for kind in (*order, *order, *reversed(order)):
        found = replace(offer("a"), **{member: says[kind]})
        after = with_variant(variants, kind, names_of(found))
        found = with_eras(found, known, variants, after, newer=kind.newer)
        known, variants = union_offer(found, known, after, probed=probed and known is not None), after
    assert known is not None
    assert (getattr(known, member), getattr(known, f"older_{member}") or None) == (says[NEWER], says[ABLE])


@pytest.mark.requirement("lists-steady")
@pytest.mark.parametrize("probed", [False, True])
@pytest.mark.parametrize("order", [(NEWER, ABLE), (ABLE, NEWER)], ids=["newer first", "older first"])
def test_what_the_newer_era_says_beside_its_lists_stays_whichever_is_read_last(
    order: tuple[ClientKind, ...], probed: bool
) -> None:
    beside: dict[ClientKind, Any] = {
        NEWER: {"ttl_ms": 0, "results": {"tools": {"x": 1}}}, ABLE: {"ttl_ms": None, "results": {}},
    }  # fmt: skip
    known, variants = None, tuple[Variant, ...]()
    for kind in (*order, *order, *reversed(order)):
        found = replace(offer("a"), **beside[kind])
        after = with_variant(variants, kind, names_of(found))
        found = with_eras(found, known, variants, after, newer=kind.newer)
        known, variants = union_offer(found, known, after, probed=probed and known is not None), after
        if len(variants) > 1:
            assert (known.ttl_ms, known.results) == (0, {"tools": {"x": 1}})


def test_what_the_server_says_of_itself_in_both_eras_is_kept_once() -> None:
    found = replace(offer("a"), instructions="same", capabilities={"tools": {}})
    newer = with_variant((), NEWER, names_of(found))
    both = with_eras(found, found, newer, with_variant(newer, ABLE, names_of(found)), newer=False)
    assert (both.instructions, both.capabilities, both.of_older_era) == ("same", {"tools": {}}, None)


def test_what_both_eras_defined_alike_changes_in_both_until_the_older_one_says_otherwise() -> None:
    found, variants = read(None, (), NEWER, a="new", same="x")
    found, variants = read(found, variants, ABLE, a="old", same="x")
    found, variants = read(found, variants, NEWER, a="newer", same="y")
    assert described(found, newer=True) == {"a": "newer", "same": "y"}
    assert described(found, newer=False) == {"a": "old", "same": "y"}
    found, variants = read(found, variants, ABLE, a="newer", same="z")
    assert described(found, newer=True) == {"a": "newer", "same": "y"}
    assert described(found, newer=False) == {"a": "newer", "same": "z"}
    found, variants = read(found, variants, NEWER, a="newer", same="z")
    assert described(found, newer=True) == described(found, newer=False) == {"a": "newer", "same": "z"}
    assert found.older == {}


def test_a_tool_that_the_older_era_had_first_is_defined_by_the_newer_one_once_that_has_it() -> None:
    found, variants = read(None, (), NEWER, a="new")
    found, variants = read(found, variants, ABLE, a="old", more="old")
    found, variants = read(found, variants, NEWER, probed=True, a="new", more="new")
    assert described(found, newer=True) == {"a": "new", "more": "new"}
    assert described(found, newer=False) == {"a": "old", "more": "old"}


def test_the_older_definition_of_a_tool_that_is_gone_is_gone() -> None:
    found, variants = read(None, (), NEWER, a="new", b="new")
    found, variants = read(found, variants, ABLE, a="old", b="old")
    found, _ = read(found, variants, ABLE, a="old")
    assert found.older == {"tools": ({"name": "a", "description": "old"},)}
