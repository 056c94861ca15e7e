"""Functions that write Python values as YAML in the style of servers.yaml: short mappings in braces, few quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trayapp.config.yaml.nodes import plain_kind
from trayapp.model.late import late

# Text that needs no quotes anywhere in YAML, even in a flow collection
_PLAIN = late(r"(?:--?(?=[A-Za-z]))?[A-Za-z0-9_./+~][A-Za-z0-9_./+@=~-]*(?: [A-Za-z0-9_./+@=~-]+)*", re.ASCII)
_PLAIN_BLOCK = late(
    r"(?:--?(?=[A-Za-z]))?[A-Za-z0-9_./+~](?:[A-Za-z0-9_./+@=~-]|:(?=[^\s:])|[ ](?=[A-Za-z0-9_./+@=~-]))*", re.ASCII
)
_ESCAPED = late("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
MAX_FLOW_CHARACTERS = 100  # a longer mapping gets one line for each pair


def scalar(value: str | int | float | bool | None, *, flow: bool = True, json_like: bool = False) -> str:
    """Return one value as YAML: safe inside braces if `flow`, and with text in double quotes if `json_like`."""
    if not isinstance(value, str):
        return json.dumps(value)
    pattern = _PLAIN if flow else _PLAIN_BLOCK
    # The value key (=), y and n, document markers (...), dates and sexagesimal numbers: some programs do not read these
    # as text.
    is_special = value in ("=", "y", "n", "Y", "N") or re.match(r"\.\.\.|[0-9]+[-:][0-9]", value)
    if not json_like and pattern.fullmatch(value) and plain_kind(value) == "str" and not is_special:
        return value
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def flow(value: Any, *, json_like: bool = False) -> str:
    """Return dicts, lists and scalars as YAML on one line, with all texts in double quotes if `json_like`."""
    if isinstance(value, Mapping):
        words = (f"{flow(key, json_like=json_like)}: {flow(item, json_like=json_like)}" for key, item in value.items())
        return "{" + ", ".join(words) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(flow(item, json_like=json_like) for item in value) + "]"
    return scalar(value, json_like=json_like)


def block(pairs: Mapping[str, Any], *, column: int = 0, step: int = 2, depth: int = 0) -> list[str]:
    """Return the lines of a mapping at `column`, without line endings.

    Nested mappings, and mappings in a list, get their own lines down to `depth` levels. Below that, a mapping gets its
    own lines only if it is long or contains another mapping.
    """
    lines: list[str] = []
    for key, value in pairs.items():
        head = " " * column + scalar(key, flow=False) + ":"
        if (isinstance(value, Mapping) and value) and (
            depth > 0 or len(flow(value)) > MAX_FLOW_CHARACTERS or any(isinstance(v, Mapping) for v in value.values())
        ):
            lines += [head, *block(value, column=column + step, step=step, depth=depth - 1)]
        elif depth > 0 and isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            lines += [head, *(line for item in value for line in list_item(item, column=column + step, step=step))]
        else:
            lines.append(f"{head} {scalar(value, flow=False) if isinstance(value, str) else flow(value)}")
    return lines


def list_item(pairs: Mapping[str, Any], *, column: int, content: int | None = None, step: int = 2) -> list[str]:
    """Return the lines of a list item: its dash at `column`, its keys at column `content` (default: `column` + 2)."""
    content = column + 2 if content is None else content
    first, *rest = block(pairs, column=content, step=step)
    return [" " * column + "-" + " " * (content - column - 1) + first[content:], *rest]
