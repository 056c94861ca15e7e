"""The content of the panel's pages: the values for each page's template, and the templates themselves."""

from __future__ import annotations

import hashlib
import json
import re
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import takewhile
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import anyio
import anyio.to_thread
from jinja2 import Environment, FileSystemLoader

from trayapp import __version__
from trayapp.catalog.tool_class import classify
from trayapp.config.problems import InvalidValueError
from trayapp.config.yaml.nodes import Mapping, Node, Pair, compose, follow, pairs
from trayapp.model.errors import ConfigError, MultiMcpError
from trayapp.model.json_schema import choices
from trayapp.model.logs import GATEWAY_LOG, SERVER_LOGS, log_name
from trayapp.model.redact import REDACTED, redacted
from trayapp.model.text import ago, clean, count, one_line, without_code
from trayapp.panel.actions import ActionResult, find_servers, verb
from trayapp.panel.host import PanelHost
from trayapp.service.guide import page as guide_text
from trayapp.service.guide import topics
from trayapp.wire import control
from trayapp.wire.messages import RpcError

LOG_BYTES = 24 * 1024
LOG_LINES = 120
MINUTES = 60
ROWS = 25  # rows of a table, unless all are requested
SCREEN = 12  # rows or cards sent with a new page, which is painted sooner without the others
SLOW = "found"  # the path below a page that requests the part of the page that takes long to build
LONG_WORD = 30  # characters; `line` may cut a longer word, but no shorter one
STATE_WORDS = {"needs_auth": "needs sign-in", "keyring_locked": "keyring locked", "idle": "ready, idle"}
TONES = {
    "connected": "good",
    "idle": "good",
    "connecting": "busy",
    "stopping": "quiet",
    "disabled": "quiet",
    "failed": "bad",
}
OUTCOME_TONES = {"ok": "good", "cancelled": "quiet", "refused": "warn"}
NAV = (
    ("", "Overview"), ("tools", "Tools"), ("add", "Add"), ("activity", "Activity"), ("approvals", "Approvals"),
    ("clients", "AI tools"), ("tokens", "Tokens"), ("health", "Health"), ("setup", "Setup"), ("help", "Help"),
)  # fmt: skip
# The templates of the first page. Compiling only these takes a third of the time for all.
FIRST_TEMPLATES = ("head.html", "base.html", "overview.html", "parts.html", "waiting.html")

Context = dict[str, Any]  # the values for a template


class Page(NamedTuple):
    """A request for a page.

    `rest`: the path after the page's name. `is_news`: True if an open page requests an update.
    """

    host: PanelHost
    rest: str
    query: dict[str, str]
    is_news: bool = False


class PageNotFoundError(MultiMcpError):
    """Raised if a page, or the thing that it would show, does not exist."""


def shown(value: Any, most: int = 4_000) -> str:
    """Return untrusted text without control sequences, cut to `most` characters."""
    text = clean(str(value if value is not None else ""))
    return text if len(text) <= most else text[:most] + " ..."


def line(value: Any, most: int = 300) -> str:
    """Return untrusted text as one line, cut between words if it is longer than `most` characters."""
    text = clean(one_line(str(value if value is not None else "")))
    if len(text) <= most:
        return text
    head, _, last = text[:most].rpartition(" ")
    return f"{head if len(last) < LONG_WORD else text[:most]}\N{NO-BREAK SPACE}..."


def pretty(text: str) -> str:
    """Return JSON text indented. Text that is not valid JSON, for example because it was cut, stays unindented."""
    try:
        return shown(json.dumps(json.loads(text), indent=2, ensure_ascii=False), 20_000)
    except ValueError:
        return shown(text, 20_000)


def duration(ms: float) -> str:
    """Format a duration: `0.3 ms`, `3 ms`, `1.2 s`."""
    if ms < 1000:
        return f"{ms:.0f} ms" if ms >= 1 else f"{ms:.1f} ms"
    return f"{ms / 1000:.1f} s"


def size(number: int) -> str:
    """Format a number of bytes: `800 B`, `12 kB`, `3.4 MB`."""
    if number < 1000:
        return f"{number} B"
    return f"{number / 1000:.0f} kB" if number < 1_000_000 else f"{number / 1_000_000:.1f} MB"


def time_of_day(seconds: float) -> str:
    """Format a time of day, with the date unless it is today."""
    at = datetime.fromtimestamp(seconds)
    return at.strftime("%H:%M:%S" if at.date() == datetime.now().date() else "%d %b %H:%M")


TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png"}


class StaticFile(NamedTuple):
    """One static file. `address`: its path relative to the panel's, with a hash of the content."""

    content: bytes
    kind: str
    address: str

    @classmethod
    def read(cls, path: Path) -> StaticFile:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()[:16]
        return cls(content, TYPES[path.suffix], f"static/{path.name}?v={digest}")


def source_of(text: str) -> str:
    """Return the Content Security Policy source that allows this inline text."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


FOLDER = Path(__file__).with_name("static")
FILES = {path.name: StaticFile.read(path) for path in FOLDER.iterdir() if path.suffix in TYPES}
# Inlined in each page: a browser paints nothing before it has the style sheet, and requesting it takes 10 to 20 ms.
STYLE = (FOLDER / "panel.css").read_text("utf-8")
# Inlined, too, because a click must work as soon as the page is visible.
SCRIPT = (FOLDER / "panel.js").read_text("utf-8")


def environment() -> Environment:
    """Return a new template environment. Compile FIRST_TEMPLATES, so that the first page need not wait for them."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,  # except for values that a template marks as safe
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        shown=shown, line=line, pretty=pretty, duration=duration, size=size, time_of_day=time_of_day, ago=ago,
        path=partial(quote, safe=""), without_code=without_code,
        number=lambda value: f"{value:,}",
    )  # fmt: skip
    made.globals.update(
        nav=NAV, version=__version__, count=count, urlencode=urlencode,
        state_word=lambda state: STATE_WORDS.get(state, state), tone=lambda state: TONES.get(state, "warn"),
        outcome_tone=lambda outcome: OUTCOME_TONES.get(outcome, "bad"),
        icon=FILES["icon.svg"].content.decode(), style=STYLE, script=SCRIPT,
        static=lambda name: f"/panel/{FILES[name].address}",
    )  # fmt: skip
    for name in FIRST_TEMPLATES:
        made.get_template(name)
    return made


def compile_templates() -> None:
    """Compile the remaining templates, so that no page waits for them. Blocks."""
    for name in TEMPLATES.list_templates():
        TEMPLATES.get_template(name)


TEMPLATES = environment()


def render(template: str, **context: Any) -> str:
    """Return the text of a page or of a part of a page, rendered from its template and the values in `context`."""
    return TEMPLATES.get_template(template).render(**context)


async def overview(page: Page) -> Context:
    """Return the context of the overview: every server's state, and everything that needs the user's attention.

    A new page shows SCREEN servers, and requests the rest once it is painted.
    """
    snapshot = await page.host.ask(control.SNAPSHOT, {})
    waiting = await asks(page.host)
    minutes = [0] * MINUTES
    with suppress(MultiMcpError):
        minutes = await page.host.per_minute(MINUTES)
    wanting = [one for one in snapshot["servers"] if one["state"] == "needs_auth"]
    approvals = [one for one in snapshot["servers"] if one.get("approvals") or one.get("suspicious")]
    commands = [one for one in snapshot["servers"] if one.get("needs_approval")]
    failed = [one for one in snapshot["servers"] if one["state"] == "failed" and one not in commands]
    return {
        "template": "overview.html", "title": "Overview", "snapshot": snapshot, "asks": waiting, "minutes": minutes,
        "wanting": wanting, "approvals": approvals, "failed": failed, "commands": commands,
        "shown": screen_of(snapshot["servers"], page),
    }  # fmt: skip


async def asks(host: PanelHost) -> list[Context]:
    """Return the calls and questions that wait for the user, with their form fields."""
    rows: list[Context] = (await host.ask(control.ASKS, {}))["asks"]
    for row in rows:
        row["fields"] = fields(row.get("schema"))
    return rows


def fields(schema: Any) -> list[Context]:
    """Return the form fields for an input schema, or [] if it has no properties."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required") if isinstance(schema, dict) else None
    made = []
    for name, one in (properties if isinstance(properties, dict) else {}).items():
        known = one if isinstance(one, dict) else {}
        kind = known.get("type")
        options = [("true", "true"), ("false", "false")] if kind == "boolean" else choices(known)
        several = [option for option, _ in choices(known.get("items"))][:200]
        words = [known.get("description") or known.get("title") or "", f"Any of {as_json(several)}" if several else ""]
        made.append(
            {
                "name": str(name)[:200], "title": str(known.get("title") or name),
                "required": isinstance(required, list) and name in required,
                "description": line(" ".join(filter(None, map(str, words)))),
                "options": [(as_json(option), line(title)) for option, title in options[:200]],
                "number": kind in ("integer", "number"), "long": kind in ("object", "array"),
                "default": "" if known.get("default") is None else as_json(known["default"])[:200],
            }
        )  # fmt: skip
    return made[:100]


def as_json(value: Any) -> str:
    """Return the text of a value for a form field. A string stays unchanged; other values become JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


async def server(page: Page) -> Context:
    """Return the context of a server's page: its tools, log, entry, and sign-in. Raises PageNotFoundError."""
    name = page.rest
    snapshot = await page.host.ask(control.SNAPSHOT, {})
    status = next((one for one in snapshot["servers"] if one["name"] == name), None)
    if status is None:
        raise PageNotFoundError(f"No server is named {name[:200]}", "It may have been removed")
    # A server that only a project defines is named NAME@DIGEST.
    asked = {"server": name.rpartition("@")[0] or name, "project": status.get("project")}
    rows = await page.host.ask(control.LIST, {**asked, "classes": True})
    found = matching_rows(rows, page.query.get("q", ""))
    tried = page.query.get("tool", "")
    described: Context | None = None
    if tried:
        with suppress(MultiMcpError, RpcError):
            described = await page.host.ask(control.DESCRIBE, {**asked, "tool": tried, "asks": True})
    definition = described["tool"] if described else {}
    return {
        "template": "server.html", "title": name, "server": status,
        **first_rows(found, page), "total": len(rows),
        "tool_class": classify(definition).tool_class if definition else "",
        "offer": await page.host.ask(control.OFFER, asked),
        "words": page.query.get("q", ""), "tried": described, "fields": fields(definition.get("inputSchema")),
        "log": await server_log(page),
        "entry": shown(await anyio.to_thread.run_sync(entry_of, page.host.paths.config_file, name), 8_000),
        "file": str(page.host.paths.config_file),
    }  # fmt: skip


def entry_of(path: Path, name: str) -> str:
    """Return the text of a server's entry in `path`, with secrets redacted. Blocks.

    Return "" if the file has no such entry, or a YAML comment if the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        servers = _pair(compose(text, str(path)), "servers")
        entry = _pair(servers.value if servers else None, name)
    except (OSError, ValueError, ConfigError, InvalidValueError):
        return "# servers.yaml cannot be read now"
    return redacted(dedent(_written(text, entry))).rstrip() if entry is not None else ""


def _pair(node: Node | None, name: str) -> Pair | None:
    """Return the pair with that name, or None if `node` is no mapping or lacks it. Raises InvalidValueError."""
    found = follow(node) if node is not None else None
    return next((one for one in pairs(found) if one.name == name), None) if isinstance(found, Mapping) else None


def _written(text: str, pair: Pair) -> str:
    key, value = pair.key, pair.value
    start = text.rfind("\n", 0, key.start) + 1
    if text[start : key.start].strip():  # the entry shares its line with another one
        start = key.start
    first, *rest = text[start:].splitlines()
    if value.start < start:  # an alias of an earlier node
        return first
    if isinstance(value, Mapping) and not value.flow:  # the entry includes all following lines that are indented deeper
        return "\n".join((first, *takewhile(lambda one: not one.strip() or _indent(one) > _indent(first), rest)))
    return text[start : value.end]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def matching_rows(rows: list[Context], query: str) -> list[Context]:
    """Return the tools that contain all words of the query, those with all words in their names first."""
    words = query.lower().split()
    found = [
        (not all(word in f"{row['server']}/{row['name']}".lower() for word in words), place, row)
        for place, row in enumerate(rows)
        if all(word in f"{row['server']}/{row['name']} {row['description']}".lower() for word in words)
    ]
    return [row for *_, row in sorted(found, key=lambda one: one[:2])]


def first_rows(found: list[Context], page: Page) -> Context:
    """Return the template values for a table.

    - `rows`: the rows to send now
    - `most`: the number of rows that the finished page shows: ROWS at most, unless all are requested
    - `found`: the number of rows that match
    """
    most = len(found) if page.query.get("all") == "yes" else min(len(found), ROWS)
    return {"rows": screen_of(found[:most], page), "most": most, "found": len(found)}


def screen_of(rows: list[Context], page: Page) -> list[Context]:
    """Return the first SCREEN rows for a new page, or all rows for an update of an open page."""
    return rows if page.is_news else rows[:SCREEN]


async def tools(page: Page) -> Context:
    """Return the context of the Tools page: the tools that match the query."""
    rows = await page.host.ask(control.LIST, {})
    shown = first_rows(matching_rows(rows, page.query.get("q", "")), page)
    return {
        "template": "tools.html", "title": "Tools", **shown, "total": len(rows),
        "rows": await with_classes(page.host, [(row["server"], row["name"]) for row in shown["rows"]]),
        "words": page.query.get("q", ""),
    }  # fmt: skip


async def with_classes(host: PanelHost, tools: Sequence[tuple[str, str]]) -> list[Context]:
    """Return the rows of those `tools` that still exist, with their classes. Classifying all tools would take 5 ms."""
    rows = await host.ask(control.LIST, {"classes": True, "tools": tools})
    known = {(row["server"], row["name"]): row for row in rows}
    return [known[tool] for tool in tools if tool in known]


async def log(page: Page) -> Context:
    """Return the context of a server's log, which the server's open page requests after each write to the log."""
    return {"template": "log.html", "log": await server_log(page)}


async def server_log(page: Page) -> str:
    """Return the last lines of the log of the page's server."""
    return await anyio.to_thread.run_sync(tail, page.host.paths.log_dir / SERVER_LOGS / log_name(page.rest))


def tail(path: Path) -> str:
    """Return the last lines of a log, redacted and without control sequences, or "" if it is unreadable. Blocks."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - LOG_BYTES))
            data = file.read(LOG_BYTES)
    except OSError:
        return ""
    lines = redacted(data.decode("utf-8", "replace")).splitlines()[-LOG_LINES:]
    return "\n".join(line(one, 500) for one in lines)


async def activity(page: Page) -> Context:
    """Return the context of the Activity page: the latest calls that match the query, and the call with id `rest`."""
    query = page.query
    asked: Context = {name: query.get(name, "") for name in ("words", "server", "tool", "client")}
    asked |= {"failed": query.get("failed") == "yes", "typed": True, "limit": ROWS}
    if query.get("before", "").isdecimal():
        asked["before"] = int(query["before"][:15])
    found = await page.host.ask(control.HISTORY, asked)
    opened: Context | None = None
    if page.rest.isdecimal():
        opened = await page.host.ask(control.HISTORY_SHOW, {"id": int(page.rest[:15])})
    snapshot = await page.host.ask(control.SNAPSHOT, {})
    return {
        "template": "activity.html", "title": "Activity", **first_rows(found["rows"], page),
        "enabled": found["enabled"],
        "problem": found["problem"], "asked": asked, "opened": opened, "again": is_repeatable(opened),
        "oldest": found["rows"][-1]["id"] if len(found["rows"]) == ROWS else 0,
        "servers": [one["name"] for one in snapshot["servers"]], "today": snapshot["gateway"].get("today"),
        "query": {name: value for name, value in query.items() if name != "before" and value},
    }  # fmt: skip


def is_repeatable(call: Context | None) -> bool:
    """True if this is a tool call whose recorded arguments are complete: neither cut nor redacted."""
    if call is None or not call["server"] or " " in call["tool"]:
        return False
    arguments = call["arguments"] or ""
    try:
        return isinstance(json.loads(arguments), dict) and REDACTED not in arguments
    except ValueError:
        return False


async def approvals(page: Page) -> Context:
    """Return the context of the Approvals page: tools, commands for secrets, and waiting calls and questions."""
    rows = (await page.host.ask(control.APPROVALS, {}))["rows"]
    tools = await with_classes(page.host, [(row["server"], row["tool"]) for row in rows]) if rows else []
    switches = {(one["server"], one["name"]): one.get("switch") for one in tools}
    for row in rows:
        row["switch"] = switches.get((row["server"], row["tool"]))  # None: the tool cannot be enabled or disabled
    commands = (await page.host.ask(control.COMMANDS, {}))["rows"]
    return {
        "template": "approvals.html", "title": "Approvals", "rows": rows, "commands": commands,
        "asks": await asks(page.host),
    }  # fmt: skip


async def clients(page: Page) -> Context:
    """Return the context of the connected sessions. The page's slow part has the AI tools on this computer."""
    if page.rest != SLOW:
        snapshot = await page.host.ask(control.SNAPSHOT, {})
        return {"template": "clients.html", "title": "AI tools", "sessions": snapshot["gateway"]["sessions"]}
    rows = (await verb(page.host, "connect"))["clients"]
    return {"template": "clients_found.html", "rows": rows, "profiles": page.host.profiles()}


async def tokens(page: Page) -> Context:
    """Return the context of the Tokens page. Its slow part has costs by server and tool, and tools without calls."""
    if page.rest != SLOW:
        return {"template": "tokens.html", "title": "Tokens"}
    costs = await page.host.ask(control.COSTS, {})
    return {
        "template": "tokens_found.html", "costs": costs, "unused": costs["unused"],
        "known_s": time.time() - costs["unused"]["since"],
        "most": max([1, *(one["tokens"] for one in costs["servers"])]),
    }  # fmt: skip


async def health(page: Page) -> Context:
    """Return the context of the gateway's problems, log and paths. The page's slow part has doctor's findings."""
    if page.rest == SLOW:
        order = ("problem", "note", "ok")
        findings = sorted(await verb(page.host, "doctor"), key=lambda one: order.index(one["state"]))
        return {"template": "health_found.html", "findings": findings}
    snapshot = await page.host.ask(control.SNAPSHOT, {})
    log = await anyio.to_thread.run_sync(tail, page.host.paths.log_dir / GATEWAY_LOG)
    return {
        "template": "health.html", "title": "Health", "log": log, "gateway": snapshot["gateway"],
        "problems": snapshot["problems"], "paths": page.host.paths,
    }  # fmt: skip


async def add(page: Page) -> Context:
    """Return the context of the Add page: the servers that a pasted text names, and those found in the registry."""
    what, words = page.query.get("what", ""), page.query.get("find", "").strip().lstrip("-")
    said: ActionResult | None = None
    found: Context | None = None
    try:
        if what:
            said = await find_servers(page.host, what)
        if words:
            found = await verb(page.host, "find", "--limit", "50", words)
    except MultiMcpError as error:
        said = ActionResult(error.title, error.hint, wrong=True)
    return {"template": "add.html", "title": "Add a server", "what": what, "words": words, "said": said, "found": found}


async def setup(page: Page) -> Context:
    """Return the context of the Setup page. Its slow part has the AI tools, their servers, and a question to try."""
    if page.rest != SLOW:
        return {"template": "setup.html", "title": "Setup"}
    answers: dict[str, Any] = {}

    async def ask(*argv: str) -> None:
        answers[argv[0]] = await verb(page.host, *argv)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "import", "--form", "--dry-run")
        tasks.start_soon(ask, "connect")
    found, clients = answers["import"], answers["connect"]["clients"]
    return {
        "template": "setup_found.html", "found": found, "question": "which MCP servers do you have?",
        "new": [one for one in found["servers"] if not one["known"]],
        "here": [one for one in found["servers"] if one["there"]],
        "secrets": sum(len(one["secrets"]) for one in found["servers"] if not one["known"]),
        "clients": [one for one in clients if one["state"] != "connected"],
        "connected": [one for one in clients if one["state"] == "connected"],
    }  # fmt: skip


async def guide(page: Page) -> Context:
    """Return the context of the guide page that the path names, or of the first one. Raises PageNotFoundError."""
    known = await anyio.to_thread.run_sync(topics)
    topic = page.rest or next(iter(known), "")
    if topic not in known:
        raise PageNotFoundError(f"The guide has no page {topic[:200]}", "See: multi-mcp help")
    html, sections = guide_html(await anyio.to_thread.run_sync(guide_text, topic))
    return {
        "template": "help.html", "title": known[topic], "topics": known, "topic": topic, "sections": sections,
        "html": html,
    }  # fmt: skip


def guide_html(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a guide page as HTML, and its sections as (anchor, heading). Tables can be scrolled with the keyboard."""
    from markdown_it import MarkdownIt  # imported here because only the guide needs it
    from markdown_it.token import Token

    reader = MarkdownIt("commonmark").enable("table")  # inline HTML is safe here: the pages are part of the program
    parsed = reader.parse(text)
    tokens: list[Token] = []
    sections: list[tuple[str, str]] = []
    for at, token in enumerate(parsed):
        if token.type == "heading_open":
            heading = parsed[at + 1].content
            token.attrSet("id", anchor(heading))
            if token.tag == "h2":
                sections.append((anchor(heading), heading.replace("`", "")))
        if token.type == "table_open":
            tokens.append(Token("div_open", "div", 1, attrs={"class": "table", "tabindex": "0"}))
        tokens.append(token)
        if token.type == "table_close":
            tokens.append(Token("div_close", "div", -1))
    return reader.renderer.render(tokens, reader.options, {}), sections


def anchor(words: str) -> str:
    """Return the anchor for links to a heading, such as `every-server` for `Every server`."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


PAGES: dict[str, Callable[[Page], Awaitable[Context]]] = {
    "": overview,
    "server": server,
    "log": log,
    "tools": tools,
    "activity": activity,
    "approvals": approvals,
    "clients": clients,
    "tokens": tokens,
    "health": health,
    "add": add,
    "setup": setup,
    "help": guide,
}
