"""What every family of formats can do: read a text, set the value at a path, drop one. All pure, text to text.

Never here: a format, files, which path belongs to which client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

from trayapp.config.problems import shown
from trayapp.config.yaml.splices import EditRefusedError

Keys = tuple[str, ...]
Document = dict[str, Any]


class Family(Protocol):
    """One format. `file` names the file in errors.

    A path is keys from the top; in a format where a client keeps a list of servers, the last key but the value's own is
    the item's name (see yaml_file). All raise Unparsable for a text that cannot be read, and EditRefusedError for one
    that is written in a way that the change could damage.
    """

    def read(self, text: str, file: str) -> Document:
        """All that the text says; an empty one says nothing."""
        ...

    def put(self, text: str, path: Keys, value: Any, file: str) -> str:
        """The text with `value` at `path`, mappings on the way made where they are missing."""
        ...

    def drop(self, text: str, path: Keys, file: str) -> str:
        """The text without what is at `path`; unchanged when nothing is there."""
        ...

    def lines(self, text: str, path: Keys) -> dict[str, int]:
        """The line (1-based) of each key of the mapping at `path`, as far as they can be told. The text is readable."""
        ...


def lookup(document: Any, path: Keys) -> Any:
    """What is at `path`, None when nothing is."""
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def with_value(document: Any, path: Keys, value: Any) -> Any:
    """A copy with `value` at `path`."""
    if not path:
        return value
    inside = dict(document) if isinstance(document, Mapping) else {}
    inside[path[0]] = with_value(inside.get(path[0]), path[1:], value)
    return inside


def without(document: Any, path: Keys) -> Any:
    """A copy with nothing at `path`."""
    if not isinstance(document, Mapping) or path[0] not in document:
        return document
    inside = dict(document)
    if len(path) == 1:
        del inside[path[0]]
    else:
        inside[path[0]] = without(inside[path[0]], path[1:])
    return inside


def refuse(file: str, line: int, why: str) -> NoReturn:
    """Give up: nothing is changed."""
    where = f"{file}, line {line}" if line else file
    raise EditRefusedError(f"{where}: {why}", "Make this change by hand")


def no_mapping(path: Keys) -> str:
    """Why nothing can be put below something."""
    return f"{shown(path[-1]) if path else 'the file'} is no mapping"
