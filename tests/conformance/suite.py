"""Runs of the official suite, and their verdicts."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devtools.places import NPM_SUITE, ROOT
from tests.tools import node, require_file

REMEDY = "`python3 packaging/dev.py test` installs it"
WHOLE_RUN_S = 240.0  # limit of one run on a busy machine, although most take 4 to 30 s
CLIENT_MS = 60_000  # limit of one scenario, while all scenarios of its revision run concurrently
PASSED, NEUTRAL = "SUCCESS", "INFO"
WRONG = frozenset({"FAILURE", "WARNING"})
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")  # the timestamp at the end of a result folder's name

Key = tuple[str, str, str, int]  # scenario, the check's id and name, and its ordinal among checks with the same three


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one check."""

    status: str
    why: str


@dataclass(frozen=True, slots=True)
class Run:
    """The verdicts of one run of the suite."""

    verdicts: Mapping[Key, Verdict]
    unscored: Mapping[str, str]  # scenario -> the suite's reason why a revision does not require it

    @property
    def scenarios(self) -> set[str]:
        return {key[0] for key in self.verdicts}

    def wrong(self) -> dict[Key, Verdict]:
        """Return the checks that failed or gave a warning."""
        return {key: verdict for key, verdict in self.verdicts.items() if verdict.status in WRONG}


def run_server(edition: str, url: str, folder: Path, *selection: str) -> Run:
    """Run the server scenarios of an edition (stable, next) against a URL."""
    return _run(edition, ["server", "--url", url, *selection], folder, os.environ)


def run_client(folder: Path, command: Sequence[str], env: Mapping[str, str], *selection: str) -> Run:
    """Run the client scenarios concurrently, with `command` as the client."""
    argv = ["client", "--command", " ".join(command), "--timeout", str(CLIENT_MS), *selection]
    return _run("next", argv, folder, env)


def _run(edition: str, argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> Run:
    program = require_file(NPM_SUITE / "node_modules" / f"conformance-{edition}" / "dist" / "index.js", REMEDY)
    done = subprocess.run(
        [node(), str(program), *argv, "--output-dir", str(folder)],
        cwd=ROOT, env=dict(env), capture_output=True, encoding="utf-8", timeout=WHOLE_RUN_S, check=False,
    )  # fmt: skip
    verdicts = dict(_verdicts(folder))
    assert verdicts, done.stdout + done.stderr
    return Run(verdicts, dict(re.findall(r"^ +[✓✗] (\S+) \(([a-z-]+)\)$", done.stdout, re.MULTILINE)))


def _verdicts(folder: Path) -> Iterator[tuple[Key, Verdict]]:
    for file in sorted(folder.rglob("checks.json")):
        scenario = _STAMP.sub("", file.parent.relative_to(folder).as_posix()).removeprefix("server-")
        seen: Counter[tuple[str, str]] = Counter()
        for check in json.loads(file.read_text(encoding="utf-8")):
            what = check["id"], check["name"]
            seen[what] += 1
            yield (scenario, *what, seen[what]), Verdict(check["status"], check.get("errorMessage") or "")
