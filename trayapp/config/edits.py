"""Edits of servers.yaml: pure functions that take the text and return the new one, with the fewest bytes changed.

The module yaml/splices changes the text itself. `merge_tools` raises only UnparsableError. The other edits raise:
- UnparsableError if the text cannot be read,
- EditRefusedError if the change could damage the file,
- ServerNotFoundError if the server is not in the file,
- UsageError where their docstrings mention it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trayapp.config.paths import CONFIG_NAME
from trayapp.config.problems import InvalidValueError, shown
from trayapp.config.read import fields
from trayapp.config.read.entry import read_tools
from trayapp.config.read.fields import SERVER_KEYS, SETTING_KEYS, is_servers_key, snake, spelled
from trayapp.config.yaml.nodes import Mapping as MappingNode
from trayapp.config.yaml.nodes import Node, Pair, Scalar, follow, is_null, pairs
from trayapp.config.yaml.rendering import scalar
from trayapp.config.yaml.splices import Editor, EditRefusedError, Layout, Slot
from trayapp.model.config import ToolSwitch
from trayapp.model.errors import ServerNotFoundError, UsageError

LONGEST_KEY = 1000  # in characters, including quotes and escapes; YAML limits plain keys to 1,024
SHOWN = 40  # the most characters of a name in a message


class RefreshEdit(NamedTuple):
    """The text after a refresh. `refused` maps each server that could not be changed to the reason."""

    text: str
    refused: dict[str, str]


def merge_tools(text: str, found: Mapping[str, Mapping[str, ToolSwitch]]) -> RefreshEdit:
    """Merge the result of a refresh into the text. `found`: server -> tool -> the tool's switch.

    Tools that the file lacks are added as given, unless their names are too long for a key. In listed tools, only
    `stale` changes, never `enabled`. Tools that are not in `found` stay as they are.

    Raises only UnparsableError. A server that cannot be edited keeps its text and is named in `refused`.
    """
    try:
        return _merge_all(text, found)
    except EditRefusedError as error:
        if len(found) == 1:
            return RefreshEdit(text, dict.fromkeys(found, str(error)))
    refused: dict[str, str] = {}
    for name, tools in found.items():  # one server can make the whole edit fail, so edit them one by one
        text, why = merge_tools(text, {name: tools})
        refused |= why
    return RefreshEdit(text, refused)


def _merge_all(text: str, found: Mapping[str, Mapping[str, ToolSwitch]]) -> RefreshEdit:
    editor = Editor(text, CONFIG_NAME)
    servers = _servers(editor)
    refused: dict[str, str] = {}
    for name, tools in found.items():
        if name not in servers:
            refused[name] = f"{name} is not in {CONFIG_NAME}"
            continue
        try:
            with editor.all_or_nothing():
                listed = _listed(editor, servers[name])
                differing = [tool for tool in tools if tool in listed and listed[tool].stale != tools[tool].stale]
                changed = {tool: ToolSwitch(listed[tool].enabled, tools[tool].stale) for tool in differing}
                fresh = {tool: switch for tool, switch in tools.items() if tool not in listed and _fits(tool)}
                _write_tools(editor, servers[name], changed, fresh)
        except EditRefusedError as error:
            refused[name] = str(error)
    return RefreshEdit(editor.finish(), refused)


def set_tools_enabled(text: str, server: str, names: Iterable[str], enabled: bool, *, brief: bool = False) -> str:
    """Enable or disable tools of one server. Tools that the file does not list are added.

    With `brief` (`write_tools: switched`), enabling a tool removes its line if the line holds only the switch. All
    lines stay if a comment would be lost or one of the tools is stale. Raises UsageError if a name is too long for a
    key.
    """
    editor = Editor(text, CONFIG_NAME)
    entry = _server(editor, server)
    listed = _listed(editor, entry)
    names = list(dict.fromkeys(names))
    if long := next((name for name in names if not _fits(name)), None):
        what = f"The name {long[:SHOWN]}... has {len(long)} characters, too many for a key of {CONFIG_NAME}"
        raise UsageError(what, f"Change exclude_tools of {server} instead: a pattern there hides the tool")
    differing = [name for name in names if name in listed and listed[name].enabled != enabled]
    if brief and enabled and not any(listed[name].stale for name in differing):
        differing = _without_lines(editor, entry, differing)
    changed = {name: ToolSwitch(enabled, listed[name].stale) for name in differing}
    _write_tools(editor, entry, changed, {name: ToolSwitch(enabled) for name in names if name not in listed})
    return editor.finish()


def set_server_enabled(text: str, server: str, enabled: bool) -> str:
    """Enable or disable one server by `enabled` or `disabled` in its entry. If both are missing, add `disabled`."""
    editor = Editor(text, CONFIG_NAME)
    entry = _server(editor, server)
    slots = editor.slots(entry.value, entry.path)
    said = [slot for slot in slots if _name(slot) in ("disabled", "enabled")]
    for slot in said:
        wanted = enabled == (_name(slot) == "enabled")
        if not _says(slot.value, wanted) and not (is_null(slot.value) and enabled):
            editor.assign(slot, wanted)
    if not said and _merged_enabled(editor, entry) != enabled:
        editor.insert(entry, {"disabled": not enabled}, after=_before_tools(slots))
    return editor.finish()


def set_confine(text: str, server: str, value: Any) -> str:
    """Set `confine` of a server to `value`: the result of Confine.value, or False."""
    editor = Editor(text, CONFIG_NAME)
    entry = _server(editor, server)
    slots = editor.slots(entry.value, entry.path)
    said = next((slot for slot in slots if _name(slot) == "confine"), None)
    if said is not None:
        editor.assign(said, value)
    else:
        editor.insert(entry, {"confine": value}, after=_before_tools(slots))
    return editor.finish()


def add_server(text: str, name: str, entry: Mapping[str, Any], file: str = CONFIG_NAME) -> str:
    """Add a server after the others. Raises UsageError if the name is taken."""
    editor = Editor(text, file)
    if name in _servers(editor):
        hint = f"Choose another name, or remove it first: multi-mcp remove {name}"
        raise UsageError(f"A server named {shown(name)} already exists", hint, field="name")
    holders = [slot for slot in editor.top() if is_servers_key(slot.path[0])]
    if holders:
        editor.insert(holders[0], {name: dict(entry)}, depth=1)
    else:
        editor.insert_top({"servers": {name: dict(entry)}}, depth=2)
    return editor.finish()


def remove_server(text: str, name: str, file: str = CONFIG_NAME) -> str:
    """Remove a server with its own comments, which are inside its entry or directly above it."""
    editor = Editor(text, file)
    slot = _server(editor, name)
    if slot.parent.flow:
        editor.remove(slot)
    else:
        editor.cut_lines(slot, *_own_lines(editor.layout, slot))
    return editor.finish()


def set_setting(text: str, key: str, value: Any) -> str:
    """Set the setting `key`; `http.port` sets `port` in `http`. Raises UsageError for an unknown or empty name."""
    path = key.split(".")
    if snake(path[0]) not in SETTING_KEYS or not all(path):
        raise UsageError(f"No setting is named {shown(key)}", f"Settings: {', '.join(sorted(SETTING_KEYS))}")
    editor = Editor(text, CONFIG_NAME)
    slots, holder, names = editor.top(), None, ["settings", *path]
    while names and (found := [slot for slot in slots if snake(slot.path[-1]) == snake(names[0])]):
        holder, names = found[0], names[1:]
        slots = editor.slots(holder.value, holder.path) if names else []
    wanted = value
    for name in reversed(names[1:]):
        wanted = {name: wanted}
    if holder is None:
        editor.insert_top({names[0]: wanted}, depth=1)
    elif names:
        editor.insert(holder, {names[0]: wanted})
    else:
        editor.assign(holder, value)
    return editor.finish()


def _servers(editor: Editor) -> dict[str, Slot]:
    holders = [slot for slot in editor.top() if is_servers_key(slot.path[0])]
    return {name: slot for holder in holders for name, slot in _own(editor, holder).items()}


def _own(editor: Editor, slot: Slot) -> dict[str, Slot]:
    return {inner.path[-1]: inner for inner in editor.slots(slot.value, slot.path)}


def _server(editor: Editor, name: str) -> Slot:
    servers = _servers(editor)
    if name not in servers:
        raise ServerNotFoundError(name, list(servers))
    return servers[name]


def _name(slot: Slot) -> str | None:
    spelling = spelled(slot.path[-1], SERVER_KEYS)
    return spelling.name if spelling else None


def _says(node: Node, wanted: bool) -> bool:
    try:
        return fields.switch(follow(node)) is wanted
    except InvalidValueError:
        return False


def _merged_pairs(editor: Editor, slot: Slot) -> list[Pair]:
    """Return the pairs of an entry, including those merged by `<<`, or [] if its value is not a mapping."""
    node = follow(slot.value)
    try:
        return pairs(node) if isinstance(node, MappingNode) else []
    except InvalidValueError as wrong:
        editor.refuse(wrong.place.line, f"{shown(slot.path[-1])}: {wrong.message}")


def _merged_enabled(editor: Editor, entry: Slot) -> bool:
    """Return True if `<<` or the default would enable an entry that has neither `enabled` nor `disabled` itself."""
    for pair in _merged_pairs(editor, entry):
        spelling = spelled(pair.name, SERVER_KEYS)
        if spelling and spelling.name in ("disabled", "enabled"):
            return _says(pair.value, spelling.name == "enabled")
    return True


def _before_tools(slots: list[Slot]) -> Slot | None:
    """Return the pair before `tools`, or None if `tools` is missing or first."""
    at = next((index for index, slot in enumerate(slots) if _name(slot) == "tools"), 0)
    return slots[at - 1] if at else None


def _own_lines(layout: Layout, slot: Slot) -> tuple[int, int]:
    """Return the start and end of an entry's lines, including its comments and the blank lines above or below it."""
    column = slot.key.column
    start, end = layout.line_start(slot.key.start), layout.after(slot.value, column)
    while (above := layout.line_above(start)) is not None and _is_own_comment(layout.line_at(above), column):
        start = above
    gap_above, gap_below = layout.blank_above(start), layout.blank_below(end)
    last = layout.is_last_at(gap_below, column)
    first = slot.parent.pairs[0][0] is slot.key
    if gap_below > end and not last and (first or gap_above < start):
        return start, gap_below
    return (gap_above, end) if last and not first else (start, end)


def _is_own_comment(line: str, column: int) -> bool:
    """Return True if a line above an entry is a comment at the entry's column, and not a commented-out entry."""
    at_column = line.startswith(" " * column + "#")
    return at_column and re.match(r" *#\s*(?:- |[^\s#:]+:(?:\s|$)| {3,})", line) is None


def _listed(editor: Editor, server: Slot) -> dict[str, ToolSwitch]:
    """Return the switches in an entry's `tools`, as the parser reads them."""
    found = [pair for pair in _merged_pairs(editor, server) if pair.name == "tools"]
    try:
        return read_tools(found[0].value) if found else {}
    except InvalidValueError as wrong:
        editor.refuse(wrong.place.line, f"tools {wrong.message}")


def _fits(name: str) -> bool:
    return len(scalar(name)) <= LONGEST_KEY


def _write_tools(
    editor: Editor, server: Slot, changed: Mapping[str, ToolSwitch], added: Mapping[str, ToolSwitch]
) -> None:
    if not changed and not added:
        return
    slot = _own(editor, server).get("tools")
    entries = {name: _entry(switch) for name, switch in added.items()}
    if slot is None:
        if changed or any(pair.name == "tools" for pair in _merged_pairs(editor, server)):
            editor.refuse(server.key.line, "its tools come from another entry")
        editor.insert(server, {"tools": entries}, depth=1)
        return
    own = _own(editor, slot)
    for name, switch in changed.items():
        if name not in own:
            entries[name] = _entry(switch)  # merged by <<: a new entry overrides the merged one
            continue
        tool, node = own[name], own[name].value
        if isinstance(node, MappingNode) and node.pairs:
            inner = _own(editor, tool)
            _set_key(editor, tool, inner.get("enabled"), "enabled", switch.enabled)
            _set_key(editor, tool, inner.get("stale"), "stale", switch.stale)
        elif isinstance(node, Scalar) and not is_null(node) and not switch.stale:
            editor.assign(tool, switch.enabled)
        else:
            editor.assign(tool, _entry(switch))
    if entries:
        editor.insert(slot, entries)


def _without_lines(editor: Editor, server: Slot, names: list[str]) -> list[str]:
    """Remove the lines of these tools, or the whole `tools` mapping if it would be empty.

    Return the names whose lines stay because they hold more than a switch. If any line cannot be removed, for example
    because a comment would be lost, return all names.
    """
    slot = _own(editor, server).get("tools")
    if slot is None:
        return names
    own = _own(editor, slot)
    going = [name for name in names if name in own and _is_switch_alone(editor, own[name])]
    gone = [slot] if len(going) == len(own) else [own[name] for name in going]
    try:
        with editor.all_or_nothing():
            for each in gone:
                if "#" in editor.text[each.key.start : editor.layout.line_end(editor.layout.content_end(each.value))]:
                    editor.refuse(each.key.line, "a comment would be lost")
                editor.remove(each)
    except EditRefusedError:
        return names
    return [name for name in names if name not in going]


def _is_switch_alone(editor: Editor, tool: Slot) -> bool:
    node = tool.value
    if isinstance(node, MappingNode):
        return list(_own(editor, tool)) == ["enabled"]
    return isinstance(node, Scalar) and not is_null(node)


def _entry(switch: ToolSwitch) -> dict[str, bool]:
    return {"enabled": switch.enabled} | ({"stale": True} if switch.stale else {})


def _set_key(editor: Editor, tool: Slot, slot: Slot | None, key: str, value: bool) -> None:
    """Set one key of a tool's mapping, unless it already has that value. Remove an obsolete `stale`."""
    merged = {pair.name: pair.value for pair in _merged_pairs(editor, tool)}
    if key in merged and not is_null(merged[key]):
        if _says(merged[key], value):
            return
    elif value == (key == "enabled"):
        return  # the value is the default
    if slot is None:
        editor.insert(tool, {key: value})
    elif key == "stale" and not value:
        editor.remove(slot)
    else:
        editor.assign(slot, value)
