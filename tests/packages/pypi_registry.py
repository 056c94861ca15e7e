"""A package index of wheels, by PyPI's JSON simple API (PEP 691, PEP 700), and a stand-in for machines without uv.

Never here: what the real uv makes of it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path

# What we use of uv: the newest version of one package with its hash, an environment, a wheel in it.
UV = r"""#!{python}
import hashlib, io, json, os, re, sys, urllib.request, venv, zipfile
from pathlib import Path

words = sys.argv[1:]

def value(option, default=""):
    return words[words.index(option) + 1] if option in words else default

def files(name):
    with urllib.request.urlopen(os.environ["UV_DEFAULT_INDEX"] + "/" + name + "/", timeout=10) as answer:
        return json.load(answer)["files"]

if words[:2] == ["pip", "compile"]:
    name, _, version = Path(words[2]).read_text().strip().partition("==")
    until = value("--exclude-newer", "9")
    found = [one for one in files(name) if one["upload-time"] < until]
    found = [one for one in found if not version or one["filename"].split("-")[1] == version]
    if not found:
        sys.exit("No solution found")
    best = max(found, key=lambda one: one["filename"])
    print(name + "==" + best["filename"].split("-")[1] + " \\\n    --hash=sha256:" + best["hashes"]["sha256"])
elif words[0] == "venv":
    venv.create(words[-1], symlinks=True)
elif words[:2] == ["pip", "install"]:
    text = Path(value("-r")).read_text()
    name, version, digest = re.search(r"(\S+)==(\S+) .*sha256:(\w+)", text, re.DOTALL).groups()
    (one,) = [one for one in files(name) if one["filename"].split("-")[1] == version]
    with urllib.request.urlopen(one["url"], timeout=10) as answer:
        data = answer.read()
    if hashlib.sha256(data).hexdigest() != digest:
        sys.exit("Hash mismatch for " + name)
    python = Path(value("--python"))
    (place,) = python.parent.parent.glob("lib/python*/site-packages")
    zipfile.ZipFile(io.BytesIO(data)).extractall(place)
    program = python.parent / name
    program.write_text("#!" + str(python) + "\nfrom " + name + " import main\nmain()\n")
    program.chmod(0o755)
"""
SIMPLE = "application/vnd.pypi.simple.v1+json"


class PypiRegistry:
    """Wheels with one module each, and a program of the package's name."""

    def __init__(self) -> None:
        self.url = ""
        self._wheels: dict[str, tuple[str, bytes, float]] = {}  # file name -> package, content, time of upload

    def publish(self, name: str, version: str, module: str, at: float = 0.0) -> None:
        """Add a version whose module has a function `main`, or put other content in its place."""
        self._wheels[f"{name}-{version}-py3-none-any.whl"] = (name, _wheel(name, version, module), at)

    def withdraw(self, name: str, version: str) -> None:
        """Have a version no longer."""
        del self._wheels[f"{name}-{version}-py3-none-any.whl"]

    def install_uv(self, folder: Path) -> None:
        """Write a stand-in for uv into a folder."""
        program = folder / "uv"
        program.write_text(UV.replace("{python}", sys.executable), "utf-8")
        program.chmod(0o755)

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Return a package's page or one of its wheels."""
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


def _wheel(name: str, version: str, module: str) -> bytes:
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": module,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
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
