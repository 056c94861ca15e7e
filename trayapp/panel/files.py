"""The panel's static files: styles, scripts and the icon, each with an address that changes with its content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
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


FILES = read_files(Path(__file__).with_name("static"))
