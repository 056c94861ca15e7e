"""Tests of bundle manifests: each variant of the official schema, and the errors in invalid manifests."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.packages.bundles import launched, manifest
from trayapp.model.errors import UsageError
from trayapp.sources.bundle import TYPES, VERSIONS, BundlePlace, read_bundle, read_manifest
from trayapp.sources.source import Source, UnclearSourceError, with_value

FOLDER = "/data/packages/mcpb-demo"
FOLDERS = {"HOME": "/home/u", "DESKTOP": "/home/u/Desktop", "DOCUMENTS": "/home/u/Docs", "DOWNLOADS": "/home/u/Down"}
FILES = frozenset(
    ("manifest.json", "server/main.py", "server/index.js", "server/lib/x.py", "server/tool", "server/win.exe")
)


def source_of(document: Any, platform: str = "linux", folder: str = FOLDER) -> Source:
    place = BundlePlace(folder, FILES, FOLDERS, platform, frozenset(("python", "python3")))
    return read_bundle(read_manifest(json.dumps(document).encode()), place, "ab" * 32)


def line_of(source: Source, **values: str) -> list[str]:
    """Return the command line after the user has given these values."""
    entry = source.entry
    for one in reversed(source.wants):
        entry = with_value(entry, one, one.checked(values.get(one.name, one.default)))
    return [entry["command"], *entry["args"]]


def env_of(source: Source, **values: str) -> dict[str, str]:
    entry = source.entry
    for one in reversed(source.wants):
        entry = with_value(entry, one, one.checked(values.get(one.name, one.default)))
    env: dict[str, str] = entry.get("env", {})
    return env


def option(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "title": "A title", "description": "What it is."} | more


@pytest.mark.requirement("bundle-schema")
@pytest.mark.parametrize("key", ["manifest_version", "dxt_version"])
@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_the_schema_is_read(version: str, key: str) -> None:
    document = {name: value for name, value in manifest().items() if name != "manifest_version"} | {key: version}
    source = source_of(document)
    assert (source.name, source.description) == ("demo-bundle", "Reads things.")
    assert source.entry == {"command": "python", "args": [f"{FOLDER}/server/main.py"], "cwd": FOLDER}
    assert source.kind == "a bundle, demo-bundle 1.2.3 by An Author (sha256 abababababababab; not signed)"


LAUNCHES = [
    ("node", "server/index.js", {"command": "node", "args": ["${__dirname}/server/index.js"]},
     ["node", "{}/server/index.js"]),
    ("python", "server/main.py", {"command": "python3", "args": ["server/main.py"]}, ["python3", "server/main.py"]),
    ("binary", "server/tool", {"command": "server/tool", "args": ["--x"]}, ["{}/server/tool", "--x"]),
    ("binary", "server/tool", {"command": "${__dirname}/server/tool"}, ["{}/server/tool"]),
    ("binary", "server/tool", {"command": "./server/tool"}, ["{}/server/tool"]),
    ("uv", "src/server.py", {"command": "uv", "args": ["run", "--directory", "${__dirname}", "src/server.py"]},
     ["uv", "run", "--directory", "{}", "src/server.py"]),
    ("node", "server/index.js", None, ["node", "{}/server/index.js"]),
    ("python", "server/main.py", None, ["python", "{}/server/main.py"]),
    ("binary", "server/tool", None, ["{}/server/tool"]),
    ("uv", "src/server.py", None, ["uv", "run", "--directory", "{}", "src/server.py"]),
]  # fmt: skip


@pytest.mark.requirement("bundle-schema")
@pytest.mark.parametrize(("kind", "start", "config", "line"), LAUNCHES)
def test_every_server_type_starts_its_program(kind: str, start: str, config: Any, line: list[str]) -> None:
    server = {"type": kind, "entry_point": start} | ({"mcp_config": config} if config else {})
    source = source_of(manifest(server=server))
    assert line_of(source) == [word.format(FOLDER) for word in line]
    assert source.entry["cwd"] == FOLDER
    assert kind in TYPES
    expected = {"PYTHONPATH": f"{FOLDER}/server/lib"} if kind == "python" and config is None else {}
    assert source.entry.get("env", {}) == expected


@pytest.mark.requirement("bundle-schema")
def test_a_program_gets_exe_on_windows_and_paths_its_separator() -> None:
    config = {"command": "server/win", "args": ["${__dirname}${/}a${pathSeparator}b", "${HOME}${/}x"]}
    server = {"type": "binary", "entry_point": "server/win", "mcp_config": config}
    folder = "C:\\data\\demo"
    assert line_of(source_of(manifest(server=server), "win32", folder)) == [
        "C:\\data\\demo\\server\\win.exe", "C:\\data\\demo\\a\\b", "/home/u\\x",
    ]  # fmt: skip
    assert line_of(source_of(manifest(server=server)))[0] == "server/win"


@pytest.mark.requirement("bundle-schema")
def test_the_folders_of_the_user_are_known_by_name() -> None:
    args = ["${HOME}", "${DESKTOP}/a", "${DOCUMENTS}", "${DOWNLOADS}", "${/}"]
    line = line_of(source_of(manifest(server=launched(*args))))
    assert line[2:] == ["/home/u", "/home/u/Desktop/a", "/home/u/Docs", "/home/u/Down", "/"]


@pytest.mark.requirement("bundle-schema")
@pytest.mark.parametrize(
    ("platform", "line", "env"),
    [
        ("linux", ["python", f"{FOLDER}/server/main.py", "plain"], {"B_ONE": "1"}),
        ("win32", ["py", "win"], {"B_ONE": "1"}),
        ("darwin", ["python", f"{FOLDER}/server/main.py", "plain"], {"B_MAC": "2"}),
    ],
)
def test_a_platform_overrides_whole_fields(platform: str, line: list[str], env: dict[str, str]) -> None:
    overrides = {"win32": {"command": "py", "args": ["win"]}, "darwin": {"env": {"B_MAC": "2"}}}
    source = source_of(manifest(server=launched("plain", env={"B_ONE": "1"}, platform_overrides=overrides)), platform)
    assert (line_of(source), env_of(source)) == (line, env)


@pytest.mark.requirement("bundle-schema")
def test_a_bundle_of_another_platform_is_refused() -> None:
    document = manifest(compatibility={"platforms": ["darwin", "win32"]})
    with pytest.raises(UnclearSourceError, match="does not run on this system: it is for darwin, win32"):
        source_of(document)
    assert source_of(document, "darwin").name == "demo-bundle"


@pytest.mark.requirement("bundle-values")
def test_several_folders_become_several_words() -> None:
    wanted = {"dirs": option("directory", multiple=True, required=True, default=["${HOME}/a", "${DESKTOP}"])}
    server = launched("--at", "${user_config.dirs}", "--end", env={"B_DIRS": "${user_config.dirs}"})
    source = source_of(manifest(server=server, user_config=wanted))
    assert line_of(source)[2:] == ["--at", "/home/u/a", "/home/u/Desktop", "--end"]
    given = {"dirs": f"/x{os.pathsep}/y z\n/w"}
    assert line_of(source, **given)[2:] == ["--at", "/x", "/y z", "/w", "--end"]
    assert env_of(source, **given) == {"B_DIRS": os.pathsep.join(("/x", "/y z", "/w"))}


@pytest.mark.requirement("bundle-values")
def test_a_value_that_is_left_open_takes_its_word_and_option_with_it() -> None:
    wanted = {name: option("string") for name in ("name", "place", "token")}
    args = ("--quiet=1", "${user_config.place}", "--name", "${user_config.name}", "--in=${user_config.place}")
    server = launched(*args, env={"B_TOKEN": "Bearer ${user_config.token}", "B_STAYS": "1"})
    source = source_of(manifest(server=server, user_config=wanted))
    assert line_of(source)[2:] == ["--quiet=1", "--in="]
    assert env_of(source) == {"B_STAYS": "1"}
    given = {"name": "N", "place": "P", "token": "T"}
    assert line_of(source, **given)[2:] == ["--quiet=1", "P", "--name", "N", "--in=P"]
    assert env_of(source, **given) == {"B_TOKEN": "Bearer T", "B_STAYS": "1"}


VALUES = [
    ("string", {}, "any text; $(x)", "any text; $(x)"),
    ("string", {"default": "d"}, None, "d"),
    ("number", {"default": 10, "min": 1, "max": 100}, None, "10"),
    ("number", {"min": 1, "max": 100}, "100", "100"),
    ("number", {}, "-0.5", "-0.5"),
    ("number", {"min": 1, "max": 100}, "101", "must be a number, at least 1, at most 100"),
    ("number", {"min": 1}, "0", "must be a number, at least 1"),
    ("number", {}, "many", "must be a number"),
    ("number", {}, "nan", "must be a number"),
    ("boolean", {"default": True}, None, "true"),
    ("boolean", {"default": False}, None, "false"),
    ("boolean", {}, "true", "true"),
    ("boolean", {}, "maybe", "must be one of: true, false"),
    ("directory", {"default": "${DOCUMENTS}/x"}, None, "/home/u/Docs/x"),
    ("directory", {}, "/tmp/x", "/tmp/x"),
    ("directory", {}, "relative/x", "is a directory"),
    ("file", {"default": "${HOME}/a.db"}, None, "/home/u/a.db"),
    ("file", {}, "a.db", "is a file"),
    ("string", {"sensitive": True}, "hush", "hush"),
]


@pytest.mark.requirement("bundle-values")
@pytest.mark.parametrize(("kind", "more", "given", "expected"), VALUES)
def test_a_value_of_each_type_is_checked(kind: str, more: dict[str, Any], given: str | None, expected: str) -> None:
    document = manifest(server=launched("--v", "${user_config.v}"), user_config={"v": option(kind, **more)})
    source = source_of(document)
    (want,) = source.wants
    assert (want.secret, want.description) == (more.get("sensitive", False), "What it is.")
    values = {} if given is None else {"v": given}
    if expected.startswith(("is ", "must ")):
        with pytest.raises(UsageError, match=expected):
            line_of(source, **values)
    else:
        assert line_of(source, **values)[2:] == ["--v", expected]


@pytest.mark.requirement("bundle-values")
def test_one_value_for_several_places_is_one_value() -> None:
    server = launched("${user_config.a}", "${user_config.a}-${user_config.a}", env={"B_A": "${user_config.a}"})
    source = source_of(manifest(server=server, user_config={"a": option("string", required=True)}))
    assert [one.keys for one in source.wants] == [("args", 1), ("args", 2), ("env", "B_A")]
    assert line_of(source, a="x")[2:] == ["x", "x-x"]
    assert env_of(source, a="x") == {"B_A": "x"}


WRONG = [
    ({"manifest_version": "9.9"}, "is of version 9.9; known versions:"),
    ({"manifest_version": None}, "is of version None"),
    ({"name": ""}, "has no name"),
    ({"name": 7}, "name that is not a string"),
    ({"server": "node x"}, "server that is not an object"),
    ({"server": {"type": "ruby", "entry_point": "x"}}, "server type ruby; known types: node"),
    ({"server": {"type": "node"}}, "neither server.entry_point"),
    ({"server": launched(args="x")}, "args that is not a list"),
    ({"server": launched(args=[1])}, "args that is not a list of strings"),
    (
        {"server": {"type": "node", "entry_point": "x", "mcp_config": {"command": "x", "env": {"B_A": 1}}}},
        "not a string",
    ),
    ({"server": launched("${keyring:github}")}, "the variable ${keyring:github}"),
    ({"server": launched("${cmd:id}")}, "the variable ${cmd:id}"),
    ({"server": launched("${GITHUB_TOKEN}")}, "the variable ${GITHUB_TOKEN}"),
    ({"server": launched("${user_config.none}")}, "the variable ${user_config.none}"),
    ({"server": launched(env={"B_A": "${env:HOME}"})}, "the variable ${env:HOME}"),
    ({"server": launched(command="${user_config.a}"), "user_config": {"a": option("string")}}, "choose the program"),
    ({"user_config": {"a": option("colour")}}, "type colour in user_config.a"),
    ({"user_config": {"a": "string"}}, "user_config.a that is not an object"),
    ({"user_config": {"a": option("number", min="1")}}, "limit in user_config.a"),
    ({"user_config": {"a": option("string", default={"x": 1})}}, "default in user_config.a"),
    ({"user_config": {"a": option("string", default="${keyring:github}")}}, "the variable ${keyring:github}"),
]


@pytest.mark.requirement("bundle-schema", "bundle-safe")
@pytest.mark.parametrize(("fields", "why"), WRONG)
def test_a_wrong_manifest_is_refused_by_its_field(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(UnclearSourceError) as refused:
        source_of(manifest(**fields))
    assert why in refused.value.title


@pytest.mark.requirement("bundle-schema")
@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_manifest_that_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(UnclearSourceError, match="The manifest of the bundle"):
        read_manifest(data)
