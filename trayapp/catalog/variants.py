"""Lists of a server per kind of client: a server may list less for a client of another era or with fewer capabilities.

Its offer is the union of all variants. Never here: reading lists, deciding which kinds to read them for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trayapp.catalog.merge import ITEM_KEYS
from trayapp.model.offer import Item, Offer
from trayapp.wire.capabilities import ClientKind

VARIANTS_MOST = 8  # per server; the least recently read ones are dropped

Names = Mapping[str, frozenset[str]]  # list -> the names of its items


@dataclass(frozen=True, slots=True)
class Variant:
    """The names of what a server listed for one kind of client, and how it described itself to that kind."""

    kind: ClientKind
    names: Names
    server_info: Item | None = None


def names_of(offer: Offer) -> Names:
    """Return the names of all items, by list."""
    return {
        kind: frozenset(name for item in getattr(offer, kind) if isinstance(name := item.get(member), str))
        for kind, member in ITEM_KEYS.items()
    }


def with_variant(
    variants: tuple[Variant, ...], kind: ClientKind, names: Names, server_info: Item | None = None
) -> tuple[Variant, ...]:
    """Return the variants after the lists were read for that kind.

    What appeared or disappeared since the last time is applied to the variants that listed the same before.
    """
    before = next((one.names for one in variants if one.kind == kind), None)
    others = [one for one in variants if one.kind != kind]
    if before is not None:
        others = [_changed(one, before, names) for one in others]
    return (Variant(kind, names, server_info), *others)[:VARIANTS_MOST]


def _changed(variant: Variant, before: Names, now: Names) -> Variant:
    names = {
        kind: now[kind] if listed == before[kind] else listed - (before[kind] - now[kind])
        for kind, listed in variant.names.items()
    }
    return replace(variant, names=names)


def best_variant(variants: tuple[Variant, ...], kind: ClientKind) -> Variant | None:
    """Return the variant that a client of that kind would see; None if all see the same."""
    if all(one.names == variants[0].names for one in variants):
        return None
    return nearest_variant(variants, kind)


def nearest_variant(variants: tuple[Variant, ...], kind: ClientKind) -> Variant | None:
    """Return the variant that was read for the nearest kind, of the same era if there is any."""
    of_era = [one for one in variants if one.kind.newer == kind.newer] or variants
    return max(of_era, key=lambda one: len(one.kind.able & kind.able) - len(one.kind.able - kind.able), default=None)


def union_offer(offer: Offer, known: Offer | None, variants: tuple[Variant, ...], *, probed: bool) -> Offer:
    """Return an offer with the items that only other variants have, in the known order.

    `probed`: it was read for another kind of client only, so known items do not change.
    """
    if known is None or len(variants) < 2:
        return offer
    lists: dict[str, Any] = {}
    for kind, member in ITEM_KEYS.items():
        wanted = frozenset[str]().union(*(one.names[kind] for one in variants))
        fresh = {item.get(member): item for item in getattr(offer, kind)}
        old: list[Item] = [
            item if probed and fresh.pop(item.get(member), None) is not None else fresh.pop(item.get(member), item)
            for item in getattr(known, kind)
            if item.get(member) in wanted or item.get(member) in fresh
        ]
        if len(old) + len(fresh) != len(getattr(offer, kind)):
            lists[kind] = (*old, *fresh.values())
    if probed:
        return replace(known, **lists)
    return replace(offer, **lists) if lists else offer


def as_json(variants: tuple[Variant, ...]) -> list[dict[str, Any]]:
    """Return the variants for the cache file; nothing if there is only one."""
    if len(variants) < 2:
        return []
    return [
        {
            "newer": one.kind.newer,
            "able": sorted(one.kind.able),
            "names": {kind: sorted(names) for kind, names in one.names.items()},
            "server_info": one.server_info,
        }
        for one in variants
    ]


def from_json(raw: Any) -> tuple[Variant, ...]:
    """Return the variants of a cache file; ignore anything that `as_json` did not write."""
    try:
        return tuple(
            Variant(
                ClientKind(one["newer"] is True, frozenset(map(str, one["able"]))),
                {kind: frozenset(map(str, one["names"][kind])) for kind in ITEM_KEYS},
                info if isinstance(info := one.get("server_info"), dict) else None,
            )
            for one in raw or ()
        )
    except (AttributeError, KeyError, TypeError):
        return ()
