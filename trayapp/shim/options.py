"""The options of `multi-mcp stdio`, loaded only if there are any.

The gateway reads their values from the greeting.
"""

from __future__ import annotations

USAGE = "usage: multi-mcp stdio [--expose auto|tools|search] [--servers A,B] [--profile NAME]"
OPTIONS = ("--expose", "--servers", "--profile")


def parse(argv: list[str]) -> dict[str, str] | None:
    """Return `--name value` and `--name=value` pairs as a dictionary, or None if there is anything else."""
    options: dict[str, str] = {}
    words = list(argv)
    while words:
        name, given, value = words.pop(0).partition("=")
        if name not in OPTIONS or not (given or words):
            return None
        options[name[2:]] = value if given else words.pop(0)
    return options
