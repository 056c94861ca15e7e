"""The suite's client scenarios with the gateway as the client: all that a revision requires, including sign-ins."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.cli.running import quick_program
from tests.conformance.suite import PASSED, WHOLE_RUN_S, Key, Run, run_client
from tests.e2e.cell import MODERN
from tests.e2e.gateway import gateway_in

DRIVER = "tests.conformance.driver"
DOCUMENT = "https://conformance-test.local/client-metadata.json"  # known to the suite's authorization servers

FROM_COLD = ["http-standard-headers", "http-custom-headers", "http-invalid-tool-headers", "request-metadata"]


pytestmark = pytest.mark.timeout(WHOLE_RUN_S)


@pytest.fixture(scope="module")
def required(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Return a function that runs all scenarios that a revision requires, once for each revision.

    The scenarios share one gateway and run concurrently. Each scenario's client adds its own server.
    """

    @cache
    def run(revision: str) -> Run:
        with gateway_in(tmp_path_factory.mktemp("home"), forked=True) as gateway:
            gateway.write({}, http={"enabled": True, "port": 0, "token": False}, client_metadata_url=DOCUMENT)
            gateway.start()
            return run_client(
                tmp_path_factory.mktemp("run"), quick_program(DRIVER), gateway.env, "--requirements", revision
            )

    return run


def wrong(found: Run) -> list[str]:
    """Return the failed checks that the revision requires, with the suite's reasons."""
    return [f"{key}: {verdict}" for key, verdict in found.wrong().items() if key[0] not in found.unscored]


def passed(found: Run) -> list[Key]:
    """Return the checks that passed."""
    return sorted(key for key, verdict in found.verdicts.items() if verdict.status == PASSED)


@pytest.mark.requirement("conformance-client")
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_every_client_scenario_that_a_revision_requires_passes(required: Callable[[str], Run], revision: str) -> None:
    found = required(revision)
    for key, verdict in found.wrong().items():
        print(f"fails ({found.unscored.get(key[0], 'required')}): {key[0]}, {key[1]}: {verdict.why}")
    assert wrong(found) == []
    extensions = {scenario for scenario, why in found.unscored.items() if why == "extension"}
    assert {key[0] for key in found.wrong()} <= extensions
    assert {
        key[0] for key, verdict in found.verdicts.items() if verdict.status == PASSED
    } >= found.scenarios - extensions


@pytest.mark.requirement("conformance-client")
def test_a_server_that_was_known_before_any_client_passes_the_scenarios_of_the_newer_era(
    required: Callable[[str], Run], home: Path, tmp_path: Path
) -> None:
    """The gateway's first contact is in the server's era, whether or not the gateway has a client."""
    with gateway_in(home, forked=True) as gateway:
        gateway.write({}, http={"enabled": True, "port": 0, "token": False})
        gateway.start()
        for scenario in FROM_COLD:
            selection = ["--scenario", scenario, "--spec-version", MODERN]
            cold = run_client(tmp_path / scenario, [*quick_program(DRIVER), "--cold"], gateway.env, *selection)
            assert cold.wrong() == {}
            assert passed(cold) == [key for key in passed(required(MODERN)) if key[0] == scenario] != []
