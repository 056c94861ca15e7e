"""The packaged programs. PyInstaller builds them from packaging/multi-mcp.spec into a folder that needs no Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from devtools.places import PACKAGING, ROOT
from devtools.steps import StepFailed, clean_environment, run, say

NAME = "multi-mcp"
SPEC = PACKAGING / "multi-mcp.spec"
RELEASES = "MULTI_MCP_RELEASES"  # variable with the https address of the newest release, set for published builds
EPOCH_ZERO = 315532800  # 1980-01-01, the earliest time that a zip file can hold: for a checkout without history


def build_bundle(python: Path, work: Path, only: str = "") -> Path:
    """Build all three programs, or only `only`, below `work`. Return their folder. Raises StepFailed."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    environment = build_environment(work) | {"MULTI_MCP_ONLY": only}
    ours = os.pathsep.join((str(PACKAGING), str(ROOT)))
    run([python, "-m", "devtools.drawing", work / "icons"], env=environment | {"PYTHONPATH": ours})
    for name, text in (("commit", git("rev-parse", "HEAD")), ("releases", os.environ.get(RELEASES, ""))):
        if text:
            (work / name).write_text(text + "\n", encoding="ascii")
    say("packaging with PyInstaller (half a minute)")
    options = ["--noconfirm", "--log-level=ERROR", f"--distpath={work / 'out'}", f"--workpath={work / 'cache'}"]
    try:
        run([python, "-m", "PyInstaller", *options, SPEC], env=environment)
    except StepFailed as failure:
        linux = "PyInstaller needs binutils and a shared libpython (Debian: libpython3; pyenv: --enable-shared)."
        raise StepFailed(str(failure), linux if sys.platform == "linux" else "") from failure
    folder = work / "out" / NAME
    forget_build_machine(folder, secrets_of_build(python))
    return folder


def build_environment(work: Path) -> dict[str, str]:
    """Return an environment that makes builds reproducible and hides the machine's display."""
    return clean_environment() | {
        "MULTI_MCP_BUILD": str(work),
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": "1",
        # A .pyc file records which strings its writer had interned. Loading it interns them again, which changes the
        # bytes that PyInstaller writes. With an empty cache, PyInstaller compiles all that it loads.
        "PYTHONPYCACHEPREFIX": str(work / "pyc"),
        "PYSTRAY_BACKEND": "dummy",  # PyInstaller imports pystray to analyze it
        "PYINSTALLER_CONFIG_DIR": str(work / "cache"),
        "SOURCE_DATE_EPOCH": str(source_date()),
    }


def source_date() -> int:
    """Return SOURCE_DATE_EPOCH if it is set, else the time of the last commit in Unix seconds, else EPOCH_ZERO."""
    told = os.environ.get("SOURCE_DATE_EPOCH", "") or git("log", "-1", "--format=%ct")
    return int(told) if told.isdecimal() else EPOCH_ZERO


def git(*words: str) -> str:
    """Run git in the checkout. Return its output, or "" if it fails."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def secrets_of_build(python: Path) -> list[bytes]:
    """Return the folders that would identify the build machine (interpreter, checkout and home), longest first."""
    asked = subprocess.run([python, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True)
    prefix = Path(asked.stdout.strip() or "/usr")
    own = [str(ROOT), *([] if prefix in (Path("/usr"), Path("/usr/local")) else [str(prefix)])]
    home = Path.home()
    if home.parent != home.parent.parent:  # /root identifies nobody, and libraries contain it from their own builds
        own.append(f"{home}/")  # ends with a slash, since `disguised` keeps what follows the last one
    return sorted((folder.encode() for folder in own), key=len, reverse=True)


def forget_build_machine(folder: Path, secrets: list[bytes]) -> None:
    """Overwrite each secret in a program or library with another path of the same length.

    A packaged program gets its folders from the bootloader and never uses these paths. The last component stays, since
    linkers share the end of a path with other texts, such as the version.
    """
    for path in folder.rglob("*"):
        data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        if not data.startswith(b"\x7fELF"):
            continue
        clean = data
        for secret in secrets:
            clean = clean.replace(secret, disguised(secret))
        if clean != data:
            path.write_bytes(clean)


def disguised(path: bytes) -> bytes:
    """Return the replacement for a path: `/home/me/python/3.11.7` becomes `/usr////////////3.11.7`."""
    above, _, name = path.rpartition(b"/")
    return b"/usr"[: len(above)].ljust(len(above) + 1, b"/") + name
