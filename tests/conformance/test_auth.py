"""The official suite's client-side auth scenarios that no revision requires. test_client.py runs the required ones.

Each run has its own gateway, which serves all scenarios of the run concurrently. The system reuses ports, so a shared
gateway might send an old server's token to a new server at the same address.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from devtools.places import NPM_SUITE, ROOT
from tests.cli.running import quick_program
from tests.conformance.auth_client import DOCUMENT
from tests.e2e.gateway import Gateway, gateway_in
from tests.servers import REMEDY
from tests.tools import node, require_file

pytestmark = [pytest.mark.requirement("auth-conformance"), pytest.mark.timeout(180)]

SCENARIO_MS = 90_000
SUITE_S = 170.0
NO_BUS = "unix:path=/nowhere"  # without a keyring, sign-ins are kept in memory only
CLIENT = "tests.conformance.auth_client"

SUITE = (
    "metadata-default metadata-var1 metadata-var2 metadata-var3 basic-cimd scope-from-www-authenticate "
    "scope-from-scopes-supported scope-omitted-when-undefined scope-step-up scope-retry-limit "
    "token-endpoint-auth-basic token-endpoint-auth-post token-endpoint-auth-none pre-registration"
)
DRAFT = "resource-mismatch offline-access-scope offline-access-not-supported"
OLDER = "2025-03-26-oauth-metadata-backcompat 2025-03-26-oauth-endpoint-fallback"


class Run(NamedTuple):
    """One run of the suite. `which` selects its scenarios. `expected` names the auth scenarios that are judged."""

    version: str
    which: tuple[str, str]
    expected: str


RUNS = [
    Run("stable", ("--suite", "auth"), SUITE),
    Run("stable", ("--suite", "draft"), DRAFT),
    Run("stable", ("--suite", "backcompat"), OLDER),
    Run("next", ("--suite", "backcompat"), OLDER),
]


@pytest.fixture
def site(home: Path) -> Iterator[Gateway]:
    """Yield a gateway without servers, to which any program on this machine may add servers."""
    with gateway_in(home, forked=True) as made:
        made.env["DBUS_SESSION_BUS_ADDRESS"] = NO_BUS
        made.write({}, http={"enabled": True, "port": 0, "token": False}, client_metadata_url=DOCUMENT)
        made.start()
        yield made


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.version}-{run.which[1]}")
def test_the_auth_scenarios_of_the_official_suite_pass(site: Gateway, run: Run, tmp_path: Path) -> None:
    suite = require_file(NPM_SUITE / "node_modules" / f"conformance-{run.version}" / "dist" / "index.js", REMEDY)
    client = shlex.join([*quick_program(CLIENT), ",".join(run.expected.split())])
    argv = [node(), str(suite), "client", "--command", client, *run.which]
    argv += ["--timeout", str(SCENARIO_MS), "--output-dir", str(tmp_path)]
    ran = subprocess.run(argv, env=site.env, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=SUITE_S)
    judged = {name: verdict(name, tmp_path) for name in run.expected.split()}
    assert {name: wrong for name, wrong in judged.items() if wrong} == {}, ran.stdout[-20_000:]


def verdict(scenario: str, folder: Path) -> list[str]:
    """Return the scenario's failures and warnings, and a message if no check passed."""
    found = list(folder.glob(f"auth/{scenario}-*/checks.json"))  # a timestamp follows the name
    checks = [check for file in found for check in json.loads(file.read_text("utf-8"))]
    bad = [f"{one['id']}: {one.get('errorMessage')}" for one in checks if one["status"] in ("FAILURE", "WARNING")]
    return bad if any(one["status"] == "SUCCESS" for one in checks) else [*bad, "nothing was checked"]
