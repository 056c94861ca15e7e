"""The guide's generated pages: the verbs, and the table of AI tools. `packaging/dev.py guide` runs this in .venv."""

from __future__ import annotations

from pathlib import Path

import click

from trayapp.cli.app import EPILOG, program
from trayapp.cli.verbs import PROGRAM, VERB_GROUPS, VERBS
from trayapp.clients.table import CLIENTS, Client

GUIDE = Path(__file__).resolve().parents[1] / "guide"
BEGIN, END = "<!-- made by: packaging/dev.py guide -->\n", "<!-- end -->\n"
TOKENS = {
    "{home}": "~", "{config}": "~/.config", "{library}": "~/Library/Application Support", "{appdata}": "%APPDATA%",
    "{localappdata}": "%LOCALAPPDATA%",
}  # fmt: skip
SYSTEMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


def path_of(client: Client, platform: str) -> str:
    """Return the usual path of a tool's file, with `~` or `%NAME%` for the user's folders."""
    templates = [template for template in client.templates(platform) if template.split("}")[0] + "}" in TOKENS]
    usual = templates[-1] if client.name == "claude-desktop" else templates[0]
    for token, word in TOKENS.items():
        usual = usual.replace(token, word)
    return usual.replace("/", "\\") if usual.startswith("%") else usual


def paths_of(client: Client) -> str:
    """Return the paths of a tool's file on all systems, as Markdown. Systems with the same path share a line."""
    by_path: dict[str, list[str]] = {}
    for platform, system in SYSTEMS.items():
        by_path.setdefault(path_of(client, platform), []).append(system)
    if len(by_path) == 1:
        return f"`{next(iter(by_path))}`"
    return "<br>".join(f"{', '.join(systems)}: `{path}`" for path, systems in by_path.items())


def notes_of(client: Client) -> str:
    """Return what a user needs to know after connecting this AI tool."""
    needs = {"restart": "restart it", "reload": "reload its servers", "no": "nothing"}[client.restart]
    limits = f"; at most {client.max_tools} tools" if client.max_tools else ""
    names = f"; tool names of at most {client.max_name} characters" if client.max_name else ""
    return needs + limits + names


def client_rows() -> str:
    """Return the table of AI tools as Markdown."""
    head = ["| tool | `connect` | its file | format | HTTP | then |", "|---|---|---|---|---|---|"]
    rows = [
        f"| {client.title} | `{client.name}` | {paths_of(client)} | {client.format} |"
        f" {'yes' if client.http else 'no'} | {notes_of(client)} |"
        for client in CLIENTS
    ]
    return "\n".join([*head, *rows]) + "\n"


def verbs_page() -> str:
    """Return the page of all verbs: the list, then each verb's help as the program prints it."""
    context = click.Context(program, info_name=PROGRAM, max_content_width=80, terminal_width=80)
    found = ["# Verbs"]
    for title, verbs in VERB_GROUPS.items():
        rows = [f"| `{name}` | {entry.summary.rstrip('.')} |" for name, entry in verbs.items()]
        found += ["", f"| {title.lower()} | what it does |", "|---|---|", *rows]
    found += ["", "```", EPILOG.replace("\b\n", "").strip(), "```"]
    for name in VERBS:
        verb = program.get_command(context, name) if isinstance(program, click.Group) else None
        assert verb is not None
        inner = click.Context(verb, info_name=name, parent=context, max_content_width=80, terminal_width=80)
        found += ["", f"## {name}", "", "```", verb.get_help(inner).strip(), "```"]
    return "\n".join(found) + "\n"


def pages() -> dict[str, str]:
    """Return the generated pages by file name."""
    before, _, rest = (GUIDE / "ai-tools.md").read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return {"verbs.md": verbs_page(), "ai-tools.md": f"{before}{BEGIN}\n{client_rows()}\n{END}{after}"}


if __name__ == "__main__":
    for name, text in pages().items():
        (GUIDE / name).write_text(text, encoding="utf-8")
