"""Wheel, source archive, SBOM and checksums. Never here: the packages of one system."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from devtools.bundle import build_environment
from devtools.places import PYPROJECT, REQUIREMENTS, ROOT
from devtools.steps import run

CHECKSUMS = "SHA256SUMS"
HATCHLING = ("-m", "hatchling", "build")
TWINE = ("-m", "twine", "check", "--strict")
CYCLONEDX = ("-m", "cyclonedx_py", "requirements", "--short-PURLs", "--output-reproducible", "--of", "JSON")


def build_source(python: Path, work: Path, version: str, out: Path) -> list[Path]:
    """Write wheel, source archive and SBOM into `out`, checked with PyPI's rules. Raises StepFailed."""
    environment = build_environment(work)
    folder = work / "source"
    shutil.rmtree(folder, ignore_errors=True)
    run([python, *HATCHLING, "-d", folder], cwd=ROOT, env=environment)
    made = sorted(folder.iterdir())
    run([python, *TWINE, *made], env=environment)
    sbom = folder / f"multi_mcp-{version}.cdx.json"
    run([python, *CYCLONEDX, "--pyproject", PYPROJECT, "-o", sbom, REQUIREMENTS], env=environment)
    out.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copy(path, out)) for path in (*made, sbom)]


def write_checksums(made: list[Path], out: Path) -> Path:
    """Write SHA256SUMS in the format of `sha256sum -c`."""
    target = out / CHECKSUMS
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(made))
    target.write_text("".join(lines), encoding="ascii", newline="\n")
    return target
