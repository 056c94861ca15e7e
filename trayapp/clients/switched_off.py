"""Servers that a client disables outside of their own entries.

`disabled` and `enabled` in an entry are read by normal. A file that cannot be read disables nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trayapp.clients import files, jsonc
from trayapp.clients.family import Document, Keys, lookup
from trayapp.clients.table import Client
from trayapp.config.problems import UnparsableError
from trayapp.model.errors import StorageError

# https://docs.github.com/copilot/reference/copilot-cli-reference/cli-config-dir-reference (disabledMcpServers) and
# https://geminicli.com/docs/tools/mcp-server (`gemini mcp disable`)
_BESIDE = {"copilot-cli": ("settings.json", "config.json"), "gemini-cli": ("mcp-server-enablement.json",)}


def switches_of(client: Client, path: Path) -> list[Path]:
    """Return the files beside the user's file, existing or not, in which that client disables servers."""
    return [path.with_name(name) for name in _BESIDE.get(client.name, ())]


def switched_off(client: Client, document: Document, holder: Keys, name: str, beside: list[Document]) -> bool:
    """Return True if the client disables the server `name` of `holder`. `beside`: the documents from read_switches."""
    if client.name == "claude-code":  # a folder's servers, disabled beside them
        return name in _names(lookup(document, (*holder[:-1], "disabledMcpServers")))
    if client.name == "copilot-cli":
        return any(name in _names(each.get("disabledMcpServers")) for each in beside)
    return client.name == "gemini-cli" and _is_off_in_gemini(document, name, beside)


def read_switches(client: Client, path: Path) -> list[Document]:
    """Return the documents in the files of switches_of, without missing or unreadable ones. Blocks."""
    found: list[Document] = []
    for file in switches_of(client, path):
        try:
            found.append(jsonc.read(files.read_text(file) or "", str(file)))
        except (UnparsableError, StorageError):
            continue
    return found


def _is_off_in_gemini(document: Document, name: str, beside: list[Document]) -> bool:
    """Return True if Gemini disables the server, by `mcp.allowed`, `mcp.excluded` or its enablement file.

    Older versions have these lists at the top level. Names are compared without case, as Gemini does.
    """
    plain = name.lower().strip()
    mcp = document.get("mcp")
    said = mcp if isinstance(mcp, Mapping) else {}
    allowed = _plain(said.get("allowed") or document.get("allowMCPServers"))
    excluded = _plain(said.get("excluded") or document.get("excludeMCPServers"))
    off = any(isinstance(entry := each.get(plain), Mapping) and entry.get("enabled") is False for each in beside)
    return off or plain in excluded or bool(allowed and plain not in allowed)


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _plain(value: Any) -> set[str]:
    return {name.lower().strip() for name in _names(value)}
