"""The table of verbs: each one's module and summary, in the groups of the program's help."""

from __future__ import annotations

from typing import NamedTuple

PROGRAM = "multi-mcp"
# Verbs that show all servers. After starting a gateway, they wait a little for servers whose tools are not known yet.
SHOWING_ALL = frozenset(("list", "search", "index", "approve", "inspect"))


class VerbEntry(NamedTuple):
    """A verb's module, and its line in the list of verbs.

    `starts`: the verb needs a gateway and starts one if none runs. `status`, `stop` and `doctor` do not start one: they
    report that none runs.
    """

    module: str
    summary: str
    starts: bool = False


VERB_GROUPS: dict[str, dict[str, VerbEntry]] = {
    "Set up": {
        "setup": VerbEntry("setup", "Set everything up: servers, then AI tools.", starts=True),
        "import": VerbEntry("import_servers", "Import servers from the files of AI tools."),
        "connect": VerbEntry("connect", "Point an AI tool, or all of them, at multi-mcp."),
        "disconnect": VerbEntry("connect", "Remove multi-mcp from an AI tool."),
        "demo": VerbEntry("demo", "Try everything out in a temporary folder."),
        "help": VerbEntry("help", "Show a page of the guide."),
    },
    "Every day": {
        "status": VerbEntry("status", "Show the gateway, its servers and their problems."),
        "panel": VerbEntry("panel", "Open the panel in your browser.", starts=True),
        "list": VerbEntry("tools", "List the tools of all servers, or of one.", starts=True),
        "search": VerbEntry("tools", "Find tools by what they do.", starts=True),
        "describe": VerbEntry("tools", "Describe a tool and its parameters.", starts=True),
        "call": VerbEntry("call", "Call a tool and print its answer.", starts=True),
        "prompt": VerbEntry("call", "Fill in a prompt and print it.", starts=True),
        "index": VerbEntry("tools", "Print an index of all tools in Markdown.", starts=True),
        "history": VerbEntry("history", "Show the calls of AI tools and their results.", starts=True),
    },
    "Servers": {
        "find": VerbEntry("find", "Find servers in the registry."),
        "add": VerbEntry("add", "Add a server.", starts=True),
        "remove": VerbEntry("add", "Remove a server."),
        "enable": VerbEntry("edit", "Enable a server or some of its tools."),
        "disable": VerbEntry("edit", "Disable a server or some of its tools."),
        "auth": VerbEntry("auth", "Sign in to a server, or sign out.", starts=True),
        "secret": VerbEntry("secret", "Keep secrets for servers.yaml in the keyring."),
        "edit": VerbEntry("edit", "Open servers.yaml."),
        "refresh": VerbEntry("refresh", "Ask servers for their tools again.", starts=True),
        "reconnect": VerbEntry("refresh", "Reconnect servers now.", starts=True),
        "outdated": VerbEntry("update", "Show servers whose package has a newer release.", starts=True),
        "update": VerbEntry("update", "Update the package of a server, or of all.", starts=True),
    },
    "Safety": {
        "asks": VerbEntry("call", "Show the calls that wait for your answer."),
        "allow": VerbEntry("call", "Allow one of these calls."),
        "deny": VerbEntry("call", "Deny one of these calls."),
        "approve": VerbEntry("approve", "Review changed tools and approve them.", starts=True),
        "trust": VerbEntry("approve", "Approve the servers in a project's own file."),
        "inspect": VerbEntry("approve", "Look for hidden text and instructions in tools.", starts=True),
        "confine": VerbEntry("confine", "Run a server confined and show what it needs.", starts=True),
    },
    "The program": {
        "tray": VerbEntry("tray", "Run the tray app; on a desktop the same as no verb."),
        "start": VerbEntry("start", "Start the gateway, here or in the background."),
        "stop": VerbEntry("start", "Stop the gateway and all its servers."),
        "quit": VerbEntry("tray", "Quit the tray app and the gateway that it started."),
        "stdio": VerbEntry("start", "Connect an AI tool: its configuration runs this."),
        "autostart": VerbEntry("tray", "Turn start at login on or off."),
        "logs": VerbEntry("logs", "Show the gateway's log, or one server's."),
        "doctor": VerbEntry("doctor", "Find problems and say how to fix them."),
        "update-check": VerbEntry("update", "Check for a newer version."),
    },
}
VERBS = {name: entry for group in VERB_GROUPS.values() for name, entry in group.items()}
HIDDEN = {"sample-server": VerbEntry("start", "Run the bundled sample server.")}
