"""What a successful refresh does to the switches of a server's tools.

Never here: fetching, files; a refresh that failed never comes here, so it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trayapp.model.servers import ToolSwitch


@dataclass(frozen=True, slots=True)
class ToolsChange:
    """The original names of the tools that a refresh added, missed for the first time, or found again."""

    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    back: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the refresh found what was known."""
        return not (self.added or self.gone or self.back)


def merge_tools(
    switches: Mapping[str, ToolSwitch] | None, found: Iterable[str], new_enabled: bool = True
) -> dict[str, ToolSwitch]:
    """The switches after `found` was listed (PRODUCT 6): known tools in their order, then new ones in the server's.

    A tool that is gone stays, stale, with what the user said of it, for ever. `new_enabled` is for tools found later:
    without switches (None) this is the first discovery, where all tools pass.
    """
    listed = dict.fromkeys(found)
    merged = {name: ToolSwitch(switch.enabled, stale=name not in listed) for name, switch in (switches or {}).items()}
    fresh = ToolSwitch(enabled=new_enabled or switches is None)
    return merged | {name: fresh for name in listed if name not in merged}


def tools_change(switches: Mapping[str, ToolSwitch] | None, found: Iterable[str]) -> ToolsChange:
    """What `merge_tools` with the same arguments changes, for the log and for people."""
    listed = dict.fromkeys(found)
    known = switches or {}
    return ToolsChange(
        added=tuple(name for name in listed if name not in known),
        gone=tuple(name for name, switch in known.items() if name not in listed and not switch.stale),
        back=tuple(name for name, switch in known.items() if name in listed and switch.stale),
    )
