"""Read command lines that start a server, or that add one to a client (`claude mcp add ...`).

A line that needs a shell is refused, because it could do more than start one program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from trayapp.config.programs import program_of
from trayapp.config.read.command import is_relative
from trayapp.model.redact import redacted
from trayapp.sources.client_commands import CLIENT_COMMANDS, adds_server, is_mcp_add, read_line
from trayapp.sources.folders import own_folder
from trayapp.sources.programs import ASSIGNMENT, RUNNERS, SHELLS, package_of
from trayapp.sources.source import (
    LONGEST_LINE,
    Entry,
    Source,
    TemplateError,
    UnclearSourceError,
    given_names,
    launch_of,
    refuse_large,
    start_of,
    wanted,
    with_variants,
    without_keys,
)
from trayapp.sources.start_commands import (
    ADD_ANYWAY,
    BUILDERS,
    FETCHERS,
    INSTALLERS,
    LEFT_OUT,
    SERVING_WORD,
    WINDOWS_PROGRAM,
    is_preparation,
    refuse_http,
    without_version,
    words_of_line,
)

_INSTALLS = re.compile(
    r"(?:npm (?:install|i)|pnpm add|yarn global add|pip3? install|pipx install|uv (?:tool|pip) install)"
    r"(?:\s+-{1,2}[\w-]+)*\s+[\"']?([@\w][\w@./=~^-]*)[\"']?"
)
_ESCAPED_JSON = re.compile(r"""["']\{\s*\\["]""")  # the quotation marks of JSON, escaped for PowerShell or cmd
# A folder in quotes, as in cmd: "C:\Program Files\x\". Its last backslash does not escape the quote.
_FOLDER_QUOTED = re.compile(r"""("[A-Za-z]:\\[^"\n]*)\\"(?=\s|$)""")
# A line that only sets a variable, in the syntax of a POSIX shell, PowerShell, cmd or fish.
_SETTING = re.compile(
    r"""(?:set\s+"(?P<inside>[A-Za-z_]\w*)=(?P<all>[^"$`%]*)")"""
    r"""|(?:(?:export\s+|\$(?:env:)?|set\s+)(?P<name>[A-Za-z_]\w*)\s*=\s*"""
    r"""|(?:setx|setenv|set\s+-[gU]?x[gU]?)\s+(?P<apart>[A-Za-z_]\w*)\s+)"""
    r"""(?:(?P<mark>["'])(?P<quoted>(?:[^"'$`]|\$env:[A-Za-z_])*)(?P=mark)"""
    r"""|(?P<plain>(?:[^\s"'$`;|&<>]|<[^\W\d_][\w .-]*>)+))\s*;?""",
    re.IGNORECASE,
)
_SETTING_FIRST = re.compile(rf"(?:{_SETTING.pattern})\s*(?:&&|;)\s*(?=\S)", re.IGNORECASE)  # `set A=b && npx x`
_BUILT = re.compile(r"(?:[\w.-]+/)*(?:bin|release|debug|build|dist)/[\w.-]+")  # a program below the current folder
_CHECKS = re.compile(  # lines that check whether a server was added
    r"(?:npx (?:-y )?)?[@\w./~-]+ mcp (?:list|ls|get|show|remove|log(?:in|out)|auth|test|doctor|probe|enable|status"
    r"|tools)\b[\w -]*(?:2> ?/dev/null ?)?(?:\|\| true)?"
    r"|(?:which|where|command -v) [\w.-]+|\S.* --(?:help|version)"
    r"|(?:claude|codex|gemini|qwen|grok) (?:doctor|inspect|update)"
    r"|set -\w+(?: pipefail)?"
    r"|/mcp|claude|codex|gemini|qwen|copilot|opencode"
    r"|(?:(?:claude|gemini|qwen|copilot) (?:-p|--print|--prompt)|codex exec) .+"
)
# A line that activates a Python environment in the current shell. A line that adds a server does not depend on it.
_ACTIVATES = re.compile(r"(?:source|\.) \S*bin/activate|(?:\S*[\\/])?Scripts[\\/]activate\S*|conda activate \S+")
_FOLDER = re.compile(r"cd (?:/d )?([\"']?)(.+)\1")
_SETS_FOR = re.compile(  # a client's line that sets a variable of a server
    r"""\S+ mcp (?:config set|env set|set-env) ["']?([\w.-]+)["']? ([A-Z][A-Z0-9_]*)[= ](["']?)([^"'$`;|&]+)\3"""
)
# The syntax of a line that adds a server: `claude mcp add <name> <url>`. An example of such a line may follow.
_PATTERN = re.compile(r"\S+ mcp (?:add|add-json|set) (?:.* )?<(?:[\w-]*name|alias)>(?: .*)?")
_COMMENT = re.compile(r"""('[^']*'|"(?:[^"\\]|\\.)*")|(?<!\s)\s+#(?:\s.*)?$""")
_DASH = re.compile(
    r"""(?P<quoted>'[^']*'|"(?:[^"\\]|\\.)*")|(?<=\s)(?P<dash>[\u2013\u2014]{1,2})(?P<word>[A-Za-z][\w-]*|(?=\s))"""
)
_HYPHENS = re.compile(r"\s(?:--|[\u2013\u2014]{1,2})\s")  # between a client's options and a server's command
_REMARK = re.compile(r"\s-\s+[A-Za-z]+\s+[a-z]+(?:\s+[\w'.]+)*\s*$")  # `npx acme-mcp - Acme's server`
_AND = re.compile(r"""('[^']*'|"(?:[^"\\]|\\.)*")|\s&&\s|;(?:\s+|$)""")
# A variable of PowerShell, cmd's line continuation, or a path with a drive.
_WINDOWS = re.compile(r"\$env:|\^\r?\n|\b[A-Z]:\\(?!\\)", re.IGNORECASE)
# A server's own program: `weather-mcp --stdio`, `mcp-server-weather serve`, `weather mcp --stdio`, `dart mcp-server`.
_NAMED_MCP = re.compile(
    r"[a-z0-9][\w.-]*(?: [a-z][\w-]*)? --(?:mcp|stdio)\b[^\n]*"
    r"|(?=\S*mcp)[a-z0-9][\w.-]* (?:-{1,2}[A-Za-z]|[/~.]|(?:serve|server|stdio|mcp|start|run)\b)[^\n]*"
    r"|[a-z0-9][\w.-]* (?:mcp(?:[-:]?(?:server|serve|start|stdio|run))?|start-mcp-server)"
    r"(?: -[^\n]*| (?:serve|start|stdio|run)\b[^\n]*)?"
)
# A shell's prompt, and PowerShell's operator that calls a program.
_PROMPT = re.compile(
    r"""(?x) ^(?:
      \([\w.-]{1,40}\)\ +(?=\S) | [$>%&\u276f\u279c]\ +                     # (venv), and plain signs
    | (?:PS(?:\ [A-Z]:[^>\n]{0,80})?> | [A-Z]:\\[^>\n]{0,80}>)\ *
    | \[?[\w.-]{1,40}@[\w.-]{1,60}(?:[:\ ]\ ?[~/\w.-]{0,80})?\]?\ ?[$%\#\u276f]\ *
    | [~/][\w./~-]{0,80}\ ?[$%\u276f]\ + | [a-z][\w.-]{1,30}[$]\ +(?=[a-z]) | (?:ba|z)?sh-[\d.]{1,8}[$\#]\ *
    )+"""
)
# A line break within a command: after a continuation character, or before an option, since no command begins with one.
_NEXT_LINE = re.compile(r"[\\^`][ \t]{0,8}\r?\n\s*(?:>{1,2}\s+)?|\r?\n[ \t]{0,80}(?=--[a-z ])")


LINES_MOST = 20  # lines that add servers to clients
ALL_LINES_MOST = 200  # lines of a text, including those that set variables or install something


def read_command_line(text: str, home: Path, *, windows: bool) -> list[Source]:
    """Return the servers that a command line starts or adds to a client. Raises UnclearSourceError.

    The text may contain several such lines, and lines that set variables, install something or check the result.
    """
    refuse_large(len(text))
    text = text.replace('`"', '\\"')  # PowerShell escapes a quote with a backtick
    joined = _NEXT_LINE.sub(" ", re.sub(r"(?<=\s)\\\s*\Z", "", text))
    lines = _without_output([line.strip() for line in _logical_lines(joined)])
    refuse_long_lines(lines)
    lines = [part for line in lines for part in _statements(line)]
    lines = [line for line in lines if line and not line.startswith(("#", "//"))]
    lines = [_with_plain_signs(_COMMENT.sub(r"\1", line)) for line in lines]
    if len(lines) > ALL_LINES_MOST:
        raise UnclearSourceError(f"These are {len(lines)} lines, more than the {ALL_LINES_MOST} that can be read")
    starting = [line for line in lines if not (_CHECKS.fullmatch(line) or any(map(LEFT_OUT.search, line.split())))]
    starting = [line for line in starting if not _PATTERN.fullmatch(line)] or starting
    lines = starting if any(map(is_command_line, starting)) else lines
    packages = {without_version(package_of(line.split())) for line in lines}  # npx and uvx fetch what they run
    installed = {line: without_version(named[1]) for line in lines if (named := _INSTALLS.fullmatch(line))}
    needed = [line for line in lines if installed.get(line) not in packages]
    lines, before = _preparations_apart([_as_local(line, lines) for line in needed or lines])
    settings, lines = _settings_apart(lines)
    if before and not all(adds_server(line) or _is_started(line, before) for line in lines):
        raise _several_lines([*lines, *before], home, windows)
    found = _of_lines(text, lines, settings, home, windows)
    return [replace(_with_folder(one, before, lines), run_first=tuple(before)) for one in found]


def _with_plain_signs(line: str) -> str:
    """Return a line with plain quotation marks and hyphens. Raises UnclearSourceError for a remark after a dash."""
    for typed, marks in (('"', "\u201c\u201d"), ("'", "\u2018\u2019")):
        line = line if typed in line else re.sub(f"[{marks}]", typed, line)
    if _REMARK.search(line):
        raise UnclearSourceError("This line has a remark after -", "Paste it without the remark")
    if not _DASH.search(line):
        return line
    adds = re.search(r"\smcp\s+add(?:-json)?\s", line) is not None

    def hyphens(found: re.Match[str]) -> str:
        if found["dash"] and found["word"] == "" and (not adds or _HYPHENS.search(line[: found.start() + 1])):
            raise UnclearSourceError(f"This line has a remark after {found['dash']}", "Paste it without the remark")
        return found["quoted"] or ("-" if len(found["word"]) == len(found["dash"]) == 1 else "--") + found["word"]

    return _DASH.sub(hyphens, line)


def _of_lines(text: str, lines: list[str], settings: Mapping[str, str], home: Path, windows: bool) -> list[Source]:
    shown = lines
    if _WINDOWS.search(text):
        lines = [line if _setting(line) else _with_backslashes(line) for line in lines]
    if len(lines) > 1 and (added := _added(lines, home, windows)):
        return [_with_env(one, settings) for one in added]
    if len(lines) != 1:
        try:  # the lines may start the same server with different values
            several: list[Source] = []
            before: dict[str, str] = {}  # variables that are set for the next line
            for line in lines:
                if setting := _setting(line):
                    before |= setting
                else:
                    several += [_with_env(one, before) for one in read_line(line, home, windows=windows)]
                    before = {}
            if not before and all(start_of(one.entry) == start_of(several[0].entry) for one in several):
                several = [_with_env(one, settings) for one in several]
                whole = with_variants(max(several, key=lambda one: len(one.wants)), several)
                if not any(given_names(one) - given_names(whole) for one in several):
                    return [whole]
        except UnclearSourceError as error:
            if isinstance(error, TemplateError):
                raise
        raise _several_lines(shown, home, windows)
    if settings and not (is_command_line(lines[0]) or SERVING_WORD.search(lines[0])):
        raise UnclearSourceError(f"{lines[0].split()[0]} does not look like a server's command", ADD_ANYWAY)
    found = read_line(lines[0], home, windows=windows)
    refuse_http((), settings)
    return [_with_env(one, settings) for one in found]


def _with_backslashes(line: str) -> str:
    """Return a line for Windows with its backslashes doubled, so that splitting keeps them.

    Text in single quotes and a line that begins with a path with a drive stay unchanged, because splitting keeps
    their backslashes. The escaped quotes of JSON also stay unchanged.
    """
    if re.match(r"[\"']?[A-Za-z]:[\\/]", line):
        return line
    parts = re.split(r"('(?!\{)[^']*')", line)
    escaped = r'\\(?!")' if _ESCAPED_JSON.search(line) else r"\\"
    return "".join(part if at % 2 else re.sub(escaped, r"\\\\", part) for at, part in enumerate(parts))


def _preparations_apart(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the lines that set, add or start something, and the lines that only install, fetch or build.

    Lines that activate an environment belong to the second list if all other lines add servers to clients. If no line
    adds or starts something, all lines are in the first list.
    """
    rest = [line for line in lines if not is_preparation(line)]
    activating = [line for line in rest if _ACTIVATES.fullmatch(line)]
    plain = [line for line in rest if line not in activating and not _setting(line)]
    if activating and plain and all(map(adds_server, plain)):
        rest = [line for line in rest if line not in activating]
    return (rest, [line for line in lines if line not in rest]) if plain else (list(lines), [])


def _is_started(line: str, before: Sequence[str]) -> bool:
    """Return True if a line probably starts an MCP server, judged by its words and those of the lines `before` it."""
    program = re.fullmatch(r"(?i)(?=\S*mcp)[\w.-]+(?: -.*)?", line) is not None
    said = re.search("(?i)mcp|stdio|server", " ".join([line, *before])) or line.startswith(("docker run", "podman run"))
    return program or (is_command_line(line) and bool(said))


def _with_folder(source: Source, before: Sequence[str], lines: Sequence[str]) -> Source:
    """Return a source with the folder of the last `cd` as its `cwd`, if the server starts or has its code there."""
    folders = [found[2] for line in before if (found := _FOLDER.fullmatch(line))]
    is_needed = "command" in source.entry and (not any(map(adds_server, lines)) or own_folder(source.entry)[1])
    if not folders or not is_needed or "cwd" in source.entry:
        return source
    if is_relative(folders[-1]) and folders[-1][0] not in "<{[":
        return source
    entry = {**source.entry, "cwd": folders[-1]}
    return replace(source, entry=entry, wants=wanted(entry))


def refuse_long_lines(lines: Sequence[str]) -> None:
    """Raise UnclearSourceError for a line of more than LONGEST_LINE characters, the limit of Windows."""
    if (longest := max(map(len, lines), default=0)) > LONGEST_LINE:
        raise UnclearSourceError(f"A line has {longest:,} characters, more than {LONGEST_LINE:,}")


def without_prompt(line: str) -> str:
    """Return a line without surrounding spaces and without a shell's prompt."""
    return _PROMPT.sub("", line.strip())


def _without_output(lines: Sequence[str]) -> list[str]:
    """Return the lines without prompts. After the first prompt, drop lines that start nothing, which are output."""
    first = next((at for at, line in enumerate(lines) if _PROMPT.match(line)), len(lines))
    useful = (line for at, line in enumerate(lines) if at <= first or _PROMPT.match(line) or is_command_line(line))
    return list(map(without_prompt, useful))


def _statements(line: str) -> Iterator[str]:
    """Yield the commands of a line, separated by `&&` or `;`, and the settings before them (`set A=b && npx x`)."""
    for part in _AND.sub(lambda found: found[1] or "\0", line).split("\0"):
        rest = part.strip()
        while setting := _SETTING_FIRST.match(rest):
            yield setting[0].rstrip("&; ")
            rest = rest[setting.end() :]
        yield rest


def _several_lines(lines: Sequence[str], home: Path, windows: bool) -> UnclearSourceError:
    """Return an error that names the lines that start or add servers, or explains why one of them cannot be used."""
    programs = {
        line: program_of(next((word for word in line.split() if not ASSIGNMENT.fullmatch(word)), "")) for line in lines
    }
    runs = {line for line in lines if not re.match(r"(?:docker|podman) (?!run\b|mcp\b)", line)}
    starting = [line for line in lines if adds_server(line)]
    starting = starting or [line for line in lines if programs[line] in RUNNERS - BUILDERS and line in runs]
    others = [line for line in lines if programs[line] not in FETCHERS | BUILDERS | SHELLS]
    starting = starting or [line for line in others if is_command_line(line) and not _setting(line)]
    other = redacted(next((line for line in lines if line not in starting), ""))
    can_follow = len(starting) == 1 or (other and starting and all(map(adds_server, starting)))
    read, faults = [], []
    for line in starting:
        try:
            read += [one.name for one in read_line(line, home, windows=windows)]
        except UnclearSourceError as error:
            faults.append(error)
    if faults and not read and (len(starting) == 1 or not can_follow):
        return faults[0]  # none of the lines can be used, so choosing one would not help
    if not can_follow:
        each = f" that each start something different ({', '.join(dict.fromkeys(read))})"
        return UnclearSourceError(f"These are {len(lines)} lines{each if read and not (faults or other) else ''}")
    first = "; ".join(line if line == redacted(line) else f"{' '.join(line.split()[:4])} ..." for line in starting)
    title = f"This has other lines, too, such as: {other[:60]}"
    return UnclearSourceError(title, f"Run them first if they are needed, then add: {first}")


def _settings_apart(lines: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables that lines set, and the remaining lines. Raises UnclearSourceError if none remain.

    A variable may follow lines that add servers to clients, but must precede a line that starts a server.
    """
    settings: dict[str, str] = {}
    rest: list[str] = []
    for line in lines:
        if (setting := _setting(line)) is None or not all(map(adds_server, rest)):
            rest.append(line)
        else:
            settings |= setting
    if not rest:
        raise UnclearSourceError("This sets variables and starts nothing")
    return settings, rest


def _as_local(line: str, lines: Sequence[str]) -> str:
    """Return a line `NAME=VALUE` as `$NAME=VALUE`, a variable of the shell alone, if one of `lines` refers to NAME."""
    name, mark, _ = line.partition("=")
    used = re.compile(rf"\$(?:{re.escape(name)}(?!\w)|\{{{re.escape(name)}\}})")
    is_own = bool(mark) and re.fullmatch(r"[A-Za-z_]\w*", name) is not None and _setting(f"${line}") is not None
    return f"${line}" if is_own and any(used.search(one) for one in lines) else line


def _setting(line: str) -> dict[str, str] | None:
    """Return {name: value} for a line that sets a variable, else None. `$` marks a variable of the shell alone."""
    if (found := _SETTING.fullmatch(line)) is None:
        return None
    is_local = re.match(r"\$(?!env:)", line, re.IGNORECASE) is not None  # PowerShell passes it to no program
    name = ("$" if is_local else "") + str(found["name"] or found["apart"] or found["inside"])
    return {name: found["plain"] or found["quoted"] or found["all"] or ""}


def _added(lines: Sequence[str], home: Path, windows: bool) -> list[Source]:
    """Return the servers that lines add to clients, each once, or [] if that is unclear or they do anything else."""
    set_for: dict[str, dict[str, str]] = {}
    for given in filter(None, map(_SETS_FOR.fullmatch, lines)):
        set_for.setdefault(given[1], {})[given[2]] = given[4]
    lines = [line for line in lines if not _SETS_FOR.fullmatch(line)]
    adding = [line for line in lines if adds_server(line)]
    if not adding or len(lines) > LINES_MOST:
        return []
    found: dict[str, Source] = {}
    with suppress(UnclearSourceError):
        for one in (one for line in adding for one in read_line(line, home, windows=windows)):
            if launch_of(found.setdefault(one.name, one).entry) != launch_of(one.entry):
                return []
        added = [launch_of(one.entry) for one in found.values()]
        others = [one for line in lines if line not in adding for one in read_line(line, home, windows=windows)]
        local = {name for name, one in found.items() if "command" in one.entry}  # remote servers get no variables
        if all(launch_of(one.entry) in added for one in others) and set_for.keys() <= local:
            return [_with_env(one, set_for.get(name, {})) for name, one in found.items()]
    return []


def _with_env(source: Source, env: Mapping[str, str]) -> Source:
    """Return a source with the variables that other lines set, and their values in place of references to them."""
    if not env:
        return source
    entry: Entry = {key: _filled_in(value, env) for key, value in source.entry.items()}
    env = {name: value for name, value in env.items() if name[0] != "$"}
    token = str(entry.get("bearer_token_env"))
    if token in env:
        entry["headers"] = {**entry.get("headers", {}), "Authorization": f"Bearer {env[token]}"}
        entry = without_keys(entry, "auth", "bearer_token_env")
    if "command" in entry and env:
        own = {name: value for name, value in entry.get("env", {}).items() if value or name not in env}
        entry["env"] = {**env, **own}
    return replace(source, entry=entry, wants=wanted(entry))


def _filled_in(value: Any, env: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda found: env.get(f"${found[1]}", env.get(found[1], found[0])), value)
    if isinstance(value, Mapping):
        return {key: _filled_in(inner, env) for key, inner in value.items()}
    return [_filled_in(inner, env) for inner in value] if isinstance(value, list) else value


def _logical_lines(text: str) -> list[str]:
    """Return the lines of a text, each joined with the next if it ends inside quotes."""
    lines: list[str] = []
    mark = ""  # the quotation mark that is still open
    for line in text.splitlines():
        lines.append(f"{lines.pop()}\n{line}" if mark else line)
        for found in re.findall(r"\\.|['\"]", _FOLDER_QUOTED.sub(r'\1"', line)):
            letter = found[-1] if found == found[-1] or mark != '"' else ""  # \" escapes only inside "..."
            if letter in ("'", '"') and mark in ("", letter):
                mark = "" if mark else letter
    return lines


def is_command_line(text: str) -> bool:
    """Return True if a text begins with a program that may start servers or add them to clients, or sets a variable."""
    text = without_prompt(text)
    head = text.partition("\n")[0].strip()
    if _SETTING.fullmatch(head) or _SETTING_FIRST.match(head) or is_mcp_add(text.split(None, 4)[:4]):
        return True
    given = text
    if ASSIGNMENT.match(text) and "=" in text.split()[0]:
        with suppress(UnclearSourceError, ValueError):  # assignments with quotes before the program
            words = words_of_line(_logical_lines(_NEXT_LINE.sub(" ", text.strip()))[0])
            text = " ".join(words[next((at for at, one in enumerate(words) if not ASSIGNMENT.fullmatch(one)), 0) :])
    words = text.split()
    while len(words) > 1 and ASSIGNMENT.fullmatch(words[0]):
        text = text.strip().partition(" ")[2]
        words = text.split()
    if not words:
        return False
    program = program_of(word := words[0])
    if _NAMED_MCP.fullmatch(text.strip()) or ("mcp" in program and text != given):
        return True
    return (
        program in RUNNERS | SHELLS | FETCHERS
        or program in CLIENT_COMMANDS
        or (INSTALLERS.fullmatch(program) is not None and " " in text)
        or re.match(r"(?:~|\.\.?)?/[\w.@~<{$-].*[^/]$", word) is not None
        or (_BUILT.fullmatch(word) is not None and re.search("(?i)mcp|stdio", text) is not None)
        or WINDOWS_PROGRAM.match(text.strip().lstrip("\"'")) is not None
    )


def holds_command(text: str) -> bool:
    """Return True if a line of a text begins with a program that starts servers, or adds one to a client."""
    lines = (words for line in text.splitlines() if (words := without_prompt(line).split(None, 4)[:4]))
    return any(program_of(words[0]) in RUNNERS or is_mcp_add(words) for words in lines)


def holds_only_commands(text: str) -> bool:
    """Return True if each line of a text is a command, a comment, or sets, installs, checks or activates something."""

    def is_one(line: str) -> bool:
        known = is_command_line(line) or _setting(f"${line}") is not None or is_preparation(line)
        return known or line[:1] in ("", "#") or bool(_CHECKS.fullmatch(line) or _ACTIVATES.fullmatch(line))

    return all(map(is_one, map(without_prompt, _NEXT_LINE.sub(" ", text).splitlines())))
