"""The command lines of the real MCP servers that `packaging/dev.py test` installs."""

from __future__ import annotations

import json
from pathlib import Path

from devtools.places import NPM_SERVERS, OLD_PYPI_SERVERS, PYPI_SERVERS, script
from tests.cli.running import quick_program
from tests.tools import node, require, require_file

REMEDY = "`python3 packaging/dev.py test` installs it"


def everything() -> list[str]:
    """Return the command of server-everything (npm), which has every feature of the protocol, over stdio."""
    return _npm_server("server-everything")


def everything_http() -> list[str]:
    """Return the command of server-everything over Streamable HTTP. Set PORT in its environment."""
    return [*_npm_server("server-everything"), "streamableHttp"]


def everything_sse() -> list[str]:
    """Return the command of server-everything over legacy SSE. Set PORT in its environment."""
    return [*_npm_server("server-everything"), "sse"]


def filesystem(*folders: Path) -> list[str]:
    """Return the command of server-filesystem (npm) for these folders, at least one."""
    return [*_npm_server("server-filesystem"), *(str(folder) for folder in folders)]


def memory() -> list[str]:
    """Return the command of server-memory (npm). Set MEMORY_FILE_PATH, or the server writes into its package."""
    return _npm_server("server-memory")


def sequential_thinking() -> list[str]:
    """Return the command of server-sequential-thinking (npm)."""
    return _npm_server("server-sequential-thinking")


def time() -> list[str]:
    """Return the command of mcp-server-time (PyPI). The fixed time zone keeps tests independent of the machine's."""
    return [*_pypi_server("mcp_server_time"), "--local-timezone", "UTC"]


def git(repository: Path) -> list[str]:
    """Return the command of mcp-server-git (PyPI) for an existing repository."""
    require("git")
    return [*_pypi_server("mcp_server_git"), "--repository", str(repository)]


def npm(package: str) -> list[str]:
    """Return the command that npx would run for a package: node and the first program in the package's `bin`.

    Node.js comes from PyPI. It caches compiled code, so it starts in 25 % less time than that of many distributions.
    """
    folder = require_file(NPM_SERVERS / "node_modules" / package, REMEDY)
    manifest = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    programs = manifest["bin"]
    return [node(), str(folder / (programs if isinstance(programs, str) else next(iter(programs.values()))))]


def pypi(program: str) -> list[str]:
    """Return the command of a program that is installed with the PyPI servers."""
    return [str(require_file(script(PYPI_SERVERS, program), REMEDY))]


def quick(module: str) -> list[str]:
    """Return the command of a PyPI server whose starts are forks of a process that has imported `module`.

    Imports take nine tenths of such a server's start. Use it only in tests of a server's answers.
    """
    python = script(PYPI_SERVERS, "python")
    require_file(python, REMEDY)
    return quick_program(module, str(python))


def pypi_sdk1(program: str) -> list[str]:
    """Return the command of a program that is installed with the PyPI servers for version 1 of the Python SDK."""
    return [str(require_file(script(OLD_PYPI_SERVERS, program), REMEDY))]


def _npm_server(name: str) -> list[str]:
    return npm(f"@modelcontextprotocol/{name}")


def _pypi_server(module: str) -> list[str]:
    return [str(require_file(script(PYPI_SERVERS, "python"), REMEDY)), "-m", module]
