"""Recognizes the server that a text names, in any form. Nothing is started, fetched or written."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from trayapp.clients import jsonc
from trayapp.config.problems import UnparsableError
from trayapp.config.urls import unsafe_url
from trayapp.sources.command_lines import holds_command, is_command_line, read_command_line
from trayapp.sources.documents import read_document
from trayapp.sources.links import is_link, read_link
from trayapp.sources.server_json import is_server_json, read_server_json, short_name
from trayapp.sources.source import LARGEST, Entry, Source, UnclearSourceError, name_for, wanted

_COMMENTS = re.compile(r"\A(?:[ \t]*(?:#|//)[^\n]*(?:\n\s*|\Z))+")
_FENCE = re.compile(r"(?s)\A\s*```[^\n]*\n(.*?)\n\s*```\s*\Z")
_PACKAGE = re.compile(r"(npm|pypi|oci|docker):([\w@][\w@./:+~^=-]*)")
_REGISTRY_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*\.)+[a-z0-9-]+/[\w.-]+(?:@[\w.+-]+)?", re.IGNORECASE)
_DOCUMENT = re.compile(r"""\A\s*(?:[{"]|\[[\w."' -]+\]|(?:mcpServers|mcp_servers|servers|extensions|mcp)\s*:)""")


def recognize(text: str, home: Path, *, windows: bool = False) -> list[Source]:
    """Return the servers that a text names; alternatives of a server.json best first. Raises UnclearSourceError."""
    found = _recognized(text, home, windows=windows)
    return [replace(one, name=short_name(one.name)) if is_registry_name(one.name) else one for one in found]


def _recognized(text: str, home: Path, *, windows: bool) -> list[Source]:
    if len(text) > LARGEST:
        raise UnclearSourceError(f"This has {len(text):,} characters", "Paste the server's own snippet")
    if any(letter in text for letter in "\0\u202a\u202b\u202d\u202e\u2066\u2067\u2068"):
        raise UnclearSourceError("This has characters that change the order of the shown text", "Type it by hand")
    fenced = _FENCE.match(text)
    text = (fenced[1] if fenced else text).strip().strip("`").strip().removeprefix("\ufeff")
    text = _COMMENTS.sub("", text)
    if not text:
        raise UnclearSourceError("This is empty", "Paste a snippet, a command, a link or an address")
    if is_link(text):
        return read_link(text, home, windows=windows)
    if package := _PACKAGE.fullmatch(text):
        return [_package(package[1], package[2])]
    if re.fullmatch(r"https?://\S+", text):
        return [_address(text)]
    if _DOCUMENT.match(text):
        return _document(text, home, windows=windows)
    if is_command_line(text):
        return read_command_line(text, home, windows=windows)
    commands = holds_command(text)
    if ":" in text and "\n" in text and not commands:
        return read_document(text, "a snippet", home, windows=windows)
    if commands:  # among other lines: the error says so
        return read_command_line(text, home, windows=windows)
    raise UnclearSourceError("This names no known kind of server", "Paste a snippet, a command, a link or an address")


def is_registry_name(text: str) -> bool:
    """Return True if a text has the form of a registry name: `io.github.user/server`, optionally with `@version`."""
    return _REGISTRY_NAME.fullmatch(text.strip()) is not None


def _document(text: str, home: Path, *, windows: bool) -> list[Source]:
    if text.startswith("{"):
        try:
            document = jsonc.read(text, "the text")
        except UnparsableError:
            document = {}
        if is_server_json(document):
            return read_server_json(document)
        if "manifest_version" in document or "dxt_version" in document:
            raise UnclearSourceError("This is the manifest of a bundle", "Add the .mcpb file itself")
    return read_document(text, "a snippet", home, windows=windows)


def _package(kind: str, name: str) -> Source:
    entry: Entry
    if kind == "npm":
        entry = {"command": "npx", "args": ["-y", name]}
    elif kind == "pypi":
        entry = {"command": "uvx", "args": [name.replace("==", "@")]}
    else:
        entry = {"command": "docker", "args": ["run", "-i", "--rm", name]}
    return Source(name_for(entry), entry, f"a package ({kind})")


def _address(url: str) -> Source:
    fault = unsafe_url(url)
    if fault is not None:
        raise UnclearSourceError(f"This address {fault}", "Or write it into servers.yaml by hand: multi-mcp edit")
    entry: Entry = {"url": url} | ({"type": "sse"} if url.split("?")[0].rstrip("/").endswith("/sse") else {})
    return Source(name_for(entry), entry, "an address", wanted(entry))
