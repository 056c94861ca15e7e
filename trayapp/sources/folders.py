"""Adapt the paths in a snippet to this machine: the home folder, other machines' paths, the folder of the code."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import dropwhile, pairwise
from pathlib import Path
from typing import Any

from trayapp.config.programs import program_of
from trayapp.config.read.command import is_relative
from trayapp.sources.programs import CONTAINERS, INTERPRETERS, OWN_PACKAGE, REACHING, RUNNERS, package_of, words_of
from trayapp.sources.source import Entry, Keys, Source, ValueKind, Variable


def with_home(source: Source, home: Path) -> Source:
    """Return a source with the home folder in place of `~` and `$HOME`, as a shell would do.

    Placeholders and paths in a container or on another machine stay. In `command` and `cwd`, `$HOME` becomes `~`.
    """
    program = program_of(str(source.entry.get("command") or ""))
    taken = {one.keys for one in source.wants}

    def own(keys: Keys, text: Any, pattern: re.Pattern[str]) -> Any:
        return pattern.sub(lambda found: str(home), text) if isinstance(text, str) and keys not in taken else text

    entry = dict(source.entry)
    if "args" in entry and program not in REACHING:
        entry["args"] = [own(("args", at), word, _TILDE) for at, word in enumerate(entry["args"] or [])]
    for key in {"command", "cwd"} & entry.keys():  # multi-mcp expands `~` in these when it reads servers.yaml
        entry[key] = _SHELL_HOME.sub("~", entry[key]) if isinstance(entry[key], str) else entry[key]
    if "env" in entry and program not in REACHING | CONTAINERS:
        entry["env"] = {name: own(("env", name), text, _TILDE_LISTED) for name, text in (entry["env"] or {}).items()}
    return replace(source, entry=entry)


_SHELL_HOME = re.compile(r"\A\$HOME(?=[/\\])")
_TILDE = re.compile(r"(?<![^=,])(?:~|\$HOME)(?=[/\\])")
_TILDE_LISTED = re.compile(r"(?<![^=,:])(?:~|\$HOME)(?=[/\\])")  # also matches inside a list of paths
# A path in someone's home folder, copied from an author's example. Shared, Public and linuxbrew are not users.
_HOME = re.compile(
    r"(?i)(?:(?<=^)|(?<=[=,]))(?:/Users/|/home/|[A-Z]:[/\\]+Users[/\\]+)"
    r"(?!(?:Shared|Public|linuxbrew)(?:[/\\]|$))[^/\\:,<>${%]+(?:[/\\](?:(?! -)[^:,])*)?"
)
# Paths that only Windows has, and paths that only other systems have.
_DRIVE = re.compile(
    r"(?:(?<=^)|(?<=[=,]))(?:[A-Za-z]:|\$\{?(?:env:)?(?i:(?:LOCAL)?APPDATA|USERPROFILE|PROGRAM(?:FILES|DATA))\}?)[/\\]+[^:,]*"
)
_ROOT = re.compile(r"(?:(?<=^)|(?<=[=,]))/(?:usr|opt|var|srv|root|mnt|Applications|Volumes)/[^:,]*")
_MOUNTS = frozenset(("-v", "--volume", "--mount"))


def with_paths_of_others(
    source: Source, home: Path, *, windows: bool, exists: Callable[[str], bool]
) -> tuple[Variable, ...]:
    """Return the variables of a source, plus one for each path that is not on this machine.

    A path in someone else's home folder, or of another operating system, always counts as missing. Any other missing
    path is the default of its variable: the server may create it.
    """
    entry = source.entry
    words = [str(word) for word in entry.get("args") or []]
    program = program_of(str(entry.get("command") or ""))
    # the paths in the arguments are in a container or on another machine
    is_container = program in CONTAINERS or (program in REACHING and program != "wsl")
    places: list[tuple[Keys, str]] = [
        (("args", at), word)
        for at, (before, word) in enumerate(zip(["", *words], words, strict=False))
        if not is_container or before in _MOUNTS or word.startswith("--mount=")
    ]
    if not is_container:
        places += [(("env", str(name)), str(text)) for name, text in (entry.get("env") or {}).items()]
        places += [((key,), str(entry[key])) for key in ("command", "cwd") if key in entry]
    taken = {one.keys for one in source.wants}
    found: list[Variable] = []
    for keys, text in places:
        path = _HOME.search(text) or (_ROOT if windows else _DRIVE).search(text)
        own = re.search(rf"(?<![^=,]){re.escape(str(home))}(?![\w.-])[^:,]*", text)
        own = own or (None if path else (_DRIVE if windows else _ROOT).search(text))
        if own is not None:
            path = None if exists(own[0]) else own
        if path is not None and keys not in taken:
            name = path[0] if keys[0] == "args" else str(keys[-1])
            kind: ValueKind = "path" if keys != ("command",) else "string"
            why, default = ("not on this machine", path[0]) if path is own else ("a path on another machine", "")
            if keys == ("command",) and program_of(path[0]) in RUNNERS:
                default = program_of(path[0])  # the bare name: the program may be elsewhere on this machine
            found.append(Variable(name, keys, path[0], why, kind=kind, default=default))
    if not found:
        return source.wants
    return tuple(sorted((*source.wants, *found), key=lambda one: int(one.keys[1]) if one.keys[0] == "args" else -1))


# Programs that run the code of the current folder -> a file that this folder must contain.
_PROJECTS = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), "package.json"),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "rye"), "pyproject.toml"),
    "cargo": "Cargo.toml", "go": "go.mod", "pixi": "pixi.toml", "deno": "deno.json", "mix": "mix.exs",
    "bundle": "Gemfile", "rake": "Rakefile", "make": "Makefile", "mvn": "pom.xml",
}  # fmt: skip
_TASK_RUNNERS = frozenset(("pnpm", "yarn", "mix", "rake", "make", "mvn"))  # any word may be a task
_PROJECT_VERBS = frozenset(("run", "run-script", "start", "exec", "task"))
_FOLDER_OPTIONS = ("--prefix", "-C", "--dir", "--cwd", "--directory", "--project", "--manifest-path", "--root")
_WITHOUT_PROJECT = re.compile(r"--(?:with|script|no-project)(?:=|$)")
_INLINE = re.compile(r"-m|-[a-z]*c|-e|--eval|-Command")
# Programs whose first argument is the file to run.
_SCRIPTED = frozenset(("node", "python", "python3", "py", "tsx", "ts-node", "php", "perl", "sh", "bash", "zsh", "pwsh"))
_CODE_FILE = re.compile(
    r"\.(?:[cm]?[jt]sx?|py(?::[a-z_]\w*)?|jar|rb|php|csx?|(?:cs|fs)proj|dll|go|sh|ps1|exs|pl)$", re.IGNORECASE
)
_LOADERS = ("fastmcp", "mcp")  # `fastmcp run server.py:mcp`, with the name of an object in that file
_PATH_FIRST = re.compile(r"\.{1,2}(?:[/\\]|$)|[~/$<{\[]|[A-Za-z]:[/\\]")
_ELSEWHERE = re.compile(r"[\w+.-]+:[^\\]|[\w-]+\.[\w.-]+/|@")  # an address, a Go module, a scoped package
COMPOSERS = frozenset(("docker-compose", "podman-compose"))
_SPELLED = {"docker-compose.yml": ("docker-compose.yaml", "compose.yaml", "compose.yml"), "deno.json": ("deno.jsonc",)}


def own_folder(entry: Entry) -> tuple[str | None, str]:
    """Return the folder that a command line's options name, or None, and a file that the folder must contain.

    The file is the server's code, its project's file (`package.json`) or one for its container; "" if none is needed.
    """
    words = words_of(entry)
    is_mark = words[0].startswith(("<", "{", "["))  # a placeholder for a program
    if re.search(r"[/\\]", words[0]) and is_relative(words[0]) and not is_mark:
        return None, words[0]
    program, rest = program_of(words[0]), words[1:]
    if program in CONTAINERS and (files := re.findall(r"\0--env-file[=\0]([^\0]+)", "\0".join(words))):
        return None, next(filter(is_relative, files), "")
    package = package_of(words)
    if OWN_PACKAGE.match(package):
        return None, package if package.strip("./\\") else _PROJECTS["npm" if program == "npx" else "uv"]
    if package:
        program = re.sub(r"(?<=.)@.*", "", package)
        rest = words[words.index(package) + 1 :] if package in words else []
    if program in COMPOSERS or (program in CONTAINERS and rest[:1] == ["compose"]):
        file = next((value for option, value in pairwise(rest) if option in ("-f", "--file")), "docker-compose.yml")
        return None, file if is_relative(file) else ""
    runs_code = program in RUNNERS | INTERPRETERS | _SCRIPTED | {*_LOADERS, *_PROJECTS}
    if program in CONTAINERS or not (is_mark or runs_code):
        return None, ""
    named = next((value for option, value in pairwise(rest) if option in _FOLDER_OPTIONS), None)
    named = named or next((word.partition("=")[2] for word in rest if word.partition("=")[0] in _FOLDER_OPTIONS), None)
    if inline := next(filter(_INLINE.fullmatch, rest), ""):  # a module or code, and its arguments, follow
        at = rest.index(inline)
        if program in _SCRIPTED or inline != "-m":
            is_own = inline == "-m" and "".join(rest[at + 1 : at + 2]).startswith("src.")  # `src` is never installed
            return named, "src" if is_own else ""
        rest = rest[:at]
    plain = [word for word in rest if not word.startswith("-")]
    start = list(dropwhile(lambda word: word in _PROJECT_VERBS, plain))
    files = [word for at, word in enumerate(start) if _CODE_FILE.search(word) or (not at and _PATH_FIRST.match(word))]
    if files or program in _SCRIPTED:
        code = (files or start or [""])[0]
        code = re.sub(r"(?<=\.py):\w+$", "", code)
        code = code if is_relative(code) and not _ELSEWHERE.match(code) else ""
        return named, _PROJECTS.get(program, "") if code in (".", "./") else code
    if program in _TASK_RUNNERS:  # `--filter @acme/mcp start`
        return named, _PROJECTS[program]
    if any(map(_WITHOUT_PROJECT.match, rest)) or any(map(_ELSEWHERE.match, start[:1])):
        return named, ""
    return named, _PROJECTS.get(program, "") if _PROJECT_VERBS & {*plain[:1]} else ""


def with_folder(source: Source, exists: Callable[[str], bool]) -> Source:
    """Return a source with a variable for the folder of its code, unless the current folder has the code.

    In both cases, a relative `cwd` and `scope: session` are removed. A source stays unchanged if it needs no
    folder, names an absolute one or already has a variable for it.
    """
    entry = source.entry
    folder = str(entry.get("cwd") or "")
    is_asked = any(one.keys == ("cwd",) for one in source.wants)
    if "command" not in entry or (folder and not is_relative(folder)) or is_asked:
        return source
    named, code = own_folder(entry)
    code = code if named is None else named if is_relative(named) else ""
    below = folder if folder.strip("./") else ""  # a folder that only the author has
    if not (code or below) or any(one.placeholder and one.placeholder in (below or code) for one in source.wants):
        return source
    entry = {key: value for key, value in entry.items() if (key, value) != ("scope", "session") and key != "cwd"}
    if not below and any(map(exists, (code, *_SPELLED.get(code, ())))):
        return replace(source, entry=entry)
    why = f"the folder {below}" if below else f"the folder with {code}"
    return replace(source, entry=entry, wants=(*source.wants, Variable("cwd", ("cwd",), "", why, kind="directory")))
