"""Reads install links of clients: their own URI schemes, and the web pages that redirect to them.

Sources: cursor.com/docs/context/mcp/install-links, code.visualstudio.com/api/extension-guides/ai/mcp
(vscode:mcp/install), lmstudio.ai/docs/app/mcp/deeplink, block.github.io/goose (goose://extension), kiro.dev/docs/mcp
(launch/mcp/add).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import url2pathname

from trayapp.sources.documents import read_document
from trayapp.sources.source import LARGEST, Entry, Source, UnclearSourceError, Variable, name_for, wanted

SCHEMES = ("cursor", "vscode", "vscode-insiders", "vscodium", "lmstudio", "goose", "kiro", "multi-mcp")
_PAGES = re.compile(
    r"https://(?:(?:www\.)?cursor\.com/(?:[A-Za-z-]+/)?install-mcp|(?:insiders\.)?vscode\.dev/redirect(?:/mcp/install)?"
    r"|lmstudio\.ai/install-mcp|kiro\.dev/launch/mcp/add)\?"
)


def is_link(text: str) -> bool:
    """Return True if a text is an install link of a client or of multi-mcp."""
    scheme, mark, _ = text.strip().partition(":")
    return (bool(mark) and scheme.lower() in SCHEMES) or _PAGES.match(text.strip()) is not None


def named_by(what: str) -> str:
    """Return the text or path that `multi-mcp://add?what=...` or a `file:` link of a desktop names, else `what`."""
    parts = urlsplit(what.strip()) if len(what) < LARGEST and "\n" not in what.strip() else None
    if parts is not None and parts.scheme.lower() == "multi-mcp":
        return parse_qs(parts.query).get("what", [what])[0]
    if parts is not None and parts.scheme.lower() == "file" and parts.netloc in ("", "localhost"):
        return url2pathname(parts.path)
    return what


def read_link(text: str, home: Path, *, windows: bool) -> list[Source]:
    """Return the server of an install link. Raises UnclearSourceError."""
    parts = urlsplit(text.strip())
    query = parse_qs(parts.query, keep_blank_values=True)
    if parts.path.startswith("/redirect") and "url" in query:  # a page that redirects to the scheme
        inner = query["url"][0]
        if not is_link(inner) or inner.startswith("https:"):
            raise UnclearSourceError("This link leads to no server", "Open it, and paste what it shows")
        return read_link(inner, home, windows=windows)
    kind = f"an install link ({parts.scheme if parts.scheme != 'https' else parts.hostname})"
    if parts.scheme == "goose":
        return [_goose(query, kind)]
    name = query.get("name", [""])[0]
    if "config" in query:
        found = read_document(_decoded(query["config"][0]), kind, home, windows=windows)
    elif parts.query.startswith(("%7B", "%7b", "{")):  # vscode:mcp/install?{...}
        found = read_document(unquote(parts.query), kind, home, windows=windows)
    elif "url" in query:
        entry: Entry = {"url": query["url"][0]}
        found = [Source(name_for(entry), entry, kind, wanted(entry))]
    else:
        raise UnclearSourceError("This link holds no server", "Open it, and paste what it shows")
    if name and len(found) == 1:
        one = found[0]
        return [Source(name, one.entry, kind, one.wants, one.left_out)]
    return found


def _decoded(text: str) -> str:
    """Return the JSON of a query parameter, given as plain text or in base64 (also in the URL-safe alphabet)."""
    text = text.strip()
    if text.startswith(("{", "%7B")):
        return unquote(text)
    raw = unquote(text).replace(" ", "+").translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(raw + "=" * (-len(raw) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        raise UnclearSourceError("The link's configuration cannot be decoded", "Copy the whole link") from None


def _goose(query: dict[str, list[str]], kind: str) -> Source:
    """Read `goose://extension?cmd=npx&arg=-y&arg=pkg&env=KEY%3DWhat it is`."""
    entry: Entry
    if "url" in query:
        entry = {"url": query["url"][0]}
    elif "cmd" in query:
        entry = {"command": query["cmd"][0], "args": query.get("arg", [])}
    else:
        raise UnclearSourceError("This link holds no server", "Open it, and paste what it shows")
    asked = [pair.partition("=") for pair in query.get("env", [])]
    if asked:
        entry["env"] = {name: "" for name, _, _ in asked}
    wants = tuple(Variable(name, ("env", name), "", description, secret=True) for name, _, description in asked)
    name = query.get("id", query.get("name", [""]))[0]
    return Source(
        name or name_for(entry), entry, kind, wants or wanted(entry), description=query.get("description", [""])[0]
    )


def link_to(entry: Entry, name: str) -> str:
    """Return our own link for an entry."""
    packed = base64.urlsafe_b64encode(json.dumps(entry, ensure_ascii=False).encode()).decode().rstrip("=")
    return f"multi-mcp://add?name={name}&config={packed}"
