"""Security cases that belong to no single room: the servers that a command may add, and the log's place and content."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import run_cli
from trayapp.config.paths import find_paths
from trayapp.config.urls import exposure, name_of_url, unsafe_url, unsafe_url_hint
from trayapp.service.logging import RedactingFormatter, start_logging

URLS = [
    ("sec-09", "https://mcp.deepwiki.com/mcp", True),
    ("sec-10", "http://example.com/mcp", False),
    ("sec-12", "https://u:p@h/mcp", False),
    ("sec-14", "", False),
    ("", "http://127.0.0.1:3000/mcp", True),
    ("", "http://localhost:3000/mcp", True),
    ("", "http://[::1]:3000/mcp", True),
    ("", "http://192.168.1.5/mcp", False),
    ("", "http://localhost.evil.example/mcp", False),
    ("", "http://2130706433/", True),
    ("", "ftp://example.com/", False),
    ("", "javascript:alert(1)", False),
    ("", "https://a b/", False),
    ("", "https://${HOST}/mcp", True),
    ("", "${URL}", True),
    ("", "http://${HOST}/mcp", False),
    ("", "http://example.com/${PATH}", False),
    ("", "http://localhost:${PORT}/mcp", True),
    ("", "https://u:${PASSWORD}@h/mcp", False),
]


@pytest.mark.requirement("sec-cases")
@pytest.mark.parametrize(("case", "url", "fine"), URLS)
def test_which_addresses_one_command_takes_over(case: str, url: str, fine: bool) -> None:
    assert (unsafe_url(url) is None) is fine


@pytest.mark.requirement("source-asked")
@pytest.mark.parametrize(
    ("url", "fine"),
    [
        ("http://192.168.1.5:8000/mcp", True), ("http://10.0.0.1/mcp", True), ("http://172.16.3.4/mcp", True),
        ("http://[fd12::1]/mcp", True), ("http://100.101.102.103/mcp", True), ("http://nas/mcp", True),
        ("http://nas.local/mcp", True), ("http://nas.lan/mcp", True), ("http://a.internal/mcp", True),
        ("http://a.home.arpa/mcp", True), ("http://192.168.1.5:${PORT}/mcp", True), ("http://0xc0a80105/mcp", True),
        ("http://172.32.3.4/mcp", False), ("http://8.8.8.8/mcp", False), ("http://192.168.1.5.evil.test/mcp", False),
        ("http://local.evil.test/mcp", False), ("http://169.254.169.254/mcp", False), ("http://${HOST}/mcp", False),
        ("http://metadata.google.internal/mcp", False), ("http://u:p@nas.local/mcp", False),
        ("http://a.dom/mcp", False),
        ("http://[64:ff9b::808:808]/mcp", False), ("http://nas.local.${DOMAIN}/mcp", False),
    ],
)  # fmt: skip
def test_an_unencrypted_address_is_taken_in_ones_own_network_only_and_with_a_warning(url: str, fine: bool) -> None:
    assert unsafe_url(url) is not None
    assert (unsafe_url(url, asks=True) is None) is fine
    told = exposure(url)
    assert told is not None
    assert "in the server's network can read" in told or not fine
    assert exposure(url.replace("http:", "https:")) is None


@pytest.mark.requirement("source-refused")
@pytest.mark.parametrize(
    ("url", "hint"),
    [
        (
            "http://mcp.acme.com/mcp",
            "Use its https:// address. If the server is in your own network and you trust that network, write it",
        ),
        ("file:///etc/passwd", "Or write it into servers.yaml by hand"),
    ],
)
def test_a_refused_address_comes_with_what_to_do(url: str, hint: str) -> None:
    assert hint in unsafe_url_hint(url)


NAMES = [
    ("https://mcp.deepwiki.com/mcp", "deepwiki"),
    ("https://mcp.exa.ai/mcp", "exa"),
    ("https://api.githubcopilot.com/mcp/", "githubcopilot"),
    ("https://mcp.shop.co.uk/", "shop"),
    ("https://linear.app/mcp", "linear"),
    ("https://mcp.team.corp.example/", "corp"),
    ("http://localhost:3000/mcp", "localhost"),
    ("http://127.0.0.1:3000/", "127-0-0-1"),
    ("https://mcp.dev/", "mcp"),
    ("https://a..example/", "a"),
]


@pytest.mark.requirement("sec-cases")
@pytest.mark.parametrize(("url", "name"), NAMES)
def test_a_server_is_named_after_what_tells_its_host_from_others(url: str, name: str) -> None:
    assert name_of_url(url) == name


@pytest.mark.requirement("sec-cases")
def test_adding_by_address_alone_names_the_server_and_bad_ones_are_refused(tmp_path: Path) -> None:
    done = run_cli(tmp_path, "add", "--url", "https://mcp.deepwiki.com/mcp", "--scope", "global", "--json")
    assert (done.returncode, json.loads(done.stdout)["name"]) == (0, "deepwiki"), done.stderr
    assert run_cli(tmp_path, "stop").returncode == 0  # `add` has started a gateway
    before = (tmp_path / "servers.yaml").read_text()
    for words in (
        ["--url", "http://example.com/mcp"],
        ["x", "--url", "http://example.com/mcp"],
        ["x", "--url", "https://u:p@h/mcp"],
        ["x", "--url", ""],
        ["--url", ""],
        [],
        ["bad name", "--url", "https://h.example/mcp"],
    ):
        refused = run_cli(tmp_path, "add", *words, "--scope", "global")
        assert refused.returncode == 2, words
        assert "u:p@" not in refused.stderr
    assert (tmp_path / "servers.yaml").read_text() == before


@pytest.mark.requirement("sec-cases")
def test_the_log_lies_in_the_log_folder_and_lacks_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import logging

    paths = find_paths({"MULTI_MCP_HOME": str(tmp_path / "home")})
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    before = list(logging.getLogger().handlers)
    start_logging(paths.log_dir)
    try:
        logging.getLogger("x").warning("audit: %s", {"api_key": "k-SECRET-0123456789"})
        (added,) = [handler for handler in logging.getLogger().handlers if handler not in before]
        assert isinstance(added.formatter, RedactingFormatter)
        text = (paths.log_dir / "gateway.log").read_text()
        assert ("audit" in text, "SECRET" in text) == (True, False)
        assert list(work.iterdir()) == []
    finally:
        for handler in list(logging.getLogger().handlers):
            if handler not in before:
                logging.getLogger().removeHandler(handler)
                handler.close()
