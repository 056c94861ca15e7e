"""Keys of one mapping, in all their spellings, read to values by canonical name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trayapp.config.problems import InvalidValueError, nearest, shown
from trayapp.config.read import fields
from trayapp.config.read.spelling import TIMES, is_extension, spelled
from trayapp.config.yaml.nodes import Pair, is_null


def read_keys(
    pairs: list[Pair],
    known: frozenset[str],
    reader_of: Callable[[str, str | None], fields.Reader],
    wrong: Callable[[Pair, InvalidValueError], None],
    unknown: Callable[[Pair, str], None],
) -> dict[str, tuple[Pair, Any]]:
    """Return values by canonical name, with their source pairs. An empty key counts as absent, except `tools`."""
    found: dict[str, tuple[Pair, Any]] = {}
    for pair in sorted(pairs, key=lambda pair: pair.merged):
        spelling = spelled(pair.name, known)
        if spelling is None:
            _note_unknown(pair, known, unknown)
            continue
        name = spelling.name
        if is_null(pair.value) and name != "tools":
            continue
        try:
            value = reader_of(name, spelling.unit)(pair.value)
        except InvalidValueError as error:
            wrong(pair, error)
            continue
        if name not in found:
            found[name] = (pair, value)
        elif not pair.merged:
            first = found[name][0]
            message = f"says the same as {shown(first.name)} in line {first.key.line}"
            wrong(pair, InvalidValueError(pair.key, message, "Keep one of them"))
    return found


def _note_unknown(pair: Pair, known: frozenset[str], unknown: Callable[[Pair, str], None]) -> None:
    if is_extension(pair.name):
        return
    near = nearest(pair.name.lower().replace("-", "_"), known)
    unknown(pair, f"Did you mean {near}?" if near else "")


def timed(name: str, unit: str) -> fields.Reader:
    """Return the reader of a time whose key names its unit (`requestTimeoutMs`)."""
    read = fields.duration(unit, zero=name not in ("connect_timeout", "ask_timeout"))
    factor = fields.SECONDS[unit] / fields.SECONDS[TIMES[name]]
    return lambda node: read(node) * factor
