"""Implements family.Family for YAML. Servers are in a mapping (MAPPED) or a list (LISTED)."""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from dataclasses import dataclass
from typing import Any

from trayapp.clients.family import Document, Keys, with_value
from trayapp.config.problems import InvalidValueError, UnparsableError, problem_at, shown
from trayapp.config.yaml import rendering
from trayapp.config.yaml.nodes import (
    Alias,
    Mapping,
    Node,
    Scalar,
    Sequence,
    compose,
    follow,
    is_null,
    kind,
    pairs,
    plain_kind,
)
from trayapp.config.yaml.splices import Editor, Path, Slot, drop, outline, outline_of, put

NAME = "name"  # the key that identifies an item of a list


@dataclass(frozen=True, slots=True)
class YamlFamily:
    """Implements Family.

    If `listed`, the servers are items of a list: path[0] is the list's key, and path[1] is the name of an item. `read`
    then returns the list as a mapping from names to items.
    """

    listed: bool

    def read(self, text: str, file: str) -> Document:
        """Return the parsed text; {} for an empty text or `null`. Raises UnparsableError, also if it is no mapping."""
        root = compose(text, file)
        if root is None or is_null(root):
            return {}
        if not isinstance(root, Mapping):
            raise UnparsableError(problem_at(file, root, "The file is not a mapping"))
        try:
            document = {pair.name: plain(pair.value) for pair in pairs(root)}
        except InvalidValueError as wrong:
            raise UnparsableError(problem_at(file, wrong.place, f"The file: {wrong.message}", wrong.hint)) from None
        for key, value in document.items() if self.listed else ():
            items = value if isinstance(value, list) else []
            named = [item for item in items if isinstance(item, MappingType) and isinstance(item.get(NAME), str)]
            if named or value == []:
                document[key] = {item[NAME]: item for item in named}
        return document

    def put(self, text: str, path: Keys, value: Any, file: str) -> str:
        """Return the text with `value` at `path`. Missing mappings are created."""
        editor = _Editor(text, file)
        if self.listed:
            _put_listed(editor, path, value)
        else:
            _put_mapped(editor, editor.top(), path, value, None)
        return editor.finish()

    def drop(self, text: str, path: Keys, file: str) -> str:
        editor = _Editor(text, file)
        holder: Slot | None = None
        slots = editor.top()
        for key in path[:1] if self.listed else path[:-1]:
            holder = _find(slots, key)
            if holder is None or is_null(holder.value):
                return text
            slots = [] if self.listed else editor.slots(holder.value, holder.path)
        if self.listed:
            assert holder is not None  # a path has at least one key, that of the list
            _drop_listed(editor, holder, path)
            return editor.finish()
        slot = _find(slots, path[-1])
        if slot is None:
            return text
        if holder is not None and len(slots) == 1 and not slot.parent.flow:
            _empty(editor, holder, "{}")
            _cut(editor, editor.layout.line_start(slot.key.start), slot.value)
            editor.expected = put(outline(editor.root), holder.path, {})
        else:
            editor.remove(slot)
        return editor.finish()

    def lines(self, text: str, path: Keys) -> dict[str, int]:
        node = compose(text, "")
        for key in path:
            inside = follow(node) if node is not None else None
            found = pairs(inside) if isinstance(inside, Mapping) else []
            node = next((pair.value for pair in found if pair.name == key), None)
        inside = follow(node) if node is not None else None
        if isinstance(inside, Sequence) and self.listed:
            return {name: item.line for item in inside.items if (name := _name_of(item)) is not None}
        return {pair.name: pair.key.line for pair in pairs(inside)} if isinstance(inside, Mapping) else {}


MAPPED = YamlFamily(listed=False)
LISTED = YamlFamily(listed=True)


def plain(node: Node) -> Any:
    """Return a node as plain Python values: dicts, lists, strings, ... Raises InvalidValueError for invalid keys."""
    node = follow(node)
    if isinstance(node, Mapping):
        return {pair.name: plain(pair.value) for pair in pairs(node)}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    assert isinstance(node, Scalar)  # follow returns no other node
    found = kind(node)
    if found == "bool":
        return node.text.lower() in ("yes", "true", "on")
    if found in ("int", "float") and plain_kind(node.text) == found:
        try:
            return int(node.text) if found == "int" else float(node.text)
        except ValueError:
            return node.text  # such as a hexadecimal number: keep it as written
    return None if found == "null" else node.text


class _Editor(Editor):
    """An Editor for the files of other programs."""

    by_hand = "Make this change by hand"  # not `multi-mcp edit`, which opens servers.yaml


def _find(slots: list[Slot], key: str) -> Slot | None:
    return next((slot for slot in slots if slot.path[-1] == key), None)


def _put_mapped(editor: _Editor, slots: list[Slot], path: Path, value: Any, holder: Slot | None) -> None:
    slot = _find(slots, path[0])
    if slot is not None and len(path) > 1:
        _put_mapped(editor, editor.slots(slot.value, slot.path), path[1:], value, slot)
    elif slot is not None:
        editor.assign(slot, value)
    elif holder is None:
        editor.insert_top(with_value({}, path, value), depth=len(path))
    else:
        editor.insert(holder, with_value({}, path, value), depth=len(path))


# --- lists of mappings with a name


def _put_listed(editor: _Editor, path: Path, value: Any) -> None:
    holder = _find(editor.top(), path[0])
    new_item = {NAME: path[1], **with_value({}, path[2:], value)}
    if holder is None:
        editor.insert_top({path[0]: [new_item]}, depth=1)
        return
    items = _items(editor, holder)
    index = _index(items, path[1])
    if index is None:
        _append(editor, holder, items, new_item)
    elif len(path) == 2:
        editor.refuse(items[index].line, f"{shown(path[1])} already exists")
    else:
        slots = editor.slots(items[index], (*path[:1], path[1]))
        wanted = put(outline(items[index]), path[2:], outline_of(value))
        slot = _find(slots, path[2])
        inside = follow(items[index])
        assert isinstance(inside, Mapping)  # only a mapping can have the name that was found
        if slot is not None:
            editor.assign(slot, value)
        elif inside.flow:
            at = editor.layout.content_end(inside.pairs[-1][1])
            editor.note(at, at, ", " + rendering.flow({path[2]: value})[1:-1])
        else:
            at = editor.layout.after(inside.pairs[-1][1], inside.column)
            new = rendering.block({path[2]: value}, column=inside.column)
            editor.note(at, at, "".join(editor.layout.newline(at) + line for line in new))
        _expect_items(editor, holder, [wanted if at == index else outline(item) for at, item in enumerate(items)])


def _items(editor: _Editor, holder: Slot) -> list[Node]:
    if isinstance(holder.value, Alias):
        editor.refuse(holder.value.line, f"{shown(holder.path[-1])} is an alias of another entry")
    if is_null(holder.value):
        return []
    if not isinstance(holder.value, Sequence):
        editor.refuse(holder.value.line, f"{shown(holder.path[-1])} is not a list")
    return holder.value.items


def _index(items: list[Node], name: str) -> int | None:
    return next((at for at, item in enumerate(items) if _name_of(item) == name), None)


def _name_of(item: Node) -> str | None:
    inside = follow(item)
    found = pairs(inside) if isinstance(inside, Mapping) else []
    said = next((pair.value for pair in found if pair.name == NAME), None)
    return said.text if isinstance(said, Scalar) else None


def _expect_items(editor: _Editor, holder: Slot, items: list[Any]) -> None:
    editor.expected = put(outline(editor.root), holder.path, items)


def _append(editor: _Editor, holder: Slot, items: list[Node], item: dict[str, Any]) -> None:
    if not items:
        editor.assign(holder, [item])
        return
    last = items[-1]
    assert isinstance(holder.value, Sequence)  # null has no items
    if holder.value.flow:
        editor.note(last.end, last.end, ", " + rendering.flow(item))
    else:
        dash = _dash(editor, last)
        column = dash - editor.layout.line_start(last.start)
        content = last.column if isinstance(follow(last), Mapping) else column + 2
        at = editor.layout.after(last, column)
        newline = editor.layout.newline(at)
        lines = rendering.list_item(item, column=column, content=content)
        editor.note(at, at, "".join(newline + line for line in lines))
    _expect_items(editor, holder, [*map(outline, items), outline_of(item)])


def _dash(editor: _Editor, item: Node) -> int:
    """Return the position of a list item's dash. Refuse the edit if the dash does not begin its line."""
    start = editor.layout.line_start(item.start)
    dash = editor.text.rfind("-", start, item.start)
    if dash < 0 or editor.text[start:dash].strip(" \ufeff"):
        editor.refuse(item.line, "a list is written in a form that cannot be edited")
    return dash


def _drop_listed(editor: _Editor, holder: Slot, path: Path) -> None:
    items = _items(editor, holder)
    index = _index(items, path[1])
    if index is None:
        return
    if len(path) == 2:
        assert isinstance(holder.value, Sequence)  # null has no items
        item = items[index]
        if holder.value.flow:
            following = items[index + 1].start if index + 1 < len(items) else item.end
            start, end = (items[index - 1].end, item.end) if index else (item.start, following)
            editor.note(start, end, "")
        else:
            if len(items) == 1:
                _empty(editor, holder, "[]")
            _cut(editor, editor.layout.line_start(_dash(editor, item)), item)
        _expect_items(editor, holder, [outline(other) for at, other in enumerate(items) if at != index])
        return
    slot = _find(editor.slots(items[index], path[:2]), path[2])
    if slot is not None:
        editor.remove(slot)
        wanted = drop(outline(items[index]), path[2:])
        _expect_items(editor, holder, [wanted if at == index else outline(item) for at, item in enumerate(items)])


def _cut(editor: _Editor, start: int, node: Node) -> None:
    end = editor.layout.line_end(editor.layout.content_end(node))
    before, following = editor.layout.previous_end(start), editor.layout.next_line(end)
    if before is not None:
        editor.note(before, end, "")
    else:
        editor.note(start, end if following is None else following, "")


def _empty(editor: _Editor, holder: Slot, braces: str) -> None:
    """Write `braces` ({} or []) after a key whose value will be cut, because some programs refuse null."""
    at = editor.layout.colon_end(holder.key)
    if at is None:
        editor.refuse(holder.key.line, f"{shown(holder.path[-1])} has a value that cannot be emptied")
    editor.note(at, at, f" {braces}")
