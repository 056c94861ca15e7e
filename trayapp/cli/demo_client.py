"""A small MCP client over the shim's stdin and stdout, for the demo: one request at a time, each with a deadline.

Never here: what the demo shows.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import shim_command
from trayapp.service.gateway_launch import FROM_ANYWHERE

PROTOCOL = "2025-11-25"
ANSWER_TIMEOUT_S = 30.0  # enough for a server's start on a busy machine; the sample server takes 0.1 s
END_TIMEOUT_S = 5.0  # from the end of stdin to the end of the shim


class DemoFailed(MultiMcpError):
    """A failure of the demo."""

    code = "demo_failed"

    def __init__(self, title: str) -> None:
        super().__init__(title, "Try again. To see what a gateway logs at its start: multi-mcp start")


class ShimClient:
    """A real shim process with us as its client. Use it as a context manager: its exit waits for the shim's end."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            shim_command(),
            env=dict(environ),
            cwd=FROM_ANYWHERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def initialize(self) -> dict[str, Any]:
        """Do the handshake and return the gateway's result."""
        about = {"name": "multi-mcp-demo", "version": "1"}
        params = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about}
        result = self.request("initialize", params)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its result.

        Raises DemoFailed for an error answer, for none within ANSWER_TIMEOUT_S, and if the shim ends.
        """
        self._last_id += 1
        deadline = threading.Timer(ANSWER_TIMEOUT_S, self.process.kill)
        deadline.daemon = True
        deadline.start()
        try:
            self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params or {}})
            message = self._answer(method)
        finally:
            deadline.cancel()
        if "error" in message:
            raise DemoFailed(f"{method} was answered with an error: {message['error'].get('message')}")
        result: dict[str, Any] = message["result"]
        return result

    def close(self) -> None:
        """End the session as a client does, by closing stdin, and wait for the shim's end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.close()
            self.process.wait(END_TIMEOUT_S)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise DemoFailed("The shim ended before its client did") from None

    def _answer(self, method: str) -> dict[str, Any]:
        """Return the answer with the last id, skipping notifications."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._last_id and "method" not in message:
                return message
        raise DemoFailed(f"{method} got no answer")
