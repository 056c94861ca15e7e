"""The real MCP servers and AI tools that tests run, in the ignored cache folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from devtools.environment import install_locked, interpreter_mark, make_venv
from devtools.places import (
    CLIENTS_LOCK,
    CLIENTS_MANIFEST,
    NPM_CLIENTS,
    NPM_LOCK,
    NPM_MANIFEST,
    NPM_SERVERS,
    NPM_SUITE,
    OLD_PYPI_SERVERS,
    OLD_SERVER_REQUIREMENTS,
    PYPI_SERVERS,
    SERVER_REQUIREMENTS,
    SUITE_LOCK,
    SUITE_MANIFEST,
)
from devtools.steps import StepFailed, fingerprint, in_ci, installing, is_stamped, run, say, stamping

NPM_CI = ("ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error")


def ensure_npm() -> None:
    """Install servers and tools from npm. Without node, or on a failure, CI fails; elsewhere their tests skip."""
    _ensure(
        ("npm servers", _ensure_npm_servers),
        ("npm clients", _ensure_clients),
        ("npm conformance suite", _ensure_suite),
    )


def ensure_pypi() -> None:
    """Install servers from PyPI. On a failure, CI fails; elsewhere their tests skip."""
    _ensure(("PyPI servers", _ensure_pypi_servers))


def _ensure(*steps: tuple[str, Callable[[], None]]) -> None:
    for name, step in steps:
        try:
            step()
        except StepFailed as failure:
            if in_ci():
                raise
            say(f"cannot install {name}, so the tests that need them skip: {failure}. {failure.hint}".rstrip())


def _ensure_npm_servers() -> None:
    _ensure_npm(NPM_SERVERS, NPM_MANIFEST, NPM_LOCK)


def _ensure_clients() -> None:
    _ensure_npm(NPM_CLIENTS, CLIENTS_MANIFEST, CLIENTS_LOCK)


def _ensure_suite() -> None:
    _ensure_npm(NPM_SUITE, SUITE_MANIFEST, SUITE_LOCK)


def _ensure_npm(folder: Path, manifest: Path, lock: Path) -> None:
    wanted = fingerprint(manifest, lock)
    if is_stamped(folder, "npm", wanted):
        return
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise StepFailed("node or npm is not installed", "Install Node.js 20 or newer.")
    with installing(folder):
        if is_stamped(folder, "npm", wanted):
            return
        say(f"installing into .cache/{folder.name}")
        folder.mkdir(parents=True, exist_ok=True)
        with stamping(folder, "npm", wanted):
            for source in (manifest, lock):
                shutil.copyfile(source, folder / source.name)
            run([npm, *NPM_CI], cwd=folder)


def _ensure_pypi_servers() -> None:
    for folder, lock in ((PYPI_SERVERS, SERVER_REQUIREMENTS), (OLD_PYPI_SERVERS, OLD_SERVER_REQUIREMENTS)):
        _ensure_pypi(folder, lock)


def _ensure_pypi(folder: Path, lock: Path) -> None:
    wanted = fingerprint(interpreter_mark(), str(folder), lock)
    if is_stamped(folder, "pypi", wanted):
        return
    with installing(folder):
        if is_stamped(folder, "pypi", wanted):
            return
        say(f"installing PyPI test servers into .cache/{folder.name}")
        with stamping(folder, "pypi", wanted):
            make_venv(folder)
            install_locked(folder, lock)
