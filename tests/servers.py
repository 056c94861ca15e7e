"""The argv of each real MCP server that `packaging/dev.py test` installs."""

from __future__ import annotations

import json
from pathlib import Path

from devtools.places import NPM_SERVERS, OLD_PYPI_SERVERS, PYPI_SERVERS, script
from tests.tools import require, require_file

REMEDY = "`python3 packaging/dev.py test` installs it"


def everything() -> list[str]:
    """Return server-everything (npm) over stdio, which has every feature of the protocol."""
    return _npm_server("server-everything")


def everything_http() -> list[str]:
    """Return server-everything over Streamable HTTP. It listens on the port in the environment variable PORT."""
    return [*_npm_server("server-everything"), "streamableHttp"]


def everything_sse() -> list[str]:
    """Return server-everything over legacy SSE. It listens on the port in the environment variable PORT."""
    return [*_npm_server("server-everything"), "sse"]


def filesystem(*folders: Path) -> list[str]:
    """server-filesystem (npm), allowed to touch these folders; it wants at least one."""
    return [*_npm_server("server-filesystem"), *(str(folder) for folder in folders)]


def memory() -> list[str]:
    """server-memory (npm); set MEMORY_FILE_PATH to a file of the test's own, or it writes into its package."""
    return _npm_server("server-memory")


def sequential_thinking() -> list[str]:
    """Return server-sequential-thinking (npm)."""
    return _npm_server("server-sequential-thinking")


def time() -> list[str]:
    """mcp-server-time (PyPI); the zone is named so that no test depends on the machine's."""
    return [*_pypi_server("mcp_server_time"), "--local-timezone", "UTC"]


def git(repository: Path) -> list[str]:
    """mcp-server-git (PyPI) on an existing repository."""
    require("git")
    return [*_pypi_server("mcp_server_git"), "--repository", str(repository)]


def npm(package: str) -> list[str]:
    """node and the file that the package's `bin` names first: what npx would run, without npx."""
    node = require("node")
    folder = require_file(NPM_SERVERS / "node_modules" / package, REMEDY)
    manifest = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    programs = manifest["bin"]
    return [node, str(folder / (programs if isinstance(programs, str) else next(iter(programs.values()))))]


def pypi(program: str) -> list[str]:
    """Return a program of the PyPI servers."""
    return [str(require_file(script(PYPI_SERVERS, program), REMEDY))]


def pypi_sdk1(program: str) -> list[str]:
    """Return a program of the PyPI servers that need version 1 of the Python SDK."""
    return [str(require_file(script(OLD_PYPI_SERVERS, program), REMEDY))]


def _npm_server(name: str) -> list[str]:
    return npm(f"@modelcontextprotocol/{name}")


def _pypi_server(module: str) -> list[str]:
    return [str(require_file(script(PYPI_SERVERS, "python"), REMEDY)), "-m", module]
