"""Functions about other programs: their environment and folders, interpreters, package runners, browser servers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from trayapp.model.late import late

# Folders that installers use and that the PATH of some desktops lacks
_FOLDERS = (
    "~/.local/bin", "~/.cargo/bin", "~/bin", "~/.bun/bin", "~/.deno/bin", "~/.volta/bin", "~/go/bin", "/usr/local/bin",
    "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/snap/bin",
)  # fmt: skip
_INTERPRETER = late(
    r"(?:.*[/\\])?(?:python|pypy|node|nodejs|deno|bun|tsx|ts-node|sh|bash|dash|ash|ksh|zsh|fish|ruby|perl|php|lua|luajit"
    r"|Rscript|pwsh|powershell|osascript)[\d.]*(?:\.exe|\.cmd)?",
    re.IGNORECASE,
)
_TEXT_FOLLOWS = ("-c", "-m", "--eval", "--print", "-Command", "-EncodedCommand")

# Variables that PyInstaller's bootloader and hooks set in a frozen program.
_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "LIBPATH", "DYLD_")
_FROZEN_PREFIXES = ("_MEIPASS", "_PYI_", "PYINSTALLER_")
_PYTHON_FOLDERS = ("PYTHONHOME", "VIRTUAL_ENV")


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` without the variables of our frozen (PyInstaller) program, which break other programs.

    Library paths are restored to their values from before our program started. PYTHONHOME and VIRTUAL_ENV are removed
    only if they name a folder in our program. If our program is not frozen, nothing is removed.
    """
    if not getattr(sys, "frozen", False):
        return dict(environ)
    bundle = str(getattr(sys, "_MEIPASS", Path(sys.executable).parent))
    clean = {name: value for name, value in environ.items() if not name.startswith(_FROZEN_PREFIXES)}
    for name in {name.removesuffix("_ORIG") for name in clean if name.startswith(_LIBRARY_PATHS)}:
        clean.pop(name, None)
        before = clean.pop(f"{name}_ORIG", "")
        clean.update({name: before} if before else {})
    ours = [name for name in _PYTHON_FOLDERS if Path(clean.get(name, "/")).is_relative_to(bundle)]
    return {name: value for name, value in clean.items() if name not in ours}


def script_of(words: Sequence[str], is_file: Callable[[str], bool]) -> str | None:
    """Return the file that an interpreter runs in a command line (`python3 x.txt`), or None if no interpreter runs one.

    The file may have any name. `is_file`: returns True if an argument is a file.
    """
    for place, word in enumerate(words):
        if _INTERPRETER.fullmatch(word):
            arguments = takewhile(lambda later: later not in _TEXT_FOLLOWS, words[place + 1 :])
            if (script := next(filter(is_file, arguments), None)) is not None:
                return script
    return None


def found_elsewhere(command: str, home: str) -> str:
    """Return a hint with the path of a program that is not on the PATH, or "" if no usual folder has it."""
    if os.sep in command or not command:
        return ""
    for folder in _FOLDERS:
        path = Path(folder.replace("~", home, 1), command)
        if path.is_file() and os.access(path, os.X_OK):
            return f"Found at {folder}/{command}: write that path in servers.yaml, or add its folder to the PATH"
    return ""


# Known MCP servers that launch their own browser. Sessions that share such a server would act on each other's pages.
# Servers that attach to the user's own browser are not listed: there is only one such browser.
BROWSER_SERVERS = frozenset({
    # npm
    "@angiejones/mcp-selenium", "@automatalabs/mcp-server-playwright", "@browserbasehq/mcp",
    "@browserbasehq/mcp-server-browserbase", "@executeautomation/playwright-mcp-server", "@hisma/server-puppeteer",
    "@modelcontextprotocol/server-puppeteer", "@mozilla/firefox-devtools-mcp", "@playwright/mcp",
    "better-playwright-mcp", "chrome-devtools-mcp", "concurrent-browser-mcp", "firefox-devtools-mcp",
    "puppeteer-mcp-server",
    # PyPI
    "browser-use", "browser-use-mcp-server", "mcp-browser-use", "mcp-playwright", "mcp-selenium",
    "mcp-server-browser-use", "playwright-mcp",
    # Docker
    "mcp/playwright", "mcp/puppeteer", "mcr.microsoft.com/playwright/mcp",
    # the programs that these packages install
    "mcp-server-playwright", "mcp-server-puppeteer", "playwright-mcp-server",
})  # fmt: skip
WHY = "It drives a browser, which sessions would share"

_VERSION = late(r"(?<=.)(?:@|==|:(?=[^/]*\Z)|\[).*\Z", re.DOTALL)  # a version of a package or image, or PyPI extras
_INSTALLED = late(r".*[/\\]node_modules[/\\](?:\.bin[/\\])?((?:@[^/\\]+[/\\])?[^/\\]+)(?:[/\\].*)?", re.DOTALL)


def is_browser(words: Iterable[str]) -> bool:
    """Return True if a command line starts one of BROWSER_SERVERS, named by package, image, program or path."""
    for word in words:
        installed = _INSTALLED.fullmatch(word)
        if installed is not None:
            package = installed[1].replace("\\", "/").lower().removesuffix(".cmd")
        elif word.startswith(("/", "~", ".")) or "\\" in word:
            package = program_of(word)
        else:
            package = _VERSION.sub("", word).lower()
        if package in BROWSER_SERVERS and not word.startswith("-"):
            return True
    return False


# Matches the programs in a command line that may run a package by its name
RUNS_PACKAGES = late(
    r"(?<![\w-])(?:npx|npm|uvx?|pipx|docker|podman|bunx?|pnpm|pnpx|yarn|deno|dnx|go)(?![\w-])", re.IGNORECASE
)
RUNNERS = frozenset(("npx", "npm", "uvx", "uv", "pipx", "docker", "podman"))


def program_of(word: str) -> str:
    """Return a program's name in lower case, without its folder and Windows suffix: `npx` for `C:\\node\\npx.cmd`."""
    name = word.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()
    for suffix in (".exe", ".cmd", ".ps1", ".bat"):
        name = name.removesuffix(suffix)
    return name


def runner_name(program: str) -> str:
    """Return a runner's name without its path and Windows suffix. Return other programs unchanged."""
    name = program_of(program)
    return name if name in RUNNERS else program


def is_runner(argv: tuple[str, ...]) -> bool:
    """Return True if a command line starts a package runner, also by its path or through `cmd /c`."""
    return any(runner_name(word) in RUNNERS for word in argv[: 3 if argv[0].lower() in ("cmd", "cmd.exe") else 1])


def own_folder(argv: tuple[str, ...]) -> str:
    """Return the folder of the program if it is written as an absolute path; "" otherwise."""
    program = Path(argv[0])
    return str(program.parent) if program.is_absolute() else ""
