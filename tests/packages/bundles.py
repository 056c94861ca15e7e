"""Honest and hostile bundles (.mcpb) for tests."""

from __future__ import annotations

import json
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SERVER = """
import json, os, sys
about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "b", "version": "1"}}
said = json.dumps({"argv": sys.argv[1:], "env": {k: v for k, v in os.environ.items() if k.startswith("B_")}})
tools = [{"name": "read_it", "description": said, "inputSchema": {"type": "object"}}]
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    found = {"initialize": about, "tools/list": {"tools": tools}}.get(m["method"])
    answer = {"result": found} if found else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **answer}), flush=True)
"""


def manifest(**more: Any) -> dict[str, Any]:
    """Return a manifest of a Python server. `more` replaces fields."""
    return {
        "manifest_version": "0.3",
        "name": "demo-bundle",
        "version": "1.2.3",
        "description": "Reads things.",
        "author": {"name": "An Author"},
        "server": {
            "type": "python",
            "entry_point": "server/main.py",
            "mcp_config": {"command": "python", "args": ["${__dirname}/server/main.py"]},
        },
    } | more


def launched(*args: str, env: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """Return the `server` of a manifest that starts `server/main.py` with these arguments."""
    config = {"command": "python", "args": ["${__dirname}/server/main.py", *args], "env": dict(env or {})} | more
    return {"type": "python", "entry_point": "server/main.py", "mcp_config": config}


def make_bundle(path: Path, document: Any, files: Mapping[str, str] | None = None) -> Path:
    """Write a bundle with the manifest `document` and a server that reports its arguments. Return the path."""
    contents = {"server/main.py": SERVER, **(files or {}), "manifest.json": json.dumps(document)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in contents.items():
            archive.writestr(name, text)
    return path


def make_archive(path: Path, *entries: tuple[str, str, int]) -> Path:
    """Write an archive with these entries (name, content and Unix mode) and return its path. A name may occur twice."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest()))
        for name, text, mode in entries:
            entry = zipfile.ZipInfo(name)
            entry.filename = name  # set here because ZipInfo shortens and rewrites some names
            entry.external_attr = mode << 16
            entry.create_system, entry.compress_type = 3, zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    return path


LINK = stat.S_IFLNK | 0o777
FILE = stat.S_IFREG | 0o644
