"""A Hatchling build hook that records the commit in a wheel. Never here: the version (trayapp/__init__.py)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):  # type: ignore[misc]
    """A build hook that writes trayapp/commit into the wheel, for service/version. An editable install uses git."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the commit to the wheel. Without git or history, add no file."""
        if version == "editable":
            return
        commit = commit_of(Path(self.root))
        if commit:
            path = Path(self.directory) / "commit"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(commit + "\n", encoding="ascii")
            build_data["force_include"][str(path)] = "trayapp/commit"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the commit file from the wheel's folder, because every file there would be released."""
        (Path(self.directory) / "commit").unlink(missing_ok=True)


def commit_of(root: Path) -> str:
    """Return the commit that is checked out, or "" if it is unknown."""
    if not (root / ".git").exists():
        return ""
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
