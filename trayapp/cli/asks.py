"""`multi-mcp asks`, `allow` and `deny`: calls and servers' questions that wait for the user's answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from trayapp.cli.call import call_lines, called_tool, caller, from_json, from_pairs, typed
from trayapp.cli.options import ask, examples, gateway, json_option
from trayapp.cli.output import as_typed, await_input, print_json, require_person, say
from trayapp.model.errors import NoGatewayError, UsageError
from trayapp.model.json_schema import choices
from trayapp.model.text import count, one_line
from trayapp.wire.control import ALLOW, ASKS, DENY

Row = dict[str, Any]
BY = "the command line"


@click.command("asks", epilog=examples("multi-mcp asks", "multi-mcp asks --watch"))
@click.option("--watch", is_flag=True, help="Keep running and show each new request. Calls then wait for you.")
@json_option
def asks_verb(watch: bool, as_json: bool) -> None:
    """Show what waits for your answer, oldest first: calls to allow, and questions from servers.

    Answer with multi-mcp allow ID or multi-mcp deny ID. With --watch and --json, print one list per line, one for each
    change.
    """
    if not watch:
        found = ask(ASKS)
        if as_json:
            print_json(found["asks"])
        else:
            say(*lines(found["asks"]), *always_lines(found["always"]))
        return
    with gateway(timeout=None) as client:
        _watch(client.watch(await_input), as_json)
    raise NoGatewayError("The gateway ended")


def _watch(snapshots: Iterable[dict[str, Any]], as_json: bool) -> None:
    """Print new asks, and the ids of asks that are over. With `as_json`, print all asks at each change."""
    known: dict[str, Row] | None = None
    for snapshot in snapshots:
        rows = {row["id"]: {**row, "class": row.get("tool_class")} for row in snapshot.get("asks", ())}
        if known is None and not as_json:
            say("Calls that wait for your answer appear here. Press Ctrl+C to stop.")
        if as_json and (known is None or rows.keys() != known.keys()):
            print_json(list(rows.values()), compact=True)
        elif not as_json:
            say(*(f"{ask_id} is over" for ask_id in known or () if ask_id not in rows))
            fresh = [row for ask_id, row in rows.items() if ask_id not in (known or ())]
            say(*(lines(fresh) if fresh else ()))
        known = rows


@click.command(
    "allow",
    epilog=examples("multi-mcp allow 3fa2b1", "multi-mcp allow 3fa2b1 --session", "multi-mcp allow 9c01d4 name=Ann"),
)
@click.argument("ask_id", metavar="ID")
@click.argument("pairs", metavar="[FIELD=VALUE]...", nargs=-1)
@click.option("--session", is_flag=True, help="Allow this tool until that client's session ends.")
@click.option("--always", is_flag=True, help="Allow this tool from now on. If it changes, you are asked again.")
@click.option("--args", "args_json", metavar="JSON", help="The answer to a question as one JSON object.")
@json_option
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
    words = {"typed": as_typed} if content and (as_typed := typed(pairs, content)) else {}
    row = ask(ALLOW, {"id": ask_id, "answer": answer, "content": content, "by": BY, **words})["ask"]
    for_ = {"session": " until its session ends", "always": " from now on"}.get(answer, "")
    _show(row, f"Allowed{for_}: {called_tool(row)}" if row["kind"] == "call" else f"Answered: {row['server']}", as_json)


@click.command("deny", epilog=examples("multi-mcp deny 3fa2b1", "multi-mcp deny github/delete_repo"))
@click.argument("what", metavar="ID|SERVER/TOOL")
@json_option
def deny_verb(what: str, as_json: bool) -> None:
    """Deny the call or question ID, or revoke `allow --always` for SERVER/TOOL."""
    server, slash, tool = what.partition("/")
    if slash:
        ask(DENY, {"server": server, "tool": tool})
        say(one_line(f"{what} asks again"))
        return
    row = ask(DENY, {"id": what, "by": BY})["ask"]
    _show(row, f"Denied: {called_tool(row)}" if row["kind"] == "call" else f"Declined: {row['server']}", as_json)


def _show(row: Row, line: str, as_json: bool) -> None:
    if as_json:
        print_json(row)
    else:
        say(one_line(line))


def lines(rows: list[Row]) -> Iterator[str]:
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


def always_lines(always: list[Row]) -> Iterator[str]:
    """Yield lines with the tools that the user always allows."""
    if always:
        yield as_typed(f"{count(len(always), 'tool')} always allowed (to be asked again: multi-mcp deny SERVER/TOOL):")
        yield from (f"  {one_line(called_tool(row))}" for row in always)
