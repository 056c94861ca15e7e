"""The panel's static files: libraries and icon, each at an address of its content; style sheet and script."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

TYPES = {".js": "text/javascript", ".svg": "image/svg+xml"}
DIGEST = 16  # hexadecimal digits of a content's hash


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file. `address`: its path below the panel's, which no other content ever has."""

    content: bytes
    kind: str
    address: str


def read_files(folder: Path) -> dict[str, StaticFile]:
    """Return the files of a folder by name. Blocks."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in TYPES}
    digests = {name: hashlib.sha256(content).hexdigest()[:DIGEST] for name, content in found.items()}
    return {
        name: StaticFile(content, TYPES[Path(name).suffix], f"static/{name}?v={digests[name]}")
        for name, content in found.items()
    }


def source_of(text: str) -> str:
    """Return what allows that text in a page, for the content policy."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


FOLDER = Path(__file__).with_name("static")
FILES = read_files(FOLDER)
# Part of each page: a browser paints nothing before it has the style sheet, and a separate request takes 10 to 20 ms.
STYLE = (FOLDER / "panel.css").read_text("utf-8")
# Inlined as well: a click as soon as the page is visible must not get lost.
SCRIPT = (FOLDER / "panel.js").read_text("utf-8")
