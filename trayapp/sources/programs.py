"""Read the words of a command: its program, package, script and container, and a name for its server."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import dropwhile
from pathlib import PurePosixPath
from typing import Any

from trayapp.config.programs import program_of
from trayapp.config.urls import name_of_url

LONGEST_NAME = 60
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_GENERIC = re.compile(
    r"(?i)(?:^(?:mcp[-_.]?server|server|mcp)[-_.])|(?:[-_.](?:mcp[-_.]?server|server[-_.]?mcp|mcp|server)$)"
)
CONTAINERS = frozenset(("docker", "podman"))
SHELLS = frozenset(
    ("sh", "bash", "zsh", "dash", "fish", "ksh", "cmd", "powershell", "pwsh", "eval", "exec", "sudo", "env", "cd")
)
PODS = frozenset(("kubectl", "oc"))
REACHING = frozenset(("ssh", "wsl", *PODS))  # programs that run the command in their arguments on another system
_ENVIRONMENTS = frozenset(("conda", "mamba", "micromamba"))  # programs that run others in an environment
OWN_PACKAGE = re.compile(r"\.{1,2}(?:[/\\]|$)")  # `uvx --from . acme-mcp`, `npx ../acme-mcp`


def words_of(entry: Mapping[str, Any]) -> list[str]:
    """Return the command and the arguments of an entry; [""] for a server at an address."""
    return [str(entry.get("command") or ""), *map(str, entry.get("args") or [])]


def name_for(entry: Mapping[str, Any]) -> str:
    """Return a name for a server that has none, from its package, program or address."""
    url = entry.get("url")
    if isinstance(url, str):
        with suppress(ValueError):  # an invalid address
            return name_of_url(url)
        return "server"
    words = words_of(entry)
    package = package_of(words)
    bare = re.sub(r"(?<=.)@.*", "", package)
    if bare in BRIDGES and (address := next((word for word in words if re.match(r"https?://\w", word)), "")):
        return name_of_url(address)
    program = PurePosixPath(words[0].replace("\\", "/")).stem
    inner = _in_environment(words) if program.lower() in _ENVIRONMENTS else []
    if "--" in words and program.lower() in _WRAPPERS:
        inner = words[words.index("--") + 1 :]
    if inner:
        return name_for({"command": inner[0], "args": inner[1:]})
    if bare == "@smithery/cli" and "run" in words[:-1]:
        package = words[words.index("run") + 1]
    elif package in words and OWN_PACKAGE.match(package):  # `--from . acme-mcp`
        package = next(iter(words[words.index(package) + 1 :]), package)
    elif bare in INTERPRETERS or (not package and program.lower() in INTERPRETERS):
        package = next(filter(None, map(_own_part, words[1:])), "")
    named = _NAMED_WITHIN.match(" ".join([program, *words[1:]]))
    return name_of_package(package or script_of(words) or (named and named[named.lastindex or 0]) or program)


# Command lines in which a runner or build tool starts the named program: `poetry run weather-mcp`,
# `cargo run --bin weather-mcp`.
_NAMED_WITHIN = re.compile(
    r"(?:poetry|pdm|hatch|rye|pixi|pipenv|bundle|dotnet tool|(?:docker|podman)[ -]compose) (?:run|exec)"
    r" (?:-\S+ )*([\w.-]+)"
    r"|cargo run (?:.* )?(?:--bin|-p|--package)[ =]([\w-]+)|jbang (?:-\S+ )*[\w.-]+:([\w.-]+):\S+"
    r"|mix (\w+)\.mcp\b|php artisan mcp:start ([\w-]+)"
    r"|nix run (?:-\S+ )*(?:[\w+.:/-]+#([\w.-]+)|git(?:hub|lab):[\w.-]+/([\w.-]+))"
)


def _in_environment(words: Sequence[str]) -> list[str]:
    """Return the command that `conda run -n NAME COMMAND` runs; [] for another subcommand."""
    rest = list(words[2:]) if list(words[1:2]) == ["run"] else []
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in ("-n", "--name", "-p", "--prefix", "--cwd") else 1 :]
    return rest


BRIDGES = frozenset(("mcp-remote", "supergateway", "mcp-proxy"))  # programs that connect to a server at an address
_WRAPPERS = frozenset(("op", "dotenvx", "infisical", "doppler", "mise", "volta"))  # run a program with more variables
INTERPRETERS = frozenset((
    "node", "deno", "bun", "java", "dotnet", "dnx", "go", "cargo", "ruby", "php", "tsx", "ts-node", "python", "python3",
))  # fmt: skip
# Parts of a path that do not identify the program.
_PLAIN_PARTS = frozenset((
    "index", "server", "main", "__main__", "app", "cli", "mcp", "stdio", "run", "start", "bin", "dist", "build", "src",
    "out", "lib", "target", "release", "debug", "scripts", "path", "to", "absolute", "your", "full",
))  # fmt: skip
_PROGRAM_FILE = re.compile(r"\.(?:[cm]?[jt]sx?|py|jar|rb|php|(?:cs|fs)proj|dll|go|toml)$", re.IGNORECASE)


def _own_part(word: str) -> str:
    """Return the part of a program's path that names it (`weather-mcp` of /srv/weather-mcp/dist/index.js), or ""."""
    if word.startswith("-") or not re.search(r"[/\\.]|^(?:jsr|npm):", word) or "=" in word:
        return ""
    if re.match(r"(?:jsr|npm):|[\w.-]+\.\w+/.*/", word):  # a package, or a Go module
        return re.sub(r"^(?:jsr|npm):/?((?:@[\w.-]+/)?[^/]+).*", r"\1", word)
    parts = [re.sub(r"-v?\d+\.\d[\w.-]*$", "", _PROGRAM_FILE.sub("", part)) for part in re.split(r"[/\\]", word)]
    own = (part for part in parts[::-1] if re.match(r"(?!net\d)\w*[A-Za-z][\w.-]+$", part))
    return next((part for part in own if part.lower() not in _PLAIN_PARTS), "")


def script_of(words: Sequence[str]) -> str:
    """Return the script or module that `uv run` or `python -m` runs, or the name of a program with a path; else ""."""
    program, rest = PurePosixPath(words[0]).name, list(words[1:])
    if program == "uv" and "run" in rest:
        rest = rest[rest.index("run") + 1 :]
        while rest and rest[0].startswith("-") and rest[0] != "-m":
            rest = rest[2 if rest[0] in _WITH_VALUE["uv"] else 1 :]
        program = rest.pop(0) if rest and rest[0] != "-m" else "python"
    if not re.fullmatch(r"python[\d.]*|py", program):
        return PurePosixPath(program).stem if words[0] != program else ""
    return rest[1].partition(".")[0] if rest[:1] == ["-m"] and len(rest) > 1 else ""


def name_of_package(package: str) -> str:
    """Return a server's name from its package: `filesystem` for `@modelcontextprotocol/server-filesystem@1.2.3`.

    It has at most LONGEST_NAME characters, and is `server` if nothing else is left.
    """
    bare = re.sub(r"(?<=.)(?:@|#|[=<>!~]=?|\[).*$", "", package)
    bare = re.sub(r"\.(?:git|tgz|tar\.gz)$", "", bare)
    scope, _, last = bare.rpartition("/")
    last = last.partition(":")[0]
    short = last
    while (cut := _GENERIC.sub("", short)) not in ("", short):
        short = cut
    if short.lower() in ("mcp", "server", "mcp-server", ""):
        short = scope.removesuffix("/cmd").rpartition("/")[2].lstrip("@") or last
    return re.sub(r"[^A-Za-z0-9._-]+", "-", short).strip("-._")[:LONGEST_NAME] or "server"


_WITH_VALUE = {
    "uv": {"--directory", "--project", "--with", "--with-editable", "--with-requirements", "--from", "--python", "-p",
           "--extra", "--group", "--env-file", "--index", "--index-url"},
    "npx": {"-p", "--package", "-c", "--call"},
    "dnx": {"--version", "--source", "--add-source", "--configfile", "--framework", "-v", "--verbosity"},
    "uvx": {"--from", "--with", "--with-editable", "--with-requirements", "--python", "-p", "--python-preference",
            "--index", "--default-index", "--index-url", "-i", "--extra-index-url", "--find-links", "-f",
            "--index-strategy", "--keyring-provider", "--prerelease", "--resolution", "--exclude-newer",
            "--constraints", "-c", "--overrides", "--env-file", "--link-mode", "--cache-dir", "--directory",
            "--project", "--config-file", "--refresh-package", "--upgrade-package", "-P", "--no-binary-package"},
    "docker": {"-e", "--env", "-v", "--volume", "--mount", "--name", "-p", "--publish", "--network", "--add-host",
               "--env-file", "-w", "--workdir", "-u", "--user", "--pull", "--platform", "--entrypoint", "--memory",
                "--cpus", "-l", "--label", "--gpus", "--hostname", "-h", "--security-opt", "--cap-add", "--cap-drop",
               "--tmpfs", "--shm-size", "--restart"},
}  # fmt: skip


def container_options(words: Sequence[str]) -> list[str] | None:
    """Return the words of `docker run` or `docker exec` before the image or container; None for another command."""
    if program_of(words[0]) not in CONTAINERS or list(words[1:2]) not in (["run"], ["exec"]):
        return None
    at = 2
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _WITH_VALUE["docker"] else 1
    return list(words[:at])


# Programs that start servers, from a package or a file.
RUNNERS = frozenset((
    "npx", "bunx", "pnpx", "pnpm", "yarn", "bun", "npm", "uvx", "uv", "pipx", "docker", "podman", "node", "deno",
    "python", "python3", "py", "java", "dotnet", "dnx", "go", "cargo", "ruby", "php", "mcp-remote", "supergateway",
    "poetry", "pdm", "hatch", "rye", "pixi", "nix", "mise", "dart", "swift", "jbang", "mix", "perl", "rscript", "julia",
    "op", "dotenvx", "infisical", "doppler", "volta", "conda", "mamba", "micromamba", "bundle",
))  # fmt: skip


_SWITCH = re.compile(r"--[\w-]+=.*|--(?:silent|yes|quiet|bun)|-[sy]")  # an option of a package manager before its verb


def package_of(words: Sequence[str]) -> str:
    """Return the package or image that a command line runs, or "" if it cannot be determined."""
    if not words:
        return ""
    program = program_of(words[0])
    rest = list(words[1:])
    if program in ("pnpm", "yarn", "bun", "npm"):
        own = list(dropwhile(_SWITCH.fullmatch, rest))
        if own[:1] and own[0] in ("dlx", "x", "exec"):
            program, rest = "npx", own[1:]
    program = {"bunx": "npx", "pnpx": "npx", "podman": "docker"}.get(program, program)
    if (program == "pipx" and rest[:1] == ["run"]) or (program == "uv" and rest[:2] == ["tool", "run"]):
        program, rest = "uvx", rest[1 if program == "pipx" else 2 :]
    if program == "docker":
        rest = rest[1:] if rest[:1] == ["run"] else []
    options = _WITH_VALUE.get(program)
    if options is None or program == "uv":
        return ""
    named = {"npx": ("--package", "-p"), "uvx": ("--from",)}.get(program, ())
    chosen = ""
    at = 0
    while at < len(rest):
        word = rest[at]
        if not word.startswith("-"):
            return chosen or word
        if word in named and at + 1 < len(rest):
            chosen = chosen or rest[at + 1]
        if word.startswith(("--package=", "--from=")):
            chosen = word.partition("=")[2]
        at += 2 if word in options else 1
    return chosen
