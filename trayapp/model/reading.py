"""JSON values converted back to frozen dataclasses, driven by the fields' types.

Unknown keys are ignored, since a newer program may add some. A value of the wrong type is an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from trayapp.model.errors import MultiMcpError

T = TypeVar("T")


class ShapeError(MultiMcpError):
    """A value has the wrong shape. The title names its path, never the value."""

    code = "shape"


def read(kind: type[T], value: object, place: str) -> T:
    """Return the dataclass `kind` from a JSON object. Unknown keys are dropped, missing ones get their default.

    Raise ShapeError, which names `place` and the path below it.
    """
    if not isinstance(value, Mapping):
        raise _wrong(place, "an object")
    hints, given = _hints(kind), dict[str, Any]()  # type: ignore[arg-type]  # classes are hashable
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]  # a dataclass, by contract
        if field.name in value:
            given[field.name] = _read(hints[field.name], value[field.name], f"{place}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ShapeError(f"{place}.{field.name} is missing")
    return kind(**given)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(hint: Any, value: object, place: str) -> Any:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):  # we use only `X | None`
        return None if value is None else _read(next(p for p in parts if p is not type(None)), value, place)
    if origin is tuple:
        return tuple(_read(parts[0], item, f"{place}[{at}]") for at, item in enumerate(_a_list(value, place)))
    if origin is dict:
        return _texts(value, place)
    if dataclasses.is_dataclass(hint):
        return read(hint, value, place)  # type: ignore[arg-type]
    return _read_plain(hint, value, place)


def _read_plain(hint: Any, value: object, place: str) -> Any:
    """Return an enum member, a number, a string or a boolean."""
    allowed = get_args(hint) if get_origin(hint) is Literal else None
    if allowed is None and isinstance(hint, type) and issubclass(hint, Enum):
        allowed = tuple(hint)
    if allowed is not None:
        if isinstance(value, str) and value in allowed:
            return value if get_origin(hint) is Literal else hint(value)
        raise _wrong(place, f"one of {', '.join(allowed)}")
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise _wrong(place, NAMES[hint])
    return value


NAMES: dict[Any, str] = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _a_list(value: object, place: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong(place, "a list")
    return value


def _texts(value: object, place: str) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(type(part) is str for pair in value.items() for part in pair):
        raise _wrong(place, "an object of texts")
    return dict(value)


def _wrong(place: str, wanted: str) -> ShapeError:
    return ShapeError(f"{place} should be {wanted}")
