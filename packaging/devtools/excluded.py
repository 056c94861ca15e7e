"""What stays out of the packaged programs. Never here: what goes in (multi-mcp.spec)."""

from __future__ import annotations

import sys

from devtools.places import ROOT

# The first looks for Apple's libraries when it is imported, on Linux with a compiler; the second wants PyGObject.
OTHER_KEYRINGS = {
    "linux": ("keyring.backends.macOS.api", "keyring.backends.libsecret", "keyring.backends.Windows"),
    "win32": ("keyring.backends.macOS.api", "keyring.backends.libsecret", "keyring.backends.SecretService"),
}.get(sys.platform, ("keyring.backends.libsecret", "keyring.backends.Windows"))
# Nothing of ours uses these; libraries import them where they are there.
EXCLUDED = (
    *("gi", "tkinter", "_tkinter", "numpy", "curses", "_curses", "readline", "lib2to3", "ensurepip", "idlelib"),
    *("pip", "setuptools", "wheel", "pkg_resources", "hatchling", "pytest", "_pytest", "mypy", "hypothesis"),
    *("matplotlib", "tzdata"),  # the second comes with the first, for benchmarks
    *("requests", "urllib3", "certifi", "chardet", "charset_normalizer", "defusedxml"),  # come with tools of the tests
    # Formats of JSON Schema, which are not checked: they come with a tool of the tests, too
    *("arrow", "dateutil", "fqdn", "isoduration", "jsonpointer", "lark", "uri_template", "webcolors"),
    *("rfc3339_validator", "rfc3986_validator", "rfc3987_syntax"),
    *("PIL._avif", "PIL._webp", "PIL._imagingft", "PIL._imagingcms", "PIL._imagingtk", "PIL._imagingmath"),
    *("PIL.ImageQt", "PIL.ImageTk", "PIL.AvifImagePlugin", "PIL.WebPImagePlugin"),
    *("pystray._appindicator", "pystray._gtk"),  # Linux's icon is our own (tray/linux/sni)
    "pygments",  # rich colors source code with it; we print none
    *("uvloop", "xmlrpc", "smtplib", "ftplib"),
    *OTHER_KEYRINGS,
    *("trio", "IPython", "pydoc_data", "unittest", "doctest", "pdb", "typer", "test"),
)
# The tray holds no server and asks other processes about everything: see tests/test_import_fences.py.
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
# Of the model the shim's ledger needs `late` alone.
_MODEL = tuple(f"trayapp.model.{path.stem}" for path in sorted((ROOT / "trayapp" / "model").glob("[a-z]*.py")))
# `inspect` alone would bring a start hook of PyInstaller's that imports it, and much with it, at every start.
NOT_IN_SHIM = (
    "multiprocessing",
    *(name for name in _MODEL if name != "trayapp.model.late"),
    *("trayapp.wire.control", "trayapp.wire.greeting", "psutil", "inspect", "typing", "dataclasses"),
    *("ssl", "_ssl", "asyncio", "logging", "http", "email", "xml", "tarfile", "zipfile", "argparse", "ctypes"),
)
# Start hooks of PyInstaller's that import what most starts never need: for source texts, and for lists of modules.
NO_HOOKS = ("pyi_rth_inspect", "pyi_rth_pkgutil", "pyi_rth_multiprocessing")
_USELESS = ("share/", "tcl", "tk/", "lib/girepository")
# How and from where somebody installed a library: other on each machine, and of no use.
_OF_INSTALLATION = ("/RECORD", "/REQUESTED", "/INSTALLER", "/WHEEL", "/direct_url.json")


def keeps(name: str) -> bool:
    """Whether a file that PyInstaller found belongs into the folder; `name` is its path there."""
    plain = name.replace("\\", "/")
    return not plain.startswith(_USELESS) and not plain.endswith(_OF_INSTALLATION)
