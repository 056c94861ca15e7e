"""The real MCP servers that tests talk to, in the ignored cache folder. Never here: their argv (tests/servers.py)."""

from __future__ import annotations

import shutil

from devtools.environment import install_locked, interpreter_mark, make_venv
from devtools.places import NPM_LOCK, NPM_MANIFEST, NPM_SERVERS, PYPI_SERVERS, SERVER_REQUIREMENTS
from devtools.steps import StepFailed, fingerprint, in_ci, installing, is_stamped, run, say, stamping

NPM_CI = ("ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error")


def ensure_servers() -> None:
    """Install the npm and PyPI servers; without node or on a failure tests skip on a person's machine, CI fails."""
    for name, step in (("npm", _ensure_npm_servers), ("PyPI", _ensure_pypi_servers)):
        try:
            step()
        except StepFailed as failure:
            if in_ci():
                raise
            say(f"no {name} test servers, so the tests that need them skip: {failure}. {failure.hint}".rstrip())


def _ensure_npm_servers() -> None:
    wanted = fingerprint(NPM_MANIFEST, NPM_LOCK)
    if is_stamped(NPM_SERVERS, "npm", wanted):
        return
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise StepFailed("node or npm is not installed", "Install Node.js 20 or newer.")
    with installing():
        if is_stamped(NPM_SERVERS, "npm", wanted):
            return
        say("installing the npm test servers into .cache/npm-servers")
        NPM_SERVERS.mkdir(parents=True, exist_ok=True)
        with stamping(NPM_SERVERS, "npm", wanted):
            for source in (NPM_MANIFEST, NPM_LOCK):
                shutil.copyfile(source, NPM_SERVERS / source.name)
            run([npm, *NPM_CI], cwd=NPM_SERVERS)


def _ensure_pypi_servers() -> None:
    wanted = fingerprint(interpreter_mark(), str(PYPI_SERVERS), SERVER_REQUIREMENTS)
    if is_stamped(PYPI_SERVERS, "pypi", wanted):
        return
    with installing():
        if is_stamped(PYPI_SERVERS, "pypi", wanted):
            return
        say("installing the PyPI test servers into .cache/pypi-servers")
        with stamping(PYPI_SERVERS, "pypi", wanted):
            make_venv(PYPI_SERVERS)
            install_locked(PYPI_SERVERS, SERVER_REQUIREMENTS)
