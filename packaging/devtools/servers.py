"""The real MCP servers and AI tools that tests run, in the ignored cache folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from devtools.environment import install_locked, interpreter_mark, make_venv
from devtools.places import (
    NPM_CLIENTS,
    NPM_SERVERS,
    NPM_SOURCES,
    NPM_SUITE,
    OLD_PYPI_SERVERS,
    OLD_SERVER_REQUIREMENTS,
    PYPI_SERVERS,
    SERVER_REQUIREMENTS,
)
from devtools.steps import StepFailed, fingerprint, once, optional, run

NPM_CI = ("ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error")
NPM_NAMES = {NPM_SERVERS: "npm servers", NPM_CLIENTS: "npm clients", NPM_SUITE: "npm conformance suite"}


def ensure_npm() -> None:
    """Install servers and tools from npm. Without Node.js, or on a failure, CI fails; elsewhere their tests skip."""
    for folder, name in NPM_NAMES.items():
        with optional(f"install {name}"):
            _ensure_npm(folder, NPM_SOURCES[folder])


def ensure_pypi() -> None:
    """Install servers from PyPI. On a failure, CI fails; elsewhere their tests skip."""
    with optional("install PyPI servers"):
        _ensure_pypi(PYPI_SERVERS, SERVER_REQUIREMENTS)
        _ensure_pypi(OLD_PYPI_SERVERS, OLD_SERVER_REQUIREMENTS)


def _ensure_npm(folder: Path, source: Path) -> None:
    files = (source / "package.json", source / "package-lock.json")

    def install() -> None:
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            raise StepFailed("node or npm is not installed", "Install Node.js 20 or newer.")
        folder.mkdir(parents=True, exist_ok=True)
        for path in files:
            shutil.copyfile(path, folder / path.name)
        run([npm, *NPM_CI], cwd=folder)

    once(folder, "npm", fingerprint(*files), install)


def _ensure_pypi(folder: Path, lock: Path) -> None:
    def install() -> None:
        make_venv(folder)
        install_locked(folder, lock)

    once(folder, "pypi", fingerprint(interpreter_mark(), str(folder), lock), install)
