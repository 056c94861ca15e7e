"""`multi-mcp prompt`: fill in one prompt of a server and print it.

Never here: parsing the words (the gateway knows which arguments the prompt has).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trayapp.cli.content import block_text
from trayapp.cli.options import ask, examples, json_option, of_project, project_option
from trayapp.cli.output import note, print_json, say, waiting
from trayapp.cli.text import one_line
from trayapp.model.errors import UsageError
from trayapp.wire.control import PROMPT


@click.command(
    "prompt",
    epilog=examples("multi-mcp prompt board_plan ai date=today", "multi-mcp prompt board_plan --line 'ai today'"),
)
@click.argument("name")
@click.argument("words", metavar="[WORD|KEY=VALUE]...", nargs=-1)
@click.option("--line", help="The arguments as one line, quotes included, as typed after a command.")
@project_option
@json_option
def prompt_verb(name: str, words: tuple[str, ...], line: str | None, project: Path | None, as_json: bool) -> None:
    """Print the prompt NAME with these arguments.

    A WORD fills the next argument that no KEY=VALUE names.
    """
    if words and line is not None:
        raise UsageError("WORDs and --line do not go together", "Give one of them")
    params = {"prompt": name, "words": list(words) if line is None else line, **of_project(project)}
    with waiting(f"Asking for {one_line(name)}", quiet=as_json):
        result = ask(PROMPT, params, timeout=None)["result"]
    if as_json:
        print_json(result)
    elif text := prompt_text(result):
        say(text)
    else:
        note("The prompt is empty")


def prompt_text(result: dict[str, Any]) -> str:
    """Return the prompt's messages, each under its role."""
    messages = result.get("messages")
    found = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    return "\n\n".join(f"{one_line(str(one.get('role')))}:\n{_content(one.get('content'))}" for one in found)


def _content(content: Any) -> str:
    return block_text(content) if isinstance(content, dict) else ""
