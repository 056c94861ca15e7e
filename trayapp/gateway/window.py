"""A view as sessions with the same options see it: one exposure and one router for all of them, kept up to date.

Never here: what the options mean (options), what is exposed (expose), the session itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trayapp.backends.connection import Connection
from trayapp.catalog.suggest import nearest
from trayapp.gateway.expose import Exposure
from trayapp.gateway.options import SessionOptions, choose
from trayapp.gateway.router import Router
from trayapp.model.errors import ServerNotFoundError
from trayapp.model.offer import Offer
from trayapp.model.plan import Config

if TYPE_CHECKING:
    from trayapp.gateway.view import View


class Window:
    """One set of options on one view."""

    def __init__(self, view: View, options: SessionOptions) -> None:
        self.view = view
        self.options = options
        self.router = Router(self)
        self._exposure: Exposure | None = None

    @property
    def config(self) -> Config:
        """Of the view."""
        return self.view.config

    @property
    def exposure(self) -> Exposure:
        """What its sessions see now."""
        known = self.view.known
        if self._exposure is None or self._exposure.known is not known:
            self._exposure = Exposure(known, choose(self.options, known.config))
        return self._exposure

    @property
    def wrong(self) -> str:
        """Why the options cannot be followed; empty when they can."""
        return self.exposure.choice.wrong

    def listing(self, kind: str) -> bytes:
        """JSON of the result of a list request; `kind` is one of lists.LIST_KINDS."""
        result: bytes = getattr(self.exposure, f"{kind}_result")
        return result

    def has(self, server: str) -> bool:
        """Whether its sessions may use that server at all."""
        return server in self.exposure.servers

    def offer(self, name: str) -> Offer | None:
        """What a server offers, as far as it is known."""
        return self.view.offer(name)

    def fails_to_list(self, name: str) -> bool:
        """True if a list of an enabled server could not be read."""
        offer = self.offer(name)
        return offer is not None and bool(offer.failure) and not self.config.servers[name].disabled

    def missing(self) -> list[str]:
        """Enabled servers whose tools are not known."""
        return [name for name in self.view.missing() if self.has(name)]

    def being_asked(self) -> list[str]:
        """Those of them that are being asked now."""
        return [name for name in self.view.being_asked() if self.has(name)]

    def named(self, asked: str) -> str:
        """The name of the server that is meant, also where hyphens or case differ. Raises ServerNotFoundError."""
        servers = self.exposure.servers
        if asked in servers:
            return asked
        alike = [name for name in servers if _loose(name) == _loose(asked)]
        if len(alike) == 1:
            return alike[0]
        raise ServerNotFoundError(asked, nearest(asked, servers) or list(servers))

    def find(self, name: str) -> Connection:
        """The connection of a server. Raises ServerNotFoundError."""
        if not self.has(name):
            raise ServerNotFoundError(name, list(self.exposure.servers))
        return self.view.find(name)

    def get(self, name: str) -> Connection | None:
        """As `find`, None when there is none."""
        return self.view.get(name) if self.has(name) else None


def _loose(name: str) -> str:
    return name.replace("-", "_").casefold()
