"""Texts of tools, a line each, poisoned and honest: wording is learned from them.

`@name|text` is a parameter's; `{base64:...}` and the like is encoded when read. Each set was written before the
detector was tried on it. The fresh one was learned from only after it had judged, once: 36 of 61
found (14 by patterns alone), 5 of 60 honest ones flagged. Never here: a real server's text.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from pathlib import Path

from tests.catalog.poisonings import Item, bits, coded, tags, tool, with_parameter

ENCODINGS: dict[str, Callable[[str], str]] = {
    "tags": tags,
    "bits": bits,
    "base64": coded,
    "hex": lambda text: text.encode().hex(),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "reversed": lambda text: text[::-1],
}
ENCODED = re.compile(rf"{{({'|'.join(ENCODINGS)}):(.*?)}}")


def tools(name: str) -> list[Item]:
    """The tools of one set."""
    lines = (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [_tool(ENCODED.sub(lambda found: ENCODINGS[found[1]](found[2]), line)) for line in lines]


def _tool(line: str) -> Item:
    if line.startswith("@"):
        name, text = line[1:].split("|", 1)
        return with_parameter(name, text)
    return tool(line.replace("\\n", "\n"))
