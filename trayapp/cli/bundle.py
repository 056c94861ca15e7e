"""Bundles (.mcpb) for `multi-mcp add`: read the file, show what would run, unpack it after a yes."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trayapp.cli.output import waiting
from trayapp.clients.places import Machine
from trayapp.config.paths import find_paths, user_folders
from trayapp.model.errors import MultiMcpError, StorageError
from trayapp.packages.bundle_archive import BadBundleError, BundleArchive, is_bundle, read_archive, sha256_of, unpack
from trayapp.packages.lock_file import LockFile
from trayapp.packages.locked import Locked
from trayapp.service.web import WebError, read_file
from trayapp.sources.bundle import BundlePlace, read_bundle, read_manifest
from trayapp.sources.source import Source

LARGEST_DOWNLOAD = 512 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that was read. `folder` is where it will lie; its name holds the hash of the file."""

    archive: BundleArchive
    locked: Locked
    folder: Path
    source: Source

    @contextmanager
    def unpacked(self, server: str) -> Iterator[None]:
        """Unpack it and write it into servers.lock. If the block fails, take both back. Raises MultiMcpError."""
        there = self.folder.is_dir()
        unpack(self.archive, self.folder)
        try:
            yield
            file = LockFile(find_paths(os.environ).lock_file)
            file.put(server, f"mcpb:{self.locked.package}", self.locked)
        except BaseException:
            if not there:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise


def fetch_bundle(url: str, digest: str) -> Path:
    """Return the file of a bundle that a registry names, downloaded unless it is here. Raises MultiMcpError.

    `digest` is its SHA-256, which is checked.
    """
    folder = find_paths(os.environ).cache_dir / "bundles"
    path = folder / f"{digest}.mcpb"
    if path.is_file() and sha256_of(path) == digest:
        return path
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix="new-") as made:
            new = Path(made, "bundle")
            with waiting(f"Fetching {url}"), new.open("wb") as file:
                read_file(url, file, LARGEST_DOWNLOAD)
            if sha256_of(new) != digest:
                raise BadBundleError(f"{url} is not the file that the registry names", "Do not use it; ask its author")
            new.replace(path)
    except WebError as error:
        raise MultiMcpError(f"Cannot fetch {url}: {error.title}", "Try again later") from None
    except OSError as error:
        raise StorageError(f"Cannot keep {url}: {error.strerror}", "Make room, then try again") from None
    return path


def bundle_path(what: str) -> Path | None:
    """Return the path of a bundle if a text names one, else None."""
    try:
        path = Path(what.strip()).expanduser()
        return path.absolute() if len(what) < 4096 and "\n" not in what and path.is_file() and is_bundle(path) else None
    except (OSError, ValueError, RuntimeError):
        return None


def read_bundle_file(path: Path) -> Bundle:
    """Read a bundle. Nothing is unpacked. Raises BadBundleError, UnclearSourceError."""
    archive = read_archive(path)
    manifest = read_manifest(archive.manifest)
    locked = archive.locked(manifest.name, manifest.version, time.time())
    folder = find_paths(os.environ).packages_dir / locked.folder_name
    machine = Machine()
    programs = frozenset(name for name in ("python", "python3") if shutil.which(name))
    folders = user_folders(machine.home)
    place = BundlePlace(str(folder), archive.files, folders, machine.platform, programs)
    return Bundle(archive, locked, folder, read_bundle(manifest, place, archive.sha256))
