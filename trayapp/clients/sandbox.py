"""Convert a client's own sandbox of a server to our `confine`.

VS Code has `sandboxEnabled: true` at a server of mcp.json, and `sandbox` at the server or at the top level:
`{filesystem: {allowWrite, denyRead, denyWrite}, network: {allowedDomains, deniedDomains}}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trayapp.config.read.entry import read_one
from trayapp.model.confine import TRY

ENABLED, SANDBOX = "sandboxEnabled", "sandbox"
_ALWAYS = "*.npmjs.org"  # VS Code allows this domain to every sandboxed server


def confine_from(raw: Mapping[str, Any], *, windows: bool) -> object:
    """Return the value of `confine` for an entry with a sandbox; None if the sandbox is off or missing.

    Rules that cannot be converted still mean confined. On Windows the value is TRY: we cannot confine there, and
    VS Code has no sandbox there.
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
    # "." is its working folder, which it may write anyway. Package caches are private, so that it cannot change what
    # other servers run.
    paths = [
        path for path in write or () if isinstance(path, str) and path.startswith(("/", "~/")) and path != "~/.npm"
    ]
    names = [host for host in hosts or () if isinstance(host, str)]
    confine = ({"write": paths} if paths else {}) | {"network": list(dict.fromkeys((*names, _ALWAYS)))}
    server, _ = read_one("x", {"command": "x", "confine": confine})
    return confine if server is not None else True


def with_shared_rules(entry: Any, document: Any) -> Any:
    """Return the entry with its file's shared sandbox rules, if it enables the sandbox without rules of its own."""
    shared = document.get(SANDBOX) if isinstance(document, Mapping) else None
    if not isinstance(entry, Mapping) or entry.get(ENABLED) is not True or SANDBOX in entry or shared is None:
        return entry
    return {**entry, SANDBOX: shared}
