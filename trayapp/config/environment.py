"""The environment that programs of others get from us: without what only a packaged program of ours needs.

Never here: what a server gets besides (backends/launch).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

# What PyInstaller's start program, and its hooks, leave in the environment of a frozen program.
_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "LIBPATH", "DYLD_")
_FROZEN_PREFIXES = ("_MEIPASS", "_PYI_", "PYINSTALLER_")
_PYTHON_FOLDERS = ("PYTHONHOME", "VIRTUAL_ENV")


def clean_environment(environ: Mapping[str, str], *, frozen: bool, bundle: str = "") -> dict[str, str]:
    """`environ` without what only a frozen (PyInstaller) program of ours needs; others break on our libraries. Pure.

    `bundle` is the folder of that program's files. Library paths get back the value that they had before it started;
    PYTHONHOME and VIRTUAL_ENV go only where they name the bundle. Of a program that is not frozen nothing is taken.
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
    """`clean_environment` as this very program needs it."""
    bundle = str(getattr(sys, "_MEIPASS", Path(sys.executable).parent))
    return clean_environment(environ, frozen=bool(getattr(sys, "frozen", False)), bundle=bundle)
