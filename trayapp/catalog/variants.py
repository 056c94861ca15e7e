"""Lists of a server by kind of client: a server may list less for a client of another era or with fewer capabilities.

The server's offer is the union of all variants. A list that could not be read leaves the known list unchanged, and a
list in a different order gets the known order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from trayapp.model.offer import ITEM_KEYS, Item, Offer
from trayapp.wire.capabilities import ClientKind

VARIANTS_MOST = 8  # variants per server; the least recently read ones are dropped

Names = Mapping[str, frozenset[str]]  # list -> names of its items

# Members of an offer that may differ by era -> the value of `older_MEMBER` if the older era has no such member.
# `older_MEMBER` is None if both eras have the same value.
ABOUT: Mapping[str, Any] = {"instructions": "", "capabilities": {}}
OF_NEWER = ("ttl_ms", "results")  # always from the newer era, whichever era was read last


class Variant(NamedTuple):
    """The names that a server listed for one kind of client, and its description of itself for that kind."""

    kind: ClientKind
    names: Names
    server_info: Item | None = None


def names_of(offer: Offer) -> Names:
    """Return the names of all items, by list."""
    return {kind: frozenset(_by_name(getattr(offer, kind), member)) for kind, member in ITEM_KEYS.items()}


def with_variant(
    variants: tuple[Variant, ...], kind: ClientKind, names: Names, server_info: Item | None = None
) -> tuple[Variant, ...]:
    """Return the variants after the lists were read for that kind.

    Items that have disappeared since the last reading for that kind are removed from every variant. New items are added
    to the variants that had the same list as that kind before.
    """
    before = next((one.names for one in variants if one.kind == kind), None)
    others = [one for one in variants if one.kind != kind]
    if before is not None:
        others = [
            one._replace(
                names={
                    list_: names[list_] if listed == before[list_] else listed - (before[list_] - names[list_])
                    for list_, listed in one.names.items()
                }
            )
            for one in others
        ]
    return (Variant(kind, names, server_info), *others)[:VARIANTS_MOST]


def best_variant(variants: tuple[Variant, ...], kind: ClientKind) -> Variant | None:
    """Return the variant that a client of that kind would see, or None if all variants list the same names."""
    if all(one.names == variants[0].names for one in variants):
        return None
    return nearest_variant(variants, kind)


def nearest_variant(variants: tuple[Variant, ...], kind: ClientKind) -> Variant | None:
    """Return the variant that was read for the nearest kind, if possible of the same era, or None without variants."""
    of_era = [one for one in variants if one.kind.newer == kind.newer] or variants

    def nearness(one: Variant) -> tuple[bool, int]:
        able = one.kind.able
        return one.kind.extensions == kind.extensions, len(able & kind.able) - len(able - kind.able)

    return max(of_era, key=nearness, default=None)


def with_eras(
    offer: Offer, known: Offer | None, before: tuple[Variant, ...], after: tuple[Variant, ...], *, newer: bool
) -> Offer:
    """Return an offer that was read in one era, with the known definitions of the other era.

    Its lists hold the newer era's definition of each item, and `older` holds the older era's definition if that
    differs. An item that was equal in both eras and changes in the newer one counts as changed in both, until the older
    era is read. `before`, `after`: the variants before and after this reading.
    """
    if known is None or all(one.kind.newer == newer for one in before):
        return offer
    first_newer = all(one.kind.newer != newer for one in before)
    said: dict[str, Any] = {member: getattr(offer if newer else known, member) for member in OF_NEWER}
    for member, nothing in ABOUT.items():
        main, old = getattr(offer, member) or nothing, getattr(known, f"older_{member}")
        if not newer:
            main, old = getattr(known, member) or nothing, main
        elif old is None and first_newer:
            old = getattr(known, member) or nothing
        said |= {member: main or None, f"older_{member}": None if old == main else old}
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
    return replace(offer, **lists, older=older, **said)


def _by_name(items: Iterable[Item], member: str) -> dict[str, Item]:
    return {name: item for item in items if isinstance(name := item.get(member), str)}


def listed(variants: tuple[Variant, ...], kind: str, *, newer: bool) -> frozenset[str]:
    """Return the names of a list's items, as listed for clients of that era."""
    return frozenset[str]().union(*(one.names[kind] for one in variants if one.kind.newer == newer))


def union_offer(offer: Offer, known: Offer | None, variants: tuple[Variant, ...], *, probed: bool) -> Offer:
    """Return an offer with the items that only other variants have, in the known order.

    `probed`: the offer was only read for another kind of client, so known items do not change, except those that
    `with_eras` assigned to eras.
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
        source = known if keeps else offer
        said = {member: getattr(source, member) for member in (*ABOUT, *OF_NEWER)}
        older_said = {f"older_{member}": getattr(offer, f"older_{member}") for member in ABOUT}
        return replace(known, **lists, older=offer.older, **said, **older_said)
    return replace(offer, **lists) if lists else offer


def as_json(variants: tuple[Variant, ...]) -> list[dict[str, Any]]:
    """Return the variants for the cache file, or [] if there are fewer than two."""
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
    """Return the variants of a cache file, or () if `as_json` did not write them."""
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


def with_known(known: Offer, found: Offer) -> Offer:
    """Return `found`, with the other known items added to each list that could not be read completely."""
    kept = dict[str, Any]()
    for name in found.failed:
        member, items = ITEM_KEYS[name], getattr(found, name)
        seen, before = _by_name(items, member), _by_name(getattr(known, name), member)
        kept[name] = (*items, *(item for key, item in before.items() if key not in seen))
    return replace(found, **kept) if kept else found


def in_known_order(known: Offer, found: Offer) -> Offer:
    """Return `found` with each list in the known order, unless items were added or removed.

    Some servers list the same items in a different order each time, and the order must be stable.
    """
    lists: dict[str, Any] = {
        name: _ordered(getattr(known, name), getattr(found, name), member) for name, member in ITEM_KEYS.items()
    }
    ordered = replace(found, **lists)
    return found if ordered == found else ordered


def _ordered(known: tuple[Item, ...], found: tuple[Item, ...], member: str) -> tuple[Item, ...]:
    """Return `found` in the known order, or `found` itself if the items are not the same."""
    before, now = _by_name(known, member), _by_name(found, member)
    if len(now) != len(found) or len(before) != len(known) or now.keys() != before.keys():
        return found
    return tuple(now[name] for name in before)
