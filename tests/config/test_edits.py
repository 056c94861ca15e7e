"""Edits of servers.yaml change the intended text and nothing else."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trayapp.config.edits import (
    add_server,
    merge_tools,
    remove_server,
    set_server_enabled,
    set_setting,
    set_tools_enabled,
)
from trayapp.config.problems import UnparsableError
from trayapp.config.read.parse import parse
from trayapp.config.yaml.nodes import compose
from trayapp.config.yaml.splices import EditRefusedError, outline
from trayapp.model.config import Config, ToolSwitch
from trayapp.model.errors import MultiMcpError, ServerNotFoundError, UsageError

ON, OFF = ToolSwitch(), ToolSwitch(enabled=False)
GONE = ToolSwitch(stale=True)


def read(text: str) -> Config:
    return parse(text, "servers.yaml")


def tools_of(text: str, server: str = "s") -> dict[str, ToolSwitch]:
    return read(text).servers[server].tools or {}


def merged(text: str, found: dict[str, ToolSwitch], server: str = "s") -> str:
    result = merge_tools(text, {server: found})
    assert result.refused == {}
    return result.text


def changes(old: str, new: str) -> list[tuple[str, str]]:
    """Return the removed and inserted words, without surrounding blanks."""
    one, other = (re.findall(r"\w+|\s|.", text) for text in (old, new))
    codes = difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return [("".join(one[a:b]).strip(), "".join(other[c:d]).strip()) for tag, a, b, c, d in codes if tag != "equal"]


BLOCK = """\
# top
servers:   # all of them
    s:
        command:   "npx  -y x"   # how it starts
        # about the tools
        tools:
            a: {enabled: false}   # keep off
            b:
                enabled: yes
                description: 'long:  text'
            # c: {enabled: true}
    other: {url: 'https://x/', tools: {a: {enabled: true}}}
# end
"""

SWITCHES = [
    ("block entry, flow tool", BLOCK, "a", True, [("false", "true")]),
    ("block entry, block tool", BLOCK, "b", False, [("yes", "false")]),
    ("flow", "servers: {s: {command: x, tools: {a: {enabled: true}}}}", "a", False, None),
    (
        "flow without enabled",
        "servers: {s: {command: x, tools: {a: {n: 1}}}}\n",
        "a",
        False,
        [("", ", enabled: false")],
    ),
    ("empty tool", "servers:\n  s: {command: x, tools: {a: {}}}\n", "a", False, [("", "enabled: false")]),
    ("null tool", "servers:\n s:\n  command: x\n  tools:\n   a:\n", "a", False, [("", "{enabled: false}")]),
    ("shorthand", "servers:\n s:\n  command: x\n  tools:\n   a: true # c\n", "a", False, None),
    ("unlisted", "servers:\n s:\n  command: x\n  tools:\n   a: true", "z", False, [("", "z: {enabled: false}")]),
    ("no tools", "servers:\n  s:\n    command: x", "z", False, [("", "tools:\n      z: {enabled: false}")]),
    (
        "null tools",
        "servers:\n  s:\n    tools: # c\n    command: x\n",
        "z",
        False,
        [("", "z: {enabled: false}")],
    ),
    ("tools {}", "servers:\n  s:\n    tools: {} # c\n    command: x\n", "z", False, None),
    ("tools ~", "servers:\n  s:\n    command: x\n    tools: ~\n", "z", False, None),
    (
        "flow, null tools",
        "servers: {s: {command: x, tools: }}",
        "z",
        False,
        "servers: {s: {command: x, tools: {z: {enabled: false}} }}",
    ),
    (
        "flow, bare tools",
        "servers: {s: {command: x, tools}}",
        "z",
        False,
        "servers: {s: {command: x, tools: {z: {enabled: false}}}}",
    ),
    (
        "flow, empty tools",
        "servers: {s: {command: x, tools: {}}}",
        "z",
        False,
        "servers: {s: {command: x, tools: {z: {enabled: false}}}}",
    ),
    (
        "trailing comma",
        "servers: {s: {command: x, tools: {a: {}, }, }, }",
        "z",
        False,
        "servers: {s: {command: x, tools: {a: {}, z: {enabled: false}, }, }, }",
    ),
    ("JSON", '{"servers": {"s": {"command": "x", "tools": {"a": {"enabled": true}}}}}', "z", False, None),
    ("quoted names", "servers:\n 's':\n  command: x\n  tools:\n   \"on\": {enabled: true}\n", "on", False, None),
    (
        "windows",
        "servers:\r\n  s:\r\n    command: x\r\n",
        "z",
        False,
        [("", "tools:\r\n      z: {enabled: false}")],
    ),
    ("byte order mark", "\ufeffservers:\n  s:\n    command: x\n    tools: {a: true}\n", "a", False, None),
    ("emoji above", "# 😀é\nservers:\n  s: {command: 😀, tools: {a: true}} # 😀\n", "a", False, None),
    ("merged tool", "x-t: &t {a: true}\nservers:\n s:\n  command: x\n  tools:\n   <<: *t\n", "a", False, None),
    ("aliased tool", "x-t: &t {enabled: true}\nservers:\n s: {command: x, tools: {a: *t, b: *t}}\n", "a", False, None),
    ("literal above", "servers:\n s:\n  title: |\n    x\n\n    y\n\n  command: x\n", "a", False, None),
    ("literal last", "servers:\n s:\n  command: x\n  title: |\n    x\n\n # c\n", "a", False, None),
    ("kept literal last", "servers:\n s:\n  command: x\n  title: |+\n    x\n\n\n", "a", False, None),
    ("folded last, no end", "servers:\n s:\n  command: x\n  title: >-\n    x\n    y", "a", False, None),
    ("document marks", "%YAML 1.1\n---\nservers:\n s:\n  command: x\n...\n# end", "a", False, None),
    ("list last", "servers:\n s:\n  command: x\n  args:\n  - a\n  - b # c\n  # d\n\n", "z", False, None),
    ("plain over lines", "servers:\n s:\n  command: x\n  title: a\n    b\n\n    c # d\n", "z", False, None),
]


@pytest.mark.parametrize(
    ("text", "tool", "enabled", "expected"), [row[1:] for row in SWITCHES], ids=[r[0] for r in SWITCHES]
)
def test_a_tool_is_switched_in_any_style(text: str, tool: str, enabled: bool, expected: Any) -> None:
    before = read(text)
    assert not any(problem.fatal for problem in before.problems)
    new = set_tools_enabled(text, "s", [tool], enabled)
    assert tools_of(new) == (before.servers["s"].tools or {}) | {tool: ToolSwitch(enabled)}
    if expected is not None:
        assert expected in (new, changes(text, new))
    assert set_tools_enabled(new, "s", [tool], enabled) == new


@pytest.mark.parametrize("text", [row[1] for row in SWITCHES], ids=[row[0] for row in SWITCHES])
def test_every_style_takes_a_refresh_and_loses_nothing(text: str) -> None:
    before = tools_of(text)
    found = {name: ToolSwitch(True, stale=True) for name in before} | {"new one": ON, "on": ON}
    new = merged(text, found)
    assert tools_of(new) == {
        name: ToolSwitch(before[name].enabled if name in before else True, found[name].stale) for name in found
    }
    assert merged(new, found) == new
    back = merged(new, dict.fromkeys(found, ON))
    assert tools_of(back) == before | {name: ToolSwitch(tools_of(new)[name].enabled) for name in found}


@pytest.mark.requirement("merge-kept")
def test_a_refresh_never_touches_enabled() -> None:
    new = merged(BLOCK, {"a": ON, "b": OFF, "c": OFF})
    assert tools_of(new) == {"a": OFF, "b": ON, "c": OFF}


@pytest.mark.requirement("merge-stale", "file-comments-kept")
def test_a_tool_gone_and_back_leaves_the_file_as_it_was() -> None:
    new = merged(BLOCK, {"a": GONE, "b": GONE})
    assert tools_of(new) == {"a": ToolSwitch(False, True), "b": ToolSwitch(True, True)}
    assert changes(BLOCK, new) == [
        ("", ", stale: true"),
        ("", "stale: true"),
    ]
    assert merged(new, {"a": ON, "b": ON}) == BLOCK


def test_a_refresh_of_many_servers_is_one_edit() -> None:
    result = merge_tools(BLOCK, {"s": {"n": ON}, "other": {"n": OFF, "a": GONE}, "nobody": {"n": ON}})
    assert tools_of(result.text)["n"] == ON
    assert tools_of(result.text, "other") == {"a": GONE, "n": OFF}
    assert list(result.refused) == ["nobody"]


def test_a_server_that_cannot_be_edited_spoils_no_other() -> None:
    text = "x: &t {a: true}\nservers:\n  s: {command: x, tools: *t}\n  good: {command: x}\n"
    result = merge_tools(text, {"s": {"n": ON}, "good": {"n": ON}})
    assert tools_of(result.text, "good") == {"n": ON}
    assert tools_of(result.text) == {"a": ON}
    assert "alias" in result.refused["s"]


def test_a_server_with_a_doubled_key_spoils_no_other() -> None:
    text = "servers:\n  s: {command: x, command: y}\n  good: {command: x}\n"
    assert tools_of(set_tools_enabled(text, "good", ["a"], False), "good") == {"a": OFF}
    with pytest.raises(EditRefusedError, match="line 2"):
        set_tools_enabled(text, "s", ["a"], False)


SERVER_SWITCHES = [
    ("block", "servers:\n  s:\n    command: x\n    # t\n    tools: {}\n", [("", "disabled: true")]),
    ("flow", "servers:\n  s: {command: x}  # c\n", [("", ", disabled: true")]),
    ("said false", "servers:\n  s: {command: x, disabled: false}\n", None),
    ("said no", "servers:\n  s:\n    disabled: no # c\n    command: x\n", [("no", "true")]),
    ("enabled: true", "servers:\n  s:\n    enabled: true # c\n    command: x\n", [("true", "false")]),
    ("both", "servers:\n  s:\n    enabled: true # c\n    disabled: false\n    command: x\n", None),
    ("left empty", "servers:\n  s:\n    command: x\n    disabled: # c\n", [("", "true")]),
    ("said null", "servers:\n  s:\n    command: x\n    disabled: null # c\n", None),
    ("merged", "x-b: &b {disabled: false}\nservers:\n  s:\n    <<: *b\n    command: x\n", None),
    ("tools first", "servers:\n  s:\n    tools: {}\n    command: x\n", None),
    ("JSON", '{"mcpServers": {"s": {"command": "x"}}}', [("", ', "disabled": true')]),
    ("lines in braces", "servers: {\n  s: {\n    command: x,  # c\n    cwd: y\n  }\n}", None),
    ("lines in braces, commas", "servers: {\n  s: {\n    command: x,\n    cwd: y,  # c\n  },\n}", None),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in SERVER_SWITCHES], ids=[r[0] for r in SERVER_SWITCHES]
)
def test_a_server_is_switched_in_any_style(text: str, expected: Any) -> None:
    new = set_server_enabled(text, "s", False)
    assert read(new).servers["s"].disabled
    if expected is not None:
        assert changes(text, new) == expected
    assert set_server_enabled(new, "s", False) == new
    assert not read(set_server_enabled(new, "s", True)).servers["s"].disabled
    assert set_server_enabled(text, "s", True) == text


REFUSED: list[tuple[str, str, Callable[[str], str]]] = [
    ("aliased entry", "servers:\n  a: &a {command: x}\n  s: *a\n", lambda text: set_server_enabled(text, "s", False)),
    ("shared entry", "servers:\n  s: &a {command: x}\n  b: *a\n", lambda text: set_server_enabled(text, "s", False)),
    ("anchor in use", "servers:\n  s: &a {command: x}\n  b: *a\n", lambda text: remove_server(text, "s")),
    (
        "tools an alias",
        "x-t: &t {}\nservers:\n  s: {command: x, tools: *t}\n",
        lambda t: set_tools_enabled(t, "s", "a", True),
    ),
    (
        "tools merged",
        "x-b: &b {tools: {a: true}}\nservers:\n  s: {<<: *b}\n",
        lambda t: set_tools_enabled(t, "s", "a", False),
    ),
    (
        "tools a list",
        "servers:\n  s: {command: x, tools: [a]}\n",
        lambda text: set_tools_enabled(text, "s", "a", False),
    ),
    ("servers an alias", "x-s: &s {s: {command: x}}\nservers: *s\n", lambda text: set_server_enabled(text, "s", False)),
    ("an entry that is text", "servers:\n  s: text\n", lambda text: set_server_enabled(text, "s", False)),
    (
        "doubled server",
        "servers:\n  s: {command: x}\n  s: {command: y}\n",
        lambda text: set_server_enabled(text, "s", False),
    ),
    ("list of settings", "settings: []\n", lambda text: set_setting(text, "expose", "tools")),
    (
        "comments in a value",
        "settings:\n  imports:\n  - a # c\n  - b\n",
        lambda text: set_setting(text, "imports", ["z"]),
    ),
    ("a list as the file", "- a\n", lambda text: add_server(text, "s", {"command": "x"})),
    ("text as the file", "hello\n", lambda text: add_server(text, "s", {"command": "x"})),
]


@pytest.mark.parametrize(("text", "edit"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_could_do_damage_is_refused(text: str, edit: Callable[[str], str]) -> None:
    with pytest.raises(EditRefusedError) as caught:
        edit(text)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["a: [", "servers:\n\tx: 1\n", "a: *b\n", "--- a\n--- b\n"])
def test_a_file_that_cannot_be_read_is_never_edited(text: str) -> None:
    for edit in (
        lambda: set_server_enabled(text, "s", True),
        lambda: merge_tools(text, {"s": {"a": ON}}),
        lambda: add_server(text, "s", {}),
        lambda: remove_server(text, "s"),
        lambda: set_setting(text, "expose", "auto"),
    ):
        with pytest.raises(UnparsableError):
            edit()


def test_an_unknown_server_is_named_with_the_known_ones() -> None:
    with pytest.raises(ServerNotFoundError, match=r"Known servers: s, other"):
        set_server_enabled(BLOCK, "nobody", True)


ADDED = {"command": "npx", "args": ["-y", "@a/b", "x"], "env": {"A": "1", "B": "${X}"}}
HOMES = [
    ("empty", ""),
    ("mark only", "\ufeff"),
    ("comment", "# hello"),
    ("comment and end", "# hello\n\n"),
    ("document", "---\n"),
    ("document and comment", "---\n# c\n...\n"),
    ("settings only", "settings: {expose: auto}\n"),
    ("no servers yet", "servers:\n# c\n"),
    ("braces", "servers: {}  # none\n"),
    ("braces at top", "{}"),
    ("null", "servers: null\nsettings:\n  expose: auto\n"),
    ("block", BLOCK),
    ("flow", "servers: {a: {command: x}}\n"),
    ("JSON", '{\n  "mcpServers": {\n    "a": {"command": "x"}\n  }\n}\n'),
    ("windows", "servers:\r\n  a:\r\n    command: x\r\n"),
    ("no final end", "mcpServers:\n   a:\n      command: x"),
]


@pytest.mark.parametrize("name", ["new", "on", "1", "a: b", "#x", "é 😀", "-", "null", "a'b\"c", "~", "{x}"])
@pytest.mark.parametrize("text", [row[1] for row in HOMES], ids=[row[0] for row in HOMES])
def test_a_server_is_added_anywhere_and_removed_again(text: str, name: str) -> None:
    new = add_server(text, name, ADDED)
    config, before = read(new), read(text)
    assert config.problems == ()
    assert list(config.servers) == [*before.servers, name]
    assert config.servers[name].args == ("-y", "@a/b", "x")
    assert config.servers[name].env == {"A": "1", "B": "${X}"}
    assert config.settings == before.settings
    gone = remove_server(new, name)
    assert list(read(gone).servers) == list(before.servers)
    if before.servers:
        assert gone == text


def test_a_name_is_taken_once() -> None:
    with pytest.raises(UsageError, match="exists"):
        add_server(BLOCK, "other", {"command": "x"})


NEIGHBOURS = """\
servers:
  # about a
  a:
    command: x

  # two lines
  # about b
  b:
    command: x   # inside
    # deeper, still b

  # old:
  #   command: y
  # about c
  c: {command: x}

  d: {command: x}
  # after d
"""


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("a", "  # about a\n  a:\n    command: x\n\n"),
        ("b", "  # two lines\n  # about b\n  b:\n    command: x   # inside\n    # deeper, still b\n\n"),
        ("c", "  # about c\n  c: {command: x}\n"),
        ("d", "  d: {command: x}\n"),
    ],
)
def test_a_removed_server_takes_its_own_comments_only(name: str, gone: str) -> None:
    new = remove_server(NEIGHBOURS, name)
    assert new in (NEIGHBOURS.replace(gone, ""), NEIGHBOURS.replace(gone.rstrip() + "\n\n", ""))
    assert [server for server in "abcd" if server != name] == list(read(new).servers)


def test_removing_in_braces_keeps_the_rest() -> None:
    text = "servers: {a: {command: x}, b: {command: x}, c: {command: x}}\n"
    assert remove_server(text, "a") == "servers: {b: {command: x}, c: {command: x}}\n"
    assert remove_server(text, "b") == "servers: {a: {command: x}, c: {command: x}}\n"
    assert remove_server(text, "c") == "servers: {a: {command: x}, b: {command: x}}\n"
    assert remove_server("servers: {a: {command: x}}", "a") == "servers: {}"


def test_removing_in_lines_in_braces_keeps_comments() -> None:
    text = "servers: {\n  a: {command: x}, # a\n  b: {command: x} # b\n}\n"
    assert read(remove_server(text, "b")).servers.keys() == {"a"}
    assert "# a" in remove_server(text, "b")
    assert "# b" in remove_server(text, "a")


SETTINGS: list[tuple[str, str, Any, str]] = [
    ("settings:\n  expose: auto # c\n", "expose", "tools", "settings:\n  expose: tools # c\n"),
    ("settings:\n  deferAbove: 1\n", "defer_above", 20, "settings:\n  deferAbove: 20\n"),
    ("settings: {expose: auto}\n", "linger", 5, "settings: {expose: auto, linger: 5}\n"),
    ("settings:\n", "linger", 5, "settings:\n  linger: 5\n"),
    ("settings:\n  http: {port: 1}\n", "http.port", 2, "settings:\n  http: {port: 2}\n"),
    (
        "settings:\n  http:\n    port: 1\n",
        "http.enabled",
        False,
        "settings:\n  http:\n    port: 1\n    enabled: false\n",
    ),
    ("settings:\n  linger: 1\n", "http.port", 2, "settings:\n  linger: 1\n  http: {port: 2}\n"),
    ("", "linger", 5, "settings:\n  linger: 5\n"),
    ("# c\n", "imports", ["cursor"], "# c\nsettings:\n  imports: [cursor]\n"),
    ("settings:\n  imports:\n  - a\n  - b\nservers:\n", "imports", [], "settings:\n  imports: []\nservers:\n"),
]


@pytest.mark.parametrize(("text", "key", "value", "expected"), SETTINGS)
def test_a_setting_is_set(text: str, key: str, value: Any, expected: str) -> None:
    assert set_setting(text, key, value) == expected


def test_only_settings_that_exist_are_set() -> None:
    with pytest.raises(UsageError, match="expsoe"):
        set_setting("", "expsoe", "auto")


# --- properties: random files, random edits

names = st.one_of(
    st.sampled_from(
        ["a", "b", "on", "1", "null", "x-y", "a b", "k: v", "#h", "é😀", "it's", '"q"', "~", "-", "{}", "<<"]
    ),
    st.text(
        st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="/\ufeff"),
        min_size=1,
        max_size=12,
    ),
)
noise = st.sampled_from(["", "", "", "\n", "# a comment: {x}\n", "\n\n# two\n", "   # odd\n"])
tails = st.sampled_from(["", "", "  # why", "   ", " #"])


def quoted(name: str) -> str:
    escaped = "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in name)
    return f'"{escaped}"'


@st.composite
def tool_lines(draw: st.DrawFn, indent: int) -> str:
    name, pad = quoted(draw(names.filter(lambda n: n.strip() != ""))), " " * indent
    enabled = draw(st.sampled_from(["true", "false", "yes", "Off"]))
    stale = draw(st.sampled_from(["", "", ", stale: true", ", stale: false", ", description: 'x, y'"]))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return f"{pad}{name}: {{enabled: {enabled}{stale}}}{draw(tails)}\n"
    if kind == 1:
        inner = " " * (indent + draw(st.integers(1, 4)))
        lines = [f"{pad}{name}:{draw(tails)}", f"{inner}enabled: {enabled}{draw(tails)}"]
        lines += [inner + stale[2:]] if stale else []
        return "\n".join(lines) + "\n"
    return f"{pad}{name}: {enabled}{draw(tails)}\n" if kind == 2 else f"{pad}{name}:\n"


@st.composite
def server_text(draw: st.DrawFn, name: str) -> str:
    kind = draw(st.integers(0, 3))
    key = quoted(name) if draw(st.booleans()) or not name.isidentifier() or name in ("on", "null") else name
    if kind == 0:
        tools = draw(st.sampled_from(["", ", tools: {}", ", tools: {q: {enabled: false}}", ", tools: {q: true, }"]))
        return f"  {key}: {{command: x{tools}}}{draw(tails)}\n"
    indent = draw(st.integers(3, 6))
    pad = " " * indent
    lines = [f"  {key}:{draw(tails)}\n", f"{pad}command: x{draw(tails)}\n", draw(noise)]
    lines.append(
        draw(st.sampled_from(["", f"{pad}disabled: no # hm\n", f"{pad}enabled: true\n", f"{pad}title: |\n{pad} t\n\n"]))
    )
    if kind > 1:
        listed = draw(st.lists(tool_lines(indent + 2), max_size=4, unique_by=lambda line: line.split(":")[0]))
        lines.append(f"{pad}tools:{draw(tails)}\n")
        for tool in listed:
            lines += [draw(noise), tool]
    return "".join(lines)


@st.composite
def files(draw: st.DrawFn) -> str:
    listed = draw(st.lists(names.filter(lambda n: n.strip() != "" and n != "<<"), min_size=1, max_size=4, unique=True))
    parts = [draw(noise), "servers:", draw(tails), "\n"]
    for name in listed:
        parts += [draw(noise), draw(server_text(name))]
    parts += [draw(noise), draw(st.sampled_from(["", "settings: {expose: auto}\n"]))]
    text = "".join(parts)
    text = text.rstrip("\n") if draw(st.booleans()) else text
    text = text.replace("\n", "\r\n") if draw(st.booleans()) else text
    return ("\ufeff" if draw(st.booleans()) else "") + text


def readable(text: str) -> bool:
    try:
        config = read(text)
    except UnparsableError:
        return False
    return bool(config.servers) and not config.problems


BRACES = str.maketrans("", "", "{} ")  # lines may replace an empty {}


def is_inside(part: str, whole: str) -> bool:
    """True if `whole` contains all characters of `part` in order, so nothing was removed."""
    left = iter(whole)
    return all(any(letter == other for other in left) for letter in part)


def lines_kept(old: str, new: str, but: str) -> bool:
    """True if every line of the old text is in the new text, in order. Lines that contain `but` may be missing."""
    left = iter(new.splitlines(keepends=False))
    return all(any(line == other for other in left) for line in old.splitlines() if but not in line)


@given(files().filter(readable), st.data())
def test_switching_a_tool_changes_that_tool_alone(text: str, data: st.DataObject) -> None:
    before = read(text)
    server = data.draw(st.sampled_from(list(before.servers)))
    known = before.servers[server].tools or {}
    tool = data.draw(st.one_of(names, st.sampled_from([*known, "zz"])))
    enabled = data.draw(st.booleans())
    new = set_tools_enabled(text, server, [tool], enabled)
    after = read(new)
    stale = known[tool].stale if tool in known else False
    assert after.servers[server].tools == known | {tool: ToolSwitch(enabled, stale)}
    assert [n for n in after.servers if n != server] == [n for n in before.servers if n != server]
    assert all(after.servers[n].tools == before.servers[n].tools for n in before.servers if n != server)
    if tool not in known:  # only text is inserted, except that {} or null may be replaced
        assert is_inside(text.translate(BRACES), new.translate(BRACES))


@given(files().filter(readable))
def test_all_tools_gone_and_back_again_gives_the_same_bytes(text: str) -> None:
    servers = read(text).servers
    found = {name: dict.fromkeys(server.tools or {}, ON) for name, server in servers.items()}
    text = merge_tools(text, found).text  # clears the stale marks
    gone = merge_tools(text, {name: dict.fromkeys(tools, GONE) for name, tools in found.items()})
    assert gone.refused == {}
    for name, server in read(gone.text).servers.items():
        assert all(switch.stale for switch in (server.tools or {}).values())
        assert {n: s.enabled for n, s in (server.tools or {}).items()} == {
            n: s.enabled for n, s in (read(text).servers[name].tools or {}).items()
        }
    back = merge_tools(gone.text, found)
    assert back.refused == {}
    for name in servers:
        assert tools_of(back.text, name) == tools_of(text, name)
    if not any(
        line.rstrip().endswith((": true", ": false", ": yes", ": Off", ":")) or "#" in line
        for line in text.splitlines()
    ):
        assert back.text == text


@given(files().filter(readable), st.data())
def test_new_tools_are_added_and_nothing_is_taken_away(text: str, data: st.DataObject) -> None:
    servers = read(text).servers
    fresh = data.draw(st.dictionaries(names, st.builds(ToolSwitch, st.booleans(), st.booleans()), max_size=4))
    found = {
        name: {t: s for t, s in fresh.items() if t not in (server.tools or {})} for name, server in servers.items()
    }
    result = merge_tools(text, found)
    assert result.refused == {}
    after = read(result.text)
    assert after.problems == ()
    for name, server in servers.items():
        assert (after.servers[name].tools or {}) == (server.tools or {}) | found[name]
    assert is_inside(text.translate(BRACES), result.text.translate(BRACES))


@given(files().filter(readable), st.data())
def test_a_server_off_and_on_keeps_every_other_byte(text: str, data: st.DataObject) -> None:
    server = data.draw(st.sampled_from(list(read(text).servers)))
    off = set_server_enabled(text, server, False)
    assert [n for n, s in read(off).servers.items() if s.disabled] == [server]
    on = set_server_enabled(off, server, True)
    assert not any(s.disabled for s in read(on).servers.values())
    assert set_server_enabled(on, server, False) == off
    assert lines_kept(text, off, "abled") or "{" in text


@given(files().filter(readable), names.filter(lambda n: n.strip() != ""))
def test_a_server_added_and_removed_leaves_the_same_bytes(text: str, name: str) -> None:
    assume(name not in read(text).servers)
    added = add_server(
        text, name, {"command": "x", "headers": {"A b": "1", name: name}, "args": [name, "", "1", "true"]}
    )
    server = read(added).servers[name]
    assert server.args == (name, "", "1", "true")
    assert remove_server(added, name) == text


@given(files().filter(readable), st.data())
def test_a_removed_server_leaves_the_others_as_they_were(text: str, data: st.DataObject) -> None:
    before = compose(text, "f")
    config = read(text)
    server = data.draw(st.sampled_from(list(config.servers)))
    new = remove_server(text, server)
    left, old = outline(compose(new, "f")), outline(before)
    del old["servers"][server]
    assert (left["servers"] if isinstance(left["servers"], dict) else {}) == old["servers"]
    assert is_inside(new, text)


PIECES = [
    "servers:", "s:", "tools:", "command: x", "disabled: true", "enabled:", " a:", "{", "}", "[", "]", ",", "\n",
    "\n  ", "\n    ", "\n      ", " ", "# c", "&a ", "*a", "<<: ", "'", '"', "|", ">", "- ", "? ", ": ", "null",
    "!!str ", "---\n", "\n...\n", "\r\n", "\ufeff", "é", "settings:",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_text_is_edited_as_asked_or_refused(text: str) -> None:
    edits: list[Callable[[], str]] = [
        lambda: set_server_enabled(text, "s", False),
        lambda: set_tools_enabled(text, "s", ["a", "b"], False),
        lambda: merge_tools(text, {"s": {"a": GONE, "b": ON}}).text,
        lambda: add_server(text, "new", ADDED),
        lambda: remove_server(text, "s"),
        lambda: set_setting(text, "http.port", 5),
    ]
    for edit in edits:
        with contextlib.suppress(MultiMcpError):
            compose(edit(), "f")


# --- many tools


MANY = {f"tool_number_{number}": ON for number in range(26)}


@pytest.mark.parametrize(
    "text",
    [
        "servers:\n  s: {command: [npx, x]}   # c\n  b: {command: y}\n",
        "servers: {s: {command: x}}\n",
        "servers:\r\n    s: {command: x, tools: {a: {enabled: true}, }}\r\n",
        "servers:\n  s: {command: x, tools: {}}\n",
        '{"servers": {"s": {"command": "x"}}}',
        "servers:\n  s: {command: x,\n    title: t}\n",
    ],
)
def test_the_tools_of_an_entry_on_one_line_get_a_line_each(text: str) -> None:
    before = tools_of(text)
    after = merged(text, MANY)
    assert tools_of(after) == before | MANY
    assert max(map(len, after.splitlines())) < 80
    again = merged(after, {"late": ON, **{f"more_{number}": ON for number in range(9)}})
    assert max(map(len, again.splitlines())) < 80
    assert tools_of(set_tools_enabled(again, "s", ["late"], False))["late"] == OFF


def test_a_name_that_no_key_can_be_takes_no_other_tool_with_it() -> None:
    long = "x" * 1500
    text = "servers:\n  s: {command: x}\n"
    assert tools_of(merged(text, {"a": ON, long: ON, "é" * 400: ON})) == {"a": ON, "é" * 400: ON}
    with pytest.raises(UsageError, match="1500 characters") as caught:
        set_tools_enabled(text, "s", [long], False)
    assert "exclude_tools" in caught.value.hint
