"""A package index with PyPI's JSON simple API (PEP 691, PEP 700), and the settings that restrict uv to it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from tests.servers import pypi

SIMPLE = "application/vnd.pypi.simple.v1+json"


class PypiRegistry:
    """A package index. Each wheel has one module, and a program named like the package."""

    def __init__(self) -> None:
        self.url = ""
        self.online = True
        self._wheels: dict[str, tuple[str, bytes, float]] = {}  # file name -> package, content, upload time

    def publish(self, name: str, version: str, module: str, at: float = 0.0, needs: str = "") -> None:
        """Add a version whose module has a function `main`, or replace the content of a version."""
        self._wheels[f"{name}-{version}-py3-none-any.whl"] = (name, _wheel(name, version, module, needs), at)

    def withdraw(self, name: str, version: str) -> None:
        """Remove the version."""
        del self._wheels[f"{name}-{version}-py3-none-any.whl"]

    def install_uv(self, folder: Path) -> None:
        """Link the real uv into a folder."""
        (folder / "uv").symlink_to(pypi("uv")[0])

    def env(self, root: Path) -> dict[str, str]:
        """Return the variables that restrict uv to this index and a cache below `root`."""
        return {
            "UV_DEFAULT_INDEX": f"{self.url}/simple", "UV_CACHE_DIR": str(root / "uv-cache"),
            "UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1", "UV_HTTP_RETRIES": "0",
        }  # fmt: skip

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Return a package's page or one of its wheels, or None if it does not exist."""
        kind, _, rest = path.lstrip("/").partition("/")
        if kind == "files":
            return ("application/octet-stream", self._wheels[rest][1]) if rest in self._wheels else None
        name = rest.strip("/")
        files = [
            {
                "filename": file,
                "url": f"{self.url}/files/{file}",
                "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
                "size": len(data),
                "upload-time": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z"),
            }
            for file, (package, data, at) in self._wheels.items()
            if package == name
        ]
        if not files:
            return None
        versions = [str(file["filename"]).split("-")[1] for file in files]
        page = {"meta": {"api-version": "1.1"}, "name": name, "files": files, "versions": versions}
        return SIMPLE, json.dumps(page).encode()


def _wheel(name: str, version: str, module: str, needs: str) -> bytes:
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": module,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + (f"Requires-Dist: {needs}\n" if needs else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    rows = [f"{file},sha256={_digest(text)},{len(text.encode())}" for file, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return buffer.getvalue()


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
