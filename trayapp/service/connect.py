"""A control connection to this user's gateway, with an error for users if there is no gateway. It starts none."""

from __future__ import annotations

from trayapp.model.errors import NoGatewayError
from trayapp.service.pause import refuse_while_paused
from trayapp.wire.control import ControlClient


def connect_gateway(run: str, timeout: float | None) -> ControlClient:
    """Connect to the gateway of the runtime folder `run`. `timeout`: seconds for an answer.

    Raises NoGatewayError; while multi-mcp is paused it is a PausedError.
    """
    try:
        return ControlClient(run, timeout)
    except NoGatewayError:
        refuse_while_paused(run)
        raise
