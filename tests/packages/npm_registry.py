"""A registry of npm packages that tests can change."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile
from datetime import UTC, datetime
from pathlib import Path

from tests.tools import node, require

PROGRAM = "#!/usr/bin/env node\nconsole.log({text!r})\n"


class NpmRegistry:
    """An npm registry with packages by name and version."""

    def __init__(self) -> None:
        self.url = ""
        self.online = True
        self.asked = 0
        self._files: dict[tuple[str, str], bytes] = {}
        self._at: dict[tuple[str, str], float] = {}
        self._needs: dict[str, dict[str, str]] = {}

    def publish(self, name: str, version: str, text: str, at: float = 0.0, needs: dict[str, str] | None = None) -> None:
        """Add a version that prints a text, or replace the content of a version."""
        self.publish_program(name, version, PROGRAM.format(text=text), at, needs)

    def publish_program(
        self, name: str, version: str, program: str, at: float = 0.0, needs: dict[str, str] | None = None
    ) -> None:
        """Add a version with this program, or replace the content of a version."""
        manifest = {"name": name, "version": version, "bin": {name: "cli.js"}, "dependencies": needs or {}}
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for path, data in (("package.json", json.dumps(manifest)), ("cli.js", program)):
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size, entry.mode = len(data.encode()), 0o755
                archive.addfile(entry, io.BytesIO(data.encode()))
        self._files[name, version] = buffer.getvalue()
        self._at[name, version] = at
        self._needs[f"{name}@{version}"] = needs or {}

    def withdraw(self, name: str, version: str) -> None:
        """Remove the version."""
        del self._files[name, version]

    def env(self, root: Path) -> dict[str, str]:
        """Write npm's settings. Return the variables that restrict npm to this registry and a cache below `root`."""
        require("npm")
        (programs := root / "node").mkdir()
        (programs / "node").symlink_to(node())
        settings = root / "npmrc"
        settings.write_text(f"registry={self.url}\nfetch-retries=0\nupdate-notifier=false\n", "utf-8")
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        return {"PATH": path, "npm_config_userconfig": str(settings), "npm_config_cache": str(root / "npm-cache")}

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Return a package's document or one of its tarballs, or None if it does not exist."""
        self.asked += 1
        name, _, file = path.lstrip("/").partition("/-/")
        if file:
            data = self._files.get((name, file.removesuffix(".tgz").removeprefix(f"{name}-")))
            return ("application/octet-stream", data) if data is not None else None
        versions = {version: self._version(name, version) for one, version in self._files if one == name}
        if not versions:
            return None
        newest = max(versions, key=lambda text: [int(part) for part in text.split(".")])
        time = {version: datetime.fromtimestamp(self._at[name, version], UTC).isoformat() for version in versions}
        document = {"name": name, "versions": versions, "dist-tags": {"latest": newest}, "time": time}
        return "application/json", json.dumps(document).encode()

    def _version(self, name: str, version: str) -> dict[str, object]:
        digest = base64.b64encode(hashlib.sha512(self._files[name, version]).digest()).decode()
        dist = {"tarball": f"{self.url}/{name}/-/{name}-{version}.tgz", "integrity": f"sha512-{digest}"}
        needs = self._needs[f"{name}@{version}"]
        return {"name": name, "version": version, "bin": {name: "cli.js"}, "dependencies": needs, "dist": dist}
