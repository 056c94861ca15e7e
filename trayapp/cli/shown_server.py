"""The facts that a person checks before a server may start, as lines: program, folder, environment, secrets."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from trayapp.config.interpolate import keyring_names, secret_commands, variable_names
from trayapp.config.read.entry import read_one
from trayapp.inspection.hidden import folded
from trayapp.model.config import STARTS_AT_ONCE, ServerConfig
from trayapp.model.redact import REDACTED, redacted
from trayapp.model.text import escape_unprintable

# variables that decide which code a program loads, or from where
_LOADS_CODE = re.compile(
    r"PATH|PATHEXT|LD_.*|DYLD_.*|LIBPATH|SHLIB_PATH|NODE_.*|NPM_CONFIG_.*|YARN_.*|PNPM_.*|BUN_.*|DENO_.*|PYTHON.*"
    r"|PIP_.*|UV_.*|VIRTUAL_ENV|CONDA_.*|RUBY.*|GEM_.*|BUNDLE_.*|PERL.*|PHP.*|LUA_.*|JAVA_.*|_JAVA_OPTIONS|JDK_.*"
    r"|CLASSPATH|GO(?:PATH|ROOT|FLAGS|PROXY|BIN|ENV|TOOLCHAIN)|CARGO_.*|RUST.*|DOTNET_.*|CORECLR_.*|COR_.*|DOCKER_.*|BASH_ENV|ENV|ZDOTDIR|SHELL|IFS|PROMPT_COMMAND"
    r"|EDITOR|VISUAL|PAGER|BROWSER|COMSPEC|GIT_.*|SSH_.*|HOME|XDG_.*|TMPDIR|(?:HTTPS?|ALL|NO)_PROXY|SSL_.*|.*_CA_.*"
    r"|GTK_.*|QT_.*|GCONV_PATH|GLIBC_TUNABLES|LOCPATH|MALLOC_.*|OPENSSL_.*|MULTI_MCP_.*",
    re.IGNORECASE,
)


# Characters that occur in code but not in secrets. Words with one are not redacted: the user must see what would run.
_CODE = re.compile(r"[()`;|&\n]")
_CONNECTION = re.compile(r"(?:[A-Za-z][\w .]{0,40}=[^;()`|&\n$<>]{0,200};?){2,40}")  # not code: `Host=a;Password=b`
_REFERENCE = re.compile(r"\$\{(?:keyring:|env:)?[\w.-]+\}")  # a reference does not contain the secret
_SCHEME = re.compile("(?i)(?:bearer|basic) ")
_RUNS_CODE = re.compile(r"(?i)-{1,2}(?:e|c|p|r|m|eval|print|exec|command|require|import)|/c")


def starts(server: ServerConfig) -> str:
    """Return the URL or the whole command line. Unprintable characters are escaped, and nothing is redacted."""
    return escape_unprintable(server.url or shlex.join([server.command or "", *server.args]))


def command_line(server: ServerConfig) -> str:
    """Return the command line, each word redacted separately. Words that may be code are shown in full."""
    words = [server.command or "", *server.args]
    return " ".join(_shown(words, at) for at in range(len(words)))


def _shown(words: list[str], at: int) -> str:
    """Return a word of a command line, redacted if its option, its name (`KEY=value`) or its form suggests a secret."""
    word = escape_unprintable(words[at])
    before = words[at - 1] if at else ""
    code = (_CODE.search(word) and not _CONNECTION.fullmatch(word)) or (
        _RUNS_CODE.fullmatch(before) and re.search(r"[\s'\"]", word)
    )
    if code or _REFERENCE.fullmatch(word):
        return escape_unprintable(shlex.quote(words[at]))
    named = [(f"{before} ", word)] if before.startswith("-") and not re.search("[=:]", before) else []
    if at > 1 and words[at - 2] in ("-H", "--header", "--headers") and not re.search("[=:]", before):
        named.append((f"{before}: ", word))  # `--header NAME VALUE`
    if own := re.match(r"-{0,2}[\w.-]+[=:]\s*", word):
        named.append((own[0], word[own.end() :]))
    secret = next((value for head, value in named if _is_secret(head, value)), "")
    word = word.removesuffix(secret) + REDACTED if secret else redacted(word)
    return shlex.quote(word.replace(REDACTED, "_redacted_")).replace("_redacted_", REDACTED)


def _is_secret(head: str, value: str) -> bool:
    """Return True if the name in `head` (`NAME=`) causes the redaction of `value`, whatever the value looks like."""
    return redacted(head + value) != head + value and redacted(f"{head}plain-value") != f"{head}plain-value"


def loading_code(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that decide which code is loaded, with their values, except those named like a secret."""
    found = {name: value for name, value in env.items() if _LOADS_CODE.fullmatch(name)}
    return {name: value for name, value in found.items() if redacted_value(name, "plain-value") == "plain-value"}


def environment_lines(server: ServerConfig) -> Iterator[str]:
    """Yield lines with the variables and headers that the entry sets, and their values. Secrets are redacted."""
    loads = loading_code(server.env)
    for name, value in loads.items():
        yield f"with {_pair(name, value)} (decides which code is loaded)"
    others = [_pair(name, redacted_value(name, value)) for name, value in server.env.items() if name not in loads]
    if others:
        yield f"with {', '.join(others)} in its environment"
    if server.headers:
        shown = (_pair(name, redacted_value(name, value, ": "), ": ") for name, value in server.headers.items())
        yield f"with the headers {', '.join(shown)}"


def redacted_value(name: str, value: str, mark: str = "=") -> str:
    """Return the value of a variable or header, redacted if its name or content suggests a secret.

    Invisible characters are escaped first, because redaction would drop them unnoticed. `mark`: the characters between
    name and value.
    """
    head, value = f"{name}{mark}", escape_unprintable(value)
    if _is_secret(head, value):  # redact all of it: a password may have blanks
        return f"{scheme[0] if (scheme := _SCHEME.match(value)) else ''}{REDACTED}"
    return redacted(head + value).removeprefix(head)


def _pair(name: str, value: str, mark: str = "=") -> str:
    return escape_unprintable(f"{name}{mark}{value}")  # not shortened: the decisive part may be at the end


def gets(server: ServerConfig) -> tuple[list[str], list[str]]:
    """Return two lists: the names of the keyring secrets and of the environment variables that the entry refers to."""
    variables = list(variable_names(server)[0])
    if server.bearer_token_env and server.bearer_token_env not in variables:
        variables.append(server.bearer_token_env)
    return list(keyring_names(server)), variables


def command_lines(server: ServerConfig) -> Iterator[str]:
    """Yield a line for each command that produces one of the entry's secrets (`${cmd:...}`), unredacted."""
    for command in secret_commands(server):
        yield f"runs for a secret: {escape_unprintable(command)}"


def secret_lines(server: ServerConfig) -> Iterator[str]:
    """Yield lines with the commands for secrets, and with the secrets and variables that the URL or program gets."""
    yield from command_lines(server)
    secrets, variables = gets(server)
    what = [f"the secret {escape_unprintable(name)} from the keyring" for name in secrets]
    what += [f"the variable {escape_unprintable(name)}" for name in variables]
    if what:
        to = redacted(server.url) if server.url is not None else server.command or ""
        yield f"{'sends' if server.url is not None else 'gives'} {' and '.join(what)} to {escape_unprintable(to)}"


def rule_lines(server: ServerConfig) -> Iterator[str]:
    """Yield one line with the entry's own rules, if any: early start, timeouts, `ask`, and disabled protections."""
    rules = [f"lifecycle: {server.lifecycle}"] if server.lifecycle in STARTS_AT_ONCE else []
    rules += ["lock: false"] if not server.lock and server.command is not None else []
    times = {"its start": server.connect_timeout, "an answer": server.request_timeout}
    rules += [f"waits {seconds:g} s for {what}" for what, seconds in times.items() if seconds]
    rules += ["confine: false"] if server.confine is False and server.command is not None else []
    rules += [f"ask: {server.ask}"] if server.ask is not None else []
    switches = server.tools or {}
    rules += [f"ask: {switch.ask} for the tool {name}" for name, switch in switches.items() if switch.ask is not None]
    if rules:
        yield escape_unprintable(f"with rules of its own: {', '.join(rules)}")


def spelling_lines(server: ServerConfig) -> Iterator[str]:
    """Yield a line for each word with letters of other alphabets that look like Latin ones, with their code points."""
    host = urlsplit(server.url).hostname or "" if server.url is not None else ""
    words = [host] if server.url is not None else [server.command or "", *server.args]
    for word in dict.fromkeys(run for text in words for run in re.findall(r"[^\W\d_]+", text)):
        wide = unicodedata.normalize("NFKC", word).isascii()  # full-width letters, for example
        if word.isascii() or _latin(word) == word or not (host or wide or re.search("[A-Za-z]", word)):
            continue
        others = ", ".join(f"U+{ord(letter):04X}" for letter in dict.fromkeys(word) if _latin(letter) != letter)
        yield f"not {_latin(word)}: {word} has {others}, letters of another alphabet"


def _latin(word: str) -> str:
    return folded(unicodedata.normalize("NFKC", word))


def unlocked(entry: Mapping[str, Any]) -> str:
    """Return why the package of an entry is not locked, as a sentence.

    It is "" if the package can be locked, or if the entry has `lock: false`, cannot be read or runs no package.
    """
    from trayapp.packages.locks import not_locked  # takes 10 ms: only for verbs that add servers

    server, _ = read_one("server", dict(entry))
    told = not_locked((server.command, *server.args)) if server and server.command and server.lock else None
    return str(told) if told is not None else ""


def blank_lines(server: ServerConfig) -> Iterator[str]:
    """Yield a warning if an argument has so many blanks in a row that a reader may miss what follows them."""
    most = max((len(run) for word in server.args for run in re.findall(r"\s{40,}", word)), default=0)
    if most:
        yield f"has {most:,} spaces in a row: read what follows them, too"


def decisive_lines(server: ServerConfig) -> Iterator[str]:
    """Yield lines with every fact that decides what the server does. Secrets are redacted."""
    yield redacted(starts(server)) if server.url is not None else command_line(server)
    yield from spelling_lines(server)
    yield from blank_lines(server)
    if server.command is not None and server.cwd is not None:
        yield f"in the folder {escape_unprintable(server.cwd)}"
    if server.command is not None and server.confine:
        yield escape_unprintable(f"confine: {json.dumps(server.confine.value(), ensure_ascii=False)}")
    yield from environment_lines(server)
    yield from secret_lines(server)
    yield from rule_lines(server)
