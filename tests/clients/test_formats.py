"""The four families on files as people write them: where an entry goes, how it looks, and what is refused."""

from __future__ import annotations

import pytest

from trayapp.clients import jsonc, toml_file
from trayapp.clients.family import Family
from trayapp.clients.yaml_file import LISTED, MAPPED
from trayapp.config.problems import UnparsableError
from trayapp.config.yaml.splices import EditRefusedError

ENTRY = {"command": "p", "args": ["stdio"]}
PATH = ("servers", "multi-mcp")

PUT: list[tuple[str, Family, str, str]] = [
    ("json: an empty text", jsonc, "",
     '{\n  "servers": {\n    "multi-mcp": {\n      "command": "p",\n      "args": ["stdio"]\n    }\n  }\n}\n'),
    ("json: one line", jsonc, '{"servers":{"a":{}}}',
     '{"servers":{"a":{},"multi-mcp":{"command":"p","args":["stdio"]}}}'),
    ("json: one line with blanks", jsonc, '{ "servers": { "a": {} } }',
     '{ "servers": { "a": {}, "multi-mcp": {"command": "p", "args": ["stdio"]} } }'),
    ("json: a comma and a comment behind the last", jsonc, '{\n\t"servers": {\n\t\t"a": {}, // one\n\t},\n}',
     '{\n\t"servers": {\n\t\t"a": {}, // one\n\t\t"multi-mcp": {\n'
       '\t\t\t"command": "p",\n\t\t\t"args": ["stdio"]\n\t\t},\n\t},\n}'),
    ("json: no comma, a comment behind the last", jsonc, '{\n  "servers": {\n    "a": {} // one\n  }\n}',
     '{\n  "servers": {\n    "a": {}, // one\n    "multi-mcp": {\n'
       '      "command": "p",\n      "args": ["stdio"]\n    }\n  }\n}'),
    ("json: a comment in an empty holder", jsonc, '{\n  "servers": {\n    // none\n  }\n}',
     '{\n  "servers": {\n    // none\n    "multi-mcp": {\n'
       '      "command": "p",\n      "args": ["stdio"]\n    }\n  }\n}'),
    ("toml: at the end", toml_file, 'a = 1\n\n[servers.b] # c\ncommand = "x"\n# last',
     'a = 1\n\n[servers.b] # c\ncommand = "x"\n# last\n\n[servers.multi-mcp]\ncommand = "p"\nargs = ["stdio"]\n'),
    ("toml: windows", toml_file, "a = 1\r\n",
     'a = 1\r\n\r\n[servers.multi-mcp]\r\n'
      'command = "p"\r\nargs = ["stdio"]\r\n'),
    ("toml: in braces", toml_file, 'servers = {a = {command = "x"}} # c\nz = 1\n',
     'servers = {a = {command = "x"}, multi-mcp = {command = "p", args = ["stdio"]}} # c\nz = 1\n'),
    ("toml: in empty braces", toml_file, "servers = {}\n",
     'servers = { multi-mcp = {command = "p", args = ["stdio"]} }\n'),
    ("toml: in braces with blanks, commas and braces in texts", toml_file,
     "servers = { 'a,b' = { x = [\n 1, # }\n], y.z = '}' } }",
     "servers = { 'a,b' = { x = [\n 1, # }\n], y.z = '}' }, multi-mcp = {command = \"p\", args = [\"stdio\"]} }"),
    ("toml: below dotted keys", toml_file, 'servers.a.command = "x"\n',
     'servers.a.command = "x"\n\n[servers.multi-mcp]\ncommand = "p"\nargs = ["stdio"]\n'),
    ("yaml: behind the others, before what is commented out below", MAPPED, "servers:\n   a: {}\n# b: {}\nz: 1\n",
     "servers:\n   a: {}\n   multi-mcp:\n      command: p\n      args: [stdio]\n# b: {}\nz: 1\n"),
    ("yaml: in braces", MAPPED, "servers: {a: {}}\n", "servers: {a: {}, multi-mcp: {command: p, args: [stdio]}}\n"),
    ("yaml list: dashes at the key's column", LISTED, "servers:\n- name: a\n  command: x\nz: 1\n",
     "servers:\n- name: a\n  command: x\n- name: multi-mcp\n  command: p\n  args: [stdio]\nz: 1\n"),
    ("yaml list: a wide dash", LISTED, "servers:\n  -   name: a\n",
     "servers:\n  -   name: a\n  -   name: multi-mcp\n"
      "      command: p\n      args: [stdio]\n"),
]  # fmt: skip


@pytest.mark.requirement("client-formats")
@pytest.mark.parametrize(("family", "text", "expected"), [row[1:] for row in PUT], ids=[row[0] for row in PUT])
def test_an_entry_is_written_in_the_manner_of_the_file(family: Family, text: str, expected: str) -> None:
    assert family.put(text, PATH, ENTRY, "f") == expected


DROP: list[tuple[str, Family, str, str]] = [
    ("json: the first", jsonc, '{"servers": {"multi-mcp": 1, "b": 2}}', '{"servers": {"b": 2}}'),
    ("json: the only one", jsonc, '{\n  "servers": {\n    "multi-mcp": {}\n  }\n}', '{\n  "servers": {}\n}'),
    ("json: a comment stays", jsonc, '{"servers": {\n  // why\n  "multi-mcp": {}, // gone\n  "b": 2\n}}',
     '{"servers": {\n  // why\n  "b": 2\n}}'),
    ("json: the comma before the last", jsonc, '{"servers": {\n  "b": 2, // two\n  "multi-mcp": {}\n}}',
     '{"servers": {\n  "b": 2 // two\n}}'),
    ("json: not there", jsonc, '{"servers": {}} // x', '{"servers": {}} // x'),
    ("toml: with its own tables, not what follows", toml_file,
     '[servers.multi-mcp]\ncommand = "p"\n\n[servers.multi-mcp.env]\nA = "1"\n\n# next\n[servers.b]\nx = 1\n',
     "\n# next\n[servers.b]\nx = 1\n"),
    ("toml: a key of a table", toml_file, '[servers]\na = {x = 1}\nmulti-mcp = {command = "p"} # ours\n',
     "[servers]\na = {x = 1}\n"),
    ("toml: dotted", toml_file, 'servers.multi-mcp.command = "p"\nservers.a.x = 1\n', "servers.a.x = 1\n"),
    ("toml: in braces, the last", toml_file, 'servers = { a = {x = ","}, multi-mcp = {command = "p"} } # c\n',
     'servers = { a = {x = ","} } # c\n'),
    ("toml: in braces, the first", toml_file, 'servers = {multi-mcp = {command = "p"}, a.b = 1, c = {}}\n',
     "servers = {a.b = 1, c = {}}\n"),
    ("toml: in braces, the only one", toml_file, 'servers = { "multi-mcp" = {command = "p"} }\n', "servers = {  }\n"),
    ("toml 1.1: in braces over lines, the only one", toml_file, 'servers = {\n  multi-mcp = { command = "p", },\n}\n',
     "servers = {\n  \n}\n"),
    ("toml 1.1: in braces over lines, the last", toml_file, 'servers = {\n  a.b = 1,\n  multi-mcp = {},\n}\n',
     "servers = {\n  a.b = 1,\n}\n"),
    ("yaml: the only one", MAPPED, "servers:\n  # why\n  multi-mcp:\n    command: p # x\nz: 1\n",
     "servers: {}\n  # why\nz: 1\n"),
    ("yaml: the last", MAPPED,
     "servers:\n  a: {}\n  multi-mcp:\n"
      "    command: p\n# end\n", "servers:\n  a: {}\n# end\n"),
    ("yaml list: the only one", LISTED, "servers:\n  # why\n  - name: multi-mcp\n    command: '#'\nz: 1\n",
     "servers: []\n  # why\nz: 1\n"),
    ("yaml list: the first", LISTED, "servers:\n- name: multi-mcp\n  command: p\n- name: b\n", "servers:\n- name: b\n"),
]  # fmt: skip


@pytest.mark.requirement("client-formats")
@pytest.mark.parametrize(("family", "text", "expected"), [row[1:] for row in DROP], ids=[row[0] for row in DROP])
def test_an_entry_is_taken_out_alone(family: Family, text: str, expected: str) -> None:
    assert family.drop(text, PATH, "f") == expected


@pytest.mark.requirement("client-left-alone")
@pytest.mark.parametrize(
    ("family", "text"),
    [
        (jsonc, '{"servers": []}'),
        (jsonc, '{"servers": "x"}'),
        (toml_file, "servers = 5\n"),
        (toml_file, "[[servers]]\na = 1\n"),
        (MAPPED, "base: &b {a: {}}\nservers: *b\n"),
        (MAPPED, "servers: [a]\n"),
        (LISTED, "servers: {a: {}}\n"),
        (LISTED, "servers: x\n"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(family: Family, text: str) -> None:
    with pytest.raises(EditRefusedError) as caught:
        family.put(text, PATH, ENTRY, "f")
    assert caught.value.hint == "Make this change by hand"  # our own verb would edit a different file


@pytest.mark.parametrize(
    ("family", "text", "line"),
    [
        (jsonc, '{\n"a": 1\n"b": 2}', 3),
        (jsonc, "{\n'a': 1}", 2),
        (jsonc, '{"a": 1}\n}', 2),
        (jsonc, "[]", 1),
        (jsonc, "[" * 100_000, 0),
        (toml_file, "a = 1\nb = \n", 2),
        (toml_file, "a = 1\na = 2\n", 2),
        (MAPPED, "a: 1\n\tb: 2\n", 2),
        (MAPPED, "a: 1\na: 2\n", 2),
        (MAPPED, "- a\n", 1),
        (LISTED, "a: [\n", 2),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(family: Family, text: str, line: int) -> None:
    with pytest.raises(UnparsableError) as caught:
        family.read(text, "f")
    assert caught.value.problem.line == line


def test_one_key_of_an_entry_in_braces_is_changed_alone_and_lines_are_told() -> None:
    text = "top = 1\nservers = {a = {x = [\n1]}, multi-mcp = {command = 'old', env = {A = '1'}}}\n"
    assert toml_file.lines(text, ("servers",)) == {"a": 2, "multi-mcp": 3}
    assert toml_file.lines(text, PATH) == {"command": 3, "env": 3}
    new = toml_file.put(text, (*PATH, "command"), "new", "f")
    assert new == text.replace("'old'", '"new"')
    assert toml_file.put(text, (*PATH, "more"), True, "f") == text.replace("}}}", "}, more = true}}")
    assert toml_file.drop(text, (*PATH, "env", "A"), "f") == text.replace("A = '1'", "")
    assert toml_file.put(text, PATH, {"command": "z"}, "f") == (
        'top = 1\nservers = {a = {x = [\n1]}, multi-mcp = {command = "z"}}\n'
    )


@pytest.mark.requirement("client-left-alone")
def test_dotted_keys_in_braces_that_part_an_entry_are_refused() -> None:
    text = "servers = {multi-mcp.command = 'x', multi-mcp.args = []}\n"
    with pytest.raises(EditRefusedError):
        toml_file.drop(text, PATH, "f")


@pytest.mark.parametrize("family", [jsonc, toml_file, MAPPED, LISTED])
@pytest.mark.parametrize("text", ["", "\n", "\ufeff", "\ufeff\n"])
def test_an_empty_file_says_nothing_and_takes_an_entry(family: Family, text: str) -> None:
    assert family.read(text, "f") == {}
    new = family.put(text, PATH, ENTRY, "f")
    assert new.startswith(text[:1] if text.startswith("\ufeff") else "")
    assert family.lines(new, PATH[:1]) == {"multi-mcp": new[: new.index("multi-mcp")].count("\n") + 1}
