"""Which resources a confined server may access beyond the common baseline: the value of `confine` (PRODUCT 18)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TRY = "try"  # `confine: try` starts a server openly, and warns, where it cannot be confined


@dataclass(frozen=True, slots=True)
class Confine:
    """One `confine` value other than false. Paths are as written. A host is a name, `*.name` or an address."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()  # implies read
    network: bool | tuple[str, ...] = True  # a list: only those hosts, over HTTP(S) through our proxy
    sockets: bool = False  # Unix sockets of its own, which browsers need
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


Confining = Confine | Literal[False] | None  # None: not set


def confine_of(own: Confining, setting: Confining) -> Confine | None:
    """Return how to confine a stdio server, or None for not at all. The entry's own value overrides the setting."""
    said = setting if own is None else own
    return said or None
