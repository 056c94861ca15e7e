"""The client for the official suite's auth scenarios. It uses one server of a running gateway, as a person would.

The arguments are the scenarios to run, separated by commas, and the server's address, which the suite appends. All
other scenarios are skipped. MULTI_MCP_HOME selects the gateway.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Any

from trayapp.wire.control import LIST, LOGIN, LOGIN_WAIT, REFRESH, SNAPSHOT, ControlClient, ControlError
from trayapp.wire.rundir import run_dir

DOCUMENT = "https://conformance-test.local/client-metadata.json"  # known to the suite's servers
SIGN_INS = 3  # the first sign-in, one for more permissions, and one to spare
PATIENCE_S = 60.0  # dozens of scenarios run concurrently on a small machine


class Person:
    """A person who uses one server and signs in when an error requires it."""

    def __init__(self, control: ControlClient, server: str) -> None:
        self._control = control
        self._server = server

    def configure(self, address: str) -> None:
        """Add the server, with the scenario's registered client if it has one."""
        known = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
        own = {key: known[key] for key in ("client_id", "client_secret") if key in known}
        self._manage("POST", "", {"name": self._server, "url": address, "type": "http", **own})

    def remove(self) -> None:
        """Remove the server, because the suite waits until every connection has ended."""
        self._manage("DELETE", f"/{self._server}")

    def use(self) -> bool:
        """Call every tool, and sign in when an error requires it. Return True if all calls succeeded in the end.

        Raises ControlError for an error that a sign-in would not solve.
        """
        for _ in range(SIGN_INS):
            if self._works():
                return True
            self._sign_in()
        return self._works()

    def _works(self) -> bool:
        """Call every tool. Return False if a sign-in is required. Raises ControlError for any other error."""
        try:
            error = self._control.call(REFRESH, {"server": self._server})["servers"][self._server].get("error")
            if error:
                raise ControlError(error["title"], error["hint"], error["code"], error["exit_code"])
            for row in self._control.call(LIST, {"server": self._server}):
                self._control.call("call", {"tool": row["exposed_name"], "args": {}})
        except ControlError as failure:
            if f"multi-mcp auth {self._server}" not in f"{failure.title} {failure.hint}":
                raise
            return False
        return True

    def _sign_in(self) -> None:
        """Sign in as a user whose browser follows redirects. Raises ControlError if it fails."""
        begun = self._control.call(LOGIN, {"server": self._server})
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(begun["url"], timeout=PATIENCE_S).close()
        self._control.call(LOGIN_WAIT, {"server": self._server})

    def _manage(self, verb: str, path: str, body: dict[str, Any] | None = None) -> None:
        base = str(self._control.call(SNAPSHOT, {})["gateway"]["http_url"]).removesuffix("/mcp")
        request = urllib.request.Request(f"{base}/mcp_servers{path}", method=verb)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        urllib.request.urlopen(request, timeout=PATIENCE_S).close()


def main() -> int:
    """Run the client. Return 1 if the scenario's server could not be used."""
    if os.environ["MCP_CONFORMANCE_SCENARIO"].removeprefix("auth/") not in sys.argv[1].split(","):
        return 0
    with ControlClient(run_dir(os.environ), PATIENCE_S) as control:
        person = Person(control, f"s{os.getpid()}")
        person.configure(sys.argv[-1])
        try:
            return 0 if person.use() else 1
        except ControlError as error:
            print(error)
            return 1
        finally:
            person.remove()


if __name__ == "__main__":
    sys.exit(main())
