"""Ask the user, outside the AI tool, to consent to a call or to answer a server's question.

An ask is open until it is answered, withdrawn with its call, or timed out. Only the first answer counts. Answers to the
asks of an earlier gateway are refused. A server's question (MCP elicitation, form or URL) becomes an ask if the client
cannot answer it. Without an answer, the server gets an error.

Never here: the routing of calls, connections, the display of asks (tray, command line, panel).
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

from trayapp.catalog.tool_class import STRICTNESS, Basis, ToolClass, ToolClassification, classify
from trayapp.config.urls import url_fault
from trayapp.gateway.services import Services
from trayapp.model.config import AskMode, ServerConfig, Settings
from trayapp.model.errors import MultiMcpError
from trayapp.model.offer import Item
from trayapp.model.redact import REDACTED, redacted
from trayapp.model.text import visible
from trayapp.wire.capabilities import ELICITATION
from trayapp.wire.messages import INVALID_PARAMS, INVALID_REQUEST, Params, RpcError

if TYPE_CHECKING:
    from trayapp.model.status import AskStatus, ShownArgument

log = logging.getLogger(__name__)

READS = ToolClassification("read", "name")  # the class of a call that reads a resource
UNCLEAR = ToolClassification("write", "name")


class Subject(NamedTuple):
    """The tool or resource of a call that needs the user's consent."""

    key: str  # the key of the shared server
    server: str
    tool: str
    tool_class: ToolClass
    basis: Basis
    hash: str  # the hash of the definition that the user consents to
    mode: AskMode  # the setting that requires the ask
    callable: bool  # False: the session may no longer call the tool


def ask_mode(settings: Settings, server: ServerConfig | None, tool: str) -> AskMode:
    """Return the setting that applies to a tool: its own, its server's, or the general one."""
    if server is None:
        return settings.ask
    switch = (server.tools or {}).get(tool)
    if switch is not None and switch.ask is not None:
        return switch.ask
    return settings.ask if server.ask is None else server.ask


def asks_first(mode: AskMode, tool_class: ToolClass, *, listed: bool) -> bool:
    """Return True if we ask the user before a call. In mode `auto`, clients ask about the tools `listed` to them."""
    match mode:
        case "off":
            return False
        case "all":
            return True
        case "writes":
            return tool_class != "read"
        case "destructive":
            return tool_class == "destructive"
        case _:
            return tool_class == "destructive" and not listed


def strictest(items: list[Item]) -> ToolClassification:
    """Return the strictest class among a tool's definitions, or `write` if there are none."""
    return max(map(classify, items), key=lambda one: STRICTNESS[one.tool_class], default=UNCLEAR)


# -- arguments as the user sees them ---------------------------------------------------------------------------------

VALUE_LONGEST = 400  # characters of one value
NAME_LONGEST = 80
ALL_LONGEST = 4_000  # characters of all values together
MOST = 40  # arguments that are shown
READ_LONGEST = 256 * 1024  # characters that are searched for secrets, at each end of a longer value
HEAD_SHARE = 0.65  # the beginning's share of a cut value: the beginning is more informative than the end

# Characters that are invisible or misleading (Unicode Default_Ignorable_Code_Point and some others).
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffc") | frozenset(
    chr(code)
    for first, last in ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
    for code in range(first, last + 1)
)


def shown_arguments(arguments: Any) -> list[ShownArgument]:
    """Return at most MOST arguments of a call, in about ALL_LONGEST characters, and a row that counts any others.

    Arguments that are not an object become one row.
    """
    from trayapp.model.status import ShownArgument  # loaded with the first ask

    if not isinstance(arguments, dict):
        return [] if arguments is None else [ShownArgument("arguments", *_shown_value("", arguments, VALUE_LONGEST))]
    found, room = list[ShownArgument](), ALL_LONGEST
    for number, (name, value) in enumerate(arguments.items()):
        if number == MOST or room <= 0:
            found.append(ShownArgument("...", f"and {len(arguments) - number} more"))
            break
        shown = _shown_value(str(name), value, min(VALUE_LONGEST, room))
        found.append(ShownArgument(shown_text(str(name), NAME_LONGEST), *shown))
        room -= len(found[-1].value)
    return found


def marked(text: str) -> str:
    """Return the text with `<U+...>` for each character that is invisible or changes the writing direction."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() and c not in _BLANK else f"<U+{ord(c):04X}>" for c in text)


def _cut(text: str, longest: int, length: int) -> str:
    """Return `text` or, if it is longer than `longest`, its beginning and end with its full `length` between them."""
    if len(text) <= longest:
        return text
    head = int(longest * HEAD_SHARE)
    return f"{text[:head]} ...({length:,} characters)... {text[len(text) - (longest - head) :]}"


def _shown_value(name: str, value: Any, longest: int) -> tuple[str, int]:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return shown_text(text, longest, f"{json.dumps(name, ensure_ascii=False)}: " if name else ""), len(text)


def shown_text(text: str, longest: int, label: str = "") -> str:
    """Return untrusted text on one line, safe to show: secrets removed, invisible characters marked, cut if long.

    The search for secrets includes `label`, the name of the argument: it may reveal that the value is a secret.
    """
    told = label + text[:READ_LONGEST]
    clean = redacted(told)
    if clean != visible(told):  # contains a secret, possibly with hidden characters inside
        hidden = len(told) - len(visible(told))
        shown = clean[len(visible(label)) :] if clean.startswith(visible(label)) else REDACTED
        return _cut(shown or REDACTED, longest, len(text)) + (f" <{hidden} hidden characters>" if hidden else "")
    if len(text) > READ_LONGEST:
        head, last = int(longest * HEAD_SHARE), text[-READ_LONGEST:]
        end = marked(last[head - longest :]) if redacted(last) == visible(last) else REDACTED
        return f"{marked(text[:head])} ...({len(text):,} characters)... {end}"
    return _cut(marked(text), longest, len(text))


# -- asks ------------------------------------------------------------------------------------------------------------

Answer = Literal["once", "session", "always", "deny"]
Ending = Literal["allowed", "denied", "expired"]
Ended = Callable[[Ending, dict[str, Any] | None], None]  # receives the ending, and the answer to a question
ID_BYTES = 3
OVER_MOST = 200  # closed asks that are remembered, to distinguish them from unknown ones
OPEN_MOST = 100  # open asks: a client that calls in a loop must not flood the user
ROUND_S = 600.0  # time for the client of an allowed call to return its answers to the server's questions
MESSAGE_LONGEST = 1_000  # characters of a server's question
STILL_WANTED_S = 1.0  # interval of the checks that a question's call is still waiting
BEAT_S = 5.0  # interval of progress notifications: clients give up after 30 or 60 s of silence


class Asker(NamedTuple):
    """The client of the call or question that the user is asked about, and the folder that it works in (`project`).

    `session`: None for calls of the command line, and for calls whose session is a single request.
    """

    client: str
    project: str | None
    session: Any = None


class Question(NamedTuple):
    """A server's question to the user: a form (`schema`) or an address to open (`url`)."""

    message: str
    schema: dict[str, Any] | None = None
    url: str | None = None


@dataclass(eq=False, slots=True)
class OpenAsk:
    """An open ask. `ended` is called once, unless the ask is withdrawn."""

    id: str
    asker: Asker
    server: str
    answers: tuple[str, ...]
    since: float  # Unix time, like `until`
    until: float
    ended: Ended
    subject: Subject | None = None
    arguments: list[ShownArgument] = field(default_factory=list)
    question: Question | None = None
    timer: asyncio.TimerHandle = field(init=False)

    @property
    def status(self) -> AskStatus:
        """Return the ask as the snapshot shows it."""
        from trayapp.model.status import AskStatus  # loaded with the first ask

        subject, question = self.subject, self.question
        return AskStatus(
            id=self.id,
            kind="call" if subject else "question",
            client=shown_text(self.asker.client, NAME_LONGEST),
            server=self.server,
            since=self.since,
            until=self.until,
            answers=self.answers,
            project=marked(self.asker.project) if self.asker.project else None,
            tool=marked(subject.tool) if subject else "",
            tool_class=subject.tool_class if subject else "",
            basis=subject.basis if subject else "",
            arguments=tuple(self.arguments),
            message=question.message if question else "",
            url=question.url if question else None,
            form=bool(question and (question.schema or {}).get("properties")),
        )

    def row(self) -> dict[str, Any]:
        """Return the ask as JSON for the command line and panel: a question with its schema, a call with its hash."""
        row = asdict(self.status)
        row["class"] = row.pop("tool_class")
        more = {"schema": self.question.schema} if self.question else {"hash": self.subject and self.subject.hash}
        return row | more


class Asks:
    """The asks of one gateway. All methods run on the gateway's event loop."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._open: dict[str, OpenAsk] = {}  # oldest first
        self._over: OrderedDict[str, str] = OrderedDict()
        self._rounds: OrderedDict[str, tuple[str, float]] = OrderedDict()  # key of the next request -> hash, deadline
        self._grants: WeakKeyDictionary[Any, set[tuple[str, str, str]]] = WeakKeyDictionary()
        self._watchers = 0

    @property
    def someone_is_there(self) -> bool:
        """Return True if the user can be asked: a tray, a panel or a terminal is watching."""
        return self._watchers > 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count one watcher while the context lasts."""
        self._watchers += 1
        try:
            yield
        finally:
            self._watchers -= 1

    def __iter__(self) -> Iterator[OpenAsk]:
        return iter(list(self._open.values()))

    @property
    def _is_full(self) -> bool:
        return len(self._open) >= OPEN_MOST

    def allows(self, session: Any, subject: Subject) -> bool:
        """Return True if the call needs no ask: it was granted, or the mode is `auto` and no user is present."""
        return self.is_granted(session, subject) or (subject.mode == "auto" and not self.someone_is_there)

    def is_granted(self, session: Any, subject: Subject) -> bool:
        """Return True if the user has allowed calls with this definition, for this session or always."""
        for_session = self._grants.get(session, ()) if session is not None else ()
        return _grant(subject) in for_session or self._services.approvals.pins.is_allowed(*_grant(subject))

    def expect_round(self, call: str, digest: str) -> None:
        """Let the client repeat an allowed call without an ask, to answer the server's questions (MCP 2026-07-28).

        `call`: the key of the client's next request. `digest`: the hash of the allowed definition.
        """
        self._rounds[call] = digest, self._services.clock.now() + ROUND_S
        while len(self._rounds) > OPEN_MOST:
            self._rounds.popitem(last=False)

    def is_round(self, call: str, subject: Subject) -> bool:
        """Return True if the request is the expected repetition of a call, in time and with the same definition.

        Only the first request with that key counts.
        """
        digest, until = self._rounds.pop(call, ("", 0.0))
        return digest == subject.hash and self._services.clock.now() < until

    def open_call(self, asker: Asker, subject: Subject, arguments: list[ShownArgument], ended: Ended) -> OpenAsk:
        """Open an ask about a call. Raises NotAllowedError if nobody can be asked, or too many asks are open."""
        if not self.someone_is_there or self._is_full:
            raise NotAllowedError(subject, "ask_too_many" if self.someone_is_there else "ask_nobody")
        lasting = ("session",) if asker.session is not None else ()
        answers = ("once", *lasting, "always", "deny")
        return self._add(asker, subject.server, answers, ended, subject=subject, arguments=arguments)

    def can_answer(self, method: str) -> bool:
        """Return True if a server's request of that method can be put to the user now."""
        return method == ELICITATION and self.someone_is_there and not self._is_full

    async def ask_question(
        self, asker: Asker, server: str, params: Params, is_wanted: Callable[[], bool]
    ) -> dict[str, Any]:
        """Ask the user a server's question, and return the result of the elicitation. Call `can_answer` first.

        `is_wanted`: returns False once the call has ended. Raises RpcError in that case, for invalid params, and if the
        user does not answer in time.
        """
        ended: asyncio.Future[tuple[Ending, dict[str, Any] | None]] = asyncio.get_running_loop().create_future()
        question = read_question(params)
        ask = self._add(asker, server, ("once", "deny"), lambda *end: ended.set_result(end), question=question)
        try:
            while not ended.done():
                await asyncio.wait([ended], timeout=STILL_WANTED_S)
                if not ended.done() and not is_wanted():
                    raise RpcError(INVALID_REQUEST, "The call that this question belongs to has ended")
        finally:
            self.withdraw(ask, "its call has ended")
        ending, content = ended.result()
        if ending == "expired":
            raise RpcError(INVALID_REQUEST, f"The user did not answer within {ask.until - ask.since:g} s")
        if ending == "denied":
            return {"action": "decline"}
        return {"action": "accept"} if question.url else {"action": "accept", "content": content or {}}

    def _add(self, asker: Asker, server: str, answers: tuple[str, ...], ended: Ended, **what: Any) -> OpenAsk:
        wait_s, now = self._services.settings().ask_timeout, self._services.clock.time()
        while (ask_id := secrets.token_hex(ID_BYTES)) in self._open or ask_id in self._over:
            pass
        ask = OpenAsk(ask_id, asker, server, answers, now, now + wait_s, ended, **what)
        expire = partial(self._end, ask, "expired", "nobody answered in time")
        ask.timer = asyncio.get_running_loop().call_later(wait_s, expire)
        self._open[ask.id] = ask
        self._services.changes.changed()
        return ask

    def answer(self, ask_id: str, answer: Answer, by: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
        """Apply the user's answer, and return the row of the ask. Raises AskOverError, UnfitAnswerError.

        `by`: the program or person that answers. The answers `session` and `always` also allow other open calls that
        they cover.
        """
        ask = self._open.get(ask_id)
        if ask is None:
            raise AskOverError(ask_id, self._over.get(ask_id))
        if answer not in ask.answers:
            raise UnfitAnswerError(ask_id, answer, ask.answers)
        if ask.question is not None and ask.question.schema is not None and answer == "once":
            from trayapp.catalog.schema.arguments import problems  # loaded by the first answer to a form

            if wrong := problems(content or {}, ask.question.schema):
                raise UnfitAnswerError(ask_id, answer, ask.answers, "; ".join(wrong))
        row = ask.row()
        what = ask.subject.tool if ask.subject else "a question"
        log.info("%s: %s was answered with %r by %s", ask.server, what, answer, by)
        if ask.subject is not None and answer == "always":
            self._services.approvals.pins.allow(*_grant(ask.subject))
        elif ask.subject is not None and answer == "session":
            self._grants.setdefault(ask.asker.session, set()).add(_grant(ask.subject))
        ending: Ending = "denied" if answer == "deny" else "allowed"
        self._end(ask, ending, f"it was {ending} by {by}", content)
        for other in self if answer in ("session", "always") else ():  # other asks that this answer covers
            if other.subject is not None and self.is_granted(other.asker.session, other.subject):
                self._end(other, "allowed", f"it was allowed by {by}, together with another call")
        return row

    def schema_of(self, ask_id: str) -> dict[str, Any] | None:
        """Return the JSON Schema of an open question's form, or None if there is none."""
        ask = self._open.get(ask_id)
        return ask.question.schema if ask is not None and ask.question is not None else None

    def withdraw(self, ask: OpenAsk, why: str) -> None:
        """Withdraw an ask whose call has ended, without calling its `ended`. Do nothing if the ask is over."""
        self._end(ask, None, why)

    def _end(self, ask: OpenAsk, ending: Ending | None, how: str, content: dict[str, Any] | None = None) -> None:
        if self._open.pop(ask.id, None) is None:
            return
        ask.timer.cancel()
        self._over[ask.id] = how
        while len(self._over) > OVER_MOST:
            self._over.popitem(last=False)
        self._services.changes.changed()
        if ending is not None:
            ask.ended(ending, content)


def _grant(subject: Subject) -> tuple[str, str, str]:
    return subject.key, subject.tool, subject.hash


# Error code -> why the call was not allowed, and what its model should do next
_NOT_ALLOWED = {
    "ask_nobody": (
        "the user wants to be asked first, and no user is available",
        "Ask the user to start multi-mcp's tray or panel, or to run `multi-mcp asks --watch` in a terminal; "
        "then call it again",
    ),
    "ask_too_many": (
        "too many calls wait for the user's answer",
        "Wait until the user has answered; do not repeat the call",
    ),
    "ask_denied": ("the user refused it", "Do not repeat the call; ask the user how to continue"),
    "ask_timed_out": (
        "the user did not answer within {:g} s",
        "Tell the user what you want to do, and call the tool again when the user is available",
    ),
    "ask_gone": ("it was removed while the user was being asked", "List the tools again"),
}


class NotAllowedError(MultiMcpError):
    """Raised when a call was not allowed, for example because the user refused it. The hint is for the model."""

    def __init__(self, subject: Subject, code: str, wait_s: float = 0.0) -> None:
        why, hint = _NOT_ALLOWED[code]
        title = f"{subject.server}/{subject.tool} was not called: {why.format(wait_s)}"
        super().__init__(title, f"Nothing was executed. {hint}")
        self.model_hint = self.hint
        self.code = code


def refusal(ask: OpenAsk, subject: Subject, ending: Ending) -> NotAllowedError | None:
    """Return the error of a call whose ask has ended, or None if the user allowed the call."""
    if ending == "allowed":
        return None
    return NotAllowedError(subject, "ask_denied" if ending == "denied" else "ask_timed_out", ask.until - ask.since)


class AskOverError(MultiMcpError):
    """Raised for an answer to an ask that is unknown or no longer open. The answer has no effect."""

    code = "ask_over"

    def __init__(self, ask_id: str, how: str | None) -> None:
        title, hint = f"{ask_id} is over: {how}", "This answer changed nothing"
        if how is None:
            title = f"No call or question with the id {ask_id} waits for an answer"
            hint = "It ended, or the gateway was restarted"
        super().__init__(title, f"{hint}. See: multi-mcp asks")


class UnfitAnswerError(MultiMcpError):
    """Raised for an answer that does not fit the ask. The ask stays open."""

    code = "unfit_answer"

    def __init__(self, ask_id: str, answer: str, answers: tuple[str, ...], why: str = "") -> None:
        if why:
            super().__init__(f"The answer does not fit the question: {why}", "It is still waiting. See: multi-mcp asks")
        else:
            super().__init__(f"{ask_id} cannot be answered with {answer}", f"Possible answers: {', '.join(answers)}")


def read_question(params: Params) -> Question:
    """Return an elicitation's params as a question for people. Raises RpcError if they are not valid."""
    asked = dict(params or {})
    message = shown_text(str(asked.get("message", "")), MESSAGE_LONGEST)
    if asked.get("mode") == "url":
        url = asked.get("url")
        if not isinstance(url, str) or not url.isascii() or not url.isprintable() or url_fault(url):
            raise RpcError(INVALID_PARAMS, "elicitation/create needs the http or https address of a page")
        return Question(message, url=url)
    schema = asked.get("requestedSchema")
    if not isinstance(schema, dict):
        raise RpcError(INVALID_PARAMS, "elicitation/create needs requestedSchema")
    return Question(message, schema)
