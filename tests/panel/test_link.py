"""`multi-mcp panel WHAT` for install links and bundles, and its registration by the packages."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from configparser import ConfigParser
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit
from xml.etree import ElementTree

import pytest

from tests.cli.running import run_cli
from tests.e2e.gateway import Gateway, gateway_in
from tests.packages.bundles import make_bundle, manifest
from tests.tools import require

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"
LINE = "npx -y files-mcp '/a b'"


@pytest.fixture
def gateway(home: Path) -> Iterator[Gateway]:
    with gateway_in(home, forked=True) as made:
        made.write({}, http={"port": 0})
        made.start()
        yield made


def page_of(gateway: Gateway, what: str) -> str:
    """Return the page that a browser shows for the link of `panel WHAT`."""
    done = run_cli(gateway.home, "panel", "--json", "--", what, env=gateway.env)
    assert done.returncode == 0, done.stderr
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with browser.open(json.loads(done.stdout)["url"]) as answer:
        assert urlsplit(answer.url).path == "/panel/add"
        return unescape(answer.read().decode())


@pytest.mark.requirement("link-opened")
def test_a_link_opens_the_page_with_all_that_would_run_and_starts_nothing(gateway: Gateway, tmp_path: Path) -> None:
    written = gateway.file.read_text("utf-8")
    page = page_of(gateway, f"multi-mcp://add?what={quote(LINE)}")
    assert LINE in page.replace("&#39;", "'")
    assert "Add files" in page
    bundle = make_bundle(tmp_path / "a b.mcpb", manifest())
    for what in (str(bundle), bundle.as_uri()):
        assert "a bundle, demo-bundle 1.2.3 by An Author" in page_of(gateway, what)
    assert "This describes no known kind of server" in page_of(gateway, "multi-mcp://add?what=rm")
    assert gateway.file.read_text("utf-8") == written
    assert gateway.children() == []


@pytest.mark.requirement("link-opened")
def test_without_a_browser_the_command_is_said(gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    env = gateway.env | {"PATH": str(tmp_path / "bin")}
    done = run_cli(gateway.home, "panel", "--", f"multi-mcp://add?what={quote(LINE)}", env=env)
    assert (done.returncode, done.stdout.startswith("http://127.0.0.1:")) == (0, True)
    assert f"multi-mcp add {shlex.quote(LINE)}" in done.stderr
    too_long = run_cli(gateway.home, "panel", "--", "x" * 9000, env=env)
    assert (too_long.returncode, "too many for a link" in too_long.stderr) == (2, True)


@pytest.mark.requirement("panel-sign-in")
def test_the_link_alone_is_printed_and_opens_the_panel_once(gateway: Gateway) -> None:
    done = run_cli(gateway.home, "panel", "--no-browser", env=gateway.env)
    assert (done.returncode, done.stderr) == (0, "")
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with browser.open(done.stdout.strip()) as answer:
        assert "<h1>Overview</h1>" in answer.read().decode()
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(done.stdout.strip())


@pytest.mark.requirement("link-registered")
def test_the_desktops_of_linux_know_the_link_and_the_file() -> None:
    entry = PACKAGING / "linux/multi-mcp-add.desktop"
    subprocess.run([require("desktop-file-validate"), entry], check=True)
    groups = ConfigParser(interpolation=None)
    groups.read(entry, "utf-8")
    keys = groups["Desktop Entry"]
    assert keys["MimeType"] == "x-scheme-handler/multi-mcp;application/x-mcpb;"
    assert keys["Exec"].split()[1:] == ["panel", "--", "%u"]
    (kind,) = ElementTree.parse(PACKAGING / "linux/multi-mcp.xml").getroot()
    space = "{http://www.freedesktop.org/standards/shared-mime-info}"
    assert kind.attrib["type"] == "application/x-mcpb"
    assert [glob.attrib["pattern"] for glob in kind.iter(f"{space}glob")] == ["*.mcpb"]
    copied = (PACKAGING / "devtools/deb.py").read_text("utf-8")
    assert all(name in copied for name in ('"multi-mcp-add.desktop"', '"multi-mcp.xml"'))


@pytest.mark.requirement("link-registered")
def test_windows_and_macos_know_the_link_and_the_file() -> None:
    text = (PACKAGING / "windows/multi-mcp.iss").read_text("utf-8")
    commands = re.findall(r'Subkey: "Software\\Classes\\([\w.-]+)\\shell\\open\\command".*ValueData: (.*)', text)
    shown = '"""{app}\\multi-mcp.exe"" panel -- ""%1"""'
    assert commands == [("multi-mcp", shown), ("multi-mcp.bundle", shown)]
    assert '"URL Protocol"' in text
    assert r'"Software\Classes\.mcpb\OpenWithProgids"' in text
    said = (PACKAGING / "devtools/macos.py").read_text("utf-8")
    assert '"CFBundleURLSchemes": [NAME]' in said
    assert '"public.filename-extension": ["mcpb"]' in said


def test_the_code_of_a_link_opens_no_other_page(gateway: Gateway) -> None:
    done = run_cli(gateway.home, "panel", "--json", "--", "https://evil.example/mcp", env=gateway.env)
    url = urlsplit(json.loads(done.stdout)["url"])
    assert url.hostname == "127.0.0.1"
    assert parse_qs(url.query)["what"] == ["https://evil.example/mcp"]
