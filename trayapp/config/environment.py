"""The environment for other programs, without the variables that only our packaged program needs.

backends/launch decides what a server gets in addition.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

# Variables that PyInstaller's bootloader and hooks set in a frozen program.
_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "LIBPATH", "DYLD_")
_FROZEN_PREFIXES = ("_MEIPASS", "_PYI_", "PYINSTALLER_")
_PYTHON_FOLDERS = ("PYTHONHOME", "VIRTUAL_ENV")


def clean_environment(environ: Mapping[str, str], *, frozen: bool, bundle: str = "") -> dict[str, str]:
    """Return `environ` without the variables of our frozen (PyInstaller) program: others break on our libraries. Pure.

    `bundle` is the folder of that program's files. Library paths get back the value from before it started. PYTHONHOME
    and VIRTUAL_ENV are removed only if they name the bundle. For a program that is not frozen, nothing is removed.
    """
    if not frozen:
        return dict(environ)
    clean = {name: value for name, value in environ.items() if not name.startswith(_FROZEN_PREFIXES)}
    for name in {name.removesuffix("_ORIG") for name in clean if name.startswith(_LIBRARY_PATHS)}:
        clean.pop(name, None)
        before = clean.pop(f"{name}_ORIG", "")
        clean.update({name: before} if before else {})
    ours = [name for name in _PYTHON_FOLDERS if bundle and Path(clean.get(name, "/")).is_relative_to(bundle)]
    return {name: value for name, value in clean.items() if name not in ours}


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `clean_environment` for this very program."""
    bundle = str(getattr(sys, "_MEIPASS", Path(sys.executable).parent))
    return clean_environment(environ, frozen=bool(getattr(sys, "frozen", False)), bundle=bundle)
