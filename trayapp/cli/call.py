"""`multi-mcp call` and `prompt`: call tools and get prompts through the gateway.

Also `asks`, `allow` and `deny`: show and answer calls that the user has to allow, and questions from servers.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any

import click

from trayapp.cli.options import ask, gateway, of_project, project_hint, project_option, verb
from trayapp.cli.output import (
    as_typed,
    at_terminal,
    await_input,
    byte_size,
    json_text,
    note,
    print_json,
    print_result,
    require_person,
    say,
    say_hints,
    unattended,
    waiting,
)
from trayapp.model.errors import ExitCode, MultiMcpError, NoGatewayError, UsageError
from trayapp.model.json_schema import choices
from trayapp.model.text import clean, count, one_line, shortened
from trayapp.wire.control import ALLOW, ASKS, CALL, DENY, PROMPT

HOW = "Write KEY=VALUE for each argument, or --args JSON for all of them"
OBJECT = """Example: --args '{"text": "hello"}'"""
WORD_SHOWN = 40  # columns
EXAMPLE_VALUES: dict[str, Any] = {
    "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "string": "text",
}  # fmt: skip
BY = "the command line"

Row = dict[str, Any]


@verb(
    "call",
    "multi-mcp call sample_add a=1 b=2",
    "multi-mcp call browser_screenshot --out page.png",
    """multi-mcp call echo --server sample --args '{"text": "hello"}'""",
)
@click.argument("tool")
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--args", "args_json", metavar="JSON", help="All arguments as one JSON object; - reads it from stdin.")
@click.option("--server", help="The tool's server, if several servers have a tool of that name.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Save the image, audio or file of the answer here."
)
@project_option
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

    A VALUE that is JSON (a number, true, null, a list, an object, a quoted text) is sent as JSON, anything else as
    text. A parameter that takes only text gets VALUE as it is. The exit code is 1 when the tool answers with an error.
    """
    args = arguments(pairs, args_json)
    words = {"typed": texts} if (texts := typed(pairs, args)) else {}
    params: dict[str, Any] = {"tool": tool, "server": server, "args": args, **words, **of_project(project)}
    params |= {"asks": True} if at_terminal() or unattended() else {}
    with project_hint(project):
        answer = _call(tool, params, as_json)
        while "ask" in answer:  # again if the tool's definition changed in the meantime
            confirm_call(answer["ask"])
            answer = _call(tool, {**params, "allowed": answer["ask"]["hash"]}, as_json)
    result = answer["result"]
    if as_json:
        print_json(result)
    elif text := result_text(result):
        say(text)
    else:
        note("The tool's answer is empty")
    if out is not None and result.get("isError") is not True:
        save(result, out)
    return ExitCode.FAILED if result.get("isError") is True else ExitCode.OK


def _call(tool: str, params: dict[str, Any], as_json: bool) -> dict[str, Any]:
    with waiting(f"Calling {one_line(tool)}", quiet=as_json):
        answer: dict[str, Any] = ask(CALL, params, timeout=None, heard=note)
    return answer


def confirm_call(row: Row) -> None:
    """Ask the person at this terminal to allow a call. Raises MultiMcpError if they decline.

    Without a terminal, return immediately: MULTI_MCP_UNATTENDED=1 has allowed the call.
    """
    if not at_terminal():
        return
    say(*call_lines(row, answers=False))
    if not click.confirm("Call it?"):
        raise MultiMcpError(f"{row['server']}/{row['tool']} was not called", "Nothing was executed")


def save(result: dict[str, Any], out: Path) -> None:
    """Write the first binary part of a result to `out`, and further parts beside it as NAME-2, NAME-3.

    Raises OSError, and MultiMcpError if there is no binary part.
    """
    found = binary_parts(result)
    if not found:
        raise MultiMcpError("The tool's answer contains no image, audio or file", "Leave out --out to print its text")
    for number, data in enumerate(found, 1):
        place = out if number == 1 else out.with_stem(f"{out.stem}-{number}")
        place.write_bytes(data)
        note(f"Saved {one_line(str(place))} ({byte_size(len(data))})")


@verb("prompt", "multi-mcp prompt board_plan ai date=today", "multi-mcp prompt board_plan --line 'ai today'")
@click.argument("name")
@click.argument("words", metavar="[WORD|KEY=VALUE]...", nargs=-1)
@click.option("--line", help="The arguments as one line, quotes included, as typed after a command.")
@project_option
def prompt_verb(name: str, words: tuple[str, ...], line: str | None, project: Path | None, as_json: bool) -> None:
    """Print the prompt NAME with these arguments.

    A WORD fills the next argument that no KEY=VALUE names.
    """
    if words and line is not None:
        raise UsageError("WORDs and --line cannot be combined", "Pass only one of them")
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
    texts: list[str] = []
    for message in _objects(result.get("messages")):
        content = message.get("content")
        text = block_text(content) if isinstance(content, dict) else ""
        texts.append(f"{one_line(str(message.get('role')))}:\n{text}")
    return "\n\n".join(texts)


def arguments(pairs: tuple[str, ...], args_json: str | None) -> dict[str, Any]:
    """Return the arguments, from KEY=VALUE pairs or from --args. Raises UsageError."""
    if args_json is None:
        return from_pairs(pairs)
    if pairs:
        raise UsageError("KEY=VALUE and --args cannot be combined", HOW)
    return from_json(sys.stdin.read() if args_json == "-" else args_json)


def from_pairs(words: Sequence[str]) -> dict[str, Any]:
    """Return the arguments for `KEY=VALUE ...`. Raises UsageError for any other form or a repeated key."""
    arguments: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{_shown(word)} is not KEY=VALUE", HOW)
        if key in arguments:
            raise UsageError(f"{_shown(key)} is given twice", "Pass it once. To pass a list: KEY=[1,2]")
        arguments[key] = value_of(value)
    return arguments


def typed(words: Sequence[str], arguments: dict[str, Any]) -> dict[str, str]:
    """Return the original text, by key, of each VALUE that was parsed as JSON: the tool may expect text."""
    pairs = (word.partition("=") for word in words)
    return {key: value for key, _, value in pairs if not isinstance(arguments[key], str)}


def value_of(text: str) -> Any:
    """Return the parsed value if the text is JSON (so `"5"` is the text 5), or else the text itself."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def from_json(text: str) -> dict[str, Any]:
    """Return the JSON object in a text. Raises UsageError if it holds anything else."""
    try:
        arguments = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--args is not JSON: {one_line(str(error))}", OBJECT) from None
    if not isinstance(arguments, dict):
        raise UsageError("--args must be a JSON object", OBJECT)
    return arguments


def _shown(word: str) -> str:
    return shortened(one_line(word), WORD_SHOWN)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def example_call(tool: str, schema: Any) -> str:
    """Return a command line that calls the tool with its required arguments."""
    schema = schema if isinstance(schema, dict) else {}
    known, needed = schema.get("properties"), schema.get("required")
    properties = known if isinstance(known, dict) else {}
    names = [name for name in needed if isinstance(name, str)] if isinstance(needed, list) else []
    words = (f"{one_line(name)}={_example(properties.get(name))}" for name in names)
    return " ".join((as_typed("multi-mcp call"), *map(quote, (one_line(tool), *words))))


def _example(schema: Any) -> str:
    """Return an example VALUE for a parameter: one that its schema names, or else one of its type."""
    schema = schema if isinstance(schema, dict) else {}
    listed = [values[0] for key in ("examples", "enum") if isinstance(values := schema.get(key), list) and values]
    named = [schema[key] for key in ("default", "const") if key in schema]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    value = [*listed, *named, EXAMPLE_VALUES.get(kind if isinstance(kind, str) else "", "...")][0]
    return shortened(one_line(value if isinstance(value, str) else json.dumps(value)), WORD_SHOWN)


def result_text(result: dict[str, Any]) -> str:
    """Return a result's blocks as cleaned text, followed by its structured content if no block is text."""
    blocks = _objects(result.get("content"))
    texts = [block_text(block) for block in blocks]
    structured = result.get("structuredContent")
    if structured is not None and not any(block.get("type") == "text" for block in blocks):
        texts.append(json_text(structured))
    return "\n".join(texts)


def binary_parts(result: dict[str, Any]) -> list[bytes]:
    """Return the images, audio and blobs of a result, decoded. Invalid base64 is skipped."""
    parts: list[bytes] = []
    for block in _objects(result.get("content")):
        resource = block.get("resource")
        data = resource.get("blob") if isinstance(resource, dict) else block.get("data")
        if isinstance(data, str):
            with suppress(ValueError):
                parts.append(b64decode(data, validate=True))
    return parts


def _objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a JSON list; [] for any other value."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def block_text(block: dict[str, Any]) -> str:
    """Return one content block as text (MCP 2025-11-25, tools, tool result)."""
    kind = one_line(str(block.get("type")))
    if kind == "text":
        return clean(str(block.get("text", "")))
    if kind == "resource" and isinstance(resource := block.get("resource"), dict):
        if isinstance(resource.get("text"), str):
            return clean(resource["text"])
        return stand_in(kind, resource.get("uri"), resource.get("mimeType"), data_size(resource.get("blob")))
    if kind == "resource_link":
        return stand_in("link", block.get("title") or block.get("name"), block.get("uri"))
    return stand_in(kind, block.get("mimeType"), data_size(block.get("data")))


def stand_in(*parts: Any) -> str:
    """Return a line that describes a block: `[image, image/png, 12 kB]`."""
    return "[" + ", ".join(one_line(str(part)) for part in parts if part) + "]"


def data_size(data: Any) -> str:
    """Return the size of base64 data after decoding; "" if `data` is not a string."""
    return byte_size(len(data.rstrip("=")) * 3 // 4) if isinstance(data, str) else ""


# --- asks, and the user's answers


@verb("asks", "multi-mcp asks", "multi-mcp asks --watch")
@click.option("--watch", is_flag=True, help="Keep running and show each new request. Calls then wait for you.")
def asks_verb(watch: bool, as_json: bool) -> None:
    """Show what waits for your answer, oldest first: calls to allow, and questions from servers.

    Answer with multi-mcp allow ID or multi-mcp deny ID. With --watch and --json, each change prints the
    whole list on one line.
    """
    if not watch:
        found = ask(ASKS)
        if as_json:
            print_json(found["asks"])
        else:
            say(*_ask_lines(found["asks"]))
            if always := found["always"]:
                how = "to be asked again: multi-mcp deny SERVER/TOOL"
                say_hints(f"{count(len(always), 'tool')} always allowed ({how}):")
                say(*(f"  {one_line(called_tool(row))}" for row in always))
        return
    with gateway(timeout=None) as client:
        _watch(client.watch(await_input), as_json)
    raise NoGatewayError("The gateway ended")


def _watch(snapshots: Iterable[dict[str, Any]], as_json: bool) -> None:
    """Print new asks, and the ids of asks that have ended. With `as_json`, print all asks at each change."""
    known: dict[str, Row] | None = None
    for snapshot in snapshots:
        rows = {row["id"]: {**row, "class": row.get("tool_class")} for row in snapshot.get("asks", ())}
        if known is None and not as_json:
            say("Calls that wait for your answer appear here. Press Ctrl-C to stop.")
        if as_json and (known is None or rows.keys() != known.keys()):
            print_json(list(rows.values()), compact=True)
        elif not as_json:
            say(*(f"{ask_id} no longer waits" for ask_id in known or () if ask_id not in rows))
            fresh = [row for ask_id, row in rows.items() if ask_id not in (known or ())]
            say(*(_ask_lines(fresh) if fresh else ()))
        known = rows


@verb("allow", "multi-mcp allow 3fa2b1", "multi-mcp allow 3fa2b1 --session", "multi-mcp allow 9c01d4 name=Ann")
@click.argument("ask_id", metavar="ID")
@click.argument("pairs", metavar="[FIELD=VALUE]...", nargs=-1)
@click.option("--session", is_flag=True, help="Allow this tool until that client's session ends.")
@click.option("--always", is_flag=True, help="Allow this tool from now on. If it changes, you are asked again.")
@click.option("--args", "args_json", metavar="JSON", help="The answer to a question as one JSON object.")
def allow_verb(
    ask_id: str, pairs: tuple[str, ...], session: bool, always: bool, args_json: str | None, as_json: bool
) -> None:
    """Allow the call with this ID once, or answer a server's question by filling in its fields."""
    if session and always:
        raise UsageError("--session and --always cannot be combined", "Pass only one of them")
    if pairs and args_json is not None:
        raise UsageError("FIELD=VALUE and --args cannot be combined", "Pass only one of them")
    require_person("allow a call")
    content = from_json(args_json) if args_json is not None else from_pairs(pairs) if pairs else None
    answer = "session" if session else "always" if always else "once"
    words = {"typed": texts} if content and (texts := typed(pairs, content)) else {}
    row = ask(ALLOW, {"id": ask_id, "answer": answer, "content": content, "by": BY, **words})["ask"]
    for_ = {"session": " until its session ends", "always": " from now on"}.get(answer, "")
    _show_answer(row, f"Allowed{for_}", "Answered", as_json)


@verb("deny", "multi-mcp deny 3fa2b1", "multi-mcp deny github/delete_repo")
@click.argument("what", metavar="ID|SERVER/TOOL")
def deny_verb(what: str, as_json: bool) -> None:
    """Deny the call or question with this ID, or revoke `allow --always` for SERVER/TOOL."""
    server, slash, tool = what.partition("/")
    if slash:
        ask(DENY, {"server": server, "tool": tool})
        revoked = {"server": server, "tool": tool, "always": False}
        print_result(as_json, revoked, one_line(f"No longer always allowed: {what}"))
        return
    row = ask(DENY, {"id": what, "by": BY})["ask"]
    _show_answer(row, "Denied", "Declined", as_json)


def _show_answer(row: Row, call: str, question: str, as_json: bool) -> None:
    """Print the outcome, introduced by `call` for a tool call or by `question` for a server's question."""
    line = f"{call}: {called_tool(row)}" if row["kind"] == "call" else f"{question}: {row['server']}"
    print_result(as_json, row, one_line(line))


def _ask_lines(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of each ask: client, tool or question, arguments, and how to answer."""
    if not rows:
        yield "Nothing waits for your answer"
        return
    for row in rows:
        yield from (call_lines(row) if row["kind"] == "call" else _question_lines(row))
        yield ""


def _question_lines(row: Row) -> Iterator[str]:
    yield one_line(f"{row['id']}: {row['server']} asks {caller(row)}: {row['message']}")
    fields = (row.get("schema") or {}).get("properties") or {}
    required = (row.get("schema") or {}).get("required") or ()
    for name, field in fields.items():
        field_schema = field if isinstance(field, dict) else {}
        star = "*" if name in required else ""
        one = "|".join(map(_choice, choices(field_schema)))
        some = "|".join(map(_choice, choices(field_schema.get("items"))))
        kind = one or (f"list of {some}" if some else str(field_schema.get("type", "text")))
        description = field_schema.get("description") or field_schema.get("title") or ""
        yield f"    {one_line(f'{name}{star} ({kind}) {description}')}"
    if row.get("url"):
        yield one_line(f"  It wants you to open: {row['url']}")
    values = " FIELD=VALUE ..." if fields else ""
    yield as_typed(f"  Answer: multi-mcp allow {row['id']}{values}, or multi-mcp deny {row['id']}")


def _choice(choice: tuple[Any, str]) -> str:
    value, title = choice
    return title if str(value) == title else f"{value}: {title}"


def call_lines(row: Row, *, answers: bool = True) -> Iterator[str]:
    """Yield the lines of one waiting call. `answers`: include its id and the commands that answer it."""
    basis = ", as its server says" if row.get("basis") == "annotations" else ""
    head = f"{row['id']}: {caller(row)} wants to call" if answers else "This calls"
    yield one_line(f"{head} {called_tool(row)} ({row['class']}{basis})")
    for shown in row["arguments"]:
        yield f"    {one_line(shown['name'])} = {one_line(shown['value'])}"
    if answers:
        session = " [--session | --always]" if "session" in row["answers"] else " [--always]"
        yield as_typed(f"  Answer: multi-mcp allow {row['id']}{session}, or multi-mcp deny {row['id']}")


def called_tool(row: Row) -> str:
    return f"{row['server']}/{row['tool']}"


def caller(row: Row) -> str:
    return f"{row['client']} in {row['project']}" if row.get("project") else str(row["client"])
