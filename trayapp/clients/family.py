"""The interface of a file format (family): read a text, set or remove the value at a path. All functions are pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

from trayapp.config.problems import shown
from trayapp.config.yaml.splices import EditRefusedError

Keys = tuple[str, ...]
Document = dict[str, Any]


class Family(Protocol):
    """One file format. `file` names the file in error messages.

    A path is a sequence of keys from the top. In a list of servers, an item's name takes the place of a key. `read`,
    `put` and `drop` raise UnparsableError; `put` and `drop` raise EditRefusedError for a text that the change could
    damage.
    """

    def read(self, text: str, file: str) -> Document:
        """Return the parsed text; an empty text is an empty document."""
        ...

    def put(self, text: str, path: Keys, value: Any, file: str) -> str:
        """Return the text with `value` at `path`. Missing mappings on the way are created."""
        ...

    def drop(self, text: str, path: Keys, file: str) -> str:
        """Return the text without the value at `path`; unchanged if there is none."""
        ...

    def lines(self, text: str, path: Keys) -> dict[str, int]:
        """Return the line (1-based) of each key of the mapping at `path`. The text must be readable.

        Keys that cannot be located are left out.
        """
        ...


def lookup(document: Any, path: Keys) -> Any:
    """Return the value at `path`, None if there is none."""
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def with_value(document: Any, path: Keys, value: Any) -> Any:
    """Return a copy of a document with `value` at `path`. A value on the way that is not a mapping is replaced."""
    if not path:
        return value
    inside = dict(document) if isinstance(document, Mapping) else {}
    inside[path[0]] = with_value(inside.get(path[0]), path[1:], value)
    return inside


def without(document: Any, path: Keys) -> Any:
    """Return the document without the value at `path`. The given document is not changed."""
    if not isinstance(document, Mapping) or path[0] not in document:
        return document
    inside = dict(document)
    if len(path) == 1:
        del inside[path[0]]
    else:
        inside[path[0]] = without(inside[path[0]], path[1:])
    return inside


def refuse(file: str, line: int, why: str) -> NoReturn:
    """Raise EditRefusedError with the file, the line (0: unknown) and the reason. The file stays unchanged."""
    where = f"{file}, line {line}" if line else file
    raise EditRefusedError(f"{where}: {why}", "Make this change by hand")


def no_mapping(path: Keys) -> str:
    """Return the reason why nothing can be set below `path`."""
    return f"{shown(path[-1]) if path else 'the file'} is not a mapping"
