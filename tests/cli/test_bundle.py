"""`multi-mcp add FILE.mcpb`: a bundle is shown, confirmed, unpacked, locked, started and removed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.persons import Person
from tests.cli.running import run_cli
from tests.e2e.gateway import Gateway, gateway_in
from tests.packages.bundles import FILE, SERVER, launched, make_archive, make_bundle, manifest
from trayapp.confinement import landlock

WANTS = {
    "token": {"type": "string", "title": "Token", "description": "A token", "sensitive": True, "required": True},
    "dirs": {"type": "directory", "title": "Folders", "description": "Folders", "multiple": True, "required": True},
    "depth": {"type": "number", "title": "Depth", "description": "Depth", "default": 3, "min": 1, "max": 9},
}
TOKEN = "Teal-47-heron-bundle"
DOCUMENT = manifest(
    server=launched("${user_config.dirs}", "--depth", "${user_config.depth}", env={"B_TOKEN": "${user_config.token}"}),
    user_config=WANTS,
    tools=[{"name": "read_it"}, {"name": "write_it"}, {"name": "delete_it"}],
)


def unpacked(home: Path) -> list[Path]:
    store = home / "state" / "packages"
    return [path for path in store.iterdir() if path.is_dir()] if store.exists() else []


@pytest.mark.requirement("bundle-added", "source-classes")
def test_a_bundle_is_shown_and_nothing_is_unpacked_without_a_yes(person: Person, tmp_path: Path) -> None:
    path = make_bundle(tmp_path / "demo.mcpb", DOCUMENT)
    done = person.says("add", str(path), "--dry-run")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0].startswith("demo-bundle: a bundle, demo-bundle 1.2.3 by An Author (sha256 ")
    assert "server/main.py" in lines[1]
    assert "  1 tool that can read: read_it" in lines
    assert "  1 tool that can write: write_it" in lines
    assert "  1 tool that can delete or overwrite data, or run commands: delete_it" in lines
    assert "  needs the secret token: A token" in lines
    assert "  needs the value depth (optional): Depth, at least 1, at most 9, by default 3" in lines
    assert person.says("add", str(path), "--set", "token=x", "--set", "dirs=/x").returncode == 2  # nobody confirms
    for wrong in (("depth=10",), ("dirs=relative",)):
        done = person.says("add", str(path), "--yes", "--set", "token=x", "--set", "dirs=/x", *("--set", *wrong))
        assert done.returncode == 2, done.stdout
    assert unpacked(person.home) == []
    assert not person.servers.exists()


@pytest.mark.requirement("bundle-added")
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_value_of_the_wrong_form_is_asked_for_again(person: Person, tmp_path: Path) -> None:
    wants = {"depth": WANTS["depth"]}
    document = manifest(server=launched("${user_config.depth}"), user_config=wants)
    path = make_bundle(tmp_path / "demo.mcpb", document)
    said = person.answers("add", str(path), typed="y\n10\n4\n")
    assert "depth must be a number, at least 1, at most 9. Enter another number" in said
    assert '"4"' in person.servers.read_text()


@pytest.mark.requirement("bundle-added")
def test_a_signature_is_said_not_to_be_verified(person: Person, tmp_path: Path) -> None:
    path = make_bundle(tmp_path / "demo.mcpb", manifest())
    assert "; not signed)" in person.says("add", str(path), "--dry-run").stdout
    path.write_bytes(path.read_bytes() + b"MCPB_SIG_V1\x04\x00\x00\x00\xff\xfe\xfd\xfcMCPB_SIG_END")
    done = person.says("add", str(path), "--dry-run")
    assert "; signed, but multi-mcp does not verify signatures)" in done.stdout


@pytest.mark.requirement("bundle-safe")
def test_a_hostile_bundle_adds_nothing(person: Person, tmp_path: Path) -> None:
    path = make_archive(tmp_path / "evil.mcpb", ("../../../evil", "x", FILE))
    done = person.says("add", str(path), "--yes")
    assert (done.returncode, "not safe to unpack" in done.stderr) == (2, True)
    assert not any(tmp_path.rglob("evil"))
    assert unpacked(person.home) == []


@pytest.mark.requirement("bundle-exact")
def test_the_panel_adds_only_the_file_that_it_showed(person: Person, tmp_path: Path) -> None:
    path = make_bundle(tmp_path / "demo.mcpb", manifest())
    form = {"what": str(path)}
    (shown,) = json.loads(person.says("add", "--form", "--dry-run", "--json", stdin=json.dumps(form)).stdout)["servers"]
    make_bundle(path, manifest(), {"server/evil.py": "x"})
    done = person.says("add", "--form", stdin=json.dumps(form | {"seen": shown["seen"]}))
    assert (done.returncode, "changed after it was shown" in done.stderr) == (2, True)
    assert unpacked(person.home) == []


@pytest.fixture
def gateway(home: Path) -> Iterator[Gateway]:
    with gateway_in(home, forked=True) as made:
        yield made


@pytest.mark.requirement("bundle-added", "bundle-exact")
def test_a_bundle_runs_with_its_values_and_goes_with_its_server(gateway: Gateway, tmp_path: Path) -> None:
    gateway.env |= {"MULTI_MCP_PASSPHRASE": "of the tests"}
    gateway.write({}, token_store="file")
    gateway.start()
    path = make_bundle(tmp_path / "demo.mcpb", DOCUMENT)
    dirs = f"{tmp_path / 'a b'}\n{tmp_path}"
    form = {"what": str(path), "name": "mine", "values": {"token": TOKEN, "dirs": dirs, "depth": "9"}}
    looked = run_cli(gateway.home, "add", "--form", "--dry-run", "--json", stdin=json.dumps(form), env=gateway.env)
    (shown,) = json.loads(looked.stdout)["servers"]
    assert [(one["name"], one["default"], one["kind"]) for one in shown["wants"]] == [
        ("dirs", "", "directory"), ("depth", "3", "number"), ("token", "", "string"),
    ]  # fmt: skip
    text = json.dumps(form | {"seen": shown["seen"]})
    done = run_cli(gateway.home, "add", "--form", "--json", stdin=text, env=gateway.env)
    added: dict[str, Any] = json.loads(done.stdout)
    assert (added["name"], added["tools"]) == ("mine", 1)
    text = gateway.file.read_text("utf-8")
    assert TOKEN not in text + done.stdout + done.stderr
    listed = json.loads(run_cli(gateway.home, "list", "mine", "--json", env=gateway.env).stdout)
    said = json.loads(listed[0]["description"])
    assert said["argv"] == [str(tmp_path / "a b"), str(tmp_path), "--depth", "9"]
    assert said["env"]["B_TOKEN"] == "[redacted]"  # the description repeats the secret
    (folder,) = unpacked(gateway.home)
    (lock,) = json.loads((gateway.home / "servers.lock").read_text("utf-8"))["servers"]["mine"]["mcpb:demo-bundle"]
    assert (lock["kind"], lock["version"]) == ("mcpb", "1.2.3")
    assert lock["integrity"].startswith("sha256:")
    assert added["entry"]["cwd"] == str(folder)
    (row,) = json.loads(run_cli(gateway.home, "outdated", "--json", env=gateway.env).stdout)["rows"]
    assert (row["kind"], row["version"], row["newest"]) == ("mcpb", "1.2.3", None)
    assert run_cli(gateway.home, "remove", "mine", env=gateway.env).returncode == 0
    assert unpacked(gateway.home) == []


@pytest.mark.requirement("bundle-exact", "confine-policy")
@pytest.mark.skipif(landlock.abi() < landlock.LEAST_ABI, reason="needs Landlock 6")
def test_a_confined_bundle_reads_what_was_unpacked_and_nothing_else_of_ours(person: Person, tmp_path: Path) -> None:
    code = SERVER.replace(
        "about =",
        "def tried(path, mode):\n"
        "    try: open(path, mode).close()\n"
        "    except OSError as error: return type(error).__name__\n"
        "    return 'done'\n"
        "here = os.path.dirname(__file__)\n"
        f"ways = (here + '/main.py', 'r'), (here + '/main.py', 'a'), ({str(person.servers)!r}, 'r')\n"
        "print([tried(*way) for way in ways], file=open(os.environ['TMPDIR'] + '/said', 'w'))\n"
        "about =",
        1,
    )
    person.env["MULTI_MCP_UNATTENDED"] = "1"
    added = person.says("add", str(make_bundle(tmp_path / "demo.mcpb", manifest(), {"server/main.py": code})), "--yes")
    assert added.returncode == 0, added.stderr
    try:
        done = person.says("confine", "demo-bundle", "--try")
    finally:
        person.says("stop")
    assert "demo-bundle: 1 tool, confined by landlock" in done.stdout, done.stdout + done.stderr
    assert [path.read_text() for path in person.home.rglob("said")] == [
        "['done', 'PermissionError', 'PermissionError']\n"
    ]
