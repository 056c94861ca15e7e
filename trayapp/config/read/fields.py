"""Readers of a mapping's keys, in all their spellings, and of single values.

A key may be in snake_case, camelCase or kebab-case, have another program's name, or end with a unit of time.
The reader of a value converts a node to a Python value, or raises InvalidValueError with the node's place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from collections.abc import Mapping as Plain
from typing import Any, NamedTuple, TypeGuard, get_args

from trayapp.config.problems import InvalidValueError, did_you_mean, shown
from trayapp.config.yaml.nodes import (
    TRUE,
    Mapping,
    Node,
    Pair,
    Scalar,
    Sequence,
    follow,
    is_null,
    kind,
    pairs,
    plain_kind,
)
from trayapp.model.config import TRY, AskMode, Confine, Confining, ServerConfig, Settings, ToolSwitch

# The keys are the fields of ServerConfig, plus `enabled` and `always_on`, which set `disabled` and `lifecycle`.
SERVER_KEYS = frozenset(ServerConfig.__dataclass_fields__) - {"name", "line"} | {"enabled", "always_on"}
SETTING_KEYS = frozenset(Settings.__dataclass_fields__)
TOOL_KEYS = frozenset(ToolSwitch.__dataclass_fields__)
TOOL_NOTES = frozenset(("description",))  # for people who read the file; clients get the server's own description

# names that other programs use for the same thing (Codex, OpenCode, Windsurf, Gemini, Cline)
ALIASES = {
    "bearer_token_env_var": "bearer_token_env",
    "http_headers": "headers",
    "environment": "env",
    **dict.fromkeys(("server_url", "http_url"), "url"),
    **dict.fromkeys(("transport", "transport_type"), "type"),
    "working_directory": "cwd",
    **dict.fromkeys(("enabled_tools", "allowed_tools"), "include_tools"),
    "disabled_tools": "exclude_tools",
    "startup_timeout": "connect_timeout",
    "tool_timeout": "request_timeout",
}
# key of a time -> the unit of a number that is written without one
TIMES = dict.fromkeys(("idle_timeout", "linger"), "min") | dict.fromkeys(
    ("connect_timeout", "request_timeout", "health_interval", "failure_backoff", "ask_timeout"), "s"
)
_UNIT = re.compile(r"(.+)_(ms|millis|milliseconds|s|secs?|seconds|mins?|minutes)")


class Spelling(NamedTuple):
    """A key's canonical name, and the unit of time that its spelling ends with, if any."""

    name: str
    unit: str | None = None


def snake(key: str) -> str:
    """Return `idle_timeout` for `idleTimeout`, `idle-timeout` and `idle_timeout`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).replace("-", "_").lower()


def spelled(key: str, known: frozenset[str]) -> Spelling | None:
    """Return the key in `known` that `key` is a spelling of, with the unit in that spelling, or None if unknown."""
    name = snake(key)
    name = ALIASES.get(name, name)
    if name in known:
        return Spelling(name)
    timed = _UNIT.fullmatch(name)
    if timed is None:
        return None
    name = ALIASES.get(timed[1], timed[1])
    return Spelling(name, timed[2]) if name in known and name in TIMES else None


def field_of(key: str) -> str:
    """Return the field of ServerConfig that a key sets. Return an unknown key unchanged.

    `enabled` sets `disabled`, and `always_on` sets `lifecycle`.
    """
    spelling = spelled(key, SERVER_KEYS)
    return {"enabled": "disabled", "always_on": "lifecycle"}.get(spelling.name, spelling.name) if spelling else key


def is_extension(key: str) -> bool:
    """Return True for `x-anything`: the user's own keys, for example to define anchors."""
    return key.startswith("x-")


def is_servers_key(key: str) -> bool:
    """Return True for `servers` and `mcp_servers` in any spelling (`mcpServers`, `mcp-servers`)."""
    return snake(key) in ("servers", "mcp_servers")


Reader = Callable[[Node], Any]

MAX_TIME_S = 365 * 86_400.0  # a year; larger values overflow the timers of some systems
_VARIABLE = re.compile(r"[A-Za-z_][\w()]*", re.ASCII)
_ITS_VALUE = re.compile(r"(?:\$env:|\$?\{(?:env:)?|\$|%)([A-Za-z_][\w()]*)(?:\}|:-|%|\Z)", re.ASCII)

SECONDS = {
    "ms": 0.001, "millis": 0.001, "milliseconds": 0.001,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86_400.0, "day": 86_400.0, "days": 86_400.0,
}  # fmt: skip
_PART = r"([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*([a-z]+)\s*"
BYTES = {"": 1, "b": 1, "kb": 1000, "mb": 1_000_000, "gb": 1_000_000_000}
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,3})?)\s*([a-z]*)", re.IGNORECASE)
_DURATION = re.compile(rf"(?:{_PART})+", re.IGNORECASE)


def read_keys(
    pairs: list[Pair],
    readers: Plain[str, Reader],
    wrong: Callable[[Pair, InvalidValueError], None],
    unknown: Callable[[Pair, str], None],
) -> dict[str, tuple[Pair, Any]]:
    """Return canonical key -> (its pair, its value). A key with a null value counts as absent, except `tools`.

    `readers` has a reader for each known key. A time whose key names a unit is converted to the unit of the plain key.
    A key in the mapping itself wins over a merged one. `wrong` is called for each invalid value and each second
    spelling of a key. `unknown` is called for each unknown key except `x-...`, with a hint or "".
    """
    known = frozenset(readers)
    found: dict[str, tuple[Pair, Any]] = {}
    for pair in sorted(pairs, key=lambda pair: pair.merged):
        spelling = spelled(pair.name, known)
        if spelling is None:
            if not is_extension(pair.name):
                unknown(pair, did_you_mean(pair.name.lower().replace("-", "_"), known))
            continue
        name = spelling.name
        if is_null(pair.value) and name != "tools":
            continue
        try:
            value = (_timed(name, spelling.unit) if spelling.unit else readers[name])(pair.value)
        except InvalidValueError as error:
            wrong(pair, error)
            continue
        if name not in found:
            found[name] = (pair, value)
        elif not pair.merged:
            first = found[name][0]
            message = f"is a second spelling of {shown(first.name)} (line {first.key.line})"
            wrong(pair, InvalidValueError(pair.key, message, "Keep one of them"))
    return found


def is_switch(node: Node) -> TypeGuard[Scalar]:
    """Return True if a value is true or false (also yes, no, on, off)."""
    return isinstance(node, Scalar) and kind(node) == "bool"


def switch(node: Node) -> bool:
    """Read true or false (also yes, no, on, off)."""
    if is_switch(node):
        return node.text in TRUE
    raise InvalidValueError(node, "must be true or false", _unquoted(node, "bool"))


def _unquoted(node: Node, *kinds: str) -> str:
    """Return a hint if a value would be one of `kinds` without its quotes. Return "" for other values."""
    if not isinstance(node, Scalar) or node.style not in ("'", '"') or plain_kind(node.text) not in kinds:
        return ""
    return f"Write {node.text} without quotes"


def text(node: Node) -> str:
    """Read a text that is not empty. A number or a boolean without quotes is an error."""
    if not isinstance(node, Scalar) or kind(node) != "str":
        raise InvalidValueError(node, "must be text", "Put it in quotes" if isinstance(node, Scalar) else "")
    if not node.text.strip():
        raise InvalidValueError(node, "must not be empty")
    return whole_text(node)


def whole_text(node: Scalar) -> str:
    """Return the text of a scalar. Raises InvalidValueError for a lone surrogate (`\\ud800`), which cannot be sent."""
    if not node.text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in node.text):
        raise InvalidValueError(node, "contains a lone surrogate")
    return node.text


def written(node: Node) -> str:
    """Return the text of any scalar, unconverted (`8080`, `true`, `0x10`). Null is an error, but `""` is valid."""
    if not isinstance(node, Scalar) or kind(node) == "other":
        raise InvalidValueError(node, "must be text")
    if kind(node) == "null":
        raise InvalidValueError(node, "has no value", 'Write "" for an empty one')
    return whole_text(node)


def number(node: Node) -> float:
    """Read a finite, nonnegative number of at most 30 characters, in any spelling that YAML allows."""
    if not isinstance(node, Scalar) or kind(node) not in ("int", "float") or len(node.text) > 30:
        raise InvalidValueError(node, "must be a number", _unquoted(node, "int", "float"))
    digits = node.text.replace("_", "").lower()
    base = {"0x": 16, "0o": 8, "0b": 2}.get(digits.lstrip("+-")[:2])
    try:
        value = float(int(digits, base)) if base else float(digits)
    except ValueError:
        value = math.nan  # for example `0x_`, or other text with the tag !!int
    if not 0 <= value < math.inf:
        raise InvalidValueError(node, "must not be negative" if value < 0 else "must be a number")
    return value


def whole(least: int, most: int) -> Reader:
    """Return a reader of whole numbers from `least` to `most`."""

    def read(node: Node) -> int:
        value = number(node)
        if value != int(value) or not least <= value <= most:
            raise InvalidValueError(node, f"must be a whole number from {least} to {most}")
        return int(value)

    return read


port = whole(0, 65_535)


def duration(unit: str, *, least: float = 0.0, zero: bool = True) -> Reader:
    """Return a reader of times in `unit` (a key of SECONDS), from `least` to one year. Without `zero`, 0 is invalid.

    Text such as `30s` or `1h30m` is converted to the unit.
    """

    def read(node: Node) -> float:
        if isinstance(node, Scalar) and kind(node) == "str":
            words = node.text.strip().lower()
            parts = re.findall(_PART, words) if _DURATION.fullmatch(words) else []
            if not parts or any(name not in SECONDS for _, name in parts):
                hint = _unquoted(node, "int", "float") or f"A number ({unit}), or 30s, 5m, 1h"
                raise InvalidValueError(node, "must be a time", hint)
            value = sum(float(amount) * SECONDS[name] for amount, name in parts) / SECONDS[unit]
        else:
            value = number(node)
        if value * SECONDS[unit] > MAX_TIME_S:
            raise InvalidValueError(node, "must not be more than a year")
        if value < least or not (value or zero):
            raise InvalidValueError(node, f"must be at least {least:g} {unit}" if least > 0 else "must be more than 0")
        return value

    return read


def _timed(name: str, unit: str) -> Reader:
    """Return a reader that converts a time from the unit in its key (`requestTimeoutMs`) to the unit in TIMES."""
    read = duration(unit, zero=name not in ("connect_timeout", "ask_timeout"))
    factor = SECONDS[unit] / SECONDS[TIMES[name]]
    return lambda node: read(node) * factor


def size(least: int, most: int) -> Reader:
    """Return a reader of sizes in bytes from `least` to `most`: a number, or a text such as `50 MB`."""

    def read(node: Node) -> int:
        found = _SIZE.fullmatch(node.text.strip()) if isinstance(node, Scalar) else None
        if found is None or found[2].lower() not in BYTES:
            raise InvalidValueError(node, "must be a size", "Write it as 50 MB")
        value = int(float(found[1]) * BYTES[found[2].lower()])
        if not least <= value <= most:
            raise InvalidValueError(node, f"must be from {least // 1_000_000} MB to {most // 1_000_000_000} GB")
        return value

    return read


def choice(options: Iterable[str]) -> Reader:
    """Return a reader of one of `options`. Words such as `off` are not booleans here.

    Case does not matter. `_` and camelCase count as `-`.
    """
    known = tuple(options)

    def read(node: Node) -> str:
        word = node.text.strip() if isinstance(node, Scalar) else ""
        folded = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", word).replace("_", "-").lower()
        if folded in known:
            return folded
        raise InvalidValueError(node, f"must be one of {', '.join(known)}", did_you_mean(folded, known))

    return read


def ask_mode(node: Node) -> AskMode:
    """Read the setting for when to ask the user: a mode, true (before every call) or false (never)."""
    if is_switch(node) and node.text.lower() != "off":
        return "all" if switch(node) else "off"
    mode: AskMode = choice(get_args(AskMode))(node)
    return mode


def items(node: Node) -> list[str]:
    """Read a list of scalars as texts, each as written."""
    if not isinstance(node, Sequence):
        raise InvalidValueError(node, "must be a list", "Write it as [one, two]")
    return [_named(f"item {position}", item, written) for position, item in enumerate(node.items, 1)]


def words(node: Node) -> tuple[str, ...]:
    """Read a list of scalars as texts. A single scalar counts as a list of one."""
    return (written(node),) if isinstance(node, Scalar) else tuple(items(node))


def split_words(node: Node) -> tuple[str, ...]:
    """Read a list of words, or a single text of words separated by spaces (as in OAuth scopes)."""
    return tuple(written(node).split()) if isinstance(node, Scalar) else tuple(items(node))


def mapping_pairs(node: Node) -> list[Pair]:
    """Return the pairs of a mapping, with merge keys resolved."""
    if not isinstance(node, Mapping):
        raise InvalidValueError(node, "must be a mapping", "Write it as {name: value}")
    return pairs(node)


def strings(node: Node) -> dict[str, str]:
    """Read a mapping of names to scalars, each as written."""
    found = {}
    for pair in mapping_pairs(node):
        name = whole_text(pair.key) if isinstance(pair.key, Scalar) else pair.name
        found[name] = _named(shown(pair.name), pair.value, written, pair.key)
    return found


def environment(node: Node) -> dict[str, str]:
    """Read a mapping as `strings` does. A name that no environment variable can have is an error."""
    found = mapping_pairs(node)
    for pair in found:
        if not pair.name or "=" in pair.name or "\0" in pair.name:
            raise InvalidValueError(pair.key, f"{shown(pair.name) or 'an empty name'} is not a variable name")
    return strings(node)


def variable(node: Node) -> str:
    """Read the name of an environment variable. A reference to its value (`${NAME}`) is an error."""
    name = text(node).strip()
    if not _VARIABLE.fullmatch(name):
        its_value = _ITS_VALUE.search(name)
        hint = f"Write it as {its_value[1]}" if its_value else ""
        raise InvalidValueError(node, "must be only the name of a variable", hint)
    return name


def word_lists(node: Node) -> dict[str, tuple[str, ...]]:
    return {pair.name: _named(shown(pair.name), pair.value, words, pair.key) for pair in mapping_pairs(node)}


def _named(name: str, node: Node, reader: Reader, place: Node | None = None) -> Any:
    """Read a nested value with `reader`. An error names the value and is reported at `place`, if given."""
    node = follow(node)
    try:
        return reader(node)
    except InvalidValueError as wrong:
        raise InvalidValueError(place or wrong.place, f"{name} {wrong.message}", wrong.hint) from None


_LABEL = r"(?!-)[A-Za-z0-9_-]{1,63}"
_HOST = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*\.?|\[?[0-9a-fA-F:]*:[0-9a-fA-F:.]*\]?")
_WHOLE_PATH = re.compile(r"[/\\~]|[A-Za-z]:[/\\]|\$")


def read_confine(node: Node) -> Confining:
    """Read true, false, `try`, or a mapping of access beyond the baseline: {read, write, network, sockets}.

    An unknown key is an error here, because a misspelled limit must not grant more access.
    """
    if is_switch(node):
        return Confine() if switch(node) else False
    if isinstance(node, Scalar) and kind(node) == "str" and node.text.strip().lower() == TRY:
        return Confine(required=False)
    if not isinstance(node, Mapping):
        hint = _unquoted(node, "bool") or "Write it as confine: true, or confine: {read: [~/data], network: false}"
        raise InvalidValueError(node, "must be true, false, try or a mapping", hint)
    said = {}
    for pair in mapping_pairs(node):
        if pair.name not in _CONFINE_READERS:
            hint = did_you_mean(pair.name, _CONFINE_READERS)
            raise InvalidValueError(pair.key, f"has an unknown key {shown(pair.name)}", hint)
        if is_null(pair.value):
            raise InvalidValueError(pair.key, f"has no value for {pair.name}", "Set a value, or remove it")
        said[pair.name] = _named(pair.name, pair.value, _CONFINE_READERS[pair.name])
    return Confine(**said)


def _absolute_paths(node: Node) -> tuple[str, ...]:
    return _checked(node, _WHOLE_PATH.match, "an absolute path", "Begin it with / or ~/")


def _checked(node: Node, fits: Callable[[str], object], what: str, hint: str) -> tuple[str, ...]:
    found = words(node)
    for word in found:
        if not fits(word):
            raise InvalidValueError(node, f"has {shown(word)}, which is not {what}", hint)
    return found


def _network(node: Node) -> bool | tuple[str, ...]:
    if is_switch(node):
        return switch(node)
    hint = "Write only host names: example.com, *.example.com"
    return _checked(node, _HOST.fullmatch, "a host", hint)


_CONFINE_READERS: Plain[str, Reader] = {
    "read": _absolute_paths,
    "write": _absolute_paths,
    "network": _network,
    "sockets": switch,
}
