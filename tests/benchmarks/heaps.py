"""Tool definitions of 10 KB that take the longest to inspect: suspicious words in every encoding, and nonsense.

They are the same in every run.
"""

from __future__ import annotations

import base64
import codecs
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.inspection.examples import FOUND
from trayapp.inspection.rules import RULES

SIZE = 10_000  # bytes
DEPTH = 450  # levels of the nested schema

_chance = random.Random(11)
_LITERAL = re.compile(r"[a-z][a-z' -]{2,}")
_EXAMPLES = [text for rule in RULES for text in FOUND[rule.code]]
_WORDS = [word for rule in RULES for word in (*rule.hints, *rule.beside)] + [
    word for text in _EXAMPLES for word in text.lower().split()
]


def heaps() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the definitions with their names."""
    for name, text in _texts():
        yield (
            name,
            {
                "name": "a",
                "description": text.encode()[:SIZE].decode(errors="ignore"),
                "inputSchema": {"type": "object"},
            },
        )
    words = [_chance.choice(_WORDS) for _ in range(900)]
    fields = {
        "_".join(_LITERAL.findall(f"{one} {at}"))[:40] + str(at): {
            "type": "string",
            "description": " ".join(words[at:]),
        }
        for at, one in enumerate(words[-300:])
    }
    yield "parameters", {"name": "a", "inputSchema": {"type": "object", "properties": _cut(fields)}}
    yield (
        "values",
        {"name": "a", "inputSchema": {"properties": {"a": {"enum": [f"{one}{at}" for at, one in enumerate(words)]}}}},
    )
    for name, length in (("names", 3), ("long names", 60)):
        named = {_random(length): dict[str, Any]() for _ in range(SIZE // (length + 6))}
        yield f"different {name}", {"name": "a", "inputSchema": {"type": "object", "properties": named}}
    different = [_random(_chance.randint(4, 8)) for _ in range(1_100)]
    yield "different values", {"name": "a", "inputSchema": {"properties": {"a": {"enum": different}}}}
    nested = '{"properties":{"a":' * DEPTH + "{}" + "}}" * DEPTH
    yield "nested", {"name": "a", "inputSchema": json.loads(nested)}


def _cut(fields: dict[str, Any]) -> dict[str, Any]:
    """Return as many fields as fit into SIZE, with shortened descriptions."""
    kept, size = dict[str, Any](), 0
    for name, field in fields.items():
        field["description"] = field["description"][:60]
        size += len(name) + len(field["description"]) + 40
        if size > SIZE:
            break
        kept[name] = field
    return kept


def _texts() -> Iterator[tuple[str, str]]:
    """Yield named texts of random words, and one such text in every encoding."""
    heap = ""
    for number in range(4):
        heap = _filled(lambda: _chance.choice(_WORDS) + " ")
        yield f"words {number}", heap
    for count in (3, 6, 12):
        yield f"sentences of {count}", _filled(lambda count=count: " ".join(_chance.choices(_WORDS, k=count)) + ". ")  # type: ignore[misc]
    yield "list", _filled(lambda: "- " + " ".join(_chance.choices(_WORDS, k=12)) + "\n")
    yield "quoted", _filled(lambda: f"says '{_chance.choice(_EXAMPLES).rstrip('.')}', ")
    for rule in RULES:
        found = [text.lower().rstrip(".").split() for text in FOUND[rule.code]]
        own = [*rule.hints, *rule.beside, *(word for words in found for word in words)]
        yield f"words of {rule.code}", _filled(lambda own=own: _chance.choice(own) + " ")  # type: ignore[misc]
        yield f"beginnings of {rule.code}", _filled(lambda found=found: _begun(_chance.choice(found)) + " ")  # type: ignore[misc]
        yield f"repeated {rule.code}", f"{' '.join(found[0][: max(1, len(found[0]) - 2)])} " * 2_000
    yield "different words", _filled(lambda: f"{_random(_chance.randint(2, 9))} ")
    yield "words around hints", _filled(lambda: f"{_random(2)}{_chance.choice(_WORDS)}{_random(2)} ")
    yield "short sentences", _filled(lambda: f"{_random(2)}. ")
    yield "short lines", _filled(lambda: f"- {_random(2)}\n")
    yield "one word", _filled(lambda: _chance.choice(_WORDS).replace(" ", ""))
    yield "Chinese", _filled(lambda: f"{chr(_chance.randint(0x4E00, 0x9FFF))} ")
    plain, data = heap.encode("ascii", "ignore").decode(), heap.encode()
    yield "turned in all ways", f"{heap[: SIZE - 100]} lgnore vtaber erongi 1gn0re i g n o r e"
    yield "rot13", codecs.encode(heap, "rot13")
    yield "backwards", heap[::-1]
    yield "leetspeak", heap.translate(str.maketrans("oieast", "01345$"))
    yield "spaced letters", " ".join(heap)
    yield "Cyrillic look-alikes", heap.translate(str.maketrans("aeopcyx", "аеорсух"))
    yield "crossed out", "".join(f"{letter}\u0336" for letter in heap)
    yield "zero width", "\u200b".join(plain)
    yield "tag characters", "".join(chr(0xE0000 + ord(letter)) for letter in plain)
    yield "base64", base64.b64encode(data[: SIZE * 3 // 4]).decode()
    yield "base64 in pieces", " ".join(base64.b64encode(data[at : at + 40]).decode() for at in range(0, SIZE, 40))
    yield "base64 of nothing", "".join(_chance.choice("ABCDEFGHIJabcdefghij0123456789+/") for _ in range(SIZE))
    yield "base32", base64.b32encode(data[: SIZE * 5 // 8]).decode()
    yield "capitals", "".join(_chance.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") for _ in range(SIZE))
    yield "hexadecimal", data.hex()
    yield "words of hexadecimal", _filled(lambda: f"{_chance.randrange(2**32):08x} ")
    yield "percent", "".join(f"%{byte:02X}" for byte in data)
    yield "escapes", "".join(f"\\x{byte:02x}" for byte in data)
    yield "entities", "".join(f"&#{byte};" for byte in data)
    yield "numbers", ", ".join(map(str, data))
    yield "bits", " ".join(f"{byte:08b}" for byte in data)
    yield (
        "three languages",
        _filled(lambda: f"{_chance.choice(_WORDS)} {_chance.choice(['игнорируй', '用户', 'ユーザ'])} "),
    )
    yield "camel case", "".join(word.title() for word in re.findall("[a-z]+", heap))
    yield "addresses", "https://a.b/c?" * 800
    yield "blanks", f"a{' ' * 100}b" * 100
    yield "blank lines", f"a{chr(10) * 27}b" * 400
    yield "emoji", "👩‍💻🏳️‍🌈 " * 2_000


def _random(length: int) -> str:
    """Return a random word, which the inspection has not seen before."""
    return "".join(_chance.choices("abcdefghijklmnopqrstuvwxyz", k=length))


def _begun(words: list[str]) -> str:
    """Return the first words of an example, a random number of them."""
    return " ".join(words[: _chance.randrange(1, max(2, len(words)))])


def _filled(part: Callable[[], str]) -> str:
    """Return a text of at least SIZE characters, joined from parts."""
    parts, size = list[str](), 0
    while size < SIZE:
        parts.append(part())
        size += len(parts[-1])
    return "".join(parts)
