"""Texts that the tray builds or shows in several places, and functions that clean untrusted text.

Texts use sentence case, and report what happened and what to do. Lines in menu, tooltip, and summary have at most LINE
characters. Texts contain no escapes: the code that draws a menu escapes special characters (`_`, `&`).
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

from trayapp.model.errors import Problem
from trayapp.model.lifecycle import State
from trayapp.model.logs import names_server
from trayapp.model.status import AskStatus, KeyringState, ServerStatus
from trayapp.model.text import ELLIPSIS, count, drawn, one_line, shortened, width, without_code
from trayapp.tray.state.tray_state import Offered

LINE = 60  # characters: menus and notifications become unwieldy beyond this
NAME = 28  # limit on the characters of a server's name that shares its line with other text
TOOLTIP = 127  # UTF-16 units: the limit of Windows is 128, with the terminator
TITLE = 63  # UTF-16 units of a notification's title: the limit of Windows
BODY = 255  # UTF-16 units of a notification's text: the limit of Windows
BUTTONS = 3  # buttons of a notification; some desktops show no more
NAMES_LISTED = 3
PROBLEM_LINES = 6
READ = 2000  # characters to read of an untrusted text: an error may contain a whole web page
APP = "multi-mcp"

STATES: dict[str, str] = {
    State.DISABLED: "off",
    State.IDLE: "asleep, starts when used",
    State.CONNECTING: "connecting",
    State.CONNECTED: "connected",
    State.NEEDS_AUTH: "needs sign-in",
    State.KEYRING_LOCKED: "keyring locked",
    State.FAILED: "failed",
    State.STOPPING: "closing",
}

# The mark of each state at the start of a server's line
GLYPHS = {
    State.DISABLED: "–",
    State.IDLE: "○",
    State.CONNECTING: "…",
    State.CONNECTED: "●",
    State.NEEDS_AUTH: "!",
    State.KEYRING_LOCKED: "!",
    State.FAILED: "✗",
    State.STOPPING: "○",
}

STARTING = "The gateway is starting"
STOPPING = "The gateway is stopping"
HANGS = "The gateway does not answer"
CRASH_LOOP = "The gateway keeps crashing"
NO_SERVERS = "No servers yet"
ALL_WELL = "All is well"
NO_WORDS = "No reason given"
KEYRING_LOCKED = "The keyring is locked"
# Arguments of `listed`: the words for one server, and for several
NEEDS_SIGN_IN = (" needs a sign-in", " need a sign-in")
NEEDS_PERMISSIONS = (" needs more permissions", " need more permissions")
NEEDS_APPROVAL = ": changed tools wait for approval"
NEEDS_REVIEW = ": a command waits for approval"
# Labels of entries and buttons
RECONNECT = "Reconnect"
RECONNECT_ALL = "Reconnect all"
REFRESH = "Refresh tools"
SHOW_LOG = "Show log"
SHOW_LOGS = "Show logs"
SHOW_CHANGES = "Show what changed"
APPROVE_SHOWN = "Approve what was shown"
OPEN_PANEL = "Open panel"
OPEN_FILE = "Open servers.yaml"
TAKE_OVER = "Use them"
TAKE_OVER_CLEAR = "Use them as they are"
LEAVE = "Leave them where they are"
RESUME = "Resume"
RETRY = "Retry"
RESTART = "Restart gateway"
QUIT = "Quit"
ALARMS = {"orders.": "reads like instructions", "hidden.": "hides text from you"}  # most serious first

# -- untrusted text --------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Return the text as one line without control, bidirectional, and zero-width characters."""
    line = one_line(text[:READ])
    return line if line.isprintable() else " ".join("".join(filter(str.isprintable, line)).split())


def fit(text: str, limit: int = LINE) -> str:
    """Return `text` as one plain line of at most `limit` characters and columns."""
    line = shortened(plain(text), limit)
    return line if len(line) <= limit else line[: limit - len(ELLIPSIS)].rstrip() + ELLIPSIS


def name(text: str, limit: int = NAME) -> str:
    """Return the name of a server or client, cut to `limit`, or "(no name)" if it is empty."""
    return fit(text, limit) or "(no name)"


def server_name(server: ServerStatus, limit: int = NAME) -> str:
    """Return a server's name as in its file. Internally, a server that only a project defines is NAME@DIGEST."""
    return name(server.name.rpartition("@")[0] or server.name if server.project else server.name, limit)


def server_names(servers: Sequence[ServerStatus]) -> list[str]:
    """Return the servers' names as in their files."""
    return list(map(server_name, servers))


def base_name(path: str) -> str:
    """Return the last part of a path from any operating system."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def listed(names: Sequence[str], words: str = "", many: str = "", *, before: str = "") -> str:
    """Return `a, b and c failed` or `a, b and 4 more failed`: as many names as fit on a line with `words`.

    `many`: the words for more than one name, if they differ from `words`. `before`: text before the names. Without
    names, return "".
    """
    if not names:
        return ""
    words = many if many and len(names) > 1 else words
    for number in range(NAMES_LISTED, 0, -1):
        shown, rest = [name(text, NAME) for text in names[:number]], len(names) - number
        last = f"{rest} more" if rest > 0 else shown.pop() if len(shown) > 1 else ""
        line = before + ", ".join(shown) + (f" and {last}" if last else "") + words
        if len(line) <= LINE:
            return line
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return before + name(names[0], LINE - len(before + more + words)) + more + words


def wrapped(text: str, lines: int = 2) -> list[str]:
    """Return an untrusted sentence, wrapped and cut to at most `lines` lines."""
    parts = textwrap.wrap(plain(text), LINE, break_on_hyphens=False)
    return parts if len(parts) <= lines else [*parts[: lines - 1], fit(" ".join(parts[lines - 1 :]))]


def sentences(*parts: str) -> str:
    """Return untrusted sentences as one line, each with an end mark: `no such program: my-db. Is it installed?`."""
    each = [plain(part) for part in parts]
    return " ".join(part if part[-1] in ".?!" else f"{part}." for part in each if part)


def within(lines: Sequence[str], units: int) -> str:
    """Return as many whole lines as fit into `units` UTF-16 units. If the first line does not fit, cut it."""
    kept = ""
    for line in lines:
        longer = f"{kept}\n{line}" if kept else line
        if len(longer.encode("utf-16-le")) > units * 2:
            break
        kept = longer
    return kept or lines[0].encode("utf-16-le")[: units * 2].decode("utf-16-le", "ignore")


def alarm(codes: Sequence[str]) -> str:
    """Return a phrase for the most serious of these findings in a tool's definition, or "" if there are none."""
    for begin, words in ALARMS.items():
        if any(code.startswith(begin) for code in codes):
            return words
    return "looks suspicious" if codes else ""


def alarmed(names: Sequence[str], codes: Sequence[str]) -> str:
    """Return a line about a suspicious change: `bank: a changed tool reads like instructions`."""
    return listed(names, f": a changed tool {alarm(codes)}")


def clients(names: Sequence[str]) -> str:
    """Return a line about the connected AI tools: `2 AI tools connected: Codex and Cursor`."""
    if not names:
        return "No AI tool is connected"
    each = [f"{client} ({number})" if number > 1 else client for client, number in sorted(Counter(names).items())]
    return listed(each, before=f"{count(len(each), 'AI tool')} connected: ")


def reason(error: Mapping[str, object] | None) -> str:
    """Return the error's title without its code, or NO_WORDS if it has no visible characters."""
    return without_code(plain(str((error or {}).get("title") or ""))) or NO_WORDS


def failed_why(server: ServerStatus) -> str:
    """Return why a server failed: `github: It ended`. If the reason names the server, return only the reason."""
    why = reason(server.error)
    return fit(why if names_server(why, server.name) else f"{server_name(server)}: {why}")


def problem_words(problem: Problem) -> str:
    """Return the whole text of a problem: `servers.yaml, line 12: Unknown key comand`."""
    server = f"{name(problem.server)}: " if problem.server and not names_server(problem.message, problem.server) else ""
    line = f", line {problem.line}" if problem.line else ""
    return f"{file_name(problem)}{line}: {server}{problem.message}"


def problem_line(problem: Problem) -> str:
    """Return a problem's text, cut to one line of the menu."""
    return fit(problem_words(problem))


def is_unlockable(state: KeyringState | None, error: Mapping[str, str]) -> bool:
    """True if a desktop dialog can unlock the keyring. It cannot if an encrypted file was made with another key."""
    return state == "locked" and "keyring" in error.get("title", "keyring")


def server_line(server: ServerStatus) -> str:
    """Return the menu line of a server: `● github: connected, 26 tools`."""
    has_tools = server.tools.enabled and server.state is not State.DISABLED
    tools = f", {count(server.tools.enabled, 'tool')}" if has_tools else ""
    state = State.FAILED if server.failed else server.state
    return fit(f"{GLYPHS[state]} {server_name(server)}: {STATES[state]}{tools}")


def reason_alone(server: ServerStatus) -> str:
    """Return why a server failed, without a leading `Cannot start NAME: `, for places that already show the name."""
    why = reason(server.error)
    return re.sub(rf"^(Cannot \w+( to)? )?{re.escape(server.name)}: ", "", why) or why


def without_commands(hint: str) -> str:
    """Return a hint without the clauses that name a command for which the menu has an entry."""
    command = rf"(^|[,;] *)[^,;]*\b{APP} (approve|auth|edit|enable|logs|reconnect|refresh)\b.*"
    parts = (re.sub(command, "", part) for part in re.split(r"(?<=[.?!;])\s+", plain(hint)))
    return " ".join(filter(None, parts))


def wanted(words: str) -> str:
    """Return the label of an entry that needs the user: `! Allow delete_repo of github ...`."""
    return f"! {words} ..."


def sign_in_to(server: ServerStatus) -> str:
    """Return the label of a sign-in: `Sign in to linear`."""
    return f"Sign in to {server_name(server, 40)}"


def problem_lines(problem: Problem) -> list[str]:
    """Return the full text of a problem for its submenu, or [] if the menu entry already shows all of it."""
    whole = problem_words(problem)
    if not plain(problem.hint) and fit(f"! {whole}") == f"! {plain(whole)}":
        return []
    return [*wrapped(whole, PROBLEM_LINES), *wrapped(problem.hint, PROBLEM_LINES)]


def tools_of(servers: Sequence[Offered]) -> list[str]:
    """Return the titles of the AI tools that have these servers."""
    return list(dict.fromkeys(server.title for server in servers))


def offered(server: Offered) -> str:
    """Return a line about an offered server: `github: npx -y server-github`."""
    return fit(f"{name(server.name)}: {server.starts}")


def doubled(server: Offered) -> str:
    """Return a line about a server that an AI tool also starts: `Cursor: github`."""
    return fit(f"{name(server.title)}: {name(server.name)}")


def file_name(problem: Problem) -> str:
    """Return the name of the file that has a problem."""
    return fit(base_name(problem.file), NAME) or "servers.yaml"


def tool_change(added: int, gone: int) -> str:
    """Return a summary of changed tools, or "" without changes: `2 new tools, 1 gone`."""
    parts = [count(added, "new tool")] if added else []
    parts += [f"{gone} gone" if parts else f"{count(gone, 'tool')} gone"] if gone else []
    return ", ".join(parts)


def bounded(lines: Sequence[str], most: int = 3) -> str:
    """Return the first `most` lines as one text, with a last line that counts the others."""
    rest = len(lines) - most
    return "\n".join([*lines[:most], f"and {rest} more"] if rest > 0 else lines)


PROJECT = 40  # columns of a folder's path
# Limits of a notification's text in GNOME Shell and in Plasma: (line width in half digits, lines). xfce4-notifyd shows
# six wider lines of each paragraph. dunst and LXQt show more.
NOTICE_ROOM = ((90, 6), (60, 9))
NOTICE_LINE = 38  # columns of a line that fits on most desktops
NOTICE_TITLE = 40  # columns of a title: GNOME Shell and xfce4-notifyd show only one line
ASK_LINES = 12  # lines of an ask in the menu
CLASSES = {"read": "reads", "write": "writes", "destructive": "destructive"}


def asks(waiting: Sequence[AskStatus]) -> str:
    """Return a line about one ask, such as `Codex wants to call github/get`, or about how many asks wait."""
    if len(waiting) > 1:
        return f"{len(waiting)} requests wait for your answer"
    (ask,) = waiting
    if ask.kind == "call":
        return fit(f"{name(ask.client)} wants to call {name(ask.server)}/{plain(ask.tool)}")
    return fit(f"{name(ask.server)} asks: {plain(ask.message)}")


def ask_title(ask: AskStatus) -> str:
    """Return `Allow delete_repo of github?` or `github asks`. Omit long names: some desktops cut off long titles."""
    title = f"Allow {_subject(ask)}?" if ask.kind == "call" else f"{_subject(ask)} asks"
    if width(title) <= NOTICE_TITLE:
        return title
    return "Allow this call?" if ask.kind == "call" else "A server asks"


def _subject(ask: AskStatus) -> str:
    return f"{plain(ask.tool)} of {plain(ask.server)}" if ask.kind == "call" else plain(ask.server)


def ask_rows(ask: AskStatus, longest: int = LINE, who: int = 2 * LINE, *, counted: bool = True) -> list[str]:
    """Return the lines of an ask: the client, the tool's class and its basis, and each argument.

    For a question, return the client, the address of its page if it has one, and its message.

    - `longest`: the most columns of a line with an argument or address
    - `who`: the most columns of the first line
    - `counted`: True to include the number of arguments
    """
    where = f" in {_middle(plain(ask.project), PROJECT)}" if ask.project else ""
    rows = [_middle(f"{name(ask.client)}{where}", who)]
    if ask.kind != "call":
        if ask.url:  # never cut the host: the user must see where the page is
            scheme, mark, rest = plain(ask.url).partition("//")
            host, slash, path = rest.partition("/")
            first = f"{scheme}{mark}{host}{slash}"
            rows.append(first + _middle(path, max(NAME, longest - width(first))))
        return [*rows, *wrapped(ask.message, 4)]
    basis = ", as its server says" if ask.basis == "annotations" else ""
    number = f"; {count(len(ask.arguments), 'argument')}" if counted and ask.arguments else ""
    rows.append(f"{CLASSES.get(ask.tool_class, plain(ask.tool_class))}{basis}{number}")
    for shown in ask.arguments:  # a long value is cut in the middle
        head = f"{fit(shown.name, NAME)} = "
        rows.append(head + _middle(plain(shown.value), longest - width(head), shown.length))
    return rows


def _middle(text: str, columns: int, length: int = 0) -> str:
    """Return `text`, cut to `columns` by replacing its middle with the text's number of characters.

    `length`: the number of characters, if `text` was already cut.
    """
    if width(text) <= columns:
        return text
    mark = f" ...({length or len(text):,} characters)... "
    room = max(0, columns - len(mark)) // (1 if text.isascii() else 2)  # a character is up to two columns wide
    end = room // 3
    return f"{text[: room - end]}{mark}{text[len(text) - end :] if end else ''}".rstrip()


def ask_text(ask: AskStatus) -> list[str]:
    """Return the lines of an ask's notification, with a note if they do not show everything.

    Lines are cut until every desktop shows them whole: first all arguments to the same length, then the line with the
    client. If that is not enough, the last lines are omitted.
    """
    named = [] if _subject(ask) in ask_title(ask) else [_middle(_subject(ask), 2 * NOTICE_LINE)]
    for who in (2 * LINE, NOTICE_LINE):
        for longest in range(BODY, NAME, -LINE // 4):
            rows = [*named, *ask_rows(ask, longest, who, counted=False)]
            if any(map(_is_cut, rows)):
                rows.append(ALL_OF_IT)
            if _is_shown(rows):
                return rows
    rows = [*named, *ask_rows(ask, NOTICE_LINE, NOTICE_LINE, counted=False), ALL_OF_IT]
    about, left = len(rows) - 1 - len(ask.arguments), 0
    while not _is_shown(rows) and len(rows) > 2:
        del rows[-2]
        left += len(rows) > about
        rows[-1] = f"{count(left, 'more argument')}: multi-mcp asks" if left else ALL_OF_IT
    return rows


def _is_shown(rows: Sequence[str]) -> bool:
    """True if every desktop shows these lines whole."""
    return len("\n".join(rows).encode("utf-16-le")) <= BODY * 2 and all(
        sum(max(1, len(textwrap.wrap(drawn(row), room))) for row in rows) <= lines for room, lines in NOTICE_ROOM
    )


def ask_menu(ask: AskStatus) -> list[str]:
    """Return the lines of an ask in the menu, with a note if they do not show everything."""
    rows = ask_rows(ask)
    cut = len(rows) > ASK_LINES or any(map(_is_cut, rows))
    return [*rows[: ASK_LINES - 1], ALL_OF_IT] if cut else rows


def _is_cut(row: str) -> bool:
    return row.endswith(ELLIPSIS) or " characters)..." in row


ALL_OF_IT = "Show all: multi-mcp asks"
