"""Our own folders, which no confined server may access, and the two folders that are made for each server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from trayapp.config.paths import find_paths
from trayapp.wire.rundir import run_dir, socket_folder

FOLDER = "confined"  # in the cache folder


def own_folders(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders of our configuration, caches, logs and sockets."""
    paths = find_paths(environ)
    run = run_dir(dict(environ))
    folders = (paths.config_file.parent, paths.cache_dir, paths.log_dir, run, socket_folder(run))
    return tuple(dict.fromkeys(map(str, folders)))


def scratch_folder(server: str, environ: Mapping[str, str]) -> str:
    """Return the folder for a confined server's cache and temporary files."""
    return str(find_paths(environ).cache_dir / FOLDER / quote(server, safe=" "))


def make_scratch(folder: str) -> tuple[str, str]:
    """Make the folders for a server's cache and its temporary files. Return both. Raises OSError.

    Temporary files live as long as the gateway; those of gateways that have ended are removed.
    """
    cache, temporary = Path(folder, "cache"), Path(folder, "tmp")
    for path in (cache, temporary):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in temporary.iterdir():
        if not left.name.isdecimal() or (int(left.name) != os.getpid() and not _runs(int(left.name))):
            import shutil  # with its archive modules it is half of what a first confined start loads

            shutil.rmtree(left, ignore_errors=True)
    mine = temporary / str(os.getpid())
    with suppress(FileExistsError):
        mine.mkdir(mode=0o700)
    return str(cache.resolve()), str(mine.resolve())


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
