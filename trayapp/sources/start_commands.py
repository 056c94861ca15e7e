"""Read a command that starts one server. Refuse commands that do something else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any

from trayapp.config.programs import program_of
from trayapp.config.read.command import split_command
from trayapp.model.redact import redacted
from trayapp.sources.programs import (
    ASSIGNMENT,
    BRIDGES,
    CONTAINERS,
    PODS,
    RUNNERS,
    SHELLS,
    container_options,
    name_of_package,
    package_of,
    script_of,
    words_of,
)
from trayapp.sources.source import START_FIRST, Entry, Source, UnclearSourceError, source_of, with_passed

# Scripts that build, check or publish a package: `npm run build:all`, `yarn lint`, `npm audit`.
_DEVELOPERS_SCRIPT = re.compile(
    r"(?!\S*(?:mcp|serve|start|stdio))(?:build|compile|bundle|test|lint|format|check|typecheck|coverage|clean|docs|watch"
    r"|ci|audit|ls|pack|prepare|publish|release|deploy|auth|login|setup|init|configure|migrate|seed|uninstall|remove"
    r"|update|upgrade|link|unlink|cache|view|info)(?:[:-]\S*)?"
)
_VALUED_BEFORE = frozenset((  # options of package managers that take a value
    "--prefix", "-C", "--dir", "--cwd", "--filter", "-w", "--workspace", "--directory", "--project", "-f", "--file",
))  # fmt: skip
HTTP = frozenset(("http", "sse", "streamablehttp", "streamable-http", "streamable_http"))
_HTTP_SWITCH = re.compile(r"(?:.*_)?(?:HTTP|SSE)(?:_STREAM[A-Z]*)?_(?:SERVER|MODE|TRANSPORT)|(?:.*_)?STREAMABLE_HTTP")
FETCHERS = frozenset(
    ("curl", "wget", "iwr", "irm", "pip", "pip3", "gem", "brew", "git", "apt", "apt-get", "winget", "choco")
)
# Program -> its subcommands that run something. All others build, install or test.
_RUNS = {
    "npm": {"run", "run-script", "start", "exec", "x"}, "cargo": {"run"}, "go": {"run", "tool"},
    "dotnet": {"run", "exec", "tool"}, "uv": {"run", "tool"}, "pipx": {"run"}, "poetry": {"run"}, "pdm": {"run"},
    "dart": {"run", "pub", "mcp-server"}, "swift": {"run"}, "op": {"run"}, "infisical": {"run"}, "doppler": {"run"},
    "hatch": {"run"}, "rye": {"run"}, "pixi": {"run", "exec"}, "nix": {"run"}, "mise": {"x", "exec"},
    "docker": {"run", "exec", "mcp"}, "podman": {"run", "exec"}, "bundle": {"exec"},
    "conda": {"run"}, "mamba": {"run"}, "micromamba": {"run"},
}  # fmt: skip
BUILDERS = frozenset(("npm", "pnpm", "yarn", "cargo", "go", "dotnet"))  # their subcommands mostly build or install

# A whole path, whose folders may contain spaces: C:\Program Files\acme\acme.exe
WINDOWS_PROGRAM = re.compile(r"[A-Za-z]:[\\/](?:(?!\.(?:exe|cmd|bat)\s).)*\.(?:exe|cmd|bat)", re.IGNORECASE)
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
_SHELL = re.compile(r"[|;&<>`\n]|\$\(|(?<!\S)\([A-Z][a-z]+-[A-Z]")  # the last form is PowerShell's `(Get-...)`
_EXPANSION = re.compile(r"\$\{\w+(?:[%#/^,@+]|:[\d+?=])[^}]{0,40}\}?")  # `${NAME%/}`: only a shell can evaluate it
PLACE = re.compile(r"<[^\W\d_][\w.-]*(?:[ |/][\w.-]+)*>")  # a placeholder (`<REPO>`, `<your token>`), not a redirection
_SPACED = re.compile(r"<[^\W\d_][\w.-]*(?: [\w.,-]+)+>|(?<=\s)\[[^\W\d_][\w.-]*(?: [\w.,-]+)+\](?=\s|$)")
# Words that stand for omitted ones: `npx ... mcp`, `add [-e KEY=VALUE ...]`, `npx x <command> [flags]`
LEFT_OUT = re.compile(
    r"^(?:\.\.\.|\u2026)$|^\[-|(?:\.\.\.|\u2026)\]$"
    r"|^(?:\[(?:\w+ )?(?i:flags|options|arg(?:ument)?s|command)\]|[<{](?:sub)?command[>}])$"
)
# Programs that add servers to other programs, recognized by words in their names.
INSTALLERS = re.compile(
    r"@?smithery(?:/cli)?(?:@|$)|(?:^|/)(?:(?:install|add|get|setup)-(?:mcps?|skills?)|mcps?-(?:install|add|get|setup)|mcpm|mcpick|skills"
    r"|create-[\w-]+|(?:[\w-]+-)?wizard|[\w-]+-(?:doctor|installer))(?:@|$)|(?:^|/)(?:setup|install)[\w-]*\.(?:py|[cm]?[jt]s|rb)$"
)
PACKAGE_FORM = re.compile(r"(?:@[\w.~-]+/)?[\w.~-]+(?:@[\w.+~^-]+)?")
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
# Options that show that `--port` is not the server's own port.
_CONNECTS = re.compile("stdio|--(?:user|pass|db|database|url|ui)", re.IGNORECASE)
_HTTP_OPTION = re.compile(
    rf"(?i)--?(?:[\w.-]*(?:transport|mode|profiles\.active)=)?(?:{'|'.join(HTTP)})|-D\S*stdio=false"
)
_SUBCOMMAND = re.compile(r"[a-z][a-z-]{2,}")
ADD_ANYWAY = "To add it as a server: multi-mcp add NAME -- COMMAND"
SERVING_WORD = re.compile("mcp|serve|stdio|start|run", re.IGNORECASE)
_RUN_WORDS = frozenset(("run", "exec", "x", "dlx", "tool"))
_NAMES_PACKAGE = re.compile(r"--(?:from|package)=")
_OUTPUT = ("-o", "--out", "--output")


def is_preparation(line: str) -> bool:
    """Return True for a line that installs, fetches or builds something, and does nothing else."""
    bare = PLACE.sub("", re.sub(r"'[^']*'|\"[^\"`$]*\"", "", line))
    return _PREPARES.fullmatch(" ".join(line.split())) is not None and _SHELL.search(bare) is None


def without_version(package: str) -> str:
    """Return a package without its version: `acme-mcp` for `acme-mcp@1.2` and `acme-mcp==1.2`."""
    return re.sub(r"(?<=.)(?:@|==).*", "", package)


def words_of_line(line: str) -> list[str]:
    """Return the words of a line as a shell splits them.

    Raises UnclearSourceError if the line needs a shell, is incomplete, or has no words.
    """
    bare = re.sub(r"'[^']*'", "", line)
    # $( and backticks count inside double quotes, too
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', lambda quoted: "`" if re.search(r"`|\$\(", quoted[0]) else "", bare)
    if _SHELL.search(PLACE.sub("", plain)):
        raise UnclearSourceError("This line needs a shell (it has |, ;, &, <, > or $(...))", "Paste one plain command")
    if expansion := _EXPANSION.search(bare):
        raise UnclearSourceError(f"This line needs a shell (it has {expansion[0]})", "Paste it with the value itself")
    line = _SPACED.sub(lambda place: place[0].replace(" ", "\0"), line)  # keep a placeholder as one word
    try:
        words = [word.replace("\0", " ") for word in split_command(line, exists=lambda path: False, windows=False)]
    except ValueError as error:
        raise UnclearSourceError(f"This line cannot be read: {error}", "Close its quotes") from None
    words = words[: words.index("#")] if "#" in words else words
    if left_out := next((word for word in words if LEFT_OUT.search(word)), ""):
        raise UnclearSourceError(f"This line is incomplete: it contains {left_out}", "Paste the line in full")
    if not words:
        raise UnclearSourceError("This describes no server", "See: multi-mcp add --help")
    return words


def read_start_command(words: Sequence[str]) -> Source:
    """Return the server that a command starts. Raises UnclearSourceError if it does something else."""
    env: dict[str, str] = {}
    words = list(words)
    if words[0] == "export" or (words[0] == "env" and "=" in "".join(words[1:2])):
        words = words[1:]
    while words and (pair := ASSIGNMENT.fullmatch(words[0])):
        env[pair[1]] = pair[2]
        words = words[1:]
    if not words:
        raise UnclearSourceError("This sets variables and starts nothing")
    program = program_of(words[0])
    in_container = program in CONTAINERS
    if re.search(r"[/\\].*\.(?:json[c5]?|toml|ya?ml|md|txt|env|conf|log)$", words[0], re.IGNORECASE):
        raise UnclearSourceError(f"{words[0]} is not a program")
    if program == "sudo":
        raise UnclearSourceError("sudo may ask for a password, which nobody could type", "Paste the line without sudo")
    if program in SHELLS:
        raise UnclearSourceError(f"{words[0]} is a shell command that may run anything")
    refuse_bare_runner(words)
    if program in FETCHERS:
        raise UnclearSourceError(f"{words[0]} installs or fetches something; it starts no server")
    package = package_of(words)
    # `--package=x` becomes two words, as in `--package x`.
    plain = [part for word in words for part in (word.split("=", 1) if _NAMES_PACKAGE.match(word) else [word])]
    at = plain.index(package) if package in plain else 0
    behind = [] if not at or in_container else plain[at + 1 :]
    behind = behind[1:] if behind[:1] == ["--"] else behind
    if not (package.startswith("@smithery/cli") and behind[:1] == ["run"]):
        _refuse_installer(words)
    verb = [word for word in _plain_words(words) if word != "compose"]
    if program in _RUNS and verb[:1] and verb[0] not in _RUNS[program] and not verb[0].endswith(".dll"):
        title = f"{words[0]} {verb[0]} starts no server"
        raise UnclearSourceError(title, *(["Paste the line with docker run -i"] if in_container else []))
    if verb[:1] in (["add"], ["install"], ["i"]) or (verb[:1] == ["tool"] and verb[1:2] not in (["run"], ["exec"])):
        raise UnclearSourceError("This installs something and starts no server")
    if program == "docker" and verb[:1] == ["mcp"] and verb[1:3] != ["gateway", "run"]:
        title = "This line sets up Docker's own MCP servers"
        raise UnclearSourceError(title, "Add its gateway: docker mcp gateway run")
    if words[-1] in ("--version", "--help", "-h", "-V"):
        raise UnclearSourceError(f"{words[-1]} only prints text and exits")
    note = ""
    if (options := container_options(words)) is not None:
        runs = words[len(options) :]  # the image, and the command in the container
        if words[1] == "run":
            if any(map(_DETACHED.fullmatch, options)):
                raise UnclearSourceError("This container runs in the background", START_FIRST)
            own = _without_terminal(options)
            if own != options and any(map(_PUBLISHES.fullmatch, own)):
                raise UnclearSourceError("This container needs a terminal and opens a port", START_FIRST)
            options = own
        if not _reads_input(options):
            if words[1] != "run" or re.search("(?i)mcp|stdio", " ".join(runs)) is None:
                title = "This container does not read its input, so it is not a stdio server"
                raise UnclearSourceError(title, "Add -i after run, or start it and add its address")
            options, note = [*options[:2], "-i", *options[2:]], WITHOUT_INPUT
        words, note = [*options, *runs], note + (MAY_SPEAK_HTTP if any(map(_PUBLISHES.fullmatch, options)) else "")
    speaks = any(
        word.lower() in HTTP or _HTTP_OPTION.fullmatch(word) or (before == "--transport" and word.startswith("http"))
        for before, word in pairwise(words)
    )
    connects = any(word.startswith(("http://", "https://")) for before, word in pairwise(words) if before[0] != "-")
    if speaks and not connects and without_version(package) not in BRIDGES:  # bridges connect to HTTP servers
        raise UnclearSourceError("This server speaks HTTP, not stdio", START_FIRST)
    is_bridge = bool({without_version(package), program} & BRIDGES)
    serves = any(re.match(r"--(?:stdio|(?:sse-)?port)(?:=|$)", word) for word in words)
    if serves and is_bridge and not connects and not any("http" in word for word in words):
        title = "This is a bridge that listens on a port"
        raise UnclearSourceError(title, "Paste the command of the server that it starts")
    mentions = any("mcp" in word.lower() for word in words)
    tool = package if package in _TOOLS and not mentions else next(iter({package, script_of(words)} & _CHECKERS), "")
    if tool:
        raise UnclearSourceError(f"{tool} is a developer's tool, not a server")
    refuse_verb(words)
    refuse_developers_script(words)
    if program == "uv" and (script := script_of(words)) in words:
        behind = words[words.index(script) + 1 :]
    elif program == "go":
        behind = words[3:]
    if at and behind and plain[at - 1] in ("--from", "-p", "--package"):
        if _SETUP_PROGRAM.search(behind[0]):
            raise UnclearSourceError(f"{behind[0]} starts no server")
        behind = behind[1:]  # without the program from that package
    elif program in ("cargo", "dotnet", "npm", "pnpm", "yarn") and "--" in words:
        behind = words[words.index("--") + 1 :]  # the arguments of the program that the command builds or runs
    built = program in ("cargo", "dotnet", "npx", "bunx", "pnpx", "uvx", "pipx") or (
        program == "go" and words[2:3] and words[2][0] == "."
    )
    if built and behind and _SUBCOMMAND.fullmatch(behind[0]) and not SERVING_WORD.search(" ".join(words[2:])):
        said = " ".join(words[: words.index(behind[0]) + 1])
        raise UnclearSourceError(f"{said} does not look like a server's command", ADD_ANYWAY)
    if behind[:1] and behind[0] in ("serve", "server", "start") and "--port" in behind and "--stdio" not in behind:
        raise UnclearSourceError("This server listens on a port", START_FIRST)
    refuse_http(words, env)
    if user := next(filter(_USES_SERVERS.match, words), ""):
        raise UnclearSourceError(f"{user} is not a server; it uses servers")
    if in_container and words[1] == "run" and not package:
        raise UnclearSourceError("This has no image name", "Paste the whole command")
    options = words[words.index(package) :] if in_container and package else words[1:]
    own_port = any(word.partition("=")[0] == "--port" for word in options)
    if "--listen" in options or (own_port and mentions and not _CONNECTS.search(" ".join(options))):
        raise UnclearSourceError("This server listens on a port", START_FIRST)
    inside = options[1:] if in_container and words[1] == "run" else []  # the command in a container
    shell = next((after for before, after in pairwise(words) if before == "--entrypoint"), "")
    shell = shell if shell and not inside else "".join(inside[:1]) if len(inside) == 1 else ""
    if program_of(shell) in SHELLS or (inside and program_of(inside[0]) in _CHECKERS):
        raise UnclearSourceError(f"This container runs {shell or inside[0]}, not a server")
    if inside:
        refuse_developers_script(inside)
    if setup := _setup_verb(behind or inside) or next(filter(_SETUP_OPTION.fullmatch, options), ""):
        address = redacted(_address_in(behind))
        hint = [f"If that is the server, add the address itself: {address}"] if address else []
        raise UnclearSourceError(f"{package or words[0]} {setup} starts no server", *hint)
    written = (word for before, word in pairwise(options) if before in _OUTPUT and re.search(r"\.\w+$", word))
    if file := next(written, ""):
        raise UnclearSourceError(f"This writes {file} and exits")
    if script := next(filter((_DEVELOPERS_FOLDER if program == "go" else _DEVELOPERS).match, words), ""):
        raise UnclearSourceError(f"{script} is a developer's script, not a server")
    entry: Entry = with_passed({"command": words[0], "args": words[1:]} | ({"env": env} if env else {}))
    return source_of(entry, f"a command line{note}")


def refuse_bare_runner(words: Sequence[str]) -> None:
    """Raise UnclearSourceError for a runner without anything to run."""
    program = program_of(words[0])
    bare = all(word.startswith("-") or word in _RUN_WORDS for word in words[1:]) and not package_of(words)
    if program in RUNNERS and bare and (len(words) == 1 or program not in ("cargo", "dotnet")):
        raise UnclearSourceError(f"{' '.join(words)} alone starts no server", "Paste the whole command")


def _refuse_installer(words: Sequence[str]) -> None:
    """Raise UnclearSourceError for a program that adds servers to other programs.

    The hint names the server if possible.
    """
    at = next((at for at, word in enumerate(words) if INSTALLERS.search(word)), None)
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
    command = next(filter(is_quoted_command, plain), "")
    hint = "Paste the server's own command"
    if command or address:
        named = f"command inside it: {command}" if command else f"address itself: {address}"
        hint = f"Add the {named}" if redacted(named) == named else f"Add the {named.partition(':')[0]}"
    elif plain and "smithery" in words[at]:
        hint = f"Look it up: multi-mcp find {name_of_package(plain[0])}"
    elif plain and PACKAGE_FORM.fullmatch(plain[0]):
        hint = (
            f"If {plain[0]} is an npm package, add npm:{plain[0]}. If not: multi-mcp find {name_of_package(plain[0])}"
        )
    raise UnclearSourceError("This runs an installer that writes other programs' files", hint)


def _address_in(words: Sequence[str]) -> str:
    return next((word for word in words if re.match(r"https?://\w", word)), "")


def _setup_verb(behind: Sequence[str]) -> str:
    """Return the words that make a package set up something instead of serving (`mcp install`); "" if none do."""
    if behind[:1] == ["mcp"] and set(behind[1:2]) & _SETUP_VERBS:
        return " ".join(behind[:2])
    for at, word in enumerate(behind):
        if _SETUP_OPTION.fullmatch(word) or (at == 0 and (word in _SETUP_VERBS or _SETUP_TASK.fullmatch(word))):
            return word
        if at < 2 and (word in _SETUP_LATER or word.endswith(("-setup", "-install", "-init", "-login"))):
            return word
    return ""


def is_quoted_command(word: str) -> bool:
    """Return True if a word is a whole command of a runner (`"npx -y pkg"`), not just a path with spaces."""
    first, blank, _ = word.partition(" ")
    return bool(blank) and program_of(first) in RUNNERS


# --- containers

_INTERACTIVE = re.compile(r"-[a-z]*i[a-z]*|--interactive(?:=true)?")
_DETACHED = re.compile("-[iqt]*d[iqt]*|--detach(?:=true)?")
_PUBLISHES = re.compile(r"-p|--publish(?:=.*)?|-p\d.*")  # a port
READS_INPUT = ", with -i {}: a stdio server reads its input"
WITHOUT_INPUT = ", with -i added: without it the container reads nothing"
MAY_SPEAK_HTTP = ", and with a port: if an HTTP server uses it, start the container and add its address instead"


def _reads_input(options: Sequence[str]) -> bool:
    """Return True if a container with these options reads its input, as a stdio server must."""
    return any(map(_INTERACTIVE.fullmatch, options[2:]))


def with_input(entry: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Make a client's container or pod read stdin. Return its entry, and a note for the user or "".

    A client's entry with a command is a stdio server, so its container must not run in the background and needs no
    terminal. Other entries stay unchanged. Raises UnclearSourceError for a container that is reached by a port instead.
    """
    words, note = words_of(entry), ""
    if program_of(words[0]) in PODS and "exec" in (own := list(takewhile("--".__ne__, words))):
        at = own.index("exec") + 1
        if _reads_input(own):
            return entry, ""
        return {**entry, "args": [*words[1:at], "-i", *words[at:]]}, READS_INPUT.format("added")
    if (options := container_options(words)) is None:
        return entry, ""
    own = [word for word in _without_terminal(options) if not _DETACHED.fullmatch(word)]
    detached, reads = any(map(_DETACHED.fullmatch, options)), _reads_input(own)
    if detached or not reads:
        if any(map(_PUBLISHES.fullmatch, own)):
            title = "This container does not read its input and opens a port, so it is not a stdio server"
            raise UnclearSourceError(title, START_FIRST)
        own = own if reads else [*own[:2], "-i", *own[2:]]
        note = READS_INPUT.format("in place of -d" if detached else "added")
    return {**entry, "args": [*own[1:], *words[len(options) :]]}, note


def _without_terminal(options: Sequence[str]) -> list[str]:
    """Return the options of a container without -t: a server has no terminal."""
    own = [re.sub(r"(?<=^-)([a-su-z]*)t([a-su-z]*)$", r"\1\2", word) for word in options if word != "--tty"]
    return [word for word in own if word != "-"]


# --- refusals


def refuse_http(words: Sequence[str], env: Mapping[str, Any]) -> None:
    """Raise UnclearSourceError if a variable of the server or its container selects HTTP as the transport."""
    given = {name: str(value) for name, value in env.items()}
    if words and program_of(words[0]) in CONTAINERS:
        given |= {pair[1]: pair[2] for word in words if (pair := ASSIGNMENT.fullmatch(word))}
    for name, value in given.items():
        named = "TRANSPORT" in name.upper() and value.lower() in HTTP
        if named or (_HTTP_SWITCH.fullmatch(name) and value.lower() in ("true", "1")):
            raise UnclearSourceError(f"This server speaks HTTP, not stdio ({name}={value})", START_FIRST)


def refuse_verb(words: Sequence[str]) -> None:
    """Raise UnclearSourceError for `uvx run acme`, which fetches and runs a package named `run`."""
    package = package_of(words)
    program = program_of(words[0])
    if package in ("run", "exec", "dlx", "start") and program in ("uvx", "npx", "bunx", "pnpx"):
        behind = [word for word in words[1:] if word != package]
        title = f"{program} {package} runs a package whose name is {package}, which is probably a mistake"
        raise UnclearSourceError(title, f"Paste it without {package}: {redacted(' '.join([words[0], *behind]))[:200]}")


def refuse_developers_script(words: Sequence[str]) -> None:
    """Raise UnclearSourceError for a package's script that builds or checks: `npm run build`, `yarn lint`."""
    script = next((word for word in _plain_words(words) if word not in ("run", "run-script")), "")
    if program_of(words[0]) in ("npm", "pnpm", "yarn") and _DEVELOPERS_SCRIPT.fullmatch(script):
        raise UnclearSourceError(f"{script} is a developer's script, not a server")


def _plain_words(words: Sequence[str]) -> list[str]:
    """Return the words after a program that are neither options nor the values of a package manager's options."""
    return [word for before, word in pairwise(words) if word[:1] != "-" and before not in _VALUED_BEFORE]
