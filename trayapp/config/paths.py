"""Locations of the configuration, caches, state and logs. wire/rundir locates the run folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

HOME_VARIABLE = "MULTI_MCP_HOME"
CONFIG_NAME = "servers.yaml"
SEALED_NAME = "secrets.sealed"  # beside servers.yaml; holds sign-ins and secrets with `token_store: file`
PASSPHRASE = "MULTI_MCP_PASSPHRASE"  # the environment variable with the passphrase for that file
PACKAGES = "packages"  # the name of a folder in the state folder


class Paths(NamedTuple):
    """Absolute paths. None of them needs to exist."""

    config_file: Path
    cache_dir: Path
    log_dir: Path
    state_dir: Path

    @property
    def lock_file(self) -> Path:
        return self.config_file.with_name("servers.lock")

    @property
    def packages_dir(self) -> Path:
        return self.state_dir / PACKAGES


def find_paths(environ: Mapping[str, str]) -> Paths:
    """Return the platform's paths for this user, or paths in the folder MULTI_MCP_HOME if that variable is set.

    In MULTI_MCP_HOME, `~` is expanded, and a relative path is resolved against the working folder.
    """
    named = environ.get(HOME_VARIABLE, "").strip()
    if named:
        home = Path(named)
        with suppress(RuntimeError):  # for the ~name of an unknown user, which then counts as a relative path
            home = home.expanduser()
        home = home.absolute()
        return Paths(home / CONFIG_NAME, home / "cache", home / "logs", home / "state")
    from platformdirs import PlatformDirs  # imported late: takes 25 ms, and is not needed if MULTI_MCP_HOME is set

    folders = PlatformDirs("multi-mcp", appauthor=False)
    config_file = folders.user_config_path / CONFIG_NAME
    return Paths(config_file, folders.user_cache_path, folders.user_log_path, folders.user_state_path)


def home_folder() -> Path:
    """Return the user's home folder. If it is unknown, return a path that does not exist."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("~")


def user_folders(home: Path) -> dict[str, str]:
    """Return the user's home, desktop, documents and downloads folders, by the names that bundles use for them."""
    import platformdirs  # imported late: takes 25 ms, and only bundles need it

    return {
        "HOME": str(home),
        "DESKTOP": platformdirs.user_desktop_dir(),
        "DOCUMENTS": platformdirs.user_documents_dir(),
        "DOWNLOADS": platformdirs.user_downloads_dir(),
    }
