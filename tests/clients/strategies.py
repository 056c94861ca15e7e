"""Hypothesis strategies for clients' files: JSON with comments and trailing commas, TOML and YAML, with varied blanks.

Each strategy draws a text that its family can read and that may have servers below HOLDER.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from trayapp.config.yaml import rendering

HOLDER = "servers"
NEWLINES = st.sampled_from(["\n", "\r\n"])

words = st.text("abcdefgh_-", min_size=1, max_size=6)
texts = st.one_of(words, st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8), st.sampled_from(
    ['"', "\\", "// no", "/* no */", "# no", "[a]", "}", "{", "a,}", "multi-mcp", "'''", '"""', "a = 1", "\u2028", "é"]
))  # fmt: skip
scalars = st.one_of(texts, st.integers(-99, 99), st.booleans())
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=6
)
entries = st.fixed_dictionaries({"command": texts.filter(bool), "args": st.lists(texts, max_size=2)})
server = st.dictionaries(words, values, max_size=3)
others = st.dictionaries(words.filter(lambda w: w != HOLDER), values, max_size=3)


def documents(filled: bool) -> st.SearchStrategy[tuple[dict[str, Any], dict[str, Any], bool]]:
    """Draw other keys, servers, and whether the file has a holder for them. `filled`: it has at least one server."""
    servers = st.dictionaries(words, server, min_size=int(filled), max_size=3)
    return st.tuples(others, servers, st.just(True) if filled else st.booleans())


@st.composite
def jsonc(draw: st.DrawFn, filled: bool = False) -> str:
    """Draw JSON with any allowed blanks, comments and trailing commas."""
    rest, below, has = draw(documents(filled))
    items = list(rest.items())
    if has:
        items.insert(draw(st.integers(0, len(items))), (HOLDER, below))
    newline = draw(NEWLINES)
    loose = draw(st.booleans())

    def gap() -> str:
        if not loose:
            return ""
        pieces = st.sampled_from(["", " ", "  ", "\t", newline, newline + "  ", "/* , } */", f'// {{ " ,{newline}'])
        return "".join(draw(st.lists(pieces, max_size=2)))

    def comma() -> str:
        return "," if loose and draw(st.booleans()) else ""

    def written(value: Any) -> str:
        if isinstance(value, dict):
            parts = [f"{gap()}{json.dumps(k)}{gap()}:{gap()}{written(v)}{gap()}" for k, v in value.items()]
        elif isinstance(value, list):
            parts = [f"{gap()}{written(item)}{gap()}" for item in value]
        else:
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        inside = ",".join(parts) + (comma() if parts else "") + gap()
        return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"

    indented = not loose and draw(st.booleans())
    body = dict(items)
    step: str = draw(st.sampled_from(["  ", "    ", "\t"]))
    text = json.dumps(body, indent=step) if indented else written(body)
    text = text.replace("\n", newline) if indented else text
    return draw(st.sampled_from(["", "\ufeff"])) + gap() + text + draw(st.sampled_from(["", newline]))


@st.composite
def toml(draw: st.DrawFn, filled: bool = False) -> str:
    """Draw statements in any order that TOML allows, with comments, blank lines, multi-line arrays and long texts."""
    newline = draw(NEWLINES)
    lines: list[str] = []

    def literal(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{json.dumps(k)} = {literal(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            gap = draw(st.sampled_from([" ", f"{newline}  # ] [x]{newline}  "]))
            return "[" + ("," + gap).join(literal(item) for item in value) + "]"
        if isinstance(value, str) and "'" not in value and value.isprintable() and draw(st.booleans()):
            return f"'{value}'"
        return json.dumps(value).replace("\x7f", "\\u007f")

    def statement(key: str, value: Any) -> str:
        quoted = json.dumps(key) if draw(st.booleans()) else key
        comment = draw(st.sampled_from(["", "  # [why] = 'not'"]))
        indent = draw(st.sampled_from(["", "  ", "\t"]))
        return f"{indent}{quoted} = {literal(value)}{comment}"

    rest, below, has = draw(documents(filled))
    lines += [statement(key, value) for key, value in rest.items()]
    if draw(st.booleans()):
        lines += ['long_text = """', f"[{HOLDER}.multi-mcp]", 'command = "no"', '"""']
    gaps = st.lists(st.sampled_from(["", "# [a.comment]", "  "]), max_size=2)
    if has and draw(st.booleans()):
        lines.append(statement(HOLDER, below))
        has = False
    for name, entry in below.items() if has else ():
        lines += draw(gaps)
        lines.append(f"[{HOLDER}.{json.dumps(name) if draw(st.booleans()) else name}]")
        lines += [statement(key, value) for key, value in entry.items()]
    if draw(st.booleans()):
        lines += [*draw(gaps), "[[after]]", "n = 1", "[after.more]", "n = 2"]
    text = newline.join(lines) + draw(st.sampled_from(["", newline]))
    return draw(st.sampled_from(["", "\ufeff"])) + text


@st.composite
def yaml(draw: st.DrawFn, listed: bool = False, filled: bool = False) -> str:
    """Draw mappings in lines or in braces, with comments between them."""
    newline = draw(NEWLINES)
    rest, below, has = draw(documents(filled))
    lines: list[str] = []
    comments = st.lists(st.sampled_from(["", "# why: not", "# - a: b"]), max_size=2)

    def block(value: dict[str, Any], column: int) -> list[str]:
        step = " " * column
        out: list[str] = []
        for key, item in value.items():
            note = draw(st.sampled_from(["", "   # {note}"]))
            out.append(f"{step}{rendering.scalar(key, flow=False)}: {rendering.flow(item)}{note}")
        return out

    lines += [*draw(comments), *block(rest, 0)]
    if has and listed:
        dash = draw(st.sampled_from(["", "  "]))
        lines.append(f"{HOLDER}:" if below else f"{HOLDER}: []")
        for name, entry in below.items():
            first, *others = block({"name": name, **{k: v for k, v in entry.items() if k != "name"}}, len(dash) + 2)
            lines += [f"{dash}- {first[len(dash) + 2 :]}", *others]
    elif has:
        step = draw(st.sampled_from([1, 2, 4]))
        lines.append(f"{HOLDER}:" if below else f"{HOLDER}: {{}}")
        for name, entry in below.items():
            head = " " * step + rendering.scalar(name, flow=False) + ":"
            lines += [head, *block(entry, step * 2)] if entry else [f"{head} {{}}"]
            lines += [" " * step + note if note else note for note in draw(comments)]
    lines += [*draw(comments), *block({"zz": draw(scalars)}, 0)]
    return newline.join(lines) + draw(st.sampled_from(["", newline]))
