"""Checks of this system: the Python interpreter, the folders that we write to, and how servers can be confined."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

from trayapp.model.settings import confine_of
from trayapp.service.checks.check import CheckContext, CheckResult
from trayapp.service.checks.servers import read_config

OLDEST_PYTHON = (3, 11)
SPACE_WANTED = 100_000_000  # bytes: logs, catalogs and a new servers.yaml fit many times over
LOGS_LARGE = 500_000_000  # bytes; rotated logs of 4 MB for each server never reach that
PROBE = b"multi-mcp doctor\n" * 64
CONFINE = "confine.available"


def python_version(context: CheckContext) -> list[CheckResult]:
    """Report whether we support this Python version."""
    version = ".".join(map(str, context.python))
    if context.python[:2] >= OLDEST_PYTHON:
        return [CheckResult("version.python", "ok", f"Python {version}")]
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return [
        CheckResult("version.python", "problem", f"Python {version} is too old", f"Install Python {oldest} or newer")
    ]


def available(context: CheckContext) -> list[CheckResult]:
    """Report how servers are confined here. A missing mechanism is a problem if an enabled server asks for it."""
    from trayapp.confinement.start import (  # makes system calls, which only Linux has
        NoMechanismError,
        choose_mechanism,
    )

    config = read_config(context)
    servers = config.servers.values() if config else ()
    stdio = [server for server in servers if server.command is not None and not server.disabled]
    setting = config.settings.confine if config else None
    wanted = [(one.name, confine) for one in stdio if (confine := confine_of(one.confine, setting)) is not None]
    found = []
    for name, confine in wanted:
        try:
            choose_mechanism(confine.network, confine.sockets)
        except NoMechanismError as error:
            state = "cannot be confined and does not start" if confine.required else "runs unconfined"
            found.append(CheckResult(CONFINE, "problem", f"{name} {state}: {error.reason}", error.hint))
    if found:
        return found
    try:
        mechanism = choose_mechanism(True, False)
    except NoMechanismError as error:
        return [CheckResult(CONFINE, "note", f"Servers cannot be confined here: {error.reason}", error.hint)]
    try:
        browsers = f"; with sockets: true by {choose_mechanism(True, True)}"
    except NoMechanismError as error:
        browsers = f", but not with sockets: true: {error.reason}"
    return [CheckResult(CONFINE, "ok", f"Servers can be confined here, by {mechanism}{browsers}")]


def space(context: CheckContext) -> list[CheckResult]:
    """Report whether the disks of our folders have free space, each disk once."""
    disks = {place.stat().st_dev: place for place in map(_nearest, _folders(context))}
    found = []
    for place in disks.values():
        free = shutil.disk_usage(place).free
        message = f"{free / 1e6:,.0f} MB free for {place}"
        if free < SPACE_WANTED:
            found.append(CheckResult("disk.space", "problem", f"Only {message}", "Free some space"))
        else:
            found.append(CheckResult("disk.space", "ok", message))
    return [finding for finding in found if finding.state != "ok"] or found[:1]


def writable(context: CheckContext) -> list[CheckResult]:
    """Report whether our folders can be written.

    An existing folder is tested with a file. For a missing one, the permissions of the folder above are checked.
    """
    found = [finding for folder in _folders(context) if (finding := _unwritable(folder)) is not None]
    config = context.paths.config_file
    if not found and config.exists() and not os.access(config, os.W_OK):
        what = f"{config} is read-only: new tools cannot be written to it"
        found = [CheckResult("disk.writable", "note", what, "Make it writable for its owner")]
    return list(dict.fromkeys(found)) or [CheckResult("disk.writable", "ok", "All folders are writable")]


def log_size(context: CheckContext) -> list[CheckResult]:
    """Report the size of the logs."""
    folder = context.paths.log_dir
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0
    message = f"The logs in {folder} take {size / 1e6:.1f} MB"
    if size > LOGS_LARGE:
        return [
            CheckResult(
                "log.size", "note", message, "Delete the logs that you do not need; the gateway creates new ones"
            )
        ]
    return [CheckResult("log.size", "ok", message)]


def _folders(context: CheckContext) -> list[Path]:
    paths = context.paths
    return list(dict.fromkeys((paths.config_file.parent, paths.cache_dir, paths.log_dir, Path(context.run))))


def _nearest(folder: Path) -> Path:
    """Return the folder, or the nearest folder above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def _unwritable(folder: Path) -> CheckResult | None:
    place = _nearest(folder)
    try:
        if not place.is_dir():
            return CheckResult("disk.writable", "problem", f"{place} is not a folder", "Move it away")
        if not os.access(place, os.W_OK | os.X_OK):
            is_read_only = hasattr(os, "statvfs") and os.statvfs(place).f_flag & os.ST_RDONLY
            number = errno.EROFS if is_read_only else errno.EACCES
            raise OSError(number, os.strerror(number))
        if place == folder:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(PROBE)
                file.flush()
    except OSError as error:
        remedy = "Free some space, or check the owner and permissions of the folder"
        return CheckResult("disk.writable", "problem", f"Cannot write to {place}: {error.strerror}", remedy)
    return None
