"""The Windows installer: Inno Setup over packaging/windows/multi-mcp.iss. Never here: the programs (bundle)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from devtools.bundle import NAME
from devtools.places import PACKAGING
from devtools.steps import StepFailed, run

SCRIPT = PACKAGING / "windows" / "multi-mcp.iss"
USUAL_PLACES = ("ProgramFiles(x86)", "ProgramFiles", "LOCALAPPDATA")
SIGN = "MULTI_MCP_SIGNTOOL"  # the command line that signs $f, in Inno Setup's format
UNSIGNED = "MULTI_MCP_UNSIGNED"  # "1": an unsigned build for personal use


def build_installer(bundle: Path, version: str, out: Path) -> Path:
    """Write multi-mcp-VERSION-setup.exe into `out`. Raises StepFailed, also if it would be unsigned by mistake."""
    out.mkdir(parents=True, exist_ok=True)
    run([compiler(), *options(bundle, version, out, dict(os.environ)), SCRIPT])
    return out / f"{NAME}-{version}-setup.exe"


def options(bundle: Path, version: str, out: Path, environ: dict[str, str]) -> list[str]:
    """Return the options of Inno Setup's compiler. Raises StepFailed without a signing command, unless
    MULTI_MCP_UNSIGNED is set.
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
    found = shutil.which("iscc")
    if found:
        return found
    for place in USUAL_PLACES:
        path = Path(os.environ.get(place, "")) / "Inno Setup 6" / "ISCC.exe"
        if path.exists():
            return str(path)
    raise StepFailed("Inno Setup 6 is not installed", "Install it: winget install JRSoftware.InnoSetup")
