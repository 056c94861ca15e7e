"""The file of an MCP bundle (.mcpb, formerly .dxt): a zip archive, checked, then unpacked whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from unicodedata import normalize

from trayapp.model.errors import StorageError, UsageError
from trayapp.packages.lock_file import LockedPackage

MANIFEST = "manifest.json"
LARGEST_FILE = 1 << 30  # bytes of the archive
LARGEST = 2 << 30  # bytes of all unpacked files together
MOST_FILES = 200_000
MANIFEST_LARGEST = 1 << 20  # bytes
SIGNATURE_END = b"MCPB_SIG_END"  # ends a signed archive (CLI.md of github.com/modelcontextprotocol/mcpb)
MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_METHODS = frozenset((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
# Names that Windows rejects or treats as devices ("Naming Files, Paths, and Namespaces"). Refused on every system.
_BAD_PART = re.compile(
    r'.*[<>:"|?*\\\x00-\x1f\x7f].*|.*[ .]|(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?', re.IGNORECASE | re.DOTALL
)


class BadBundleError(UsageError):
    """Raised if a file is not a usable bundle."""

    code = "bad_bundle"


@dataclass(frozen=True, slots=True)
class BundleArchive:
    """A bundle's archive, after its paths and sizes were checked."""

    path: Path
    sha256: str  # SHA-256 of the archive, in hexadecimal
    manifest: bytes
    files: frozenset[str]  # paths inside it, with `/`
    signed: bool = False  # True if it has a signature, which was not verified

    def locked(self, name: str, version: str) -> LockedPackage:
        """Return the bundle as a package for servers.lock."""
        digest = f"sha256:{self.sha256}"
        return LockedPackage("mcpb", name, version, digest, digest)


def is_bundle(path: Path) -> bool:
    """Return True if a file has the suffix of a bundle or is a zip archive, False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return path.suffix.lower() in (".mcpb", ".dxt") or file.read(4) in MAGIC
    except OSError:
        return False


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return _sha256(file)


def read_archive(path: Path) -> BundleArchive:
    """Return a bundle's archive with its manifest, after checking all paths and sizes. Raises BadBundleError."""
    with _opened(path) as (file, archive):
        entries = {_plain(entry.filename): entry for entry in _checked(archive)}
        if (entry := entries.get(MANIFEST)) is None:
            raise BadBundleError(f"{path.name} has no {MANIFEST}", "Get a new copy of the bundle from its author")
        if entry.file_size > MANIFEST_LARGEST:
            raise BadBundleError(
                f"{path.name} has a {MANIFEST} that is too large", "Get a new copy of the bundle from its author"
            )
        manifest, size = archive.read(entry), file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(SIGNATURE_END) - 2))  # a line end may follow the signature
        signed = file.read().rstrip().endswith(SIGNATURE_END)
        return BundleArchive(path, _sha256(file), manifest, frozenset(entries), signed)


def unpack(bundle: BundleArchive, folder: Path) -> None:
    """Unpack a bundle into `folder`, unless it already exists. The folder appears only when it is complete.

    Raises BadBundleError, also if the file has changed since it was read, and StorageError.
    """
    if folder.is_dir():
        return  # the folder's name depends on the file's hash, so its content is the same
    with _opened(bundle.path) as (file, archive):
        if _sha256(file) != bundle.sha256:
            raise BadBundleError(f"{bundle.path.name} has changed since it was shown", "Review it again, then add it")
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="mcpb-new-") as made:
                place = Path(made, "files")
                place.mkdir(mode=0o700)
                for entry in _checked(archive):
                    _write(archive, entry, place)
                place.rename(folder)
        except OSError as error:
            title = f"Cannot unpack {bundle.path.name}: {error.strerror}"
            raise StorageError(title, "Free some space, or check the folder's permissions") from None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BufferedReader, zipfile.ZipFile]]:
    try:
        with path.open("rb") as file:
            if path.stat().st_size > LARGEST_FILE:
                raise BadBundleError(f"{path.name} is larger than 1 GB", "Ask its author for a smaller one")
            with zipfile.ZipFile(file) as archive:
                yield file, archive
    except OSError as error:
        raise BadBundleError(f"Cannot read {path}: {error.strerror}", "Make it readable") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise BadBundleError(f"{path.name} is not a readable bundle: {error}", "Get a new copy of it") from None


def _checked(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the entries of an archive. Raises BadBundleError if they are not safe to unpack on every system."""
    entries = archive.infolist()
    if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > LARGEST:
        raise _bad(f"it is too large: {len(entries):,} files, {sum(entry.file_size for entry in entries):,} bytes")
    seen: dict[str, bool] = {}  # normalized path without case -> True for a folder
    for entry in entries:
        name = entry.filename
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _bad(f"{name!r} is a link or a device")
        if entry.flag_bits & 0x1 or entry.compress_type not in _METHODS:
            raise _bad(f"{name!r} is encrypted, or its compression is not supported")
        parts = _plain(name).split("/")
        if name.startswith("/") or name != entry.orig_filename.replace("\\", "/") or "\\" in entry.orig_filename:
            raise _bad(f"{name!r} is an absolute path, or contains a backslash or a null character")
        if any(part in ("", "..") or _BAD_PART.fullmatch(part) for part in parts):
            raise _bad(f"{name!r} is not a valid path on every system")
        prefixes = ("/".join(parts[:length]) for length in range(1, len(parts) + 1))
        keys = [normalize("NFC", normalize("NFC", prefix).casefold()) for prefix in prefixes]
        if keys[-1] in seen and not (entry.is_dir() and seen[keys[-1]]):
            raise _bad(f"{name!r} appears twice")
        if any(seen.get(key) is False for key in keys[:-1]):
            raise _bad(f"{name!r} is inside a path that is also a file")
        seen |= dict.fromkeys(keys[:-1], True) | {keys[-1]: entry.is_dir()}
    return entries


def _plain(name: str) -> str:
    while name.startswith("./"):
        name = name[2:]
    return name.rstrip("/")


def _bad(why: str) -> BadBundleError:
    return BadBundleError(f"The bundle is not safe to unpack: {why}"[:500], "Do not use it; ask its author")


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, place: Path) -> None:
    path = place.joinpath(*_plain(entry.filename).split("/"))
    if entry.is_dir():
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with archive.open(entry) as source, path.open("xb") as target:
        shutil.copyfileobj(source, target)
    if sys.platform != "win32":
        path.chmod(0o700 if entry.external_attr >> 16 & 0o111 else 0o600)


def _sha256(file: BufferedReader) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()
