"""The client that the official suite's auth scenarios drive: a real gateway with one server, used as a person does.

The suite calls it with the server's address as its last argument, for example:
`conformance client --command "python -m tests.conformance.auth_client" --suite auth`. Never here: judging.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2

from tests.e2e.gateway import Gateway
from trayapp.wire.control import LIST, LOGIN, LOGIN_WAIT, REFRESH, SETTLE, ControlError

CONTEXT = "MCP_CONFORMANCE_CONTEXT"  # what a scenario tells its client beforehand: a registration made by hand
DOCUMENT = "https://conformance-test.local/client-metadata.json"  # which the suite's servers know
ROUNDS = 3  # a first sign-in, one for more permissions, and a limit
BROWSER_S = 20.0
NO_BUS = "unix:path=/nowhere"  # sign-ins live in memory


def main() -> int:
    """Sign in, list, call every tool, sign in again where more is wanted; 1 when that comes to nothing."""
    home = Path(tempfile.mkdtemp(prefix="mm-", dir="/tmp" if os.name == "posix" else None))
    gateway = Gateway(home)
    gateway.env["DBUS_SESSION_BUS_ADDRESS"] = NO_BUS
    known = json.loads(os.environ.get(CONTEXT) or "{}")
    own = {key: known[key] for key in ("client_id", "client_secret") if key in known}
    gateway.write({"web": {"url": sys.argv[-1], **own}}, client_metadata_url=DOCUMENT)
    try:
        gateway.start()
        gateway.control(SETTLE)
        return 0 if any(_round(gateway) for _ in range(ROUNDS)) else 1
    except ControlError as error:
        print(error)
        return 1
    finally:
        gateway.stop()
        shutil.rmtree(home, ignore_errors=True)


def _round(gateway: Gateway) -> bool:
    """Whether everything was done. Raises ControlError for what no sign-in would help."""
    if _wants_sign_in(gateway):
        begun = gateway.control(LOGIN, server="web")
        with httpx2.Client(follow_redirects=True, timeout=BROWSER_S) as browser:
            browser.get(begun["url"])
        gateway.control(LOGIN_WAIT, server="web")
    try:
        gateway.control(REFRESH, server="web")
        for row in gateway.control(LIST, server="web"):
            gateway.control("call", tool=row["exposed_name"], args={})
    except ControlError:
        if not _wants_sign_in(gateway):
            raise
    return not _wants_sign_in(gateway)


def _wants_sign_in(gateway: Gateway) -> bool:
    row: dict[str, Any] = gateway.server("web")
    return row["state"] == "needs_auth" or bool((row.get("auth") or {}).get("wanted"))


if __name__ == "__main__":
    sys.exit(main())
