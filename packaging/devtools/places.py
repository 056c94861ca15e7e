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
NPM_MANIFEST = PACKAGING / "test-servers" / "package.json"
NPM_LOCK = PACKAGING / "test-servers" / "package-lock.json"
CLIENTS_MANIFEST = PACKAGING / "test-clients" / "package.json"
CLIENTS_LOCK = PACKAGING / "test-clients" / "package-lock.json"
SUITE_MANIFEST = PACKAGING / "test-conformance" / "package.json"
SUITE_LOCK = PACKAGING / "test-conformance" / "package-lock.json"

VENV = ROOT / ".venv"
DIST = ROOT / "dist"
CACHE = ROOT / ".cache"
NPM_SERVERS = CACHE / "npm-servers"
NPM_CLIENTS = CACHE / "npm-clients"
NPM_SUITE = CACHE / "npm-conformance"
PYPI_SERVERS = CACHE / "pypi-servers"
OLD_PYPI_SERVERS = CACHE / "pypi-servers-sdk1"  # servers that need version 1 of the Python SDK
UV_VENV = CACHE / "uv"


def script(venv: Path, name: str) -> Path:
    """Return the path of the program `name` in a virtual environment, on any system."""
    return venv / "Scripts" / f"{name}.exe" if os.name == "nt" else venv / "bin" / name
