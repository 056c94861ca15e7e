"""Reads command lines that start a server, or that add one to a client (`claude mcp add ...`).

A shell would do more with a line than start one program. A line that needs a shell is refused, never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from trayapp.clients.conversion import is_variable_name
from trayapp.config.read.command import is_relative, split_command
from trayapp.model.redact import redacted
from trayapp.sources.documents import (
    DETACHED,
    HTTP,
    MAY_SPEAK_HTTP,
    PUBLISHES,
    VALUED_BEFORE,
    WITHOUT_INPUT,
    read_document,
    reads_input,
    refuse_developers_script,
    refuse_http,
    refuse_verb,
    with_input,
    without_cmd,
    without_terminal,
)
from trayapp.sources.source import (
    BRIDGES,
    LONGEST_LINE,
    RUNNERS,
    SHELLS,
    Entry,
    Source,
    TemplateError,
    UnclearSourceError,
    container_options,
    given_names,
    launch_of,
    name_for,
    name_of_package,
    own_folder,
    package_of,
    program_of,
    refuse_large,
    script_of,
    start_of,
    wanted,
    with_passed,
    with_variants,
    with_words_apart,
    without_env,
)  # fmt: skip

_FETCHES = frozenset(
    ("curl", "wget", "iwr", "irm", "pip", "pip3", "gem", "brew", "git", "apt", "apt-get", "winget", "choco")
)
_INSTALLS = re.compile(
    r"(?:npm (?:install|i)|pnpm add|yarn global add|pip3? install|pipx install|uv (?:tool|pip) install)"
    r"(?:\s+-{1,2}[\w-]+)*\s+[\"']?([@\w][\w@./=~^-]*)[\"']?"
)
# The subcommands of package managers that run something; all others build, install or test.
_RUNS = {
    "npm": {"run", "run-script", "start", "exec", "x"}, "cargo": {"run"}, "go": {"run", "tool"},
    "dotnet": {"run", "exec", "tool"}, "uv": {"run", "tool"}, "pipx": {"run"}, "poetry": {"run"}, "pdm": {"run"},
    "dart": {"run", "pub", "mcp-server"}, "swift": {"run"}, "op": {"run"}, "infisical": {"run"}, "doppler": {"run"},
    "hatch": {"run"}, "rye": {"run"}, "pixi": {"run", "exec"}, "nix": {"run"}, "mise": {"x", "exec"},
    "docker": {"run", "exec", "mcp"}, "podman": {"run", "exec"}, "bundle": {"exec"},
    "conda": {"run"}, "mamba": {"run"}, "micromamba": {"run"},
}  # fmt: skip
_ESCAPED_JSON = re.compile(r"""["']\{\s*\\["]""")  # the quotation marks of JSON, escaped for PowerShell or cmd
# A folder in quotes, as in cmd: "C:\Program Files\x\". Its last backslash does not escape the quote.
_FOLDER_QUOTED = re.compile(r"""("[A-Za-z]:\\[^"\n]*)\\"(?=\s|$)""")
_BUILDERS = frozenset(("npm", "pnpm", "yarn", "cargo", "go", "dotnet"))  # they mostly build or install
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
# A line that only sets a variable: in a shell, in PowerShell, in cmd, in fish.
_SETTING = re.compile(
    r"""(?:set\s+"(?P<inside>[A-Za-z_]\w*)=(?P<all>[^"$`%]*)")"""
    r"""|(?:(?:export\s+|\$(?:env:)?|set\s+)(?P<name>[A-Za-z_]\w*)\s*=\s*"""
    r"""|(?:setx|setenv|set\s+-[gU]?x[gU]?)\s+(?P<apart>[A-Za-z_]\w*)\s+)"""
    r"""(?:(?P<mark>["'])(?P<quoted>(?:[^"'$`]|\$env:[A-Za-z_])*)(?P=mark)"""
    r"""|(?P<plain>(?:[^\s"'$`;|&<>]|<[^\W\d_][\w .-]*>)+))\s*;?""",
    re.IGNORECASE,
)
_SETTING_FIRST = re.compile(rf"(?:{_SETTING.pattern})\s*(?:&&|;)\s*(?=\S)", re.IGNORECASE)  # `set A=b && npx x`
# A whole path, whose folders may have blanks: C:\Program Files\acme\acme.exe
_WINDOWS_PROGRAM = re.compile(r"[A-Za-z]:[\\/](?:(?!\.(?:exe|cmd|bat)\s).)*\.(?:exe|cmd|bat)", re.IGNORECASE)
_BUILT = re.compile(r"(?:[\w.-]+/)*(?:bin|release|debug|build|dist)/[\w.-]+")  # a program below the current folder
_CHECKS = re.compile(  # lines that check the result of a line that adds a server
    r"(?:npx (?:-y )?)?[@\w./~-]+ mcp (?:list|ls|get|show|remove|log(?:in|out)|auth|test|doctor|probe|enable|status"
    r"|tools)\b[\w -]*(?:2> ?/dev/null ?)?(?:\|\| true)?"
    r"|(?:which|where|command -v) [\w.-]+|\S.* --(?:help|version)"
    r"|(?:claude|codex|gemini|qwen|grok) (?:doctor|inspect|update)"
    r"|set -\w+(?: pipefail)?"
    r"|/mcp|claude|codex|gemini|qwen|copilot|opencode"
    r"|(?:(?:claude|gemini|qwen|copilot) (?:-p|--print|--prompt)|codex exec) .+"
)
# Lines that only install, fetch or build something: people run them before the line that starts or adds the server.
_PREPARES = re.compile(
    r"""(?x) (?:sudo\s+)? (?:
      (?: (?:[\w./\\~-]*[/\\])? (?:(?:python[\d.]*|py)(?:\.exe)?\ -m\ )? pip[\d.]*(?:\.exe)?\ (?:--?[\w-]+\ )*install
        | (?:python[\d.]*|py)\ -m\ venv | (?:npm|pnpm|yarn|bun)\ (?:run\ )?test | pytest | (?:cargo|go|make)\ test
        | pipx\ (?:install|ensurepath|upgrade)
        | uv\ (?:sync|venv|lock|add|tool\ (?:install|upgrade)|pip\ install|python\ install)
        | (?:npm|pnpm|yarn|bun)\ (?:--?[\w-]+\ )*(?:ci|i|install|add|global\ add|update|upgrade|link
            |(?:run\ )?build(?:[:-][\w:-]+)?)
        | (?:npx|uvx|bunx)\ (?:-y\ |--yes\ )?(?:playwright\ install|skills(?:@\S+)?\ add)
        | (?:conda|mamba)\ (?:env\ )?(?:create|install)
        | (?:poetry|bundle|pdm|composer|gem|deno|mise|make|choco|scoop|rustup)\ install
        | (?:brew|winget|scoop)\ (?:install|tap|update)
        | (?:apt|apt-get|dnf|yum|apk|zypper|snap|port)\ (?:-y\ )?(?:install|update|add) | pacman\ -S\w*
        | cargo\ (?:install|build|binstall) | go\ (?:install|get|build|mod\ (?:download|tidy))
        | dotnet\ (?:tool\ install|build|restore|publish)
        | (?:mvn|gradle|\./mvnw|\./gradlew)\ (?:clean\ )?(?:package|install|build)
        | git\ (?:clone|pull|checkout|submodule) | (?:docker|podman)\ (?:pull|build) | cd | mkdir | chmod\ \+x
        | cp\ \S*\.env\S*\ \S*\.env | (?:cp|copy|mv|move)\ (?![~/.]|\S*[:*])\S+ | make\ build
      )(?:\ .*)?
      | yarn | make
    )"""
)
# A line that activates an environment, for this shell alone. A line that adds a server does not depend on it.
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
_REMARK = re.compile(r"\s-\s+[A-Za-z]+\s+[a-z]+(?:\s+[\w'.]+)*\s*$")  # `npx acme-mcp - the server of Acme`
_AND = re.compile(r"""('[^']*'|"(?:[^"\\]|\\.)*")|\s&&\s|;(?:\s+|$)""")
_SHELL = re.compile(r"[|;&<>`\n]|\$\(|(?<!\S)\([A-Z][a-z]+-[A-Z]")  # the last form is PowerShell's `(Get-...)`
_EXPANSION = re.compile(r"\$\{\w+(?:[%#/^,@+]|:[\d+?=])[^}]{0,40}\}?")  # `${NAME%/}`: only a shell can evaluate it
_FOUND = re.compile(r"\$\((?:which|command -v) ([\w.+-]+)\)")  # the path of a program
_PLACE = re.compile(r"<[^\W\d_][\w.-]*(?:[ |/][\w.-]+)*>")  # a placeholder (`<REPO>`, `<your token>`): no redirection
_SPACED = re.compile(r"<[^\W\d_][\w.-]*(?: [\w.,-]+)+>|(?<=\s)\[[^\W\d_][\w.-]*(?: [\w.,-]+)+\](?=\s|$)")
# A word in place of others: `npx ... mcp`, `add [-e KEY=VALUE ...]`, `npx x <command> [flags]`
_LEFT_OUT = re.compile(
    r"^(?:\.\.\.|\u2026)$|^\[-|(?:\.\.\.|\u2026)\]$"
    r"|^(?:\[(?:\w+ )?(?i:flags|options|arg(?:ument)?s|command)\]|[<{](?:sub)?command[>}])$"
)
# PowerShell's variables, cmd's continued line, a path with a drive.
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
# A line break within a command: after a continuation character, or before an option, with which no command begins.
_NEXT_LINE = re.compile(r"[\\^`][ \t]{0,8}\r?\n\s*(?:>{1,2}\s+)?|\r?\n[ \t]{0,80}(?=--[a-z ])")
# Programs that add servers to other programs, recognized by words in their names.
_INSTALLERS = re.compile(
    r"@?smithery(?:/cli)?(?:@|$)|(?:^|/)(?:(?:install|add|get|setup)-(?:mcps?|skills?)|mcps?-(?:install|add|get|setup)|mcpm|mcpick|skills"
    r"|create-[\w-]+|(?:[\w-]+-)?wizard|[\w-]+-(?:doctor|installer))(?:@|$)|(?:^|/)(?:setup|install)[\w-]*\.(?:py|[cm]?[jt]s|rb)$"
)
_PACKAGE_FORM = re.compile(r"(?:@[\w.~-]+/)?[\w.~-]+(?:@[\w.+~^-]+)?")
# The inspector, and other programs that use servers.
_USES_SERVERS = re.compile(
    r"(?:@?[\w.-]+/)(?:mcp-)?inspector(?:[@:]|$)|(?:mcp-(?:chat|evals?|cli)|mcpo|mcphost|mcporter)(?:@|$)"
)
# Words after a package's name that make it do something other than serve.
_SETUP_VERBS = frozenset((
    "install", "uninstall", "setup", "init", "configure", "add", "remove", "login", "logout", "auth", "doctor",
    "dashboard", "update", "upgrade", "version", "help", "validate", "verify", "generate", "migrate", "ingest",
    "status", "deploy", "publish", "create", "test", "session", "whoami", "export", "import", "sync",
    "reset", "benchmark", "pack", "inspect", "dev",
))  # fmt: skip
# `generate-skill`, `validate-config`: such commands do one thing and end.
_SETUP_TASK = re.compile(
    r"(?!\S*(?:mcp|serve|stdio))(?:generate|validate|verify|check|install|init|setup|import|export|create|list|clear"
    r"|delete|analy[sz]e|scan|get|ls|fetch|show|batch|review|audit)[-_][a-z_-]+"
)
_SETUP_PROGRAM = re.compile(r"-(?:generate|create|setup|init|install|login|auth)(?:-[a-z-]+)?$")
_SETUP_LATER = frozenset(("install", "uninstall", "setup", "init", "configure", "login", "logout", "doctor", "list"))
_SETUP_OPTION = re.compile(
    r"--(?:(?:init|generate|setup|install)(?:-[a-z]+)?|configure|login|dry-run|(?:list|print|show|dump)-[a-z-]+|health(?:-?check)?"
    r"|(?:test|validate|verify|check)(?:-(?:config|auth|connection|credentials|setup|installation))?)(?:=.*)?"
)
# Developers' tools that need no subcommand. Some are also servers: `npx eslint --mcp`.
_TOOLS = frozenset(
    ("vitest", "jest", "tsc", "eslint", "prettier", "changeset", "vercel", "turbo", "nx", "vite", "supabase")
)
# Programs that check, build or install code: `uv run pytest`, `python -m build`.
_CHECKERS = frozenset((
    "pytest", "ruff", "mypy", "black", "isort", "flake8", "pylint", "pyright", "bandit", "pre-commit", "tox", "nox",
    "coverage", "build", "twine", "pip", "venv", "mkdocs", "unittest",
))  # fmt: skip
# A script beside a server's code, for its tests, builds or measurements. For Go, see _DEVELOPERS_FOLDER.
_DEVELOPERS = re.compile(
    r"(?:[\w.-]+/)*(?:scripts?|scratch|examples?)/(?!\S*(?:mcp(?!b)|serve|stdio))\S*\.(?:py|rb|sh|ps1|[cm]?[jt]s)"
    r"|(?:\S*/)?(?:tests?/\S*|bench(?:es|marks?)?/\S*|(?:build|test|release|publish)[-_][\w.-]*)\.(?:py|rb|sh|[cm]?[jt]s)"
)
_DEVELOPERS_FOLDER = re.compile(r"\./(?:internal|hack|tools?|scripts?|tests?|examples?)/(?!\S*(?:mcp|serve|stdio))\S*")
# Words beside which `--port` is the port of something else.
_CONNECTS = re.compile("stdio|--(?:user|pass|db|database|url|ui)", re.IGNORECASE)
_HTTP_OPTION = re.compile(
    rf"(?i)--?(?:[\w.-]*(?:transport|mode|profiles\.active)=)?(?:{'|'.join(HTTP)})|-D\S*stdio=false"
)
_SUBCOMMAND = re.compile(r"[a-z][a-z-]{2,}")
_SERVING = re.compile("mcp|serve|stdio|start|run", re.IGNORECASE)
_RUN_WORDS = frozenset(("run", "exec", "x", "dlx", "tool"))
_NAMES_PACKAGE = re.compile(r"--(?:from|package)=")
_OUTPUT = ("-o", "--out", "--output")
_ADDING_VERBS = frozenset(("add", "install", "register", "create", "new"))  # also as options
# The packages of AI tools: `npx @anthropic-ai/claude-code mcp add ...`.
_CLIENT_PACKAGES = {
    "@anthropic-ai/claude-code": "claude", "@openai/codex": "codex", "@google/gemini-cli": "gemini",
    "@qwen-code/qwen-code": "qwen", "@github/copilot": "copilot",
}  # fmt: skip


LINES_MOST = 20  # lines that add servers to clients
ALL_LINES_MOST = 200  # lines of a text, including those that set variables or install something


def read_command_line(text: str, home: Path, *, windows: bool) -> list[Source]:
    """Return the servers that a command line starts or adds to a client. Raises UnclearSourceError.

    There may be several such lines, and lines that set variables, install something or check the result.
    """
    refuse_large(len(text))
    text = text.replace('`"', '\\"')  # PowerShell escapes a quote with a backtick
    joined = _NEXT_LINE.sub(" ", re.sub(r"(?<=\s)\\\s*\Z", "", text))
    lines = _without_output([line.strip() for line in _logical_lines(joined)])
    refuse_long_lines(lines)
    lines = [part for line in lines for one in _statements(line) for part in _settings_first(one)]
    lines = [
        _with_plain_signs(_COMMENT.sub(r"\1", line)) for line in lines if line and not line.startswith(("#", "//"))
    ]
    if len(lines) > ALL_LINES_MOST:
        raise UnclearSourceError(f"These are {len(lines)} lines", "Paste the one command that starts the server")
    starting = [line for line in lines if not (_CHECKS.fullmatch(line) or any(map(_LEFT_OUT.search, line.split())))]
    starting = [line for line in starting if not _PATTERN.fullmatch(line)] or starting
    lines = starting if any(map(is_command_line, starting)) else lines
    packages = {_bare(package_of(line.split())) for line in lines}  # npx and uvx fetch what they run
    needed = [line for line in lines if not ((named := _INSTALLS.fullmatch(line)) and _bare(named[1]) in packages)]
    lines, before = _preparations_apart([_as_local(line, lines) for line in needed or lines])
    settings, lines = _settings_apart(lines)
    if before and not all(_is_adder(line) or _is_started(line, before) for line in lines):
        raise _several_lines([*lines, *before], home, windows)
    found = _of_lines(text, lines, settings, home, windows)
    return [replace(_with_folder(one, before, lines), run_first=tuple(before)) for one in found]


def _with_plain_signs(line: str) -> str:
    """Return a line with the quotation marks and hyphens that a text processor replaced with its own.

    Raises UnclearSourceError for a remark after a dash.
    """
    for typed, marks in (('"', "\u201c\u201d"), ("'", "\u2018\u2019")):
        line = line if typed in line else re.sub(f"[{marks}]", typed, line)
    if _REMARK.search(line):
        raise UnclearSourceError("This line has a remark after -", "Paste it without the remark")
    if not _DASH.search(line):
        return line
    adds = re.search(r"\smcp\s+add(?:-json)?\s", line) is not None

    def hyphens(found: re.Match[str]) -> str:
        before = line[: found.start() + 1]
        if found["dash"] and found["word"] == "" and (not adds or _HYPHENS.search(before)):
            raise UnclearSourceError(f"This line has a remark after {found['dash']}", "Paste it without the remark")
        return found["quoted"] or ("-" if len(found["word"]) == len(found["dash"]) == 1 else "--") + found["word"]

    return _DASH.sub(hyphens, line)


def _of_lines(text: str, lines: list[str], settings: Mapping[str, str], home: Path, windows: bool) -> list[Source]:
    """Return the servers of lines, with the variables that other lines of the text set. Raises UnclearSourceError."""
    shown = lines
    if _WINDOWS.search(text):
        lines = [line if _setting(line) else _with_backslashes(line) for line in lines]
    if len(lines) > 1 and (added := _added(lines, home, windows)):
        return [_with_env(one, settings) for one in added]
    if len(lines) != 1:
        try:  # the same server, with different values in each line
            several: list[Source] = []
            before: dict[str, str] = {}  # variables that are set for the next line
            for line in lines:
                if setting := _setting(line):
                    before |= setting
                else:
                    several += [_with_env(one, before) for one in _of_line(line, home, windows=windows)]
                    before = {}
            if not before and all(start_of(one.entry) == start_of(several[0].entry) for one in several):
                several = [_with_env(one, settings) for one in several]
                whole = with_variants(max(several, key=lambda one: len(one.wants)), several)
                if not any(given_names(one) - given_names(whole) for one in several):
                    return [whole]
        except TemplateError:
            raise
        except UnclearSourceError:
            pass
        raise _several_lines(shown, home, windows)
    if settings and not (is_command_line(lines[0]) or _SERVING.search(lines[0])):
        hint = "If it is one: multi-mcp add NAME -- COMMAND"
        raise UnclearSourceError(f"{lines[0].split()[0]} does not look like a server's command", hint)
    found = _of_line(lines[0], home, windows=windows)
    refuse_http((), settings)
    return [_with_env(one, settings) for one in found]


def _with_backslashes(line: str) -> str:
    """Return a line for Windows with its backslashes doubled, so that splitting keeps them.

    Splitting keeps them anyway in single quotes, and in a line that begins with a path with a drive. The escaped quotes
    of JSON stay as they are.
    """
    if re.match(r"[\"']?[A-Za-z]:[\\/]", line):
        return line
    parts = re.split(r"('(?!\{)[^']*')", line)
    escaped = r'\\(?!")' if _ESCAPED_JSON.search(line) else r"\\"
    return "".join(part if at % 2 else re.sub(escaped, r"\\\\", part) for at, part in enumerate(parts))


def _preparations_apart(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the lines that set, add or start something, and the lines that only install, fetch or build.

    Lines that activate an environment are in the second list if the others add servers. All lines are in the first list
    if none of them adds or starts something.
    """
    rest = [line for line in lines if not _prepares(line)]
    activating = [line for line in rest if _ACTIVATES.fullmatch(line)]
    plain = [line for line in rest if line not in activating and not _setting(line)]
    if activating and plain and all(map(_is_adder, plain)):
        rest = [line for line in rest if line not in activating]
    return (rest, [line for line in lines if line not in rest]) if plain else (list(lines), [])


def _prepares(line: str) -> bool:
    """Return True for a line that installs, fetches or builds something, and does nothing else."""
    bare = _PLACE.sub("", re.sub(r"'[^']*'|\"[^\"`$]*\"", "", line))
    return _PREPARES.fullmatch(" ".join(line.split())) is not None and _SHELL.search(bare) is None


def _is_started(line: str, before: Sequence[str]) -> bool:
    """Return True if a line starts a server that the lines `before` it install.

    A line counts if its program has `mcp` in its name. A command line also counts if it runs a container, or if one of
    the lines contains `mcp`, `stdio` or `server`.
    """
    program = re.fullmatch(r"(?i)(?=\S*mcp)[\w.-]+(?: -.*)?", line) is not None
    said = re.search("(?i)mcp|stdio|server", " ".join([line, *before])) or line.startswith(("docker run", "podman run"))
    return program or (is_command_line(line) and bool(said))


def _with_folder(source: Source, before: Sequence[str], lines: Sequence[str]) -> Source:
    """Return a source with the folder of the last `cd` as its `cwd`, if the server starts or has its code there.

    The folder must be an absolute path or begin with a placeholder. A `cwd` that the source has stays.
    """
    folders = [found[2] for line in before if (found := _FOLDER.fullmatch(line))]
    is_needed = "command" in source.entry and (not any(map(_is_adder, lines)) or own_folder(source.entry)[1])
    if (
        not folders
        or not is_needed
        or "cwd" in source.entry
        or (is_relative(folders[-1]) and folders[-1][0] not in "<{[")
    ):
        return source
    entry = {**source.entry, "cwd": folders[-1]}
    return replace(source, entry=entry, wants=wanted(entry))


def refuse_long_lines(lines: Sequence[str]) -> None:
    """Raise UnclearSourceError for a line of more than LONGEST_LINE characters, the limit of Windows."""
    if (longest := max(map(len, lines), default=0)) > LONGEST_LINE:
        raise UnclearSourceError(f"This has a line of {longest:,} characters", "Paste the server's own command")


def without_prompt(line: str) -> str:
    """Return a line without blanks around it and without a shell's prompt."""
    return _PROMPT.sub("", line.strip())


def _without_output(lines: Sequence[str]) -> list[str]:
    """Return lines without their prompts, and without the output of commands.

    Output is any line without a prompt that starts nothing, below a line with a prompt.
    """
    first = next((at for at, line in enumerate(lines) if _PROMPT.match(line)), len(lines))
    return [
        without_prompt(line)
        for at, line in enumerate(lines)
        if at <= first or _PROMPT.match(line) or is_command_line(line)
    ]


def _statements(line: str) -> list[str]:
    """Return the commands of a line with `&&` or `;` between them; in quotes, these are plain text."""
    return [part.strip() for part in _AND.sub(lambda found: found[1] or "\0", line).split("\0")]


def _settings_first(line: str) -> list[str]:
    """Return the settings at the start of a line (`set A=b && npx x`), and the rest of the line."""
    parts: list[str] = []
    while setting := _SETTING_FIRST.match(line):
        parts.append(setting[0].rstrip("&; "))
        line = line[setting.end() :]
    return [*parts, line]


def _bare(package: str) -> str:
    return re.sub(r"(?<=.)(?:@|==).*", "", package)


def _several_lines(lines: Sequence[str], home: Path, windows: bool) -> UnclearSourceError:
    """Return an error that names the lines that start or add servers, or says why such a line cannot be used."""
    programs = [next((word for word in line.split() if not _ASSIGNMENT.fullmatch(word)), "") for line in lines]
    installing = _FETCHES | _BUILDERS | SHELLS
    starting = [line for line in lines if _is_adder(line)]
    starting = starting or [
        line
        for line, program in zip(lines, programs, strict=True)
        if program_of(program) in RUNNERS - _BUILDERS and not re.match(r"(?:docker|podman) (?!run\b|mcp\b)", line)
    ]
    starting = starting or [
        line
        for line, program in zip(lines, programs, strict=True)
        if program_of(program) not in installing and is_command_line(line) and not _setting(line)
    ]
    other = redacted(next((line for line in lines if line not in starting), ""))
    if len(starting) != 1 and not (other and starting and all(map(_is_adder, starting))):
        read, faults = [], []
        for line in starting:
            try:
                read += [one.name for one in _of_line(line, home, windows=windows)]
            except UnclearSourceError as error:
                faults.append(error)
        if faults and not read:
            return faults[0]  # none of the lines can be used, so choosing one would not help
        title = f"These are {len(lines)} lines"
        if read and not faults and not other:
            names = ", ".join(dict.fromkeys(read))
            title = f"These are {len(lines)} lines that start something else each ({names})"
        return UnclearSourceError(title, "Paste the one command that starts the server")
    if len(starting) == 1:
        try:
            _of_line(starting[0], home, windows=windows)
        except UnclearSourceError as error:
            return error
    first = "; ".join(line if line == redacted(line) else f"{' '.join(line.split()[:4])} ..." for line in starting)
    return UnclearSourceError(
        f"This has other lines, too, such as: {other[:60]}",
        f"Run them first if they are needed, then add: {first}",
    )


def _settings_apart(lines: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables that lines set, and the other lines. Raises UnclearSourceError if there are no other lines.

    A variable may follow lines that add servers to clients, but must precede a line that starts a server.
    """
    settings: dict[str, str] = {}
    rest: list[str] = []
    only_adders = True
    for line in lines:
        setting = _setting(line)
        if setting is None or not only_adders:
            rest.append(line)
            only_adders = only_adders and _is_adder(line)
        else:
            settings |= setting
    if not rest:
        raise UnclearSourceError("This sets variables and starts nothing", "Paste the command that starts the server")
    return settings, rest


def _as_local(line: str, lines: Sequence[str]) -> str:
    """Return `$NAME=VALUE`, a variable of the shell alone, for a line `NAME=VALUE` if one of `lines` refers to NAME.

    Any other line stays unchanged.
    """
    name, mark, _ = line.partition("=")
    used = re.compile(rf"\$(?:{re.escape(name)}(?!\w)|\{{{re.escape(name)}\}})")
    is_own = bool(mark) and re.fullmatch(r"[A-Za-z_]\w*", name) is not None and _setting(f"${line}") is not None
    return f"${line}" if is_own and any(used.search(one) for one in lines) else line


def _setting(line: str) -> dict[str, str] | None:
    """Return {name: value} for the variable that a line sets; None for another line.

    A name begins with `$` if only the shell has the variable.
    """
    if (found := _SETTING.fullmatch(line)) is None:
        return None
    is_local = re.match(r"\$(?!env:)", line, re.IGNORECASE) is not None  # a variable of PowerShell: no program gets it
    name = ("$" if is_local else "") + str(found["name"] or found["apart"] or found["inside"])
    return {name: found["plain"] or found["quoted"] or found["all"] or ""}


def _is_adder(line: str) -> bool:
    """Return True for a command of a client or of a program that adds servers: `claude mcp add ...`, `npx add-mcp`."""
    words = _without_package(line.split())
    return program_of(words[0]) in _ADDERS or _adds(words) or _bare(package_of(words) or words[0]) in _SERVER_INSTALLERS


def _added(lines: Sequence[str], home: Path, windows: bool) -> list[Source]:
    """Return the servers that lines add to clients, each once.

    Return [] if two servers with the same name differ, if a line cannot be read, or if a line does not add a server,
    set a variable of an added server, or start an added server. Also [] for more than LINES_MOST lines.
    """
    set_for: dict[str, dict[str, str]] = {}
    for given in filter(None, map(_SETS_FOR.fullmatch, lines)):
        set_for.setdefault(given[1], {})[given[2]] = given[4]
    lines = [line for line in lines if not _SETS_FOR.fullmatch(line)]
    adding = [line for line in lines if _is_adder(line)]
    if not adding or len(lines) > LINES_MOST:
        return []
    found: dict[str, Source] = {}
    with suppress(UnclearSourceError):
        for one in (one for line in adding for one in _of_line(line, home, windows=windows)):
            if launch_of(found.setdefault(one.name, one).entry) != launch_of(one.entry):
                return []
        added = [launch_of(one.entry) for one in found.values()]
        others = [one for line in lines if line not in adding for one in _of_line(line, home, windows=windows)]
        local = {name for name, one in found.items() if "command" in one.entry}  # only a program gets variables
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
        entry = {key: value for key, value in entry.items() if key not in ("auth", "bearer_token_env")}
    if "command" in entry and env:
        own = {name: value for name, value in entry.get("env", {}).items() if value or name not in env}
        entry["env"] = {**env, **own}
    return replace(source, entry=entry, wants=wanted(entry))


def _filled_in(value: Any, env: Mapping[str, str]) -> Any:
    """Return a value of an entry with the values of variables in place of references to them, at any depth."""
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda found: env.get(f"${found[1]}", env.get(found[1], found[0])), value)
    if isinstance(value, Mapping):
        return {key: _filled_in(inner, env) for key, inner in value.items()}
    return [_filled_in(inner, env) for inner in value] if isinstance(value, list) else value


def _of_line(line: str, home: Path, *, windows: bool) -> list[Source]:
    words = _words(_with_variables(line))
    if re.fullmatch(r"/[\w-]+", words[0]):
        raise UnclearSourceError(f"{words[0]} is a chat command", "Paste the command that starts the server")
    words = _without_package(words)
    if (installed := _installed(words, home, windows)) is not None:
        return installed
    adder = _ADDERS.get(program_of(words[0])) or (_client(f"{words[0]} mcp add") if _adds(words) else None)
    if adder is not None:
        if (found := adder(words[1:], home, windows)) is not None:
            return found
        if words[0] in _CLIENTS and (adding := _adding(words[1:])):
            return _mcp_add(f"{words[0]} {words[1]}", home, windows, adding) or []
        own = words[1:2] == ["mcp"] and words[2:3] in _SERVES
        if not own and (words[1:2] == ["mcp"] or re.match("(?!-).*(?:mcp|serve)", "".join(words[1:2])) is None):
            raise UnclearSourceError("This adds no server", f"Paste the line with {words[0]} mcp add")
    if not windows:
        plain = without_cmd({"command": words[0], "args": words[1:]})
        if plain["command"] != words[0] and program_of(plain["command"]) not in RUNNERS:
            raise UnclearSourceError(f"{words[0]} runs its own script, not one server", "Paste the command inside it")
        words = [plain["command"], *plain["args"]]
    return [_runs(words, line)]


def _adding(words: Sequence[str]) -> list[str]:
    """Return the words of `mcp add` for a client's other verb with `NAME -- COMMAND`; [] if its meaning is unclear."""
    own = list(takewhile("--".__ne__, words))
    command = list(words[len(own) + 1 :])
    verbs = {word.lstrip("-") for word in own[:-1]}
    if not command or len(own) < 2 or not re.fullmatch(r"[A-Za-z][\w.-]*", own[-1]) or not verbs & _ADDING_VERBS:
        return []
    if program_of(command[0]) not in RUNNERS and re.search("mcp|[/\\\\]", command[0]) is None:
        return []
    env = [word for pair in pairwise(own) if pair[0] in _ENV and _ASSIGNMENT.fullmatch(pair[1]) for word in pair]
    return ["add", *env, own[-1], "--", *command]


def _without_package(words: Sequence[str]) -> list[str]:
    """Return `claude mcp add ...` for `npx -y @anthropic-ai/claude-code mcp add ...`; other words unchanged."""
    package = package_of(list(words)) if program_of(words[0]) in ("npx", "bunx", "pnpx") else ""
    client = _CLIENT_PACKAGES.get(re.sub(r"(?<=.)@.*", "", package))
    behind = list(words[words.index(package) + 1 :]) if client and package in words else []
    return [client, *behind] if client and behind[:1] == ["mcp"] else list(words)


# Programs that write one server into clients' files: neondatabase/add-mcp, supermemoryai/install-mcp and
# paoloricciuti/mcp-add. Their options in the spelling of `mcp add`; "" for those that choose clients and files.
_SERVER_INSTALLERS = frozenset(("add-mcp", "install-mcp", "mcp-add"))
_INSTALLER_OPTIONS = {
    **dict.fromkeys(("-n", "--name"), "--name"), **dict.fromkeys(("-t", "--transport", "--type"), "--transport"),
    **dict.fromkeys(("-H", "--header", "--headers"), "--header"), **dict.fromkeys(("-e", "--env"), "--env"),
    **dict.fromkeys(("-u", "--url"), "--url"), "--command": "--command", "--args": "--args",
    "--client-id": "--client-id", "--client-secret": "--client-secret", "--project": "--project",
    **dict.fromkeys(("-a", "--agent", "--client", "--clients", "-C", "-s", "--scope", "--oauth"), ""),
}  # fmt: skip
_INSTALLER_FLAGS = frozenset(("-g", "--global", "-y", "--yes", "--all", "--gitignore", "--local"))
_INSTALLER_VERBS = frozenset(("find", "search", "list", "list-agents", "detect", "sync", "unify", "remove", "update"))


def _installed(words: Sequence[str], home: Path, windows: bool) -> list[Source] | None:
    """Return the server that `npx add-mcp TARGET [options]` and the like write into clients' files.

    None for another program, for an unknown option, and for a line that does not name exactly one server.
    """
    package = package_of(list(words)) or words[0]
    installer = _bare(package)
    if installer not in _SERVER_INSTALLERS or package not in words:
        return None
    left = list(words[words.index(package) + 1 :])
    targets: list[str] = []
    given: dict[str, list[str]] = {}
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            targets.append(word)
        elif name in _INSTALLER_OPTIONS and (equals or left):
            given.setdefault(_INSTALLER_OPTIONS[name], []).append(value if equals else left.pop(0))
        elif name not in _INSTALLER_FLAGS:
            return None
    targets = targets[1:] if targets[1:] and targets[0] in ("i", "install", "add") else targets
    targets += given.pop("--url", []) + given.pop("--command", [])
    if len(targets) != 1 or targets[0] in _INSTALLER_VERBS or re.search("(?i)<.*package.*>", targets[0]):
        return None
    (target,) = targets
    args = given.pop("--args", [])
    server: Entry
    if _is_address(target):
        server, start = {"url": target}, ["--url", target]
    elif " " in target or target[0] in "/~.<":
        command = [*_words(target), *args]
        server, start = {"command": command[0], "args": command[1:]}, ["--", *command]
    elif _PACKAGE_FORM.fullmatch(target):
        server, start = {"command": "npx", "args": ["-y", target, *args]}, ["--", "npx", "-y", target, *args]
    else:
        return None
    name = given.pop("--name", [""])[-1] or name_for(server)
    left_out = ("project",) if given.pop("--project", []) else ()
    comma = {"--env": r",(?=[A-Za-z_]\w*=)", "--header": r",(?=[\w-]+=)"} if installer == "mcp-add" else {}
    options = [
        word
        for option, values in given.items()
        for value in values
        for part in (re.split(comma[option], value) if option in comma else [value])
        for word in (option, part)
        if option
    ]
    added = _mcp_add(installer, home, windows, ["add", "--name", name, *options, *start]) or []
    return [replace(one, left_out=(*one.left_out, *left_out)) for one in added]


def _logical_lines(text: str) -> list[str]:
    """Return the lines; a line that ends inside quotes continues on the next."""
    lines: list[list[str]] = []
    mark = ""  # the quotation mark that is still open
    for line in text.splitlines():
        if mark:
            lines[-1].append(line)
        else:
            lines.append([line])
        for found in re.findall(r"\\.|['\"]", _FOLDER_QUOTED.sub(r'\1"', line)):
            letter = found[-1] if found == found[-1] or mark != '"' else ""  # \" escapes only inside "..."
            if letter in ("'", '"') and mark in ("", letter):
                mark = "" if mark else letter
    return ["\n".join(parts) for parts in lines]


def _with_variables(line: str) -> str:
    """Return a line with the shell's `$NAME` as our `${NAME}`, `$(pwd)` as `${PWD}`, and `$(which NAME)` as `NAME`.

    In single quotes, these are plain text.
    """
    parts = re.split(r"('[^']*')", line)
    own = re.compile(r"(?<![\\$])\$(?!env:)([A-Za-z_]\w*)")
    return "".join(
        part
        if part.startswith("'")
        else own.sub(r"${\1}", _FOUND.sub(r"\1", re.sub(r"\$\(pwd\)|`pwd`", "${PWD}", part))).replace(
            r"\$", "$"
        )  # `"\${NAME}"`: the client replaces it, not the shell
        for part in parts
    )


def _adds(words: Sequence[str]) -> bool:
    """Return True for `CLIENT mcp add ...`, `add-json` or `set`, for any client."""
    return list(words[1:2]) == ["mcp"] and list(words[2:3]) in (["add"], ["add-json"], ["set"]) and words[0].isascii()


def is_command_line(text: str) -> bool:
    """Return True if a text begins with a program that may start servers or add them to a client, or sets a variable.

    Such a program is a known runner, client, shell or installer, is given by a path, or is named like a server.
    """
    text = without_prompt(text)
    head = text.partition("\n")[0].strip()
    if _SETTING.fullmatch(head) or _SETTING_FIRST.match(head) or _adds(text.split(None, 4)[:4]):
        return True
    given = text
    if _ASSIGNMENT.match(text.strip()) and "=" in text.split()[0]:
        with suppress(UnclearSourceError, ValueError):  # assignments with quotes before the program
            words = _words(_logical_lines(_NEXT_LINE.sub(" ", text.strip()))[0])
            text = " ".join(words[next((at for at, one in enumerate(words) if not _ASSIGNMENT.fullmatch(one)), 0) :])
    first = text.split(None, 1)[:1]
    if not first:
        return False
    word = first[0]
    while (assigned := _ASSIGNMENT.fullmatch(word)) and (rest := text.strip().split()) and len(rest) > 1:
        text = text.strip().partition(" ")[2]
        word = text.split()[0] if text.split() else ""
        if assigned and not word:
            return False
    program = program_of(word)
    if _NAMED_MCP.fullmatch(text.strip()) or ("mcp" in program and text != given):
        return True
    return (
        program in RUNNERS | SHELLS | _FETCHES
        or program in _ADDERS
        or (_INSTALLERS.fullmatch(program) is not None and " " in text)
        or re.match(r"(?:~|\.\.?)?/[\w.@~<{$-].*[^/]$", word) is not None
        or (_BUILT.fullmatch(word) is not None and re.search("(?i)mcp|stdio", text) is not None)
        or _WINDOWS_PROGRAM.match(text.strip().lstrip("\"'")) is not None
    )


def holds_command(text: str) -> bool:
    """Return True if a line of a text begins with a program that starts servers, or adds one to a client."""
    lines = (words for line in text.splitlines() if (words := without_prompt(line).split(None, 4)[:4]))
    return any(program_of(words[0]) in RUNNERS or _adds(words) for words in lines)


def holds_only_commands(text: str) -> bool:
    """Return True if each line of a text is a command, a comment, or sets, installs, checks or activates something."""
    lines = map(without_prompt, _NEXT_LINE.sub(" ", text).splitlines())
    return all(
        is_command_line(line)
        or _setting(f"${line}") is not None
        or _prepares(line)
        or line.startswith("#")
        or _CHECKS.fullmatch(line)
        or _ACTIVATES.fullmatch(line)
        for line in lines
        if line
    )


def _words(line: str) -> list[str]:
    bare = re.sub(r"'[^']*'", "", line)
    # $( and backticks count inside double quotes, too
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', lambda quoted: "`" if re.search(r"`|\$\(", quoted[0]) else "", bare)
    if _SHELL.search(_PLACE.sub("", plain)):
        raise UnclearSourceError("This line needs a shell (it has |, ;, &, <, > or $(...))", "Paste one plain command")
    if expansion := _EXPANSION.search(bare):
        raise UnclearSourceError(f"This line needs a shell (it has {expansion[0]})", "Paste it with the value itself")
    line = _SPACED.sub(lambda place: place[0].replace(" ", "\0"), line)  # keep a placeholder as one word
    try:
        words = [word.replace("\0", " ") for word in split_command(line, exists=lambda path: False, windows=False)]
    except ValueError as error:
        raise UnclearSourceError(f"This line cannot be read: {error}", "Close its quotes") from None
    words = words[: words.index("#")] if "#" in words else words
    if left_out := next((word for word in words if _LEFT_OUT.search(word)), ""):
        raise UnclearSourceError(f"This line is a pattern: it contains {left_out}", "Paste the line with every word")
    if not words:
        raise UnclearSourceError("This names no server", "See: multi-mcp add --help")
    return words


def _runs(words: Sequence[str], line: str) -> Source:
    env: dict[str, str] = {}
    words = list(words)
    if words[0] == "export" or (words[0] == "env" and len(words) > 1 and "=" in words[1]):
        words = words[1:]
    while words and (pair := _ASSIGNMENT.fullmatch(words[0])):
        env[pair[1]] = pair[2]
        words = words[1:]
    if not words:
        raise UnclearSourceError("This sets variables and starts nothing", "Paste the command that starts the server")
    program = program_of(words[0])
    if re.search(r"[/\\].*\.(?:json[c5]?|toml|ya?ml|md|txt|env|conf|log)$", words[0], re.IGNORECASE):
        raise UnclearSourceError(f"{words[0]} is no program", "Paste the command that starts the server")
    if program == "sudo":
        raise UnclearSourceError("sudo may ask for a password, which nobody could type", "Paste the line without sudo")
    if program in SHELLS:
        raise UnclearSourceError(f"{words[0]} runs its own script, not one server", "Paste the command inside it")
    _refuse_bare(words)
    if program in _FETCHES:
        raise UnclearSourceError(f"{words[0]} installs or fetches something; it starts no server", "Paste what does")
    package = package_of(words)
    # `--package=x` becomes two words, as in `--package x`.
    plain = [part for word in words for part in (word.split("=", 1) if _NAMES_PACKAGE.match(word) else [word])]
    at = plain.index(package) if package in plain else 0
    behind = [] if not at or program in ("docker", "podman") else plain[at + 1 :]
    behind = behind[1:] if behind[:1] == ["--"] else behind
    if not (package.startswith("@smithery/cli") and behind[:1] == ["run"]):
        _refuse_installer(words)
    verb = [
        word
        for before, word in pairwise(words)
        if word[:1] != "-" and before not in VALUED_BEFORE and word != "compose"
    ]
    if program in _RUNS and verb[:1] and verb[0] not in _RUNS[program] and not verb[0].endswith(".dll"):
        hint = (
            "Paste the one with docker run -i"
            if program in ("docker", "podman")
            else "Paste the command that starts it"
        )
        raise UnclearSourceError(f"{words[0]} {verb[0]} starts no server", hint)
    if verb[:1] in (["add"], ["install"], ["i"]) or (verb[:1] == ["tool"] and verb[1:2] not in (["run"], ["exec"])):
        raise UnclearSourceError("This installs something and starts no server", "Paste the command that starts it")
    if program == "docker" and verb[:1] == ["mcp"] and verb[1:3] != ["gateway", "run"]:
        raise UnclearSourceError(
            "This line sets Docker's own MCP servers up", "Add its gateway: docker mcp gateway run"
        )
    if words[-1] in ("--version", "--help", "-h", "-V"):
        raise UnclearSourceError(f"{words[-1]} prints a text and ends", "Paste the command that starts the server")
    if program in ("docker", "podman") and words[1:2] == ["run"]:
        words = _without_terminal(words)
    note = ""
    if (options := container_options(words)) is not None:
        if not reads_input(options):
            runs = " ".join(words[len(options) :])  # its image, and what runs in it
            if words[1] != "run" or re.search("(?i)mcp|stdio", runs) is None:
                raise UnclearSourceError(
                    "This container does not read its input, so it is not a stdio server",
                    "Add -i behind run, or start it and add its address",
                )
            words, note = [*words[:2], "-i", *words[2:]], WITHOUT_INPUT
        note += MAY_SPEAK_HTTP if any(map(PUBLISHES.fullmatch, options)) else ""
    speaks = any(
        word.lower() in HTTP or _HTTP_OPTION.fullmatch(word) or (before == "--transport" and word.startswith("http"))
        for before, word in pairwise(words)
    )
    bridges = any(word.startswith(("http://", "https://")) for before, word in pairwise(words) if before[0] != "-")
    if speaks and not bridges and _bare(package_of(words)) not in BRIDGES:  # a bridge connects to an HTTP server
        raise UnclearSourceError("This server speaks HTTP, not stdio", "Start it, and add its address instead")
    serves = any(re.match(r"--(?:stdio|(?:sse-)?port)(?:=|$)", word) for word in words)
    if serves and not bridges and {_bare(package), program} & BRIDGES and not any("http" in word for word in words):
        raise UnclearSourceError("This listens on a port", "Paste the command of the server behind it")
    mentions = any("mcp" in word.lower() for word in words)
    tool = package if package in _TOOLS and not mentions else next(iter({package, script_of(words)} & _CHECKERS), "")
    if tool:
        raise UnclearSourceError(f"{tool} is a developer's tool, not a server", "Paste the command of the server")
    refuse_verb(words)
    refuse_developers_script(words)
    if program == "uv" and (script := script_of(words)) in words:
        behind = words[words.index(script) + 1 :]
    elif program == "go":
        behind = words[3:]
    if at and behind and plain[at - 1] in ("--from", "-p", "--package"):
        if _SETUP_PROGRAM.search(behind[0]):
            raise UnclearSourceError(f"{behind[0]} starts no server", "Paste the command that starts it")
        behind = behind[1:]  # the program from that package
    elif program in ("cargo", "dotnet", "npm", "pnpm", "yarn") and "--" in words:
        behind = words[words.index("--") + 1 :]  # the words for the program that it builds or runs
    built = program in ("cargo", "dotnet") or (program == "go" and words[2:3] and words[2][0] == ".")
    built = built or program in ("npx", "bunx", "pnpx", "uvx", "pipx")
    if built and behind and _SUBCOMMAND.fullmatch(behind[0]) and not _SERVING.search(" ".join(words[2:])):
        said = " ".join(words[: words.index(behind[0]) + 1])
        raise UnclearSourceError(
            f"{said} does not look like a server's command", "If it is one: multi-mcp add NAME -- COMMAND"
        )
    if behind[:1] and behind[0] in ("serve", "server", "start") and "--port" in behind and "--stdio" not in behind:
        raise UnclearSourceError("This server listens on a port", "Start it, and add its address instead")
    refuse_http(words, env)
    if user := next(filter(_USES_SERVERS.match, words), ""):
        raise UnclearSourceError(f"{user} is not a server; it uses servers", "Paste the command that starts the server")
    if program in ("docker", "podman") and words[1] == "run" and not package:
        raise UnclearSourceError("This names no image", "Paste the whole command")
    options = words[words.index(package) :] if program in ("docker", "podman") and package else words[1:]
    own_port = any(word.partition("=")[0] == "--port" for word in options)
    if "--listen" in options or (own_port and mentions and not _CONNECTS.search(" ".join(options))):
        raise UnclearSourceError("This server listens on a port", "Start it, and add its address instead")
    inside = options[1:] if program in ("docker", "podman") and words[1] == "run" else []  # what a container runs
    shell = next((after for before, after in pairwise(words) if before == "--entrypoint"), "")
    shell = shell if shell and not inside else "".join(inside[:1]) if len(inside) == 1 else ""
    if program_of(shell) in SHELLS or (inside and program_of(inside[0]) in _CHECKERS):
        raise UnclearSourceError(f"This container runs {shell or inside[0]}, not a server", "Paste what starts it")
    if inside:
        refuse_developers_script(inside)
    if setup := _setup_verb(behind or inside) or next(filter(_SETUP_OPTION.fullmatch, options), ""):
        address = redacted(_address_in(behind))
        hint = (
            f"If that is the server, add the address itself: {address}"
            if address
            else "Paste the command that starts it"
        )
        raise UnclearSourceError(f"{package or words[0]} {setup} starts no server", hint)
    if file := next(
        (word for before, word in pairwise(options) if before in _OUTPUT and re.search(r"\.\w+$", word)), ""
    ):
        raise UnclearSourceError(f"This writes {file} and ends", "Paste the command that starts the server")
    developers = _DEVELOPERS_FOLDER if program == "go" else _DEVELOPERS
    if script := next(filter(developers.match, words), ""):
        raise UnclearSourceError(f"{script} is a developer's script, not a server", "Paste the command of the server")
    entry: Entry = with_passed({"command": words[0], "args": words[1:]} | ({"env": env} if env else {}))
    return Source(name_for(entry), entry, f"a command line{note}", wanted(entry))


def _refuse_bare(words: Sequence[str]) -> None:
    """Raise UnclearSourceError for a runner without anything to run."""
    program = program_of(words[0])
    bare = all(word.startswith("-") or word in _RUN_WORDS for word in words[1:]) and not package_of(list(words))
    if program in RUNNERS and bare and (len(words) == 1 or program not in ("cargo", "dotnet")):
        raise UnclearSourceError(f"{' '.join(words)} alone starts no server", "Paste the whole command")


def _refuse_installer(words: Sequence[str]) -> None:
    """Raise UnclearSourceError, with the server in its hint, for a program that adds servers to other programs."""
    at = next((at for at, word in enumerate(words) if _INSTALLERS.search(word)), None)
    if at is None:
        return
    behind = list(words[at + 1 :])
    if "--" in behind:  # the server's command follows: make it one word
        behind = [*behind[: behind.index("--")], " ".join(behind[behind.index("--") + 1 :])]
    plain = [
        word
        for before, word in pairwise(["", *behind])
        if word[:1] != "-" and word not in _SETUP_VERBS and (before[:1] != "-" or before in ("-y", "--yes", "-g"))
    ]
    address = _address_in(behind)
    command = next(filter(_is_quoted_command, plain), "")
    hint = "Paste the server's own command"
    if command or address:
        named = f"command inside it: {command}" if command else f"address itself: {address}"
        hint = f"Add the {named}" if redacted(named) == named else f"Add the {named.partition(':')[0]}"
    elif plain and "smithery" in words[at]:
        hint = f"Look it up: multi-mcp find {name_of_package(plain[0])}"
    elif plain and _PACKAGE_FORM.fullmatch(plain[0]):
        hint = (
            f"If {plain[0]} is a package of npm, add npm:{plain[0]}; else: multi-mcp find {name_of_package(plain[0])}"
        )
    raise UnclearSourceError("This runs an installer that writes other programs' files", hint)


def _address_in(words: Sequence[str]) -> str:
    return next((word for word in words if re.match(r"https?://\w", word)), "")


def _setup_verb(behind: Sequence[str]) -> str:
    """Return the word that makes a package set up or print something instead of serving; "" if there is none.

    `behind`: the words after the package. After `mcp`, the result is two words, such as `mcp install`.
    """
    if behind[:1] == ["mcp"] and set(behind[1:2]) & _SETUP_VERBS:
        return " ".join(behind[:2])
    for at, word in enumerate(behind):
        if _SETUP_OPTION.fullmatch(word) or (at == 0 and (word in _SETUP_VERBS or _SETUP_TASK.fullmatch(word))):
            return word
        if at < 2 and (word in _SETUP_LATER or word.endswith(("-setup", "-install", "-init", "-login"))):
            return word
    return ""


def _without_terminal(words: Sequence[str]) -> list[str]:
    """Return `docker run` without -t: a server has no terminal.

    Raises UnclearSourceError if the container runs in the background, or wants a terminal and a port.
    """
    options = container_options(words) or []
    if any(map(DETACHED.fullmatch, options)):
        raise UnclearSourceError("This container runs in the background", "Start it, and add its address instead")
    own = without_terminal(options)
    if own != options and any(map(PUBLISHES.fullmatch, own)):
        raise UnclearSourceError("This container wants a terminal and a port", "Start it, and add its address instead")
    return [*own, *words[len(options) :]]


# --- verbs of clients


def _mcp_add(kind: str, home: Path, windows: bool, words: Sequence[str]) -> list[Source] | None:
    """Return the server in the words after `CLIENT mcp`; None for another verb. Raises UnclearSourceError.

    The forms are `add [options] NAME [--] COMMAND... | URL` and `add-json NAME JSON` (also `set NAME JSON`).
    """
    if words[:1] in (["add-json"], ["set"]):
        plain = [_json_word(word) for word in _AddOptions(words[1:]).plain]
        text = next((word for word in plain if word.lstrip().startswith("{")), "")
        if plain[:1] in ([], [text]) or not text:
            title = f"{kind.removesuffix(' add')} {words[0]} needs a name and JSON"
            raise UnclearSourceError(title, "Paste the whole line, including its quotes")
        (one,) = read_document(text, kind, home, windows=windows)
        return [Source(plain[0], one.entry, kind, one.wants, one.left_out)]
    if words[:1] not in (["add"], ["a"]):
        return None
    given = _AddOptions(words[1:], anywhere=kind != "codex mcp add", passes_unknown=kind in _PASSES_UNKNOWN)
    name = given.named("--name") or (given.plain[0] if given.plain else "")
    rest = given.plain if given.named("--name") else given.plain[1:]
    remote = given.named(*_TRANSPORT) in HTTP
    addresses = (word for word in rest[:1] if _is_address(word) or (remote and len(rest) == 1))
    url = given.named("--url") or next(addresses, "")
    env, headers = given.pairs("=", *_ENV), _json_pairs(given.named("--headers")) | given.pairs(":", *_HEADER)
    if kind in _BY_COMMA:
        env = dict(
            word.split("=", 1) for pair in env.items() for word in re.split(r",(?=[A-Za-z_]\w*=)", "=".join(pair))
        )
    if url:  # a remote server gets no variables; some authors write its headers as variables
        headers |= {name: env.pop(name) for name in list(env) if "-" in name or name == "Authorization"}
    own = list(filter(str.isidentifier, given.every(*_ENV)))  # `-e NAME`: the value comes from the shell
    env |= dict.fromkeys(own, "")
    entry: Entry
    if name.startswith("<") and _PLACE.fullmatch(url or " ".join(rest)):
        raise UnclearSourceError(f"This line is a pattern: it contains {name}", "Paste the line with every word")
    if url:
        kind_of = given.named(*_TRANSPORT)
        entry = {"url": url} | ({"type": "sse"} if kind_of == "sse" else {}) | ({"headers": headers} if headers else {})
        token = given.named("--bearer-token-env-var")
        if token and not is_variable_name(token):
            entry["headers"] = {"Authorization": f"Bearer {token}", **headers}
        elif token:
            entry |= {"auth": "bearer", "bearer_token_env": token}
        client, port = given.named("--client-id"), given.named("--callback-port")
        entry |= (
            {"client_secret": given.named(_CLIENT_SECRET)} if _CLIENT_SECRET in words else {}
        )  # "": the user is asked for it
        entry |= ({"client_id": client} if client else {}) | ({"callback_port": int(port)} if port.isdecimal() else {})
    else:
        command = given.named("--command")
        by_comma = kind in _BY_COMMA or program_of(command) in RUNNERS
        is_line = _is_quoted_command(command) or re.match(r"[\w.-]+ \S", command)  # else: a path with blanks
        line = [*(_words(command) if is_line else [command]), *_args(given.every("--args"), by_comma)]
        if not command or (line == [command] and "--" in words):
            line = [*filter(None, line), *rest]
        if len(line) == 1 and (option := given.unknown.get(line[0], "")):
            if option not in _PACKAGE_OPTIONS or not _PACKAGE_FORM.fullmatch(line[0]):
                title = f"{kind} has no option {option}, so this line names no command"
                raise UnclearSourceError(title, f"Paste it as: {kind} {name} -- COMMAND")
            line = ["npx", "-y", line[0]]
        if len(line) == 1 and " " in line[0] and not _WINDOWS_PROGRAM.fullmatch(line[0]):
            line = _words(line[0])
        elif line and _is_quoted_command(line[0]):
            raise UnclearSourceError(f"{kind}: words follow the quoted command", "Paste it without those quotes")
        is_program = program_of(name) in RUNNERS and re.search(r"\.(?:[cm]?[jt]s|py|jar)$", " ".join(line[:1]))
        if not name or not line or is_program:
            raise UnclearSourceError(f"{kind} needs a name, and a command or a url", "Paste the whole line")
        entry = {"command": line[0], "args": list(line[1:])} | ({"env": env} if env else {})
        entry, note = with_input(with_words_apart(without_env(entry if windows else without_cmd(entry))))
        _refuse_bare([entry["command"], *entry["args"]])
        if _prepares(" ".join([entry["command"], *entry["args"]])):
            raise UnclearSourceError(f"{entry['command']} installs something; it starts no server", "Paste what does")
        refuse_verb([entry["command"], *entry["args"]])
        entry = with_passed(entry)
        kind += note
    for option, key in (("--include-tools", "include_tools"), ("--exclude-tools", "exclude_tools")):
        tools = [tool for value in given.every(option) for tool in re.split(r"[,\s]+", value) if tool]
        entry |= {key: tools} if tools else {}
    # the unit of a timeout differs from client to client
    left_out = [key for key, is_given in (("timeout", given.named("--timeout")), ("env", url and env)) if is_given]
    left_out += given.unused
    empty = [("env", name) for name, value in env.items() if not value and name not in own]
    wants = tuple(replace(one, stays=not one.required and one.keys in empty) for one in wanted(entry))
    return [Source(name or name_for(entry), entry, kind, wants, tuple(left_out))]


_PASSES_UNKNOWN = frozenset(("gemini mcp add", "qwen mcp add"))
_BY_COMMA = frozenset(("q mcp add", "kiro-cli mcp add"))  # there, `--args a,b` means two words


def _args(given: Sequence[str], by_comma: bool) -> list[str]:
    """Return the words of `--args`: of a JSON list or, with `by_comma`, of one word with commas; else as given."""
    if len(given) == 1 and given[0].startswith("["):
        with suppress(ValueError):
            listed = json.loads(given[0])
            if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
                return listed
    return given[0].split(",") if by_comma and len(given) == 1 and " " not in given[0] else list(given)


def _json_pairs(text: str) -> dict[str, str]:
    """Return the headers of `--headers '{...}'` (Kiro); {} if the text is not a JSON object."""
    with suppress(ValueError):
        pairs = json.loads(text or "{}")
        return {str(name): str(value) for name, value in pairs.items()} if isinstance(pairs, dict) else {}
    return {}


_ENV = ("-e", "--env")
_HEADER = ("-H", "--header", "--http-header")
_TRANSPORT = ("-t", "--transport", "--type")
_VALUED = frozenset((
    "-s", "--scope", *_TRANSPORT, *_ENV, *_HEADER, "--url", "--name", "--command", "--args",
    "--headers", "--timeout", "--client-id", "--callback-port", "--bearer-token-env-var", "--description",
    "--agent", "--include-tools", "--exclude-tools", "--allowed-tools", "--tools", "--auth",
))  # fmt: skip
_ANYWHERE = frozenset(("-s", "--scope", *_TRANSPORT, *_ENV, *_HEADER))
# The options of Gemini CLI and Qwen Code, each with the form of its value.
_KNOWN_VALUES = {
    ("-s", "--scope"): "user|project|local", _TRANSPORT[:2]: "stdio|sse|http", _ENV: r"[A-Za-z_]\w*=.*",
    _HEADER: r"[\w-]+\s*:.*", ("--timeout",): r"\d+", ("--description",): r"(?!-).+",
    ("--include-tools", "--exclude-tools"): r"(?!-).+",
}  # fmt: skip
_CLIENT_SECRET = "--client-secret"
_FLAGS = frozenset((
    "--force", "--trust", "--verbose", "--disabled", "--enabled", "--stdio", "--http", "--sse", "--remote",
    "--local", "--global", "--user", "--project", "--yes",
))  # fmt: skip
_PACKAGE_OPTIONS = frozenset(("--npm-package", "--npm", "--package"))


class _AddOptions:
    """Options and plain words of a client's `mcp add`; all words after `--` are plain.

    `anywhere`: before `--`, the client also takes its options after the first word of the server's command, as Claude
    Code and Gemini CLI do, but not Codex. `passes_unknown`: the client takes its own options anywhere before `--`, and
    passes all others to the server.
    """

    def __init__(self, words: Sequence[str], *, anywhere: bool = True, passes_unknown: bool = False) -> None:
        self.plain: list[str] = []
        self.unknown: dict[str, str] = {}  # the plain word after an unknown option -> that option
        self.unused: list[str] = []  # the client's options that have no meaning here
        self._given: dict[str, list[str]] = {}
        words = list(words)
        while words:
            word = words.pop(0)
            name, equals, value = word.partition("=")
            if word == "--":
                self.plain += words
                return
            asked = name == _CLIENT_SECRET and words[:1] and words[0][:1] != "-"
            if asked or (name in _VALUED and (equals or words)):
                self._given.setdefault(name, []).append(value if equals else words.pop(0))
                taken: list[str] = []
                if name == "--args":  # takes further words, options of the server included (Hermes)
                    taken += takewhile(lambda word: word.partition("=")[0] not in _VALUED | _FLAGS | {"--"}, words)
                elif name in _ENV:  # `-e A=1 B=2`
                    taken += takewhile(lambda word: _ASSIGNMENT.fullmatch(word) is not None, words)
                self._given[name] += taken
                del words[: len(taken)]
            elif self.plain and {"--command", "--url"} & self._given.keys() and not word.startswith("-"):
                # the value of an unknown option: --command or --url already says what to start
                self.unused += [self.unknown[word].lstrip("-")] if word in self.unknown else []
            elif len(self.plain) == 1 and words and word in ("stdio", *HTTP):  # `add NAME stdio COMMAND`
                self._given.setdefault("--transport", []).append(word)
            elif len(self.plain) >= 2 or (len(self.plain) == 1 and not word.startswith("-")):
                if passes_unknown:
                    own = [word, *takewhile("--".__ne__, words)]
                    self.plain += [*self._without_known(own), *words[len(own) :]]
                elif "--" in words:  # the first `--` ends the client's options, wherever it is
                    at = words.index("--")
                    own = [word, *words[:at]]
                    self.plain += [*(self._without_options(own) if anywhere else own), *words[at + 1 :]]
                else:
                    self.plain += self._without_options_at_end([word, *words])
                self._hoist()
                return
            elif not word.startswith("-"):
                self.plain.append(word)
            elif self.plain and "--" in words[1:] and not words[0].startswith("-"):
                words.pop(0)  # the value of an unknown option
                self.unused.append(name.lstrip("-"))
            elif words and name.startswith("--") and not equals and name not in _FLAGS and words[0][0:1] != "-":
                self.unknown[words[0]] = name
            elif equals and name.startswith("--"):
                self.unused.append(name.lstrip("-"))

    def _without_options(self, words: list[str]) -> list[str]:
        """Take the client's options among the first words of the server's command. Return the others.

        If any other option is among them, all words are taken as the server's: the client itself refuses such a line.
        """
        given: list[tuple[str, str]] = []
        plain: list[str] = []
        left = list(words)
        while left:
            word = left.pop(0)
            name, equals, value = word.partition("=")
            if name in _ANYWHERE and (equals or left):
                given.append((name, value if equals else left.pop(0)))
            elif given and given[-1][0] in _ENV and _ASSIGNMENT.fullmatch(word):  # `-e A=1 B=2`
                given.append((given[-1][0], word))
            elif word.startswith("-"):
                return words
            else:
                plain.append(word)
        for name, value in given:
            self._given.setdefault(name, []).append(value)
        return plain

    def _without_known(self, words: Sequence[str]) -> list[str]:
        """Take the client's options whose values have the form in _KNOWN_VALUES. Return the server's words.

        Options of a container or a bridge stay with it, as their author meant: `docker run -e`, `mcp-remote --header`.
        """
        plain: list[str] = []
        left = list(words)
        while left:
            word = left.pop(0)
            name, equals, value = word.partition("=")
            value = value if equals else next(iter(left), "")
            form = next((form for names, form in _KNOWN_VALUES.items() if name in names), None)
            inner = (name in _ENV and {"docker", "podman"} & {*words}) or (
                name in _HEADER and not _is_address(words[0])
            )
            if name == "--trust":
                continue
            if form is None or inner or not re.fullmatch(form, value):
                plain.append(word)
                continue
            self._given.setdefault(name, []).append(value)
            del left[: 0 if equals else 1]
        return plain

    def _without_options_at_end(self, words: list[str]) -> list[str]:
        """Take the client's `--scope` and `--env` from the end of the server's command. Return the other words."""
        while len(words) > 2:
            name, value = words[-2:]
            scope = name in ("-s", "--scope") and value in ("user", "local", "project", "global")
            env = name in _ENV and _ASSIGNMENT.fullmatch(value) and not {"docker", "podman"} & {*self.plain, *words}
            if not scope and not env:
                break
            self._given.setdefault(name, []).insert(0, value)
            words = words[:-2]
        return words

    def _hoist(self) -> None:
        """Move options after a URL or a quoted command to the client's options: `add NAME URL --header ...`.

        Plain words after these are dropped.
        """
        remote = self.named(*_TRANSPORT) in HTTP
        is_address = len(self.plain) > 2 and (remote or _is_address(self.plain[1]))
        has_option = len(self.plain) > 2 and self.plain[2].startswith("-")
        if is_address or (has_option and _is_quoted_command(self.plain[1])):
            behind = _AddOptions(["x", *self.plain[2:]]) if has_option else None
            if behind is not None:
                for name, values in behind._given.items():
                    self._given.setdefault(name, []).extend(values)
            self.plain = self.plain[:2]

    def named(self, *names: str) -> str:
        return next((self._given[name][-1] for name in names if name in self._given), "")

    def every(self, *names: str) -> list[str]:
        return [value for name in names for value in self._given.get(name, ())]

    def pairs(self, mark: str, *names: str) -> dict[str, str]:
        """Return names and values, split at the mark or at `=`, whichever comes first. Drop words without either."""
        split = [value.partition((re.search(f"[{mark}=]", value) or mark)[0]) for value in self.every(*names)]
        return {name.strip(): value.strip() for name, found, value in split if found}


def _is_address(word: str) -> bool:
    """Return True for an address, or an author's placeholder for one: `<MCP URL>`."""
    return (
        word.startswith(("http://", "https://"))
        or re.fullmatch(r"(?i)<[^<>]*(?<![a-z])(?:url|endpoint|address)(?![a-z])[^<>]*>\S*", word) is not None
    )


def _is_quoted_command(word: str) -> bool:
    """Return True for a whole command in one word, as in `"npx -y pkg"`. False for a path with blanks."""
    first, blank, _ = word.partition(" ")
    return bool(blank) and program_of(first) in RUNNERS


def _client(kind: str) -> Callable[[Sequence[str], Path, bool], list[Source] | None]:
    def read(words: Sequence[str], home: Path, windows: bool) -> list[Source] | None:
        for option, config in pairwise(words):
            if option == "--mcp-config" and config.startswith("{"):
                return read_document(_json_word(config), kind, home, windows=windows)
            if option.startswith("--with-") and option.endswith("-extension"):  # goose: a command or an address
                entry = {"url": config}
                remote = _is_address(config)
                return (
                    [Source(name_for(entry), entry, kind, wanted(entry))]
                    if remote
                    else _of_line(config, home, windows=windows)
                )
        return _mcp_add(kind, home, windows, words[1:]) if words[:1] == ["mcp"] else None

    return read


def _editor(words: Sequence[str], home: Path, windows: bool) -> list[Source] | None:
    """Return the servers of `code --add-mcp '{...}'`; None without that option. Raises UnclearSourceError."""
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == "--add-mcp":
            text = value if equals else next(iter(words[at + 1 :]), "")
            if not text:
                raise UnclearSourceError("This names no server", "Paste the whole line")
            return read_document(_json_word(text), "code --add-mcp", home, windows=windows)
    return None


def _json_word(text: str) -> str:
    """Return JSON from a word of a command line, without the escapes that older PowerShells require before quotes."""
    return text.replace('"""', '"').replace('\\"', '"') if text.startswith(('{"""', '{\\"')) else text


# `claude mcp serve` and `codex mcp-server` are servers; a client's other subcommands are not.
_SERVES: tuple[list[str], ...] = (["serve"], ["server"], ["start"], ["run"], [])

_CLIENTS = ("claude", "codex", "gemini", "qwen", "copilot", "amp", "droid", "kiro-cli", "devin", "auggie", "q", "goose",
            "kimi", "opencode", "cursor-agent", "crush", "kilo")  # fmt: skip
_ADDERS: dict[str, Callable[[Sequence[str], Path, bool], list[Source] | None]] = {
    **{name: _client(f"{name} mcp add") for name in _CLIENTS},
    **dict.fromkeys(("code", "code-insiders", "codium", "cursor", "windsurf"), _editor),
}  # fmt: skip
