"""Readers of the values that only a server's entry has, and the table of all its keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from trayapp.config.problems import InvalidValueError, shown
from trayapp.config.read import fields
from trayapp.config.read.confine import read_confine
from trayapp.config.read.keys import timed
from trayapp.config.read.spelling import TOOL_KEYS, TOOL_NOTES, is_extension
from trayapp.config.urls import has_variable, url_fault
from trayapp.config.yaml.nodes import Mapping as MappingNode
from trayapp.config.yaml.nodes import Node, Pair, Scalar, Sequence, is_null, kind
from trayapp.model.servers import LIFECYCLES, Auth, Scope, ToolSwitch
from trayapp.model.settings import AskMode

MAX_PORT = 65_535


def read_type(node: Node) -> str:
    """Read `stdio`, `http` or `sse`."""
    word: str = fields.choice(("stdio", "http", "streamable-http", "sse"))(node)
    return "http" if word == "streamable-http" else word


def read_tools(node: Node) -> dict[str, ToolSwitch]:
    """Read switches by tool name. `name: false` is short for `{enabled: false}`; null means no tools yet."""
    if is_null(node):
        return {}
    return {pair.name: _read_tool(pair) for pair in fields.mapping_pairs(node)}


def _read_tool(pair: Pair) -> ToolSwitch:
    if is_null(pair.value):
        return ToolSwitch()
    try:
        if not isinstance(pair.value, MappingNode):
            return ToolSwitch(enabled=fields.switch(pair.value))
        inside = [inner for inner in fields.mapping_pairs(pair.value) if _is_said(inner)]
        said: dict[str, Any] = {inner.name: fields.switch(inner.value) for inner in inside if inner.name != "ask"}
    except InvalidValueError as wrong:
        raise InvalidValueError(
            wrong.place, f"{shown(pair.name)} {wrong.message}", "Write it as {enabled: true}"
        ) from None
    for inner in inside:
        if inner.name == "ask":
            said["ask"] = _read_ask(pair, inner)
    return ToolSwitch(**said)


def _read_ask(tool: Pair, said: Pair) -> AskMode:
    try:
        return fields.ask_mode(said.value)
    except InvalidValueError as wrong:
        hint = wrong.hint or "Write it as {ask: true}"
        raise InvalidValueError(wrong.place, f"{shown(tool.name)}: ask {wrong.message}", hint) from None


def _is_said(pair: Pair) -> bool:
    return pair.name in TOOL_KEYS and not is_null(pair.value)


def unknown_tool_keys(node: Node) -> list[Pair]:
    """Return unknown keys of single tools in a readable `tools`. For example, `disabled: true` has no effect there."""
    inside = [pair.value for pair in ([] if is_null(node) else fields.mapping_pairs(node))]
    said = (inner for tool in inside if isinstance(tool, MappingNode) for inner in fields.mapping_pairs(tool))
    return [inner for inner in said if inner.name not in TOOL_KEYS | TOOL_NOTES and not is_extension(inner.name)]


def read_direct_tools(node: Node) -> bool | tuple[str, ...]:
    """Read true, false or names."""
    return fields.switch(node) if isinstance(node, Scalar) and kind(node) == "bool" else fields.words(node)


def read_url(node: Node) -> str:
    """Read an address. Its form is checked only if it contains no variable."""
    url = fields.text(node).strip()
    fault = None if has_variable(url) else url_fault(url)
    if fault:
        raise InvalidValueError(node, fault)
    return url


def read_command(node: Node) -> str | list[str]:
    """Read the command as written: a text that is not split yet, or a list that is not empty."""
    if not isinstance(node, Sequence):
        return fields.text(node)
    words = fields.items(node)
    if not words or not words[0].strip():
        raise InvalidValueError(node, "must not be empty")
    return words


READERS: Mapping[str, fields.Reader] = {
    "command": read_command,
    "args": fields.items,
    "env": fields.environment,
    "cwd": fields.text,
    "inherit_env": fields.switch,
    "confine": read_confine,
    "lock": fields.switch,
    "url": read_url,
    "type": read_type,
    "headers": fields.strings,
    "auth": fields.choice(get_args(Auth)),
    "bearer_token_env": fields.variable,
    "client_id": fields.written,
    "client_secret": fields.written,
    "scopes": fields.split_words,
    "account": fields.written,
    "callback_port": fields.whole(0, MAX_PORT),
    "disabled": fields.switch,
    "enabled": fields.switch,
    "lifecycle": fields.choice(LIFECYCLES),
    "always_on": fields.switch,
    "idle_timeout": fields.duration("min"),
    "scope": fields.choice(get_args(Scope)),
    "connect_timeout": fields.duration("s", zero=False),
    "request_timeout": fields.duration("s"),
    "title": fields.written,
    "tools": read_tools,
    "include_tools": fields.words,
    "exclude_tools": fields.words,
    "direct_tools": read_direct_tools,
    "expose_resources": fields.switch,
    "new_tools": fields.choice(("enabled", "disabled")),
    "ask": fields.ask_mode,
}


def reader_of(name: str, unit: str | None) -> fields.Reader:
    """Return the reader of a server's key. With a `unit` in the key, it converts to the unit of the plain key."""
    return timed(name, unit) if unit else READERS[name]
