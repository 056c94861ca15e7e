"""The Windows installer, made by Inno Setup from windows/multi-mcp.iss, and the programs' version resource."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from devtools.bundle import NAME
from devtools.places import PACKAGING
from devtools.steps import StepFailed, run

SCRIPT = PACKAGING / "windows" / "multi-mcp.iss"
USUAL_PLACES = ("ProgramFiles(x86)", "ProgramFiles", "LOCALAPPDATA")
SIGN = "MULTI_MCP_SIGNTOOL"  # the command line that signs $f, in Inno Setup's format
UNSIGNED = "MULTI_MCP_UNSIGNED"  # "1": an unsigned build for personal use
ENGLISH_UNICODE = "040904B0"
TITLES = {
    "multi-mcp": "multi-mcp command line",
    "multi-mcp-tray": "multi-mcp",  # shown in Task Manager and in the taskbar settings
    "multi-mcp-shim": "multi-mcp connection of an AI tool",
}


def build_installer(bundle: Path, version: str, out: Path) -> Path:
    """Write multi-mcp-VERSION-setup.exe into `out`. Raises StepFailed."""
    out.mkdir(parents=True, exist_ok=True)
    run([compiler(), *options(bundle, version, out, dict(os.environ)), SCRIPT])
    return out / f"{NAME}-{version}-setup.exe"


def options(bundle: Path, version: str, out: Path, environ: dict[str, str]) -> list[str]:
    """Return the options of Inno Setup's compiler.

    Raises StepFailed if there is no signing command and MULTI_MCP_UNSIGNED is not "1".
    """
    told = [f"/DVersion={version}", f"/DBundle={bundle}", f"/DOut={out}"]
    sign = environ.get(SIGN, "")
    if sign:
        return [*told, "/DSigned", f"/Ssigner={sign}"]
    if environ.get(UNSIGNED) == "1":
        return told
    raise StepFailed(
        "cannot sign the installer: no signing command",
        f"Set {SIGN} to the command that signs $f, or {UNSIGNED}=1 for a build that Windows warns about.",
    )


def compiler() -> str:
    """Return the path of ISCC. Raises StepFailed."""
    if found := shutil.which("iscc"):
        return found
    for place in USUAL_PLACES:
        path = Path(os.environ.get(place, "")) / "Inno Setup 6" / "ISCC.exe"
        if path.exists():
            return str(path)
    raise StepFailed("Inno Setup 6 is not installed", "Install it: winget install JRSoftware.InnoSetup")


def numbers(version: str) -> tuple[int, int, int, int]:
    """Return `0.1.0` as four numbers. A part that is not a number counts as 0."""
    first, second, third, fourth, *_ = [int(part) if part.isdecimal() else 0 for part in version.split(".")] + [0] * 4
    return first, second, third, fourth


def strings(name: str, version: str) -> dict[str, str]:
    """Return the texts of a program's version resource, by name."""
    return {
        "CompanyName": "multi-mcp authors",
        "FileDescription": TITLES[name],
        "FileVersion": version,
        "InternalName": name,
        "LegalCopyright": "MIT license",
        "OriginalFilename": f"{name}.exe",
        "ProductName": "multi-mcp",
        "ProductVersion": version,
    }


def version_info(name: str, version: str) -> Any:
    """Return the version resource as PyInstaller's object, whose class can be imported on Windows only."""
    from PyInstaller.utils.win32 import versioninfo as v

    words = [v.StringStruct(key, value) for key, value in strings(name, version).items()]
    return v.VSVersionInfo(
        ffi=v.FixedFileInfo(filevers=numbers(version), prodvers=numbers(version)),
        kids=[
            v.StringFileInfo([v.StringTable(ENGLISH_UNICODE, words)]),
            v.VarFileInfo([v.VarStruct("Translation", [0x0409, 1200])]),
        ],
    )
