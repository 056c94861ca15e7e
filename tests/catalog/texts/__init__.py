"""Texts of tools, a line each, poisoned and honest: wording is learned from them.

`@name|text` is a parameter's; `{base64:...}` and the like is encoded when read. Each set is by one author, who knew
neither the detector nor the other sets: what was learned from the others is measured by it (devtools/learn_wording).
The sets `second` and `third` were learned from only after they had judged, once: 252 of 270 poisoned tools were found,
12 of 270 honest ones flagged. Never here: judging them.
"""

from __future__ import annotations

import codecs
import json
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
AUTHORS = sorted({path.stem.partition("_")[0] for path in Path(__file__).parent.glob("*.txt")})
ENCODED = re.compile(rf"{{({'|'.join(ENCODINGS)}):(.*?)}}")


def tools(name: str) -> list[Item]:
    """The tools of one set; none where an author wrote only honest ones."""
    file = Path(__file__).parent / f"{name}.txt"
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []
    return [_tool(ENCODED.sub(lambda found: ENCODINGS[found[1]](found[2]), line)) for line in lines]


def catalogs() -> list[Item]:
    """Whole definitions of honest tools, with their schemas."""
    files = sorted(Path(__file__).parent.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def _tool(line: str) -> Item:
    if line.startswith("@"):
        name, text = line[1:].split("|", 1)
        return with_parameter(name, text)
    return tool(line.replace("\\n", "\n"))
