"""What a server's program may reach beyond what every confined program may: the value of `confine` (PRODUCT 18).

Never here: which paths that means on this machine, how it is enforced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TRY = "try"  # `confine: try` starts a server openly, and warns, where it cannot be confined


@dataclass(frozen=True, slots=True)
class Confine:
    """One `confine` that is not false. Paths are as written; a host is a name, `*.name` or an address."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()  # read, too
    network: bool | tuple[str, ...] = True  # a list: those hosts alone, over HTTP(S) through a proxy of ours
    sockets: bool = False  # Unix sockets of its own: browsers need them
    required: bool = True  # False: `try`

    def value(self) -> object:
        """Return it as plain values, in the shortest form that servers.yaml reads."""
        if not self.required:
            return TRY
        said: dict[str, object] = {key: list(getattr(self, key)) for key in ("read", "write") if getattr(self, key)}
        if self.network is not True:
            said["network"] = self.network if isinstance(self.network, bool) else list(self.network)
        if self.sockets:
            said["sockets"] = True
        return said or True


Confining = Confine | Literal[False] | None  # None: not said


def confine_of(own: Confining, setting: Confining) -> Confine | None:
    """Return how a server of a program is confined: as its entry says, else as the settings do; None: not at all."""
    said = setting if own is None else own
    return said or None
