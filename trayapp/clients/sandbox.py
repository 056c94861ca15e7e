"""A client's own sandbox of a server as our `confine`.

VS Code: `sandboxEnabled: true` at a server of mcp.json, and `sandbox`, at the server or beside all servers:
`{filesystem: {allowWrite, denyRead, denyWrite}, network: {allowedDomains, deniedDomains}}`. Never here: other keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trayapp.config.read.entry import read_one
from trayapp.model.confine import TRY

ENABLED, SANDBOX = "sandboxEnabled", "sandbox"
_ALWAYS = "*.npmjs.org"  # VS Code allows it to every sandboxed server


def confine_from(raw: Mapping[str, Any], *, windows: bool) -> object:
    """Return the value of `confine` for an entry with a sandbox, None where it is switched off or there is none.

    What cannot be read still means confined. Windows has nothing to confine with, and VS Code has no sandbox there.
    """
    said = {key: value for key, value in raw.items() if "sandbox" in key.lower() or "confine" in key.lower()}
    if not any(said.values()) or said.get(ENABLED) is False:
        return None
    if windows:
        return TRY
    rules = said.get(SANDBOX) if isinstance(said.get(SANDBOX), Mapping) else {}
    assert isinstance(rules, Mapping)
    if said.get(ENABLED) is not True or not {"filesystem", "network"}.issuperset(rules):
        return True
    files, network = rules.get("filesystem"), rules.get("network")
    write = files.get("allowWrite") if isinstance(files, Mapping) else None
    hosts = network.get("allowedDomains") if isinstance(network, Mapping) else None
    # "." is its cwd, which it has; package caches are its own here, so that it cannot change what others run.
    paths = [
        path for path in write or () if isinstance(path, str) and path.startswith(("/", "~/")) and path != "~/.npm"
    ]
    names = [host for host in hosts or () if isinstance(host, str)]
    confine = ({"write": paths} if paths else {}) | {"network": list(dict.fromkeys((*names, _ALWAYS)))}
    server, _ = read_one("x", {"command": "x", "confine": confine})
    return confine if server is not None else True


def with_shared_rules(entry: Any, document: Any) -> Any:
    """Return an entry with the rules of a sandbox that its file has for all servers, where it has none of its own."""
    shared = document.get(SANDBOX) if isinstance(document, Mapping) else None
    if not isinstance(entry, Mapping) or entry.get(ENABLED) is not True or SANDBOX in entry or shared is None:
        return entry
    return {**entry, SANDBOX: shared}
