"""Python's build settings without the folders of the machine that built it. Never here: other traces (bundle)."""

from __future__ import annotations

import sysconfig
from pathlib import Path

KEPT = ("TZPATH",)  # zoneinfo reads it at import


def plain_settings(work: Path) -> tuple[str, str]:
    """Return the name of this interpreter's settings module, and the path of a file to use in its place.

    Without it `sysconfig` fails, and with that `zoneinfo`. Windows has no such module.
    """
    named = getattr(sysconfig, "_get_sysconfigdata_name", lambda: "")
    name = str(named()) if sysconfig.get_config_var("HAVE_FORK") else ""
    values = {key: value for key, value in sysconfig.get_config_vars().items() if key in KEPT or is_plain(value)}
    path = work / "settings.py"
    path.write_text(f"build_time_vars = {dict(sorted(values.items()))!r}\n", encoding="utf-8")
    return name, str(path)


def is_plain(value: object) -> bool:
    """Return True if a setting contains no folder."""
    return isinstance(value, int) or (isinstance(value, str) and "/" not in value)
