"""Definitions of real, benign servers, on machines that have this data beside the checkout.

`python -m tests.benchmarks.inspection FILE` prints the findings tool by tool (packaging/BENCHMARKS.md).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.benchmarks.inspection import findings_of, offered
from tests.benchmarks.workloads import data_file
from trayapp.inspection.finding import is_held

FILES = ("dev.json", "catalog.json")
TOLD_AT_MOST = 0.02  # share of all tools
SERVERS_AT_MOST = 0.05  # share of servers with any finding


@pytest.mark.requirement("inspect-told")
@pytest.mark.parametrize("name", FILES)
def test_of_real_tools_none_is_held_and_hardly_any_told(name: str) -> None:
    file = data_file(name)
    if file is None:
        pytest.skip(f"{name} is not on this machine")
    catalog: list[dict[str, Any]] = json.loads(file.read_bytes())
    found = [(entry["server"], findings_of(kind, item)) for entry in catalog for kind, item in offered(entry)]
    assert len(found) > 500
    assert [server for server, findings in found if is_held(findings)] == []
    told = [server for server, findings in found if findings]
    assert len(told) <= TOLD_AT_MOST * len(found)
    assert len(set(told)) <= SERVERS_AT_MOST * len({server for server, _ in found})
