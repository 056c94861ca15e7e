"""`multi-mcp find`, and `add` of a server that it found, with a registry that follows the official OpenAPI document."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.persons import Person
from tests.fixtures.registry import FakeRegistry, entry, registry
from tests.packages.bundles import make_bundle, manifest
from tests.packages.loopback import running
from trayapp.config.read.parse import parse

PACKAGE = {
    "registryType": "npm", "identifier": "@acme/wiki-mcp", "version": "1.2.3", "transport": {"type": "stdio"},
    "runtimeArguments": [{"type": "named", "name": "--silent", "format": "boolean", "value": "true"}],
    "packageArguments": [
        {"type": "positional", "valueHint": "folder", "isRequired": True, "format": "filepath", "description": "Where"},
        {"type": "named", "name": "--mode", "isRequired": True, "choices": ["fast", "safe"]},
        {"type": "named", "name": "--depth"},
        {"type": "named", "name": "--level", "default": "3"},
    ],
    "environmentVariables": [
        {"name": "WIKI_AUTH", "value": "{user}:{pass}", "variables": {
            "user": {"isRequired": True}, "pass": {"isRequired": True, "isSecret": True}}},
        {"name": "LANG", "value": "C"},
        {"name": "NOT_NEEDED"},
    ],
}  # fmt: skip
REMOTE = {
    "type": "streamable-http", "url": "https://{tenant}.acme.example/mcp",
    "variables": {"tenant": {"isRequired": True, "choices": ["eu", "us"]}},
    "headers": [
        {"name": "Authorization", "value": "Bearer {token}",
         "variables": {"token": {"isRequired": True, "isSecret": True}}},
        {"name": "X-Team", "value": "red"},
    ],
}  # fmt: skip
WIKI = entry("com.acme/wiki-mcp", "1.2.3", packages=[PACKAGE], remotes=[REMOTE])
TOKEN = "plain-looking"


def use(person: Person, server: FakeRegistry) -> None:
    person.servers.write_text(
        f"settings: {{registry: '{server.address}', token_store: file}}\nservers: {{}}\n", encoding="utf-8"
    )
    person.env["MULTI_MCP_PASSPHRASE"] = "of the tests"


@pytest.mark.requirement("registry-find")
def test_of_too_many_names_the_exact_one_comes_first_and_that_some_are_missing_is_said(person: Person) -> None:
    with registry(*(entry(f"a.a/wiki-{number}") for number in range(20)), entry("zz.acme/wiki")) as server:
        use(person, server)
        server.page_most = 1
        said = json.loads(person.says("find", "--json", "wiki").stdout)
        told = person.says("find", "wiki").stderr
    cut = "Only the first 10 names with wiki were read, and all names whose last part begins with wiki"
    assert (said["servers"][0]["name"], said["found"], said["cut"], said["problem"]) == ("zz.acme/wiki", 21, cut, None)
    assert f"{cut}: give more of the name" in told


@pytest.mark.requirement("registry-find", "registry-status")
def test_what_is_found_is_listed_with_its_status(person: Person) -> None:
    old = entry("io.github.a/wiki-old", status="deprecated", why="Use com.acme/wiki-mcp\x1b[2J")
    with registry(old, WIKI) as server:
        use(person, server)
        shown = person.says("find", "wiki").stdout.splitlines()
        assert [line.split()[0] for line in shown] == ["NAME", "com.acme/wiki-mcp", "io.github.a/wiki-old"]
        assert "DEPRECATED (Use com.acme/wiki-mcp" in shown[2]
        assert "\x1b" not in "".join(shown)
        found = person.gets("find", "wiki", "--limit", "1")
        assert [(one["name"], one["ways"], one["status"]) for one in found["servers"]] == [
            ("com.acme/wiki-mcp", ["npm", "remote"], "active")
        ]
        assert found["found"] == 2
        assert "a name like nothing-such" in person.says("find", "nothing-such").stdout
    assert "Connection refused" in person.says("find", "other").stderr
    assert person.says("find", "  ").returncode == 2


@pytest.mark.requirement("registry-add")
def test_a_server_of_the_registry_is_added_with_its_arguments_variables_and_headers(person: Person) -> None:
    values = ("--set", "folder=/srv/wiki", "--set", "mode=safe", "--set", "user=me", "--set", f"pass={TOKEN}")
    with registry(WIKI) as server:
        use(person, server)
        done = person.says("add", "com.acme/wiki-mcp")
        assert done.stdout.splitlines()[:2] == [
            "wiki: com.acme/wiki-mcp 1.2.3, from the registry (npm package): What com.acme/wiki-mcp does",
            "  npx -y --silent @acme/wiki-mcp@1.2.3 '<folder>' --mode '<mode>' --level 3",
        ]
        assert "https://{tenant}.acme.example/mcp" in done.stderr  # the other way to use the server
        assert "needs folder, mode, user, pass" in done.stderr
        assert (
            "mode must be one of: fast, safe"
            in person.says("add", "com.acme/wiki-mcp", "--yes", *values, "--set", "mode=x").stderr
        )
        assert person.says("add", "com.acme/wiki-mcp@1.2.3", "--yes", *values).returncode == 0
        form: dict[str, Any] = {"what": "com.acme/wiki-mcp"}
        shown = json.loads(person.says("add", "--form", "--dry-run", "--json", stdin=json.dumps(form)).stdout)
        assert (shown["ways"], len(shown["servers"])) == (True, 2)
        form |= {"pick": 1, "seen": shown["servers"][1]["seen"], "name": "far"}
        form |= {"values": {"tenant": "eu", "token": TOKEN}}
        assert person.says("add", "--form", "--json", stdin=json.dumps(form)).returncode == 0
        assert person.says("add", "--form", stdin=json.dumps(form | {"pick": 2})).returncode == 2
    text = person.servers.read_text()
    servers = parse(text, "f").servers
    assert servers["wiki"].args == (
        "-y", "--silent", "@acme/wiki-mcp@1.2.3", "/srv/wiki", "--mode", "safe", "--level", "3",
    )  # fmt: skip
    assert servers["wiki"].env == {"WIKI_AUTH": "me:${keyring:wiki.pass}", "LANG": "C"}
    assert servers["far"].url == "https://eu.acme.example/mcp"
    assert servers["far"].headers == {"Authorization": "Bearer ${keyring:far.token}", "X-Team": "red"}
    assert TOKEN not in text


@pytest.mark.requirement("registry-add")
def test_one_of_several_ways_is_chosen_by_an_option_or_a_question(person: Person) -> None:
    values = ("--set", "tenant=eu", "--set", f"token={TOKEN}")
    with registry(WIKI) as server:
        use(person, server)
        said = person.says("add", "com.acme/wiki-mcp", "--yes").stderr
        assert "2: https://{tenant}.acme.example/mcp" in said
        assert "To choose another one, add --way NUMBER" in said
        for way in ("0", "3"):
            done = person.says("add", "com.acme/wiki-mcp", "--yes", "--way", way, *values)
            assert (done.returncode, f"There is no way {way} to run it: the last is 2" in done.stderr) == (2, True)
        assert person.says("add", "com.acme/wiki-mcp", "--yes", "--way", "2", "--as", "far", *values).returncode == 0
        if os.name == "posix":
            shown = person.answers("add", "com.acme/wiki-mcp", "--as", "asked", *values, typed="2\ny\n")
            assert "Which one" in shown
    assert person.says("add", "npx x-mcp", "--yes", "--way", "1").returncode == 2
    servers = parse(person.servers.read_text(), "f").servers
    assert {name: one.url for name, one in servers.items()} == dict.fromkeys(
        ("far", "asked") if os.name == "posix" else ("far",), "https://eu.acme.example/mcp"
    )


@pytest.mark.requirement("registry-status", "registry-hostile")
@pytest.mark.parametrize(
    ("row", "said"),
    [
        (entry("com.acme/x", status="deleted", why="It stole keys"), "was deleted from the registry: It stole keys"),
        (entry("com.acme/x", packages=[]), "it offers nothing"),
        (entry("com.acme/x", packages=7, remotes=[7]), "it offers nothing"),
        (entry("com.acme/x", packages=[PACKAGE | {"identifier": "x; rm -rf ~"}]), "it offers npm"),
        (entry("com.acme/x", packages=[PACKAGE | {"identifier": ["x"]}]), "it offers npm"),
        (entry("com.acme/x", packages=[{"registry_type": "cargo", "identifier": "x"}]), "it offers cargo"),
        (entry("com.acme/x", remotes=[{"type": "sse", "url": "http://evil.example/sse"}]), "must begin with https://"),
        (entry("com.acme/other"), "The registry has no com.acme/x"),
    ],
    ids=["deleted", "empty", "types", "shell", "list", "older", "plain-http", "unknown"],
)
def test_what_cannot_or_must_not_be_run_is_refused(person: Person, row: Any, said: str) -> None:
    with registry(row) as server:
        use(person, server)
        before = person.servers.read_text()
        done = person.says("add", "com.acme/x", "--yes")
    assert (done.returncode != 0, said in done.stderr) == (True, True), done.stderr
    assert person.servers.read_text() == before


@pytest.mark.requirement("registry-status")
def test_a_deprecated_one_says_so_before_the_question(person: Person) -> None:
    with registry(entry("com.acme/x", status="deprecated", why="Use y")) as server:
        use(person, server)
        assert "Its author calls it deprecated: Use y" in person.says("add", "com.acme/x").stdout


class Files:
    """A web server with one bundle, whose content may change."""

    def __init__(self, data: bytes) -> None:
        self.url = ""
        self.online = True
        self.data = data

    def answer(self, path: str) -> tuple[str, bytes] | None:
        return ("application/zip", self.data) if path == "/demo.mcpb" else None


@pytest.mark.requirement("bundle-exact", "registry-add")
def test_a_bundle_of_the_registry_is_fetched_and_compared_with_its_hash(person: Person, tmp_path: Path) -> None:
    data = make_bundle(tmp_path / "demo.mcpb", manifest()).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    with running(Files(data)) as files:
        package = {"registryType": "mcpb", "identifier": f"{files.url}/demo.mcpb", "fileSha256": digest}
        bare = {name: value for name, value in package.items() if name != "fileSha256"}
        gone = package | {"identifier": f"{files.url}/gone.mcpb", "fileSha256": "0" * 64}
        rows = [
            entry("com.acme/wiki-bundle", packages=[package]),
            entry("com.acme/no-hash", packages=[bare]),
            entry("com.acme/gone", packages=[gone]),
        ]
        with registry(*rows) as server:
            use(person, server)
            shown = person.says("add", "com.acme/wiki-bundle", "--dry-run")
            assert f"a bundle, demo-bundle 1.2.3 by An Author (sha256 {digest[:16]}; not signed)" in shown.stdout
            assert not (person.home / "state" / "packages").exists()
            for name, why in (("no-hash", "has no fileSha256"), ("gone", "Cannot fetch")):
                refused = person.says("add", f"com.acme/{name}", "--yes")
                assert (refused.returncode != 0, why in refused.stderr) == (True, True), refused.stderr
            files.data = data + b"more"
            assert person.says("add", "com.acme/wiki-bundle", "--yes").returncode == 0  # the cache has the bundle
            assert "  wiki-bundle:" in person.servers.read_text("utf-8")
            rows[0]["server"]["packages"][0]["fileSha256"] = "1" * 64
            refused = person.says("add", "com.acme/wiki-bundle", "--yes", "--as", "other")
            assert "is not the file that its server.json describes" in refused.stderr


@pytest.mark.requirement("bundle-exact", "source-asked")
def test_a_server_json_that_offers_a_bundle_only_is_read_as_that_bundle(person: Person, tmp_path: Path) -> None:
    data = make_bundle(tmp_path / "demo.mcpb", manifest()).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    with running(Files(data)) as files:
        package = {"registryType": "mcpb", "identifier": f"{files.url}/demo.mcpb", "fileSha256": digest}
        text = json.dumps({"name": "io.github.acme/wiki", "packages": [package]})
        shown = person.says("add", text)
        assert f"a bundle, demo-bundle 1.2.3 by An Author (sha256 {digest[:16]}; not signed)" in shown.stdout
        assert not (person.home / "state" / "packages").exists()
        assert not (person.home / "servers.yaml").exists()
        assert person.says("add", text, "--yes").returncode == 0
        assert "  wiki:" in person.servers.read_text("utf-8")
        wrong = text.replace(digest, "1" * 64)
        refused = person.says("add", wrong, "--yes", "--as", "other")
        assert "is not the file that its server.json describes" in refused.stderr
        bare = json.dumps(
            {"name": "a/b", "packages": [{"registryType": "mcpb", "identifier": f"{files.url}/demo.mcpb"}]}
        )
        assert "has no fileSha256" in person.says("add", bare, "--yes").stderr
