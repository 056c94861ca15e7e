"""Answer control requests about the catalog: list, search, describe and call tools, get prompts, count tokens.

A request with `project` gets the answers that a session in that folder would get.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from trayapp.backends.connection import Connection
from trayapp.catalog.describe import compact
from trayapp.catalog.names import Key
from trayapp.catalog.schema.arguments import as_typed
from trayapp.catalog.suggest import nearest
from trayapp.catalog.tokens import tokens
from trayapp.catalog.tool_class import classify
from trayapp.gateway.asks import Subject, ask_mode, asks_first
from trayapp.gateway.calls.consent import CommandConsent
from trayapp.gateway.calls.routed_call import lost_during_call, timed_out
from trayapp.gateway.client import text_of
from trayapp.gateway.exposure.catalog import Catalog
from trayapp.gateway.exposure.exposure import Exposure, first_paragraph
from trayapp.gateway.exposure.list_results import ListResults, index_text
from trayapp.gateway.extensions.task_bridge import completed_request
from trayapp.gateway.gateway import Gateway
from trayapp.gateway.mcp_tool import texts
from trayapp.gateway.mcp_tool.request import ArgumentsError, prepared_call
from trayapp.gateway.mcp_tool.results import as_tool_result
from trayapp.gateway.mcp_tool.texts import HIT_LONGEST, Availability, availability, why_unknown
from trayapp.gateway.scopes.session_view import SessionView
from trayapp.gateway.scopes.view import View
from trayapp.history.ended_call import Caller, EndedCall, refused_call
from trayapp.model.errors import MultiMcpError, ToolNotFoundError, UsageError
from trayapp.model.offer import ITEM_KEYS, Item, Offer
from trayapp.model.redact import redacted
from trayapp.wire import control
from trayapp.wire.messages import CONNECTION_CLOSED, INVALID_PARAMS, Request, RpcError

BATCH_MOST = 10_000  # limit on the number of queries in one request
HITS_MOST = 1_000
UNUSED_S = 30 * 86_400.0  # tools that have not been called for this long count as unused
PROJECT_WAIT_S = 5.0  # limit for listing the tools of a project's servers; a start that hangs would take 30 s

Asked = dict[str, Any]
Note = Callable[[str], None]  # sends the user a line before the answer


@dataclass(frozen=True, eq=False)
class CatalogCaller:
    """A stand-in for a project's session, until the request is done and all of the project's servers have answered."""

    cwd: str


class CatalogRequests:
    """Catalog requests of one control connection."""

    def __init__(self, gateway: Gateway, note: Note) -> None:
        self._gateway = gateway
        self._note = note
        # An exposure and its costs, kept because the panel requests them often.
        self._counted: tuple[Exposure | None, dict[str, Any]] = None, {}
        self.handlers: dict[str, Callable[[Asked], Awaitable[Any]]] = {
            control.LIST: self._list,
            control.OFFER: self._offer,
            control.SEARCH: self._search,
            control.DESCRIBE: self._describe,
            control.INDEX: self._index,
            control.COSTS: self._costs,
            control.CALL: self._call,
            control.PROMPT: self._prompt,
        }

    @asynccontextmanager
    async def _session_view(self, asked: Asked, *, complete: bool = True) -> AsyncIterator[SessionView]:
        """Yield the session view of the request's `project`, or else that of sessions without a project.

        `complete`: wait up to PROJECT_WAIT_S for the project's own servers. Raises MultiMcpError if `project` is in no
        project, RpcError if it is not text.
        """
        if asked.get("project") is None:
            yield self._gateway.session_dependencies.views.of(self._gateway.servers.view)
            return
        visitor = CatalogCaller(text_of(asked, "project"))
        projects, servers = self._gateway.projects, self._gateway.servers
        view = None
        try:
            await projects.join(visitor)
            if projects.of(visitor).overlay is None:
                if problems := projects.of(visitor).problems:
                    raise MultiMcpError(problems[0].message, problems[0].hint)
                hint = "A project folder has a .multi-mcp.yaml or a .mcp.json"
                raise MultiMcpError(f"{visitor.cwd} is not in a project", hint)
            view = servers.view_of(visitor)
            await view.first_list_delay.answered(PROJECT_WAIT_S if complete else 0.0, own=True)
            yield self._gateway.session_dependencies.views.of(servers.view_of(visitor))
        finally:
            if view is not None and view.being_asked(own=True):
                self._gateway.services.spawn(self._stay_until_answered, visitor, view)
            else:
                projects.leave(visitor)

    async def _stay_until_answered(self, visitor: CatalogCaller, view: View) -> None:
        """Keep the project's servers until all have answered: the next request then finds their tools in the cache."""
        try:
            await view.first_list_delay.answered(math.inf, own=True)  # each start has a time limit
        finally:
            self._gateway.projects.leave(visitor)

    def _note_unknown(self, view: View, names: Iterable[str]) -> None:
        """Send the user one line for each of these servers, explaining why its tools or other lists are unknown."""
        being_asked = view.being_asked()
        for name in names:
            if (connection := view.get(name)) is not None:
                self._note(why_unknown(name, connection, view.offer(name), being_asked=name in being_asked))

    async def _list(self, asked: Asked) -> Any:
        async with self._session_view(asked) as seen_by:
            server = self._server(seen_by, asked)
            for problem in self._gateway.problems:
                if problem.fatal and server in (None, problem.server):  # the reason why a server is left out
                    where = f"{problem.file}:{problem.line}" if problem.line else problem.file
                    whose = f"{problem.server} cannot be used: " if problem.server else ""
                    self._note(f"{whose}{redacted(problem.message)} ({where})")
            missing = seen_by.missing()
            for name, entry in seen_by.exposure.servers.items():
                offer = seen_by.view.offer(name)
                fails = offer is not None and offer.failure and not entry.disabled
                if server in (None, name) and (name in missing or fails):
                    self._note_unknown(seen_by.view, [name])
            try:
                only = {(server, name) for server, name in asked["tools"]} if "tools" in asked else None
            except (TypeError, ValueError):
                raise RpcError(INVALID_PARAMS, "tools must be a list of [server, name]") from None
            return tool_rows(seen_by.view.catalog, server, classes=asked.get("classes") is True, only=only)

    async def _offer(self, asked: Asked) -> Any:
        async with self._session_view(asked, complete=False) as seen_by:
            return offer_rows(seen_by.view.offer(seen_by.named(text_of(asked, "server"))))

    @staticmethod
    def _server(seen_by: SessionView, asked: Asked) -> str | None:
        """Return the named server, or None if the request names none. Raises ServerNotFoundError, RpcError."""
        if asked.get("server") is None:
            return None
        return seen_by.named(text_of(asked, "server"))

    async def _search(self, asked: Asked) -> Any:
        batch = asked.get("batch")
        queries = [text_of(asked, "words", "search")] if batch is None else batch
        if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
            raise RpcError(INVALID_PARAMS, "batch must be a list of texts")
        if len(queries) > BATCH_MOST:
            raise UsageError(f"More than {BATCH_MOST} queries at once", "Split them into several searches")
        async with self._session_view(asked) as seen_by:
            self._note_unknown(seen_by.view, seen_by.view.being_asked())
            results, shown = [], dict[str, Any]()
            for query in queries:
                # An empty line of a batch gets no hits, instead of an error for the whole batch.
                blank = batch is not None and asked.get("server") is None and not query.strip()
                rows, shown = ([], {}) if blank else await self._find_hits(seen_by, query, asked)
                results.append(rows)
                await anyio.lowlevel.checkpoint()  # a long batch must not delay clients
            return {"results": results, **shown}

    async def _find_hits(
        self, seen_by: SessionView, query: str, asked: Asked
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        from trayapp.catalog.search.index import LIMIT  # neither the tray nor `status` needs the search

        limit = LIMIT if asked.get("limit") is None else asked["limit"]
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise RpcError(INVALID_PARAMS, "limit must be a whole number above 0")
        hits = await seen_by.view.finder.find(
            lambda: seen_by.exposure,
            query,
            server=self._server(seen_by, asked),
            limit=min(limit, HITS_MOST),
            regex=asked.get("regex") is True,
        )
        seen, rows, shown = seen_by.exposure, list[dict[str, Any]](), list[dict[str, Any]]()
        for hit in hits:
            name, also = seen.name_of(hit.key), {"also": [seen.name_of(key) for key in hit.also]} if hit.also else {}
            row = {"server": hit.server, "name": hit.name, "exposed_name": name, "score": round(hit.score, 4)}
            rows.append(row | also)
            if asked.get("batch") is None:  # the hits in the form that the command line shows
                away = self._availability(seen_by, hit.server).away_for_people
                description = first_paragraph(seen.entries[hit.server][hit.key].get("description"), texts.HIT_LONGEST)
                shown.append({"name": name, "description": description, "away": away} | also)
        return rows, {"hits": shown, "missed": texts.missed(hits)} if asked.get("batch") is None else {}

    def _availability(self, seen_by: SessionView, server: str) -> Availability:
        connection, now = seen_by.connection(server), self._gateway.services.clock.now()
        return availability(server, connection, now, seen_by.view.config.settings, seen_by.view.offer(server))

    async def _describe(self, asked: Asked) -> Any:
        async with self._session_view(asked, complete=False) as seen_by:
            name = text_of(asked, "tool", "describe")
            key = await self._find_key(seen_by, name, self._server(seen_by, asked))
            seen = seen_by.exposure
            exposed = seen.name_of(key)
            tool = seen.tools.get(key)
            definition = tool.served(exposed) if tool is not None else seen.reads[key]
            text = texts.describe_text(seen, key, self._availability(seen_by, key[0]).away_for_people)
            row = {"server": key[0], "name": key[1], "exposed_name": exposed, "tool": definition, "text": text}
            if asked.get("asks") is not True:
                return row
            subject = _subject(seen_by, key, "tools/call" if tool is not None else "resources/read")
            return {**row, "ask": subject.hash if subject is not None else None}

    async def _index(self, asked: Asked) -> Any:
        async with self._session_view(asked) as seen_by:
            self._note_unknown(seen_by.view, seen_by.view.being_asked())
            return {"text": index_text(seen_by.exposure)}

    async def _costs(self, asked: Asked) -> Any:
        async with self._session_view(asked) as seen_by:
            seen = seen_by.exposure
            known, found = self._counted
            if known is not seen:
                lists = ListResults(seen)
                # Compute these here, so that the thread only reads them.
                _ = lists.all_tools_result, lists.one_tool_result, seen.mode
                found = await anyio.to_thread.run_sync(costs, lists)  # a large catalog takes a second to count
                self._counted = seen, found
        since, called = await self._gateway.services.history.used(UNUSED_S)
        return {**found, "unused": unused(found, since, called)}

    # -- calls ---------------------------------------------------------------------------------------------------

    async def _call(self, asked: Asked) -> Any:
        name, args = text_of(asked, "tool", "call"), asked.get("args") or {}
        typed = asked.get("typed") or {}
        if not isinstance(args, dict) or not isinstance(typed, dict):
            raise RpcError(INVALID_PARAMS, "args and typed must be objects")
        async with self._session_view(asked, complete=False) as seen_by:
            key = await self._find_key(seen_by, name, self._server(seen_by, asked))
            item = seen_by.exposure.entries[key[0]].get(key) or {}
            args = as_typed(args, typed, item.get("inputSchema"))
            try:
                method, params = prepared_call(seen_by.exposure, key, args, {})
            except ArgumentsError as error:  # reworded for the command line
                hint = "; ".join([*error.problems, f"see: multi-mcp describe {error.name}"])
                raise UsageError(error.title, hint) from None
            yes = CommandConsent(self._gateway.asks, Request("", method, params), asked.get("project"), self._note)
            here, allowed = asked.get("asks") is True, asked.get("allowed")
            caller, began = Caller("panel" if asked.get("panel") is True else "multi-mcp call"), perf_counter()
            connection: Connection | None = None
            try:
                while True:
                    subject = _subject(seen_by, key, method)
                    if subject is None or yes.is_allowed(subject, allowed, here=here):
                        if connection is not None and connection.is_up:
                            break
                        connection = await _connect(seen_by, key[0])
                    elif here:
                        return {"ask": yes.row(subject)}
                    else:
                        allowed = await yes.wait_for(subject)
                result = await _answered(seen_by, connection, method, params)
            except (MultiMcpError, RpcError) as error:
                self._gateway.services.history.note(refused_call(began, caller, key[0], params, error, method))
                raise
            answer = {"result": result}
            ended = EndedCall(perf_counter(), began, caller, key[0], method, params, answer, 0, None, "", "")
            self._gateway.services.history.note(ended)
            shown = as_tool_result(result) if method == "resources/read" else result
            return {"server": key[0], "tool": key[1], "result": shown}

    async def _prompt(self, asked: Asked) -> Any:
        """Return `{"server", "prompt", "result"}` of a prompt. `words`: its arguments, as a line or a list of words."""
        name, words = text_of(asked, "prompt", "prompt"), asked.get("words")
        if not isinstance(words, str | list):
            raise RpcError(INVALID_PARAMS, "words must be a line or a list of words")
        async with self._session_view(asked, complete=False) as seen_by:
            key = seen_by.exposure.find_prompt(name)
            if key is None:
                await self._gateway.services.pool.settled()
                key = seen_by.exposure.find_prompt(name)
            if key is None:
                known = list(seen_by.exposure.catalog.prompt_names.by_name)
                hint = f"Did you mean {', '.join(near)}?" if (near := nearest(name, known)) else ""
                hint = hint or (f"Prompts: {', '.join(known[:20])}" if known else "")
                raise MultiMcpError(f"No prompt is named {name}", hint)
            declared = seen_by.exposure.catalog.prompts[key].get("arguments")
            params = {"name": key[1], "arguments": prompt_arguments(declared, *split_words(words))}
            connection = await _connect(seen_by, key[0])
            result = await _answered(seen_by, connection, "prompts/get", params)
            return {"server": key[0], "prompt": key[1], "result": result}

    async def _find_key(self, seen_by: SessionView, asked: str, server: str | None) -> Key:
        """Return the key of a tool, or of a resource that can be called like a tool. Raises MultiMcpError.

        If nothing has that name, ask the servers that may have it, then wait for all that are being asked already.
        """
        if seen_by.exposure.find_read(asked, server) is not None:
            return seen_by.exposure.find_callable(asked, server)
        try:
            return await seen_by.find_tool(asked, server)
        except ToolNotFoundError:
            await self._gateway.services.pool.settled()
            return seen_by.exposure.find_callable(asked, server)  # its error has better suggestions


def _subject(seen_by: SessionView, key: Key, method: str) -> Subject | None:
    """Return the subject of the user's consent to a call, or None if the same call through `mcp` would need none."""
    return seen_by.subject(seen_by.view.key(key[0]), method, key[1], listed=False)


async def _connect(seen_by: SessionView, server: str) -> Connection:
    connection = seen_by.connection(server)
    await connection.up()
    return connection


async def _answered(
    seen_by: SessionView, connection: Connection, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    live, timeout_s = connection.live, seen_by.timeout_s(connection)
    try:
        with anyio.fail_after(timeout_s or None):
            return await completed_request(connection, method, params)
    except TimeoutError:
        raise timed_out(connection, timeout_s) from None
    except RpcError as error:
        if error.code == CONNECTION_CLOSED and not (connection.is_up and connection.live is live):
            raise lost_during_call(connection, error.message) from None
        raise


# --- the arguments of a prompt, given as a line of words

# A word is quoted text, or text between white space, parts of which may be quoted: topic="two words". In double
# quotes, \" stands for a quotation mark if a closing one follows. Any other backslash is literal, as paths need.
_INSIDE = r"""(?:[^"\\]|\\"(?=[^"]*")|\\(?!")|\\(?="[^"]*\Z))*+"""
_WORD = re.compile(rf"""(?:"{_INSIDE}"|'[^']*'|[^\s"']|["'](?=\s|\Z)|["'](?![^"']*["']))+""")
_QUOTED = re.compile(rf""""({_INSIDE})"|'([^']*)'""")
_NAMED = re.compile(r"([^\W\d][\w.-]*)=(.*)", re.DOTALL)


def split_words(given: str | list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the positional words and the named ones (`name=value`) of a line, or of words that a shell has split.

    In a line, a word that begins with a quote is positional. In a list, quotes are literal.
    """
    words, bare = (_WORD.findall(given), _bare) if isinstance(given, str) else (given, str)
    named = {found[1]: bare(found[2]) for word in words if (found := _NAMED.fullmatch(word))}
    return [bare(word) for word in words if not _NAMED.fullmatch(word)], named


def prompt_arguments(declared: Any, positional: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments for prompts/get. `declared`: the arguments that the prompt lists.

    Named arguments are taken first, declared or not. Positional words fill the other declared arguments in order, and
    the last of these gets all remaining words. Raises UsageError if a required argument is missing, or if no declared
    argument is left for a positional word.
    """
    items = [item for item in declared if isinstance(item, dict)] if isinstance(declared, list | tuple) else []
    names = [name for item in items if isinstance(name := item.get("name"), str)]
    open_ = [name for name in names if name not in named]
    if positional and not open_:
        takes = f"The prompt takes: {', '.join(names)}" if names else "The prompt takes no arguments"
        raise UsageError(f"Unexpected argument: {positional[0]}"[:200], takes)
    filled = dict(zip(open_, positional, strict=False))
    if len(positional) > len(open_):
        filled[open_[-1]] = " ".join(positional[len(open_) - 1 :])
    args = {name: {**named, **filled}[name] for name in [*names, *named] if name in named or name in filled}
    missing = [item["name"] for item in items if item.get("required") is True and item.get("name") not in args]
    if missing:
        hint = f"Write the value after the prompt's name, or as {missing[0]}=VALUE"
        raise UsageError(f"Missing: {', '.join(missing)}", hint)
    return args


def _bare(word: str) -> str:
    return _QUOTED.sub(lambda found: found[2] if found[1] is None else found[1].replace('\\"', '"'), word)


def tool_rows(
    known: Catalog, server: str | None = None, *, classes: bool = False, only: Container[Key] | None = None
) -> list[dict[str, Any]]:
    """Return `{"server", "name", "exposed_name", "enabled", "stale", "withheld", "description"}` for each tool.

    Tools that their servers no longer list come last, `stale` and without an exposed name.

    `server`: only this server's tools. `only`: only these tools. `classes`: add to each tool that its server lists:

    - `class`: its tool class
    - `ask`: True if the user is asked before a call through `mcp`
    - `switch`: its setting in servers.yaml
    - `held`: True if it waits for approval
    """

    def is_wanted(key: Key) -> bool:
        return server in (None, key[0]) and (only is None or key in only)

    rows = list[dict[str, Any]]()
    for key in filter(is_wanted, known.tools):
        tool = known.tools[key]
        description = tool.item.get("description")
        row = {
            "server": key[0],
            "name": key[1],
            "exposed_name": known.names.by_key[key],
            "enabled": key not in known.hidden,
            "stale": False,
            "withheld": tool.withheld,
            "description": description if isinstance(description, str) else "",
        }
        if classes:
            tool_class, entry = classify(tool.item).tool_class, known.config.servers[key[0]]
            asks = asks_first(ask_mode(known.config.settings, entry, key[1]), tool_class, listed=False)
            row |= {"class": tool_class, "ask": asks, "switch": known.switch(key), "held": key in known.held}
        rows.append(row)
    for name, tool_name in filter(is_wanted, known.gone):
        enabled = (known.config.servers[name].tools or {})[tool_name].enabled
        row = {"server": name, "name": tool_name, "exposed_name": None, "enabled": enabled, "stale": True}
        rows.append({**row, "withheld": None, "description": ""})
    return rows


def offer_rows(offer: Offer | None) -> dict[str, Any]:
    """Return `{"version", "prompts", "resources", "templates"}`, with a `{"name", "description"}` for each item.

    `version`: the server's name and version. Without an offer, all members are empty.
    """
    offer = offer or Offer()
    info = offer.server_info or {}
    version = " ".join(one for one in (info.get("name"), info.get("version")) if isinstance(one, str))
    kinds = ("prompts", "resources", "templates")
    return {"version": version} | {
        kind: [_item_row(item, ITEM_KEYS[kind]) for item in getattr(offer, kind)] for kind in kinds
    }


def _item_row(item: Item, key: str) -> dict[str, str]:
    words = item.get("description") or item.get("title") or (item.get("name") if key != "name" else "")
    return {"name": str(item.get(key, "")), "description": words if isinstance(words, str) else ""}


def costs(lists: ListResults) -> dict[str, Any]:
    """Return the costs of a session's lists, in tokens:

    - `mode`: the exposure in use, "tools" or "search"
    - `tools`: {"count", "tokens"} of the whole list
    - `search`: {"tokens", "direct", "answer_tokens"}: tokens of the one tool with the direct tools, number of
      direct tools, tokens of an average search answer with LIMIT hits
    - `break_even`: None if there are no tools, otherwise {"tools", "searches"}. `tools`: the number of tools from
      which the one tool and a search cost less than the list. `searches`: the number of searches in one session that
      cost, with the one tool, as much as the list (0 if the one tool alone costs more)
    - `servers`: [{"name", "tokens", "tools": [{"name", "tokens"}]}], the largest first
    """
    from trayapp.catalog.search.index import LIMIT

    seen = lists.seen
    each = {key: tokens(tool.listed(seen.name_of(key)).decode("utf-8", "replace")) for key, tool in seen.tools.items()}
    listed = sum(each.values())
    one = tokens(lists.one_tool_result.decode("utf-8", "replace"))
    lines = {key: first_paragraph(tool.item.get("description"), HIT_LONGEST) for key, tool in seen.tools.items()}
    hits = sum(tokens(f"{seen.name_of(key)}{compact(seen.tools[key].item)}\n  {line}\n") for key, line in lines.items())
    answer = round(LIMIT * hits / len(each)) if each else 0
    break_even = None
    if listed:
        searches = max(0, listed - one) // answer if answer else 0
        break_even = {"tools": math.ceil((one + answer) / (listed / len(each))), "searches": searches}
    by_server: dict[str, list[tuple[str, int]]] = {}
    for (server, name), cost in each.items():
        by_server.setdefault(server, []).append((name, cost))
    return {
        "mode": seen.mode,
        "tools": {"count": len(each), "tokens": listed},
        "search": {"tokens": one, "direct": len(seen.direct_keys), "answer_tokens": answer},
        "break_even": break_even,
        "servers": _largest_first(
            {
                "name": server,
                "tokens": sum(cost for _, cost in tools),
                "tools": _largest_first({"name": name, "tokens": cost} for name, cost in tools),
            }
            for server, tools in by_server.items()
        ),
    }


def unused(found: dict[str, Any], since: float, called: Container[tuple[str, str]]) -> dict[str, Any]:
    """Return `{"since", "tools", "tokens"}`: the tools that were not called, the largest first.

    `found`: the result of `costs`. `called`: the tools called since `since`, a Unix time.
    If `since` is 0, no tool is returned.
    """
    rows = [
        {"server": server["name"], **tool}
        for server in found["servers"]
        for tool in server["tools"]
        if since and (server["name"], tool["name"]) not in called
    ]
    return {"since": since, "tools": _largest_first(rows), "tokens": sum(row["tokens"] for row in rows)}


def _largest_first(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (-row["tokens"], row["name"]))
