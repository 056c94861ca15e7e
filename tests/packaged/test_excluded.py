"""Every module can be imported without the modules that a packaged program leaves out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import trayapp
from devtools.excluded import EXCLUDED, NOT_IN_SHIM, NOT_IN_TRAY

PACKAGE = Path(trayapp.__file__).parent
# Modules for other systems, a module that runs the program, and one that needs a display.
LEFT = {
    "trayapp.shim.windows",
    "trayapp.tray.darwin",
    "trayapp.tray.windows",
    "trayapp.__main__",
    "trayapp.tray.linux.xembed",
}
# Modules that libraries import only when they are used.
USED = [
    "uvicorn.protocols.http.httptools_impl",
    "secretstorage",
    "keyring.backends.SecretService",
    "rich.progress",
    "rich.live",
]
USED += ["rich.table", "PIL.PngImagePlugin", "mcp.client.streamable_http", "mcp.client.sse", "mcp.server.sse"]
SHIM = ["trayapp.shim.main", "trayapp.shim.ledger", "trayapp.service.gateway_launch", "trayapp.config.programs"]
SHIM += ["trayapp.backends.stdio.guardian", "trayapp.samples.server"]
IMPORTS = """
import importlib, sys
out = {out!r}
class Left:
    def find_spec(self, name, path=None, target=None):
        if any(name == one or name.startswith(one + ".") for one in out):
            raise ModuleNotFoundError(f"{{name}} is left out", name=name)
sys.meta_path.insert(0, Left())
for name in {names!r}:
    importlib.import_module(name)
"""


def modules_below(*rooms: str) -> list[str]:
    names = []
    for room in rooms:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return [name for name in names if name not in LEFT and "windows" not in name and "macos" not in name]


@pytest.mark.skipif(sys.platform != "linux", reason="the lists of modules are Linux's")
@pytest.mark.requirement("package-runs")
@pytest.mark.parametrize(
    ("out", "names"),
    [
        pytest.param(EXCLUDED, [*modules_below(""), *USED], id="multi-mcp"),
        pytest.param((*EXCLUDED, *NOT_IN_TRAY), [*modules_below("tray"), "trayapp.cli.tray"], id="multi-mcp-tray"),
        pytest.param((*EXCLUDED, *NOT_IN_SHIM), SHIM, id="multi-mcp-shim"),
    ],
)
def test_every_module_is_imported_without_what_is_left_out(out: tuple[str, ...], names: list[str]) -> None:
    assert names
    code = IMPORTS.format(out=out, names=names)
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
