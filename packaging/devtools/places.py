"""Paths in a checkout."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
PYPROJECT = ROOT / "pyproject.toml"
REQUIREMENTS = PACKAGING / "requirements.txt"
TEST_REQUIREMENTS = PACKAGING / "requirements-test.txt"
SERVER_REQUIREMENTS = PACKAGING / "requirements-servers.txt"
OLD_SERVER_REQUIREMENTS = PACKAGING / "requirements-servers-sdk1.txt"
VENV = ROOT / ".venv"
DIST = ROOT / "dist"
CACHE = ROOT / ".cache"
NPM_SERVERS = CACHE / "npm-servers"
NPM_CLIENTS = CACHE / "npm-clients"
NPM_SUITE = CACHE / "npm-conformance"
PYPI_SERVERS = CACHE / "pypi-servers"
OLD_PYPI_SERVERS = CACHE / "pypi-servers-sdk1"  # servers that need version 1 of the Python SDK
# where npm installs -> the folder with the package.json and the package-lock.json
NPM_SOURCES = {
    NPM_SERVERS: PACKAGING / "test-servers",
    NPM_CLIENTS: PACKAGING / "test-clients",
    NPM_SUITE: PACKAGING / "test-conformance",
}


def script(venv: Path, name: str) -> Path:
    """Return the path of the program `name` in a virtual environment, on any system."""
    return venv / "Scripts" / f"{name}.exe" if os.name == "nt" else venv / "bin" / name
