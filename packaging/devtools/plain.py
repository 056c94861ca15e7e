"""How Python was built, without the folders of the machine that built it. Never here: other traces (bundle)."""

from __future__ import annotations

import sysconfig
from pathlib import Path

KEPT = ("TZPATH",)  # zoneinfo looks for it when it is imported


def plain_settings(work: Path) -> tuple[str, str]:
    """The name of the module that holds the settings of this interpreter, and the path of one to put in its place.

    Without it `sysconfig` fails, and with that `zoneinfo`. Windows has no such module.
    """
    named = getattr(sysconfig, "_get_sysconfigdata_name", lambda: "")
    name = str(named()) if sysconfig.get_config_var("HAVE_FORK") else ""
    values = {key: value for key, value in sysconfig.get_config_vars().items() if key in KEPT or is_plain(value)}
    path = work / "settings.py"
    path.write_text(f"build_time_vars = {dict(sorted(values.items()))!r}\n", encoding="utf-8")
    return name, str(path)


def is_plain(value: object) -> bool:
    """Whether a setting names no folder."""
    return isinstance(value, int) or (isinstance(value, str) and "/" not in value)
