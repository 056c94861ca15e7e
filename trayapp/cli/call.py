"""`multi-mcp call`: call one tool through the gateway, as a client would.

Never here: parsing arguments (call_args), formatting the result (content).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from trayapp.cli.asks import call_lines
from trayapp.cli.call_args import HOW, from_json, from_pairs, typed
from trayapp.cli.content import binary_parts, result_text
from trayapp.cli.options import ask, examples, json_option, of_project, project_option
from trayapp.cli.output import note, print_json, say, waiting
from trayapp.cli.person import at_terminal, unattended
from trayapp.cli.project import hinting
from trayapp.cli.text import byte_size, one_line
from trayapp.model.errors import ExitCode, MultiMcpError, UsageError
from trayapp.wire.control import CALL

EXAMPLES = (
    "multi-mcp call sample_add a=1 b=2",
    "multi-mcp call browser_screenshot --out page.png",
    """multi-mcp call echo --server sample --args '{"text": "hello"}'""",
)


@click.command("call", epilog=examples(*EXAMPLES))
@click.argument("tool")
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--args", "args_json", metavar="JSON", help="All arguments as one JSON object; - reads it from stdin.")
@click.option("--server", help="The tool's server, if several servers have a tool of that name.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Save the image, audio or file of the answer here."
)
@project_option
@json_option
def call_verb(
    tool: str,
    pairs: tuple[str, ...],
    args_json: str | None,
    server: str | None,
    out: Path | None,
    project: Path | None,
    as_json: bool,
) -> int:
    """Call TOOL and print its answer.

    A VALUE that is JSON (a number, true, null, a list, an object, a quoted text) is sent as that, anything else as
    text. A parameter that takes only text gets VALUE as it is.
    The exit code is 1 when the tool answers with an error.
    """
    args = arguments(pairs, args_json)
    words = {"typed": as_typed} if (as_typed := typed(pairs, args)) else {}
    params: dict[str, Any] = {"tool": tool, "server": server, "args": args, **words, **of_project(project)}
    params |= {"asks": True} if at_terminal() or unattended() else {}
    with hinting(project):
        answer = _call(tool, params, as_json)
        if "ask" in answer:
            require_yes(answer["ask"])
            answer = _call(tool, {**params, "allowed": answer["ask"]["hash"]}, as_json)
    result = answer["result"]
    show(result, as_json)
    if out is not None and result.get("isError") is not True:
        save(result, out)
    return ExitCode.FAILED if result.get("isError") is True else ExitCode.OK


def _call(tool: str, params: dict[str, Any], as_json: bool) -> dict[str, Any]:
    with waiting(f"Calling {one_line(tool)}", quiet=as_json):
        answer: dict[str, Any] = ask(CALL, params, timeout=None, heard=note)
    return answer


def require_yes(row: dict[str, Any]) -> None:
    """Ask for approval of a call if a person is at this terminal. Raises MultiMcpError if they decline."""
    if not at_terminal():
        return
    say(*call_lines(row, answers=False))
    if not click.confirm("Call it?"):
        raise MultiMcpError(f"{row['server']}/{row['tool']} was not called", "Nothing was executed")


def arguments(pairs: tuple[str, ...], args_json: str | None) -> dict[str, Any]:
    """Return the arguments, from KEY=VALUE pairs or from --args. Raises UsageError."""
    if args_json is None:
        return from_pairs(pairs)
    if pairs:
        raise UsageError("KEY=VALUE and --args do not go together", HOW)
    return from_json(sys.stdin.read() if args_json == "-" else args_json)


def save(result: dict[str, Any], out: Path) -> None:
    """Write the first binary part to `out`, further ones beside it. Raises MultiMcpError if there is none, OSError."""
    found = binary_parts(result)
    if not found:
        raise MultiMcpError("The tool's answer holds no image, audio or file", "Leave out --out to print its text")
    for number, data in enumerate(found, 1):
        place = out if number == 1 else out.with_stem(f"{out.stem}-{number}")
        place.write_bytes(data)
        note(f"Saved {one_line(str(place))} ({byte_size(len(data))})")


def show(result: dict[str, Any], as_json: bool) -> None:
    """Print the result on stdout."""
    text = "" if as_json else result_text(result)
    if as_json:
        print_json(result)
    elif text:
        say(text)
    else:
        note("The tool's answer is empty")
