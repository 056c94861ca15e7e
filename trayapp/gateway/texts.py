"""The answers of the one tool in words, for a model to read: short, and the same for the same state.

Never here: carrying a request out, ranking, describing a tool's parameters (catalog/describe does).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trayapp.catalog.describe import compact, describe, parameters
from trayapp.catalog.names import Key
from trayapp.catalog.search import Hit
from trayapp.gateway.expose import Exposure, first_line, first_paragraph, shortened
from trayapp.gateway.paging import page
from trayapp.gateway.standing import Standing
from trayapp.model.errors import MultiMcpError
from trayapp.model.offer import Item
from trayapp.wire.jsonio import dumps

LIST_LIMIT = 50  # tools of a server on one page
SERVERS_NAMED = 40  # in an answer that is about something else
ASKED_SHOWN = 80  # characters of what was asked for
TITLE_LONGEST = 500  # characters of what went wrong, in which a name that was asked for may stand
HIT_LONGEST = 240  # characters of a description in the answer of a search
LIST_MOST = 500

StandingOf = Callable[[str], Standing]


def count(number: int, thing: str) -> str:
    """`1 tool`, `2 tools`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def status_text(seen: Exposure, standing_of: StandingOf) -> str:
    """`MCP: 1/2 servers, 75 tools`, and a line for each server."""
    standings = {name: standing_of(name) for name in seen.servers}
    enabled = [one for one in standings.values() if one.enabled]
    ready = sum(one.connected for one in enabled)
    head = f"MCP: {ready}/{len(enabled)} servers, {count(len(seen.tools), 'tool')}"
    lines = [f"{name}: {server_line(seen, name, one)}" for name, one in standings.items()]
    notes = (
        [f"Unknown servers in this session's options: {', '.join(seen.choice.unknown)}"] if seen.choice.unknown else []
    )
    return "\n".join([head, *lines, *notes])


def server_line(seen: Exposure, server: str, one: Standing) -> str:
    """`connected, 3 tools`, `failed 12s ago, 4 tools: why`."""
    tools = sum(key in seen.tools for key in seen.entries[server])
    parts = [one.word, *([count(tools, "tool")] if one.enabled else [])]
    reads = len(seen.entries[server]) - tools
    parts += [count(reads, "resource")] if reads else []
    return "; ".join([", ".join(parts) + (f": {one.why}" if one.why else ""), *([one.note] if one.note else [])])


def list_text(seen: Exposure, server: str, one: Standing, offset: int = 0, limit: int | None = None) -> str:
    """A server's tools, a line each, from `offset`; on the first page what the server says about itself."""
    chosen = page(list(seen.entries[server].items()), offset, min(LIST_LIMIT if limit is None else limit, LIST_MOST))
    lines = [f"- {name_line(seen, key, item)}" for key, item in chosen.items]
    head = f"{server}: {server_line(seen, server, one)}"
    about = seen.instructions_of(server) if offset <= 0 else ""
    more = chosen.next_offset
    foot = [f'{chosen.total - more} more: {{"server":"{server}","offset":{more}}}'] if more is not None else []
    return "\n".join([head, *([about, ""] if about else []), *lines, *foot])


def name_line(seen: Exposure, key: Key, item: Item) -> str:
    """`NAME: first line of its description`."""
    line = first_line(item.get("description"))
    return f"{seen.name_of(key)}: {line}" if line else seen.name_of(key)


def search_text(
    seen: Exposure,
    hits: Sequence[Hit],
    words: str,
    standing_of: StandingOf,
    *,
    schemas: bool,
    asking: Sequence[str] = (),
) -> str:
    """The hits with their parameters, and what keeps their servers from serving."""
    if not hits:
        return "\n".join(
            [f"No tool matches {shortened(words, ASKED_SHOWN)!r}", *_where_to_look(seen), *_asking(asking)]
        )
    blocks = [_hit_text(seen, hit, standing_of(hit.server), schemas) for hit in hits]
    missed = set(hits[0].missed).intersection(*(hit.missed for hit in hits))
    notes = [f"Matched by none: {', '.join(word for word in hits[0].missed if word in missed)}"] if missed else []
    return "\n".join([*blocks, *notes, *_asking(asking)])


def _hit_text(seen: Exposure, hit: Hit, one: Standing, schemas: bool) -> str:
    key = hit.server, hit.name
    item = seen.entries[hit.server][key]
    shown = " " + dumps(item.get("inputSchema")).decode("utf-8", "surrogatepass") if schemas else compact(item)
    away = f" [unavailable: {one.line}]" if one.why else ""
    line = first_paragraph(item.get("description"), HIT_LONGEST)
    return f"{seen.name_of(key)}{shown}{away}" + (f"\n  {line}" if line else "")


def _where_to_look(seen: Exposure) -> list[str]:
    names = [name for name, entries in seen.entries.items() if entries]
    more = ", ..." if len(names) > SERVERS_NAMED else ""
    return (
        [f'List a server\'s tools with {{"server":"NAME"}}: {", ".join(names[:SERVERS_NAMED])}{more}'] if names else []
    )


def _asking(servers: Sequence[str]) -> list[str]:
    return [f"Not known yet, still being asked: {', '.join(servers[:SERVERS_NAMED])}"] if servers else []


def describe_text(seen: Exposure, key: Key, one: Standing) -> str:
    """Everything about a tool, and what keeps its server from serving."""
    text = describe(seen.entries[key[0]][key], seen.name_of(key), key[0])
    return f"{text}\nIts server is unavailable, {one.line}" if one.why else text


def error_text(error: MultiMcpError) -> str:
    """`Error (code): what. What to do`, several lines below it."""
    between = ".\n" if "\n" in error.hint else ". "
    title = shortened(error.title, TITLE_LONGEST)
    return f"Error ({error.code}): {title}{between if error.hint else ''}{error.hint}"


def arguments_text(name: str, problems: Sequence[str], schema: object) -> str:
    """What is wrong with the arguments of a call, and the parameters."""
    return "\n".join([*(f"- {problem}" for problem in problems), f"Expected parameters of {name}:", parameters(schema)])
