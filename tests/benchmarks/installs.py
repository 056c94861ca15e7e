"""The peers' packages: their versions, where they are installed, and their programs.

Each has a separate folder under `.cache/peers`, so that their dependencies do not conflict.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "packaging"))  # needed outside pytest, whose settings include this folder

from devtools.environment import PIP_INSTALL, interpreter_mark, make_venv  # noqa: E402
from devtools.places import CACHE, script  # noqa: E402
from devtools.steps import StepFailed, clean_environment, fingerprint, installing, is_stamped, stamping  # noqa: E402

FOLDER = CACHE / "peers"
INSTALL_LIMIT_S = 240.0  # the largest package is 135 MB
NPM_INSTALL = ("install", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error")
PLACE = re.compile(r"(?:https?|file)://\S+|npm error (?:code )?")  # parts that differ by machine, and npm's prefix
SAID = 160  # most characters of an installer's error, for one line of a table

Registry = Literal["PyPI", "npm"]


@dataclass(frozen=True, slots=True)
class Package:
    """One package at one version."""

    registry: Registry
    name: str
    version: str

    @property
    def label(self) -> str:
        """The name in tables. It contains the registry, because both registries have a package of the same name."""
        return f"{self.name} {self.version} ({self.registry})"

    @property
    def folder(self) -> Path:
        """The package's virtual environment, or the folder that holds its node_modules."""
        return FOLDER / f"{self.registry.lower()}-{self.name.lstrip('@').replace('/', '-')}"

    @property
    def module(self) -> Path:
        """The folder of an npm package inside its node_modules."""
        return self.folder / "node_modules" / self.name

    def program(self, name: str) -> str:
        """Return the path of one of the package's programs, so that no package runner is needed to start it."""
        if self.registry == "PyPI":
            return str(script(self.folder, name))
        return str(self.folder / "node_modules" / ".bin" / (f"{name}.cmd" if sys.platform == "win32" else name))


FASTMCP = Package("PyPI", "fastmcp", "4.1.2")
MCP_PROXY_PY = Package("PyPI", "mcp-proxy", "0.13.0")
MCP_PROXY_JS = Package("npm", "mcp-proxy", "6.7.19")
MCP_HUB = Package("npm", "mcp-hub", "4.2.1")
SUPERGATEWAY = Package("npm", "supergateway", "4.0.0")
ONE_MCP = Package("npm", "@1mcp/agent", "0.26.0")
PACKAGES = (FASTMCP, MCP_PROXY_PY, MCP_PROXY_JS, MCP_HUB, SUPERGATEWAY, ONE_MCP)


@cache
def absence(package: Package) -> str:
    """Install the package unless it is installed. Return an empty string on success, else the reason for failure."""
    install = {"PyPI": _install_pypi, "npm": _install_npm}[package.registry]
    wanted = fingerprint(interpreter_mark(), str(package.folder), package.label)
    if is_stamped(package.folder, "peer", wanted):
        return ""
    try:
        with installing(package.folder):
            package.folder.mkdir(parents=True, exist_ok=True)
            with stamping(package.folder, "peer", wanted):
                install(package)
    except StepFailed as failure:
        return f"not installed: {failure}"
    return ""


def _install_pypi(package: Package) -> None:
    make_venv(package.folder)
    _quietly([str(script(package.folder, "python")), *PIP_INSTALL, f"{package.name}=={package.version}"])


def _install_npm(package: Package) -> None:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise StepFailed("node or npm is not there")
    _quietly([npm, *NPM_INSTALL, "--prefix", str(package.folder), f"{package.name}@{package.version}"])


def _quietly(argv: Sequence[str]) -> None:
    """Run an installer without showing its output. Raises StepFailed with the line that names its error."""
    try:
        done = subprocess.run(
            argv, env=clean_environment(), capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise StepFailed(f"the installer took more than {INSTALL_LIMIT_S:g} s") from None
    if done.returncode != 0:
        raise StepFailed(reason(done.stderr or done.stdout))


def reason(said: str) -> str:
    """Return the line of an installer's output that names the error, short enough for a table."""
    lines = [" ".join(PLACE.sub("", line).split()) for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if "not be found" in line or line.startswith("ERROR")] or lines or ["no word why"]
    return telling[0][:SAID]
