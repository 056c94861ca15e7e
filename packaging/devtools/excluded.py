"""The parts that packaged programs leave out: modules, files, and the build machine's folders in Python's settings."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from devtools.places import ROOT

# macOS.api looks for Apple's libraries at import (on Linux, by running a compiler). libsecret needs PyGObject.
OTHER_KEYRINGS = {
    "linux": ("keyring.backends.macOS.api", "keyring.backends.libsecret", "keyring.backends.Windows"),
    "win32": ("keyring.backends.macOS.api", "keyring.backends.libsecret", "keyring.backends.SecretService"),
}.get(sys.platform, ("keyring.backends.libsecret", "keyring.backends.Windows"))
# Our code uses none of these. Libraries import them if they are installed.
EXCLUDED = (
    *("gi", "tkinter", "_tkinter", "numpy", "curses", "_curses", "readline", "lib2to3", "ensurepip", "idlelib"),
    *("pip", "setuptools", "wheel", "pkg_resources", "hatchling", "pytest", "_pytest", "mypy", "hypothesis"),
    *("matplotlib", "tzdata"),  # matplotlib brings tzdata; both are for benchmarks
    *("requests", "urllib3", "certifi", "chardet", "charset_normalizer", "defusedxml"),  # dependencies of test tools
    # for the formats of JSON Schema, which we do not check; a test tool depends on them
    *("arrow", "dateutil", "fqdn", "isoduration", "jsonpointer", "lark", "uri_template", "webcolors"),
    *("rfc3339_validator", "rfc3986_validator", "rfc3987_syntax"),
    *("PIL._avif", "PIL._webp", "PIL._imagingft", "PIL._imagingcms", "PIL._imagingtk", "PIL._imagingmath"),
    *("PIL.ImageQt", "PIL.ImageTk", "PIL.AvifImagePlugin", "PIL.WebPImagePlugin"),
    *("pystray._appindicator", "pystray._gtk"),  # Linux's icon is our own (tray/linux/sni)
    "pygments",  # rich uses it to color source code, which we never print
    *("uvloop", "xmlrpc", "smtplib", "ftplib"),
    *OTHER_KEYRINGS,
    *("trio", "IPython", "pydoc_data", "unittest", "doctest", "pdb", "typer", "test"),
)
# The tray runs no server, and other processes do most of its work (tests/test_import_fences.py).
NOT_IN_TRAY = (
    *("mcp", "mcp_types", "httpx2", "starlette", "uvicorn", "pydantic", "pydantic_core", "keyring", "secretstorage"),
    *(
        "multiprocessing",
        "cryptography",
        "trayapp.gateway",
        "trayapp.auth",
        "trayapp.backends",
        "trayapp.catalog",
        "sqlite3",
        "_sqlite3",
    ),
)
# The shim's ledger needs only `late` from trayapp.model.
_MODEL = tuple(f"trayapp.model.{path.stem}" for path in sorted((ROOT / "trayapp" / "model").glob("[a-z]*.py")))
# With `inspect`, PyInstaller adds a start hook that imports it and its many dependencies at every start.
NOT_IN_SHIM = (
    "multiprocessing",
    *(name for name in _MODEL if name != "trayapp.model.late"),
    *("trayapp.wire.control", "trayapp.wire.greeting", "psutil", "inspect", "typing", "dataclasses"),
    *("ssl", "_ssl", "asyncio", "logging", "http", "email", "xml", "tarfile", "zipfile", "argparse", "ctypes"),
)
# PyInstaller's run-time hooks for inspect, pkgutil and multiprocessing. Most starts need none of them.
NO_HOOKS = ("pyi_rth_inspect", "pyi_rth_pkgutil", "pyi_rth_multiprocessing")
KEPT_SETTINGS = ("TZPATH",)  # zoneinfo reads it at import
_USELESS = ("share/", "tcl", "tk/", "lib/girepository")
# Records of how a library was installed: they differ on each machine and are not needed.
_OF_INSTALLATION = ("/RECORD", "/REQUESTED", "/INSTALLER", "/WHEEL", "/direct_url.json")


def keeps(name: str) -> bool:
    """Return True if a file that PyInstaller found belongs in the folder. `name` is its path there."""
    plain = name.replace("\\", "/")
    return not plain.startswith(_USELESS) and not plain.endswith(_OF_INSTALLATION)


def plain_settings(work: Path) -> tuple[str, str]:
    """Return the name of this interpreter's settings module ("" on Windows), and the path of a file to replace it with.

    Without any such module, `sysconfig` fails, and `zoneinfo` with it.
    """
    named = getattr(sysconfig, "_get_sysconfigdata_name", lambda: "")
    name = str(named()) if sysconfig.get_config_var("HAVE_FORK") else ""
    values = {
        key: value for key, value in sysconfig.get_config_vars().items() if key in KEPT_SETTINGS or is_plain(value)
    }
    path = work / "settings.py"
    path.write_text(f"build_time_vars = {dict(sorted(values.items()))!r}\n", encoding="utf-8")
    return name, str(path)


def is_plain(value: object) -> bool:
    """Return True if a setting contains no folder."""
    return isinstance(value, int) or (isinstance(value, str) and "/" not in value)
