"""The suite's client scenarios with the gateway as the client: all that a revision requires, sign-in included."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conformance.suite import PASSED, Key, Run, run_client
from tests.e2e.gateway import gateway_in

DRIVER = [sys.executable, "-m", "tests.conformance.driver"]
DOCUMENT = "https://conformance-test.local/client-metadata.json"  # the suite's sign-in services know that address

FROM_COLD = ["http-standard-headers", "http-custom-headers", "http-invalid-tool-headers", "request-metadata"]


def run(home: Path, folder: Path, *selection: str) -> Run:
    """Return one gateway, to which each scenario's client brings its server, all at once."""
    with gateway_in(home) as gateway:
        gateway.write({}, http={"enabled": True, "port": 0, "token": False}, client_metadata_url=DOCUMENT)
        gateway.start()
        return run_client(folder, DRIVER, gateway.env, *selection)


def wrong(found: Run) -> list[str]:
    """Return what failed that the revision requires, with the suite's reason."""
    return [f"{key}: {verdict}" for key, verdict in found.wrong().items() if key[0] not in found.unscored]


def passed(found: Run) -> list[Key]:
    """Return the checks that passed."""
    return sorted(key for key, verdict in found.verdicts.items() if verdict.status == PASSED)


@pytest.mark.requirement("conformance-client")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_every_client_scenario_that_a_revision_requires_passes(home: Path, tmp_path: Path, revision: str) -> None:
    found = run(home, tmp_path, "--requirements", revision)
    for key, verdict in found.wrong().items():
        print(f"fails ({found.unscored.get(key[0], 'required')}): {key[0]}, {key[1]}: {verdict.why}")
    assert wrong(found) == []
    extensions = {scenario for scenario, why in found.unscored.items() if why == "extension"}
    assert {key[0] for key in found.wrong()} <= extensions
    assert {
        key[0] for key, verdict in found.verdicts.items() if verdict.status == PASSED
    } >= found.scenarios - extensions


@pytest.mark.requirement("conformance-client")
@pytest.mark.timeout(180)  # eight starts of the suite: 15 s alone
def test_a_server_that_was_known_before_any_client_passes_the_scenarios_of_the_newer_era(
    home: Path, tmp_path: Path
) -> None:
    """First contact is in the era of the server, though no client is there to say one; as with a client."""
    with gateway_in(home) as gateway:
        gateway.write({}, http={"enabled": True, "port": 0, "token": False})
        gateway.start()
        for scenario in FROM_COLD:
            selection = ["--scenario", scenario, "--spec-version", "2026-07-28"]
            cold, known = (
                run_client(tmp_path / way / scenario, [*DRIVER, *options], gateway.env, *selection)
                for way, options in (("cold", ["--cold"]), ("client first", []))
            )
            assert cold.wrong() == known.wrong() == {}
            assert passed(cold) == passed(known)
            assert passed(cold)
