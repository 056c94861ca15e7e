"""The effect of a successful refresh on the switches of a server's tools, and on the order of its lists.

A list that could not be read changes nothing that is known of it. Never here: fetching, files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trayapp.model.offer import Item, Offer
from trayapp.model.servers import ServerConfig, ToolSwitch

# The member that identifies an item
ITEM_KEYS = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "templates": "uriTemplate",
    "skills": "uri",
    "events": "name",
}


@dataclass(frozen=True, slots=True)
class ToolsChange:
    """The original names of the tools that a refresh added, missed for the first time, or found again."""

    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    back: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Return True if the refresh changed nothing."""
        return not (self.added or self.gone or self.back)


def merge_tools(
    switches: Mapping[str, ToolSwitch] | None, found: Iterable[str], new_enabled: bool = True
) -> dict[str, ToolSwitch]:
    """Return the switches after `found` was listed (PRODUCT 6): known tools in their order, then new ones as listed.

    A tool that is gone stays forever, marked stale, with the user's switch. `new_enabled` applies to tools found later:
    without switches (None) this is the first discovery, where all tools pass.
    """
    listed = dict.fromkeys(found)
    merged = {name: ToolSwitch(switch.enabled, stale=name not in listed) for name, switch in (switches or {}).items()}
    fresh = ToolSwitch(enabled=new_enabled or switches is None)
    return merged | {name: fresh for name in listed if name not in merged}


def differing(switches: Mapping[str, ToolSwitch], server: ServerConfig) -> dict[str, ToolSwitch]:
    """Return the switches to write under `write_tools: switched`.

    These are the switches already in the file, and those that differ from the default. A tool that is not named passes,
    unless `new_tools` is disabled.
    """
    absent = server.new_tools == "enabled"
    listed = server.tools or {}
    return {name: switch for name, switch in switches.items() if name in listed or switch.enabled != absent}


def tools_change(switches: Mapping[str, ToolSwitch] | None, found: Iterable[str]) -> ToolsChange:
    """Return what `merge_tools` with the same arguments changes, for the log and for people."""
    listed = dict.fromkeys(found)
    known = switches or {}
    return ToolsChange(
        added=tuple(name for name in listed if name not in known),
        gone=tuple(name for name, switch in known.items() if name not in listed and not switch.stale),
        back=tuple(name for name, switch in known.items() if name in listed and switch.stale),
    )


def with_known(known: Offer, found: Offer) -> Offer:
    """Return `found`; lists that could not be read completely also get the other known items."""
    kept: dict[str, Any] = {
        name: _with_known(getattr(known, name), getattr(found, name), ITEM_KEYS[name]) for name in found.failed
    }
    return replace(found, **kept) if kept else found


def _with_known(known: tuple[Item, ...], found: tuple[Item, ...], member: str) -> tuple[Item, ...]:
    names = {name for item in found if isinstance(name := item.get(member), str)}
    return (*found, *(item for item in known if isinstance(name := item.get(member), str) and name not in names))


def in_known_order(known: Offer, found: Offer) -> Offer:
    """Return `found` with each list in the known order.

    Some servers list the same items in a different order each time, and the order of every list must be stable (PRODUCT
    8). A list with added or removed items is left as it came.
    """
    lists: dict[str, Any] = {
        name: _ordered(getattr(known, name), getattr(found, name), member) for name, member in ITEM_KEYS.items()
    }
    ordered = replace(found, **lists)
    return found if ordered == found else ordered


def _ordered(known: tuple[Item, ...], found: tuple[Item, ...], member: str) -> tuple[Item, ...]:
    """Return `found` in the known order; `found` itself if nothing has to move."""
    places = {name: place for place, item in enumerate(known) if isinstance(name := item.get(member), str)}
    names = [name for item in found if isinstance(name := item.get(member), str)]
    if len(names) != len(found) or len(places) != len(known) or sorted(places) != sorted(names):
        return found
    wanted = [places[name] for name in names]
    pairs = sorted(zip(wanted, found, strict=True), key=_place)
    return found if wanted == sorted(wanted) else tuple(item for _, item in pairs)


def _place(pair: tuple[int, Item]) -> int:
    return pair[0]
