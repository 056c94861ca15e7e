"""Read one command that starts a server, adds one to a client (`claude mcp add ...`) or installs one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import dropwhile, pairwise, takewhile
from pathlib import Path

from trayapp.clients.conversion import is_variable_name
from trayapp.config.programs import program_of
from trayapp.sources.documents import read_document, without_cmd
from trayapp.sources.programs import ASSIGNMENT, CONTAINERS, RUNNERS, name_for, package_of, words_of
from trayapp.sources.source import (
    Entry,
    Source,
    UnclearSourceError,
    source_of,
    wanted,
    with_passed,
    with_words_apart,
    without_env,
)
from trayapp.sources.start_commands import (
    HTTP,
    PACKAGE_FORM,
    PLACE,
    WINDOWS_PROGRAM,
    is_preparation,
    is_quoted_command,
    read_start_command,
    refuse_bare_runner,
    refuse_verb,
    with_input,
    without_version,
    words_of_line,
)

Reader = Callable[[Sequence[str], Path, bool], list[Source] | None]
# A substitution that the shell replaces with the program's path.
_FOUND = re.compile(r"\$\((?:which|command -v) ([\w.+-]+)\)")
_ADDING_VERBS = frozenset(("add", "install", "register", "create", "new"))  # as words or options (`--add`)
# The packages of AI tools: `npx @anthropic-ai/claude-code mcp add ...`.
_CLIENT_PACKAGES = {
    "@anthropic-ai/claude-code": "claude", "@openai/codex": "codex", "@google/gemini-cli": "gemini",
    "@qwen-code/qwen-code": "qwen", "@github/copilot": "copilot",
}  # fmt: skip


def adds_server(line: str) -> bool:
    """Return True for a command of a client or of a program that adds servers: `claude mcp add ...`, `npx add-mcp`."""
    words = _without_package(line.split())
    installs = without_version(package_of(words) or words[0]) in _SERVER_INSTALLERS
    return installs or program_of(words[0]) in CLIENT_COMMANDS or is_mcp_add(words)


def read_line(line: str, home: Path, *, windows: bool) -> list[Source]:
    """Return the servers that one command adds or starts. Raises UnclearSourceError."""
    words = words_of_line(_with_variables(line))
    if re.fullmatch(r"/[\w-]+", words[0]):
        raise UnclearSourceError(f"{words[0]} is a chat command")
    words = _without_package(words)
    if (installed := _installed(words, home, windows)) is not None:
        return installed
    adder = CLIENT_COMMANDS.get(program_of(words[0])) or (_client(f"{words[0]} mcp add") if is_mcp_add(words) else None)
    if adder is not None:
        if (found := adder(words[1:], home, windows)) is not None:
            return found
        if words[0] in _CLIENTS and (adding := _adding(words[1:])):
            return _mcp_add(f"{words[0]} {words[1]}", home, windows, adding) or []
        own = words[1:2] == ["mcp"] and words[2:3] in _SERVES
        if not own and (words[1:2] == ["mcp"] or re.match("(?!-).*(?:mcp|serve)", "".join(words[1:2])) is None):
            raise UnclearSourceError("This adds no server", f"Paste the line with {words[0]} mcp add")
    if not windows:
        plain = words_of(without_cmd({"command": words[0], "args": words[1:]}))
        if plain[0] != words[0] and program_of(plain[0]) not in RUNNERS:
            raise UnclearSourceError(f"{words[0]} is a shell command that may run anything")
        words = plain
    return [read_start_command(words)]


def _adding(words: Sequence[str]) -> list[str]:
    """Return a client's own `VERB NAME -- COMMAND` as the words of `mcp add`, or [] if its meaning is unclear."""
    own = list(takewhile("--".__ne__, words))
    command = list(words[len(own) + 1 :])
    verbs = {word.lstrip("-") for word in own[:-1]}
    if not command or len(own) < 2 or not re.fullmatch(r"[A-Za-z][\w.-]*", own[-1]) or not verbs & _ADDING_VERBS:
        return []
    if program_of(command[0]) not in RUNNERS and re.search("mcp|[/\\\\]", command[0]) is None:
        return []
    env = [word for pair in pairwise(own) if pair[0] in _ENV and ASSIGNMENT.fullmatch(pair[1]) for word in pair]
    return ["add", *env, own[-1], "--", *command]


def _without_package(words: Sequence[str]) -> list[str]:
    """Return `claude mcp add ...` for `npx -y @anthropic-ai/claude-code mcp add ...`, or other words unchanged."""
    package = package_of(words) if program_of(words[0]) in ("npx", "bunx", "pnpx") else ""
    client = _CLIENT_PACKAGES.get(re.sub(r"(?<=.)@.*", "", package))
    behind = list(words[words.index(package) + 1 :]) if client and package in words else []
    return [client, *behind] if client and behind[:1] == ["mcp"] else list(words)


# Programs that write one server into clients' files: neondatabase/add-mcp, supermemoryai/install-mcp and
# paoloricciuti/mcp-add. Each option maps to its spelling in `mcp add`, or to "" if it is dropped.
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

    Return None for another program, an unknown option, or a line that does not name exactly one server.
    """
    package = package_of(words) or words[0]
    installer = without_version(package)
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
        command = [*words_of_line(target), *args]
        server, start = {"command": command[0], "args": command[1:]}, ["--", *command]
    elif PACKAGE_FORM.fullmatch(target):
        server, start = {"command": "npx", "args": ["-y", target, *args]}, ["--", "npx", "-y", target, *args]
    else:
        return None
    name = given.pop("--name", [""])[-1] or name_for(server)
    left_out = ("project",) if given.pop("--project", []) else ()
    if installer == "mcp-add":  # in this installer, an option takes several values in one word
        for option, comma in (("--env", r",(?=[A-Za-z_]\w*=)"), ("--header", r",(?=[\w-]+=)")):
            given[option] = [part for value in given.get(option, []) for part in re.split(comma, value)]
    options = [word for option, values in given.items() if option for value in values for word in (option, value)]
    added = _mcp_add(installer, home, windows, ["add", "--name", name, *options, *start]) or []
    return [replace(one, left_out=(*one.left_out, *left_out)) for one in added]


def _with_variables(line: str) -> str:
    """Return a line with the shell's `$NAME` as our `${NAME}`, `$(pwd)` as `${PWD}`, and `$(which NAME)` as `NAME`."""
    parts = re.split(r"('[^']*')", line)
    own = re.compile(r"(?<![\\$])\$(?!env:)([A-Za-z_]\w*)")
    for at in range(0, len(parts), 2):  # every other part is in single quotes
        plain = _FOUND.sub(r"\1", re.sub(r"\$\(pwd\)|`pwd`", "${PWD}", parts[at]))
        parts[at] = own.sub(r"${\1}", plain).replace(r"\$", "$")  # `"\${NAME}"`: the client replaces it, not the shell
    return "".join(parts)


def is_mcp_add(words: Sequence[str]) -> bool:
    """Return True for `CLIENT mcp add ...`, `add-json` or `set`, for any client."""
    return list(words[1:2]) == ["mcp"] and list(words[2:3]) in (["add"], ["add-json"], ["set"]) and words[0].isascii()


# --- verbs of clients


def _mcp_add(kind: str, home: Path, windows: bool, words: Sequence[str]) -> list[Source] | None:
    """Return the server in the words after `CLIENT mcp`, or None for another verb. Raises UnclearSourceError.

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
        pairs = (pair for one in env.items() for pair in re.split(r",(?=[A-Za-z_]\w*=)", "=".join(one)))
        env = dict(pair.split("=", 1) for pair in pairs)
    if url:  # a remote server gets no variables, but some authors write its headers as variables
        headers |= {name: env.pop(name) for name in list(env) if "-" in name or name == "Authorization"}
    own = list(filter(str.isidentifier, given.every(*_ENV)))  # `-e NAME`: the value comes from the shell
    env |= dict.fromkeys(own, "")
    entry: Entry
    if name.startswith("<") and PLACE.fullmatch(url or " ".join(rest)):
        raise UnclearSourceError(f"This line is incomplete: it contains {name}", "Paste the line in full")
    if url:
        is_sse = given.named(*_TRANSPORT) == "sse"
        entry = {"url": url} | ({"type": "sse"} if is_sse else {}) | ({"headers": headers} if headers else {})
        token = given.named("--bearer-token-env-var")
        if token and not is_variable_name(token):
            entry["headers"] = {"Authorization": f"Bearer {token}", **headers}
        elif token:
            entry |= {"auth": "bearer", "bearer_token_env": token}
        client, port = given.named("--client-id"), given.named("--callback-port")
        if _CLIENT_SECRET in words:
            entry["client_secret"] = given.named(_CLIENT_SECRET)  # if empty, the user is asked for it
        entry |= ({"client_id": client} if client else {}) | ({"callback_port": int(port)} if port.isdecimal() else {})
    else:
        command = given.named("--command")
        by_comma = kind in _BY_COMMA or program_of(command) in RUNNERS
        is_line = is_quoted_command(command) or re.match(r"[\w.-]+ \S", command)  # if not, a word or a path with spaces
        line = [*(words_of_line(command) if is_line else [command]), *_args(given.every("--args"), by_comma)]
        if not command or (line == [command] and "--" in words):
            line = [*filter(None, line), *rest]
        if len(line) == 1 and (option := given.unknown.get(line[0], "")):
            if option not in _PACKAGE_OPTIONS or not PACKAGE_FORM.fullmatch(line[0]):
                title = f"{kind} has no option {option}, so no command was found in this line"
                raise UnclearSourceError(title, f"Paste it as: {kind} {name} -- COMMAND")
            line = ["npx", "-y", line[0]]
        if len(line) == 1 and " " in line[0] and not WINDOWS_PROGRAM.fullmatch(line[0]):
            line = words_of_line(line[0])
        elif line and is_quoted_command(line[0]):
            raise UnclearSourceError(f"{kind}: words follow the quoted command", "Paste it without those quotes")
        is_program = program_of(name) in RUNNERS and re.search(r"\.(?:[cm]?[jt]s|py|jar)$", " ".join(line[:1]))
        if not name or not line or is_program:
            raise UnclearSourceError(f"{kind} needs a name, and a command or a url", "Paste the whole line")
        entry = {"command": line[0], "args": list(line[1:])} | ({"env": env} if env else {})
        entry, note = with_input(with_words_apart(without_env(entry if windows else without_cmd(entry))))
        words = words_of(entry)
        refuse_bare_runner(words)
        if is_preparation(" ".join(words)):
            raise UnclearSourceError(f"{entry['command']} installs something; it starts no server")
        refuse_verb(words)
        entry = with_passed(entry)
        kind += note
    for key in ("include_tools", "exclude_tools"):
        option = f"--{key.replace('_', '-')}"
        tools = [tool for value in given.every(option) for tool in re.split(r"[,\s]+", value) if tool]
        entry |= {key: tools} if tools else {}
    # the unit of a timeout differs from client to client
    left_out = [key for key, is_given in (("timeout", given.named("--timeout")), ("env", url and env)) if is_given]
    left_out += given.unused
    empty = [("env", name) for name, value in env.items() if not value and name not in own]
    wants = tuple(replace(one, stays=not one.required and one.keys in empty) for one in wanted(entry))
    return [Source(name or name_for(entry), entry, kind, wants, tuple(left_out))]


_PASSES_UNKNOWN = frozenset(("gemini mcp add", "qwen mcp add"))
_BY_COMMA = frozenset(("q mcp add", "kiro-cli mcp add"))  # clients in which `--args a,b` means two words


def _args(given: Sequence[str], by_comma: bool) -> list[str]:
    """Return the words of `--args`, which may be given as a JSON list or, with `by_comma`, as one word with commas."""
    with suppress(ValueError):
        listed = json.loads(given[0]) if len(given) == 1 and given[0].startswith("[") else None
        if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
            return listed
    return given[0].split(",") if by_comma and len(given) == 1 and " " not in given[0] else list(given)


def _json_pairs(text: str) -> dict[str, str]:
    """Return the headers of `--headers '{...}'` (Kiro), or {} if the text is not a JSON object."""
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

    `anywhere`: the client accepts its options even after the first word of the server's command, unlike Codex.
    `passes_unknown`: the client passes unknown options to the server.
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
            secret = name == _CLIENT_SECRET and words[:1] and words[0][:1] != "-"
            if secret or (name in _VALUED and (equals or words)):
                self._take(name, value if equals else words.pop(0))
                taken: list[str] = []
                if name == "--args":  # in Hermes, --args takes all following words, even the server's options
                    taken += takewhile(lambda word: word.partition("=")[0] not in _VALUED | _FLAGS | {"--"}, words)
                elif name in _ENV:  # `-e A=1 B=2`
                    taken += takewhile(lambda word: ASSIGNMENT.fullmatch(word) is not None, words)
                self._take(name, *taken)
                del words[: len(taken)]
            elif self.plain and {"--command", "--url"} & self._given.keys() and not word.startswith("-"):
                # the value of an unknown option, since --command or --url already names the server
                self.unused += [self.unknown[word].lstrip("-")] if word in self.unknown else []
            elif len(self.plain) == 1 and words and word in ("stdio", *HTTP):  # `add NAME stdio COMMAND`
                self._take("--transport", word)
            elif len(self.plain) >= 2 or (len(self.plain) == 1 and not word.startswith("-")):
                if passes_unknown:
                    own = [word, *takewhile("--".__ne__, words)]
                    self.plain += [*self._without_known(own), *words[len(own) :]]
                elif "--" in words:  # the first `--` ends the client's options, even after the server's command
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
        """Take out the client's options. Return the remaining words, or all words if an unknown option remains."""
        given: list[tuple[str, str]] = []
        plain: list[str] = []
        left = list(words)
        while left:
            word = left.pop(0)
            name, equals, value = word.partition("=")
            if name in _ANYWHERE and (equals or left):
                given.append((name, value if equals else left.pop(0)))
            elif given and given[-1][0] in _ENV and ASSIGNMENT.fullmatch(word):  # `-e A=1 B=2`
                given.append((given[-1][0], word))
            elif word.startswith("-"):
                return words
            else:
                plain.append(word)
        for name, value in given:
            self._take(name, value)
        return plain

    def _take(self, name: str, *values: str) -> None:
        self._given.setdefault(name, []).extend(values)

    def _without_known(self, words: Sequence[str]) -> list[str]:
        """Take out the options whose values match _KNOWN_VALUES, and return the remaining words.

        The options of a container or a bridge remain.
        """
        plain: list[str] = []
        left = list(words)
        while left:
            word = left.pop(0)
            name, equals, value = word.partition("=")
            value = value if equals else next(iter(left), "")
            form = next((form for names, form in _KNOWN_VALUES.items() if name in names), None)
            inner = CONTAINERS & {*words} if name in _ENV else name in _HEADER and not _is_address(words[0])
            if name == "--trust":
                continue
            if form is None or inner or not re.fullmatch(form, value):
                plain.append(word)
                continue
            self._take(name, value)
            del left[: 0 if equals else 1]
        return plain

    def _without_options_at_end(self, words: list[str]) -> list[str]:
        """Take the client's `--scope` and `--env` from the end of the server's command. Return the remaining words."""
        while len(words) > 2:
            name, value = words[-2:]
            scope = name in ("-s", "--scope") and value in ("user", "local", "project", "global")
            env = name in _ENV and ASSIGNMENT.fullmatch(value) and not CONTAINERS & {*self.plain, *words}
            if not scope and not env:
                break
            self._given.setdefault(name, []).insert(0, value)
            words = words[:-2]
        return words

    def _hoist(self) -> None:
        """Move options after a URL or a quoted command to the client's options: `add NAME URL --header ...`."""
        if len(self.plain) < 3:
            return
        has_option = self.plain[2].startswith("-")
        is_address = self.named(*_TRANSPORT) in HTTP or _is_address(self.plain[1])
        if is_address or (has_option and is_quoted_command(self.plain[1])):
            for name, values in _AddOptions(["x", *self.plain[2:]])._given.items() if has_option else ():
                self._take(name, *values)
            self.plain = self.plain[:2]

    def named(self, *names: str) -> str:
        return next((self._given[name][-1] for name in names if name in self._given), "")

    def every(self, *names: str) -> list[str]:
        return [value for name in names for value in self._given.get(name, ())]

    def pairs(self, mark: str, *names: str) -> dict[str, str]:
        """Return {name: value}, split at `mark` or at `=`, whichever comes first. Drop words without either."""
        split = [value.partition((re.search(f"[{mark}=]", value) or mark)[0]) for value in self.every(*names)]
        return {name.strip(): value.strip() for name, found, value in split if found}


def _is_address(word: str) -> bool:
    """Return True for an address, or an author's placeholder for one: `<MCP URL>`."""
    return (
        word.startswith(("http://", "https://"))
        or re.fullmatch(r"(?i)<[^<>]*(?<![a-z])(?:url|endpoint|address)(?![a-z])[^<>]*>\S*", word) is not None
    )


def _client(kind: str) -> Reader:
    def read(words: Sequence[str], home: Path, windows: bool) -> list[Source] | None:
        for option, config in pairwise(words):
            if option == "--mcp-config" and config.startswith("{"):
                return read_document(_json_word(config), kind, home, windows=windows)
            if option.startswith("--with-") and option.endswith("-extension"):  # goose: a command or an address follows
                if not _is_address(config):
                    return read_line(config, home, windows=windows)
                return [source_of({"url": config}, kind)]
        return _mcp_add(kind, home, windows, words[1:]) if words[:1] == ["mcp"] else None

    return read


def _editor(words: Sequence[str], home: Path, windows: bool) -> list[Source] | None:
    """Return the servers of `code --add-mcp '{...}'`, or None without that option. Raises UnclearSourceError."""
    own = list(dropwhile(lambda word: word.partition("=")[0] != "--add-mcp", words))
    if not own:
        return None
    if not (text := own[0].partition("=")[2] or "".join(own[1:2])):
        raise UnclearSourceError("This describes no server", "Paste the whole line")
    return read_document(_json_word(text), "code --add-mcp", home, windows=windows)


def _json_word(text: str) -> str:
    """Return JSON from a word of a command line, without the escapes that older PowerShells require before quotes."""
    return text.replace('"""', '"').replace('\\"', '"') if text.startswith(('{"""', '{\\"')) else text


# `claude mcp serve` and `codex mcp-server` are servers; a client's other subcommands are not.
_SERVES: tuple[list[str], ...] = (["serve"], ["server"], ["start"], ["run"], [])

_CLIENTS = ("claude", "codex", "gemini", "qwen", "copilot", "amp", "droid", "kiro-cli", "devin", "auggie", "q", "goose",
            "kimi", "opencode", "cursor-agent", "crush", "kilo")  # fmt: skip
CLIENT_COMMANDS: dict[str, Reader] = {
    **{name: _client(f"{name} mcp add") for name in _CLIENTS},
    **dict.fromkeys(("code", "code-insiders", "codium", "cursor", "windsurf"), _editor),
}  # fmt: skip
