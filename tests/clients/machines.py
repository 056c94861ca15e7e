"""Machines of every platform in a temporary folder, and client files as people write them."""

from __future__ import annotations

from pathlib import Path

from trayapp.clients.context import ClientsContext
from trayapp.clients.family import Family
from trayapp.clients.files import Machine, possible_files
from trayapp.clients.table import Client

PLATFORMS = ("linux", "darwin", "win32")
COMMAND = ["/opt/multi-mcp/bin/multi-mcp", "stdio"]


def machine_in(home: Path, platform: str = "linux", **environ: str) -> Machine:
    """Return a machine of that platform with this home folder. On Windows, it has the usual variables."""
    if platform == "win32":
        below = home / "AppData"
        environ = {"APPDATA": str(below / "Roaming"), "LOCALAPPDATA": str(below / "Local")} | environ
    return Machine(home, environ, platform)


def world_in(home: Path, platform: str = "linux", **environ: str) -> ClientsContext:
    """Return a context on such a machine, with a record of our entries and a shim's command."""
    return ClientsContext(machine_in(home, platform, **environ), home / "multi-mcp" / "clients.json", COMMAND, at_once)


def at_once(path: Path) -> None:
    """Do nothing instead of waiting until a file is saved, because these tests save it themselves."""


def file_of(client: Client, world: ClientsContext) -> Path:
    """Return the client's first possible file, after creating its folder."""
    path = next(iter(possible_files(client, world.machine).values()))
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


_JSON = """\
{
  "theme": "dark",
  "HOLDER": {
    "other": {"command": "x", "args": ["1"]}
  }
}
"""
_COMMENTED = """\
// mine
{
  "theme": "dark", /* why
  not */
  "HOLDER": {
    // "old": {"command": "y"},
    "other": {"command": "x", "args": ["1"]}, // the one
    // last words
  }, // and a comma
  "url": "https://a.test/x//y", // no comment in there
}
"""
_TOML = 'model = "x"\n\n[HOLDER.other]\ncommand = "x"\nargs = ["1"]\n'
_TOML_COMMENTED = """\
# mine
model = "x" # why not
notice = \"\"\"
[HOLDER.multi-mcp]
\"\"\"

[HOLDER.other] # the one
command = "x"
args = [
  "1", # a comma
]
# last words

[[profiles]]
name = 'a'
"""
_MAPPED = 'THEME: dark\nHOLDER:\n  other:\n    cmd: x\n    args: ["1"]\n'
_MAPPED_COMMENTED = """\
# mine
THEME: dark   # why not
HOLDER:
    # old: {cmd: y}
    other:   # the one
        cmd: "x"
        args:
        - '1'
        text: |
          multi-mcp: 5
    # last words
after: {a: 1, b: [2]}
"""
_LISTED = 'name: mine\nHOLDER:\n  - name: other\n    command: x\n    args: ["1"]\n'
_LISTED_COMMENTED = """\
# mine
name: mine   # why not
HOLDER:
# the one
- name: other
  command: "x"
  args:
  - '1'
# last words
models: []
"""
_EMPTY_HOLDER = {"TOML": "[HOLDER]\n", "JSON": '{"HOLDER": {}}', "YAML": "HOLDER: {}\n", "LISTED": "HOLDER: []\n"}


def kind_of(client: Client) -> str:
    """Return the form of the client's files: JSON, TOML, YAML, or LISTED for YAML with a list of servers."""
    if client.format == "YAML" and getattr(client.family, "listed", False):
        return "LISTED"
    return "JSON" if client.format == "JSONC" else client.format


def samples(client: Client) -> dict[str, str]:
    """Return the client's sample files, keyed by their special feature. If a file has servers, one is named `other`."""
    kind = kind_of(client)
    plain = {"JSON": _JSON, "TOML": _TOML, "YAML": _MAPPED, "LISTED": _LISTED}[kind]
    commented = {
        "JSON": _COMMENTED, "TOML": _TOML_COMMENTED, "YAML": _MAPPED_COMMENTED, "LISTED": _LISTED_COMMENTED,
    }[kind]  # fmt: skip
    texts = {
        "plain": plain,
        "comments": commented,
        "crlf": commented.replace("\n", "\r\n"),
        "a byte order mark": "\ufeff" + plain,
        "no final newline": commented.rstrip("\n"),
        "tabs": _tabbed(plain, kind),
        "no servers": _without_servers(kind),
        "an empty holder": _EMPTY_HOLDER[kind],
        "a comment alone": "// nothing yet\n" if kind == "JSON" else "# nothing yet\n",
        "blank lines": "\n\n",
        "empty": "",
    }
    if kind == "JSON":
        texts["one line"] = '{"theme":"dark","HOLDER":{"other":{"command":"x"}},"z":[1,{"a":{}}]}'
        texts["one line with blanks"] = '{ "HOLDER": { "other": { "command": "x" } } }\n'
        texts["four columns"] = plain.replace("  ", "    ")
    if kind == "TOML":
        texts["in braces"] = 'HOLDER = { other = { command = "x" } } # mine\nmodel = "x"\n'
        texts["dotted keys"] = 'HOLDER.other.command = "x"\n[profile]\na = 1\n'
    return {name: text.replace("HOLDER", client.holder[0]) for name, text in texts.items()}


def _tabbed(text: str, kind: str) -> str:
    """Add tabs to the text. In YAML, they go before a comment, since YAML accepts none before a key."""
    if kind in ("YAML", "LISTED"):
        first, rest = text.split("\n", 1)
        return f"{first}\t# tabs\n{rest}"
    return text.replace("  ", "\t") if kind == "JSON" else text.replace("command", "\tcommand")


def _without_servers(kind: str) -> str:
    return {"JSON": '{\n\t"theme": "dark"\n}\n', "TOML": 'model = "x"\n'}.get(kind, "THEME: dark\n")


def broken(client: Client) -> str:
    """Return a file of the client that cannot be parsed because of line 3."""
    kind = kind_of(client)
    if kind == "JSON":
        return '{\n  "a": 1,\n  "b": [}\n}\n'
    return "a = 1\nb = 2\nc = = 3\n" if kind == "TOML" else "a: 1\nb: 2\nc: [}\n"


def read_of(family: Family, text: str) -> object:
    """Return the parsed text."""
    return family.read(text, "f")
