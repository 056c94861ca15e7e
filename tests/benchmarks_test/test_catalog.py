"""The large catalog has its promised size, and a gateway reads it like the cache of a first run."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.catalog import SERVERS, TOOLS, offers, shares, write_catalog
from trayapp.catalog.cache import load_all
from trayapp.config.paths import find_paths
from trayapp.config.read.parse import parse
from trayapp.model.config import launch_hash


def test_it_has_the_promised_size_and_no_server_without_tools() -> None:
    assert (len(shares()), sum(shares())) == (SERVERS, TOOLS)
    assert min(shares()) > 0
    assert dict(offers()) == dict(offers())


def test_the_gateway_finds_all_of_it_in_the_cache(home: Path) -> None:
    write_catalog(home)
    paths = find_paths({"MULTI_MCP_HOME": str(home)})
    config = parse(paths.config_file.read_text(encoding="utf-8"), "servers.yaml")
    entries = load_all(paths.cache_dir, config.servers)
    assert config.problems == ()
    assert sum(len(server.tools or ()) for server in config.servers.values()) == TOOLS
    assert sum(len(entry.offer.tools) for entry in entries.values()) == TOOLS
    for name, server in config.servers.items():
        assert entries[name].hash == launch_hash(server)
