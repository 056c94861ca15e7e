"""Installation steps: print progress, run commands, and do each step only once."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from devtools.places import CACHE

STAMP_NAME = "multi-mcp.stamp"
# Variables that point pip or python at an environment other than their own.
FOREIGN_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV")


class StepFailed(Exception):
    """A step failed. `hint`: what the developer can do about it."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint


@contextlib.contextmanager
def optional(what: str) -> Iterator[None]:
    """Report a StepFailed from the block and continue: tests that need the step are skipped. On CI, raise it."""
    try:
        yield
    except StepFailed as failure:
        if os.environ.get("CI", "").lower() in ("1", "true"):
            raise
        say(f"cannot {what}, so the tests that need it skip: {failure}. {failure.hint}".rstrip())


def say(text: str) -> None:
    """Print a line of progress on stderr: stdout belongs to the started program."""
    print(f"dev: {text}\n", end="", file=sys.stderr, flush=True)  # one write, since several threads print


def run(argv: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    """Run a command with its output on stderr. Raises StepFailed if it cannot start or its exit code is not 0."""
    command = [str(part) for part in argv]
    sys.stderr.flush()
    try:
        done = subprocess.run(command, cwd=cwd, env=env or clean_environment(), stdout=sys.stderr, check=False)
    except OSError as error:
        raise StepFailed(f"{command[0]} cannot start: {error.strerror}") from error
    if done.returncode != 0:
        raise StepFailed(
            f"exit code {done.returncode} from: {' '.join(command[:6])}{' ...' if len(command) > 6 else ''}"
        )


def clean_environment() -> dict[str, str]:
    """Return the environment without variables that point Python at another installation."""
    kept = {name: value for name, value in os.environ.items() if name.upper() not in FOREIGN_VARIABLES}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def fingerprint(*parts: Path | str) -> str:
    """Return a hash of the contents of files and of texts, in order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, Path) else part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def is_stamped(folder: Path, name: str, value: str) -> bool:
    """Return True if the step `name` was completed in that folder with this fingerprint."""
    try:
        return (folder / f"{name}.{STAMP_NAME}").read_text(encoding="utf-8") == value
    except OSError:
        return False


@contextlib.contextmanager
def stamping(folder: Path, name: str, value: str) -> Iterator[None]:
    """Remove the stamp of the step `name`, run the block, then write the stamp. An interrupted step leaves no stamp."""
    stamp = folder / f"{name}.{STAMP_NAME}"
    stamp.unlink(missing_ok=True)
    yield
    draft = stamp.with_suffix(".draft")
    draft.write_text(value, encoding="utf-8")
    draft.replace(stamp)


def once(folder: Path, name: str, value: str, work: Callable[[], None]) -> None:
    """Run `work`, in one process at a time, unless the step `name` is already stamped with `value` in `folder`."""
    if is_stamped(folder, name, value):
        return
    with installing(folder):
        if is_stamped(folder, name, value):
            return
        say(f"{name}: installing into {folder.name}")
        with stamping(folder, name, value):
            work()


@contextlib.contextmanager
def installing(folder: Path) -> Iterator[None]:
    """Hold the folder's lock during the block, after waiting for it if needed. The lock never outlives its process."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{folder.name}.lock").open("a+b") as lock:
        if not _try_lock(lock.fileno()):
            say(f"another dev.py is installing into {folder.name}; waiting for it")
            _wait_for_lock(lock.fileno())
        yield


if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        os.lseek(fd, 0, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _wait_for_lock(fd: int) -> None:
        while True:
            os.lseek(fd, 0, os.SEEK_SET)
            with contextlib.suppress(OSError):  # LK_LOCK fails after ten tries, one a second
                msvcrt.locking(fd, msvcrt.LK_LOCK, 1)
                return

else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait_for_lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)
