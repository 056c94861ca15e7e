"""Lists of a server per kind of client: a server may list less for a client of another era or with fewer capabilities.

Its offer is the union of all variants. Never here: reading lists, deciding which kinds to read them for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def with_eras(
    offer: Offer, known: Offer | None, before: tuple[Variant, ...], after: tuple[Variant, ...], *, newer: bool
) -> Offer:
    """Return an offer that was read in one era, with the other era's definitions as they are known.

    Its lists hold the newer era's definition of each item, `older` the older era's where that differs. What was the
    same in both and changes in the newer one has changed in both, until the older one is read. `before`, `after`: the
    variants before and after this reading.
    """
    if known is None or all(one.kind.newer == newer for one in before):
        return offer
    said, older_said = offer.instructions or "", known.older_instructions
    if not newer:
        said, older_said = known.instructions or "", said
    elif older_said is None and all(one.kind.newer != newer for one in before):
        older_said = known.instructions or ""
    lists: dict[str, Any] = {}
    older: dict[str, tuple[Item, ...]] = {}
    for kind, member in ITEM_KEYS.items():
        main, old = (_by_name(items, member) for items in (getattr(known, kind), known.older.get(kind, ())))
        if kind not in offer.failed:
            found = _by_name(getattr(offer, kind), member)
            this, other = (listed(before, kind, newer=era) for era in (newer, not newer))
            apart = {name for name in found.keys() & other if not newer or name not in this or name in old}
            theirs = {name: (old.get(name) if newer else None) or main.get(name) or found[name] for name in apart}
            kept = {name: old[name] for name in old.keys() & listed(after, kind, newer=False) - found.keys()}
            latest = found if newer else found | theirs
            old = kept | (theirs if newer else {name: found[name] for name in apart})
            old = {name: item for name, item in old.items() if item != latest.get(name)}
            lists[kind] = tuple(latest.get(str(item.get(member)), item) for item in getattr(offer, kind))
        if old:
            older[kind] = tuple(old.values())
    older_said = None if older_said == said else older_said
    return replace(offer, **lists, older=older, instructions=said or None, older_instructions=older_said)


def _by_name(items: Iterable[Item], member: str) -> dict[str, Item]:
    return {name: item for item in items if isinstance(name := item.get(member), str)}


def listed(variants: tuple[Variant, ...], kind: str, *, newer: bool) -> frozenset[str]:
    """Return the names of a list's items that clients of that era were listed."""
    return frozenset[str]().union(*(one.names[kind] for one in variants if one.kind.newer == newer))


def union_offer(offer: Offer, known: Offer | None, variants: tuple[Variant, ...], *, probed: bool) -> Offer:
    """Return an offer with the items that only other variants have, in the known order.

    `probed`: it was read for another kind of client only, so known items do not change, but for those that `with_eras`
    has sorted by era.
    """
    if known is None or len(variants) < 2:
        return offer
    lists: dict[str, Any] = {}
    keeps = probed and len({one.kind.newer for one in variants}) == 1
    for kind, member in ITEM_KEYS.items():
        wanted = frozenset[str]().union(*(one.names[kind] for one in variants))
        fresh = {item.get(member): item for item in getattr(offer, kind)}
        old: list[Item] = [
            item if keeps and fresh.pop(item.get(member), None) is not None else fresh.pop(item.get(member), item)
            for item in getattr(known, kind)
            if item.get(member) in wanted or item.get(member) in fresh
        ]
        if probed or len(old) + len(fresh) != len(getattr(offer, kind)):
            lists[kind] = (*old, *fresh.values())
    if probed:
        said = known.instructions if keeps else offer.instructions
        return replace(
            known, **lists, older=offer.older, instructions=said, older_instructions=offer.older_instructions
        )
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
