"""Parsing of command lines: splitting into words as the platform does, finding relative paths, and reading options."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

from trayapp.config.programs import program_of
from trayapp.model.late import late

Exists = Callable[[str], bool]

# A Windows path at the start: `C:\x`, `\\server\x`, `%NAME%\x`, `bin\x`. In a shell, no letter needs an escape.
_WINDOWS_PATH = re.compile(r'"?[A-Za-z]:\\|\\\\|"?[^\s"\'\\]+\\\w')
_VARIABLE = r"\$?\{[^{}\n]*(?:\{[^{}\n]*\}[^{}\n]*)?\}"  # spaces in ${NAME:-a b} do not end the word
# Pieces of a command line, in a POSIX shell and on Windows. A word is a run of pieces without a blank.
_PIECE = late(
    rf"""(?xs) (?P<variable> {_VARIABLE} )
    | " (?P<escaping> (?: \\["\\] | [^"] )*+ ) "
    | ' (?P<quoted> [^']* ) '
    | \\ (?P<escaped> .? )
    | (?P<blank> \s+ )
    | (?P<unclosed> ["'] )
    | (?P<letters> [^\s"'\\${{]+ | . )"""
)
_WINDOWS_PIECE = late(
    rf"""(?xs) (?P<variable> {_VARIABLE} )
    | " (?P<quoted> [^"]* ) "
    | (?P<blank> \s+ )
    | (?P<unclosed> " )
    | (?P<letters> [^\s"${{]+ | . )"""
)
_ESCAPED = re.compile(r'\\(["\\])')  # in double quotes, a backslash escapes only these
_DOTTED = re.compile(r"\.{1,2}(?:[/\\:].*)?", re.DOTALL)  # ., .., ./x, ..\x, .:/data
_FOLDER = re.compile(r"[^\s:@$%{}~/\\-][^\s:@$%{}]*/")  # src/
_FILE = re.compile(  # server.py, dist/index.js; not *.py, ${DIR}/x.py, https://x.test/y.json, @scope/pkg
    r"(?![/\\~@-])[^\s:*?\[\]$%{}<>|;]*\.(?:pyz?|[cm]?[jt]sx?|sh|rb|php|pl|jar|dll|lua|ps1|bat|cmd|exe|db|sqlite3?"
    r"|json[c5l]?|ya?ml|toml|csv|env)",
    re.IGNORECASE,
)
# Programs whose first argument that is not an option names a package
_PACKAGE_RUNNERS = frozenset(("npx", "bunx", "pnpx", "uvx", "pipx"))
# The options that make these programs work in another folder (source: their --help)
_CHANGES_FOLDER = {
    "uv": ("--directory",),
    "npm": ("--prefix",),
    "pnpm": ("-C", "--dir"),
    "yarn": ("--cwd",),
    "bun": ("--cwd",),
    "go": ("-C",),
    "make": ("-C", "--directory"),
}


def path_exists(path: str) -> bool:
    """Return True if a file or folder exists at `path`, with `~` expanded. Return False for an invalid path."""
    try:
        return Path(path).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


def split_command(line: str, *, exists: Exists = path_exists, windows: bool = os.name == "nt") -> list[str]:
    """Split a command line, such as `npx -y pkg`, into its words. A line that is an existing path is a single word.

    On Windows, and for paths in Windows form, a backslash is an ordinary character and only `"` quotes. Elsewhere the
    rules of a POSIX shell apply, without its expansions. Raises ValueError for an unclosed quote.
    """
    line = line.strip()
    if not re.search(r"[\s\"'\\]", line) or (re.search(r"\s", line) and exists(line)):
        return [line] if line else []
    words: list[str] = []
    word: str | None = None
    for piece in (_WINDOWS_PIECE if windows or _WINDOWS_PATH.match(line) else _PIECE).finditer(line):
        kind, text = piece.lastgroup, piece[piece.lastgroup or 0]
        if kind == "unclosed":
            raise ValueError(f"a quote ({text}) is not closed")
        if kind != "blank":
            word = (word or "") + (_ESCAPED.sub(r"\1", text) if kind == "escaping" else text)
        elif word is not None:
            words, word = [*words, word], None
    return words if word is None else [*words, word]


def relative_paths(command: str, args: Sequence[str]) -> list[str]:
    """Return the words that are or contain a relative path, in order.

    A word may have several parts: --dir=./x, type=bind,src=.,dst=/data. Arguments are left out if an option names the
    absolute folder that they are relative to: `uv --directory /x run main.py`.
    """
    program = program_of(command)
    package = -1  # the index of the package that a runner starts: a package's name may look like a path
    if program in _PACKAGE_RUNNERS:
        package = next((at for at, arg in enumerate(args) if not arg.startswith("-") and arg != "run"), -1)
    found = [command] if re.search(r"[/\\]", command) and is_relative(command) else []
    for option, value in pairwise(chain.from_iterable(arg.split("=", 1) for arg in args)):
        if option in _CHANGES_FOLDER.get(program, ()) and not is_relative(value):
            return found
    for at, arg in enumerate(args):
        shapes = (_DOTTED,) if at == package else (_DOTTED, _FILE, _FOLDER)
        if any(shape.fullmatch(part) for part in re.split("[=,]", arg) for shape in shapes):
            found.append(arg)
    return found


def is_relative(path: str) -> bool:
    """Return True if a path is relative: it does not begin with a root, home folder, drive or variable."""
    return not re.match(r"[/\\~$%{]|[A-Za-z]:", path)


class UncertainError(ValueError):
    """Raised when a command line does not show what it runs. The message names the unclear part.

    `is_local`: that part is a folder, an address or an installed program, which the command runs.
    """

    def __init__(self, text: str, *, is_local: bool = False) -> None:
        super().__init__(text)
        self.is_local = is_local


def options(text: str) -> frozenset[str]:
    """Return the options in a list separated by spaces."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The known options of one program, named with their dashes."""

    switches: frozenset[str]  # options without a value
    values: frozenset[str]  # options with a value
    named: str = ""  # a pattern of further options, whose value must follow `=`
    joins: bool = True  # short options may be joined (`-it`)

    def read(self, words: Sequence[str]) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
        """Return the leading options with their values ("" for none), and the words after them.

        A `--` ends the options and is not returned. Raises UncertainError for an unknown option or a missing value.
        """
        rest, found = list(words), list[tuple[str, str]]()
        while rest and rest[0].startswith("-") and rest[0] != "-":
            word = rest.pop(0)
            if word == "--":
                break
            name, equals, value = word.partition("=")
            if name in self.values:
                if not equals and not rest:
                    raise UncertainError(f"{name} without a value")
                found.append((name, value if equals else rest.pop(0)))
            elif name in self.switches or (self.named and equals and re.fullmatch(self.named, name)):
                found.append((name, value))
            elif self.joins and not word.startswith("--"):
                found += self._read_letters(word, rest)
            else:
                raise UncertainError(f"its option {name}")
        return found, tuple(rest)

    def _read_letters(self, word: str, rest: list[str]) -> list[tuple[str, str]]:
        """Return the options joined in one word (`-it`, `-eNAME`). The last may take its value from `rest`."""
        found = list[tuple[str, str]]()
        for at, letter in enumerate(word[1:], 2):
            name = f"-{letter}"
            if name in self.values and (word[at:] or rest):
                return [*found, (name, word[at:].removeprefix("=") or rest.pop(0))]
            if name not in self.switches:
                raise UncertainError(f"its option {name}")
            found.append((name, ""))
        return found
