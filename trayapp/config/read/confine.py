"""The value of `confine`: true, false, try, or a mapping of what the server may reach in addition.

An unknown key is an error here: a misspelled limit must not mean fewer limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from trayapp.config.problems import InvalidValueError, nearest, shown
from trayapp.config.read import fields
from trayapp.config.yaml.nodes import Mapping as MappingNode
from trayapp.config.yaml.nodes import Node, Scalar, is_null, kind
from trayapp.model.confine import TRY, Confine, Confining

_LABEL = r"(?!-)[A-Za-z0-9_-]{1,63}"
_HOST = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*\.?|\[?[0-9a-fA-F:]*:[0-9a-fA-F:.]*\]?")
_WHOLE_PATH = re.compile(r"[/\\~]|[A-Za-z]:[/\\]|\$")


def read_confine(node: Node) -> Confining:
    """Read true, false, `try`, or {read, write, network, sockets}."""
    if isinstance(node, Scalar):
        if kind(node) == "str" and node.text.strip().lower() == TRY:
            return Confine(required=False)
        try:
            return Confine() if fields.switch(node) else False
        except InvalidValueError as wrong:
            raise InvalidValueError(node, "must be true, false, try or a mapping", wrong.hint or _EXAMPLE) from None
    if not isinstance(node, MappingNode):
        raise InvalidValueError(node, "must be true, false, try or a mapping", _EXAMPLE)
    said = {}
    for pair in fields.mapping_pairs(node):
        if pair.name not in _READERS:
            near = nearest(pair.name, _READERS)
            raise InvalidValueError(
                pair.key, f"has an unknown key {shown(pair.name)}", f"Did you mean {near}?" if near else ""
            )
        if is_null(pair.value):
            raise InvalidValueError(pair.key, f"does not set {pair.name}", "Give it a value, or remove it")
        try:
            said[pair.name] = _READERS[pair.name](pair.value)
        except InvalidValueError as wrong:
            raise InvalidValueError(wrong.place, f"{pair.name} {wrong.message}", wrong.hint) from None
    return Confine(**said)


_EXAMPLE = "Write it as confine: true, or confine: {read: [~/data], network: false}"


def _paths(node: Node) -> tuple[str, ...]:
    found = fields.words(node)
    for path in found:
        if not _WHOLE_PATH.match(path):
            raise InvalidValueError(node, f"has {shown(path)}, which is not an absolute path", "Begin it with / or ~/")
    return found


def _network(node: Node) -> bool | tuple[str, ...]:
    if isinstance(node, Scalar) and kind(node) == "bool":
        return fields.switch(node)
    hosts = fields.words(node)
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise InvalidValueError(
                node, f"has {shown(host)}, which is not a host", "Name hosts alone: example.com, *.example.com"
            )
    return hosts


_READERS: Mapping[str, fields.Reader] = {"read": _paths, "write": _paths, "network": _network, "sockets": fields.switch}
