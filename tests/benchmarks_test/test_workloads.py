"""Workloads have the promised size, and their servers list what the shelf contains."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.benchmarks.client import Client
from tests.benchmarks.workloads import ECHO, Workload, data_file, large, read_shelf, sized, ten, trivial, unique
from trayapp.config.read.parse import parse

NOWHERE = Path("/nonexistent")


def some(folder: Path) -> list[tuple[Workload, int, int]]:
    """Return workloads with their expected numbers of servers and tools."""
    return [
        (trivial(folder / "a"), 1, 10),
        (ten(folder / "b", NOWHERE), 10, 300),
        (large(folder / "d", NOWHERE), 70, 527),
        (sized(folder / "e", 7, 100), 7, 100),
    ]


def test_each_has_the_promised_servers_and_tools_and_names_no_tool_twice(tmp_path: Path) -> None:
    for work, servers, tools in some(tmp_path):
        assert (len(work.servers), work.tools) == (servers, tools)
        assert list(work.servers) == list(work.shelf)
        assert ECHO in work.shelf[work.server]
        for listed in work.shelf.values():
            names = [tool["name"] for tool in listed]
            assert len(set(names)) == len(names) > 0


def test_a_server_lists_its_shelf_and_echoes(tmp_path: Path) -> None:
    work = ten(tmp_path, NOWHERE)
    with Client(work.argv, os.environ) as client:
        client.initialize()
        assert client.tools() == [tool["name"] for tool in work.shelf[work.server]]
        assert len(client.timed(work.tool, 1000, 3)) == 3  # timed() verifies the size of each answer


def test_servers_yaml_is_read_without_a_problem_and_switches_every_tool_if_told(tmp_path: Path) -> None:
    for work, servers, tools in some(tmp_path):
        plain, switched = (parse(work.servers_yaml(on, idle_timeout=0), "servers.yaml") for on in (False, True))
        assert plain.problems == switched.problems == ()
        assert len(plain.servers) == servers
        assert plain.settings.idle_timeout == 0
        assert sum(len(server.tools or ()) for server in switched.servers.values()) == tools


def test_a_server_of_a_curve_has_a_tool_at_least(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="wants a tool"):
        sized(tmp_path, 10, 9)


def test_data_is_found_in_the_folder_or_in_one_below_and_nowhere_else(tmp_path: Path) -> None:
    below = tmp_path / "set" / "catalog.json"
    below.parent.mkdir()
    below.write_text(json.dumps([{"server": "s", "tools": [{"name": "t"}]}]))
    assert data_file("catalog.json", tmp_path) == data_file("catalog.json", below.parent) == below
    assert data_file("queries.json", tmp_path) is None
    assert read_shelf(tmp_path) == {"s": [{"name": "t"}]}
    assert len(read_shelf(NOWHERE)) == 70


def test_tools_of_one_name_are_told_apart() -> None:
    assert unique({"a": [{"name": "x", "n": 1}], "b": [{"name": "x", "n": 2}, {"name": "y"}]}) == [
        {"name": "x", "n": 1},
        {"name": "x_2", "n": 2},
        {"name": "y"},
    ]
