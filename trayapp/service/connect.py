"""A connection to this user's gateway, for those who tell people why there is none.

Never here: starting one; for how long an answer is waited for.
"""

from __future__ import annotations

from trayapp.model.errors import NoGatewayError
from trayapp.service.pause import refuse_while_paused
from trayapp.wire.control import ControlClient


def connect_gateway(run: str, timeout: float | None) -> ControlClient:
    """Connect (ControlClient) in the runtime folder `run`. Raises NoGatewayError: PausedError while it is paused."""
    try:
        return ControlClient(run, timeout)
    except NoGatewayError:
        refuse_while_paused(run)
        raise
