"""Tests of running `npx` commands from npm's cache: a table of cases, hostile packages, and a real server.

No test runs npm. The tables contain what npm would do.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from devtools.places import NPM_SERVERS
from tests.servers import REMEDY
from tests.tools import require, require_file
from trayapp.backends.stdio.npx import TAG_FOR_S, TAGS_FILE, entry_name, resolve_npx

NOON = 1_800_000_000.0  # an arbitrary Unix time
NODE = "#!/usr/bin/env node\n"
SH = "#!/bin/sh\n"

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="executable bits and shebangs are POSIX")


@dataclass
class Npm:
    """A home folder with npm's cache, a folder on PATH with a `node`, and our cache folder."""

    root: Path
    entries: int = 0
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = self.root.resolve()
        self.npx = self.root / "home" / ".npm" / "_npx"
        self.ours = self.root / "ours"
        self.work = self.root / "work"
        self.work.mkdir()
        self.node = self.root / "node" / "bin" / ("node.exe" if sys.platform == "win32" else "node")
        write(self.node, SH)
        self.env = {"HOME": str(self.root / "home"), "PATH": str(self.node.parent), "LOCALAPPDATA": "", **self.env}
        if sys.platform == "win32":
            self.env["NPM_CONFIG_CACHE"] = str(self.npx.parent)

    def add(self, name: str, bins: Any, files: dict[str, str], *, version: str = "1.0.0", **more: Any) -> Path:
        """Add a package in a new cache entry, and return its folder.

        `entry` names the entry, and `own` is the content of its package.json.
        """
        self.entries += 1
        entry = self.npx / str(more.pop("entry", f"{self.entries:016x}"))
        if "own" in more:
            write(entry / "package.json", json.dumps(more.pop("own")))
        folder = entry / "node_modules" / name
        write(folder / "package.json", json.dumps({"name": name, "version": version, "bin": bins, **more}))
        for path, text in files.items():
            write(folder / path, text)
        return folder

    def demo(self, version: str = "1.0.0", **more: Any) -> Path:
        """Add the package that most tests use, and return its folder."""
        return self.add("demo", {"demo": "bin/cli.js"}, {"bin/cli.js": NODE}, version=version, **more)

    def resolve(self, *argv: str, now: float = NOON, cwd: str | None = None) -> tuple[str, ...] | None:
        """Return the command line that replaces `argv`, or None if npm must run."""
        return resolve_npx(argv, self.env, self.ours, now, cwd or str(self.work))

    def run(self, *argv: str, now: float = NOON) -> str | None:
        """Resolve `argv` and join the result, with packages written as `<name>` and node as `node`."""
        found = self.resolve(*argv, now=now)
        if found is None:
            return None
        places = re.compile(re.escape(str(self.npx)) + r"[\\/][^\\/]+[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)")
        words = ("node" if word == str(self.node) else places.sub(r"<\1>", word) for word in found)
        return " ".join(words).replace("\\", "/")


def write(path: Path, text: str) -> None:
    """Write an executable file, because npm makes bins executable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    path.chmod(0o755)


@pytest.fixture
def npm(tmp_path: Path) -> Npm:
    """Return a home whose npm cache holds the packages of the table."""
    made = Npm(tmp_path)
    made.demo()
    made.add("@scope/name", {"scope-name": "a.js", "other": "b.js"}, {"a.js": NODE, "b.js": NODE})
    made.add("@scope/tool", {"weird": "w.sh", "tool": "t"}, {"w.sh": SH, "t": NODE})
    made.add("shellpkg", "run", {"run": SH})
    made.add("onlyother", {"zzz": "z.mjs"}, {"z.mjs": ""})
    made.add("nobin", None, {})
    made.add("missingbin", "gone.js", {})
    return made


CASES: list[tuple[str, list[str], str | None]] = [
    ("npx-02", ["npx", "demo", "--flag", "v"], "node <demo>/bin/cli.js --flag v"),
    ("npx-05", ["npx", "demo", "--", "sub"], "node <demo>/bin/cli.js -- sub"),
    ("npx-07", ["npx", "demo@^1.0.0"], "node <demo>/bin/cli.js"),
    ("npx-08", ["npx", "demo@9.9.9"], None),
    ("npx-09", ["npx", "-p", "demo"], None),
    ("npx-10", ["npx", "-p", "demo", "-c", "echo hi"], None),
    ("npx-11", ["npx", "--no-install", "demo"], None),
    ("npx-12", ["npx", "-q", "demo"], None),
    ("npx-13", ["npx", "--", "demo"], None),
    ("npx-14", ["npx"], None),
    ("npx-16", ["npx", "-y", "nobin"], None),
    ("npx-17", ["npx", "-y", "missingbin"], None),
    ("npx-18", ["npx", "-y", "@bad"], None),
    ("npx-19", ["npx", "-y", "github:user/repo"], None),
    ("npx-22", ["npx", "-y", "@scope/tool"], "node <@scope/tool>/t"),
    pytest.param("npx-23", ["npx", "-p", "@scope/tool", "weird"], "<@scope/tool>/w.sh", marks=needs_posix),  # type: ignore[list-item]
    pytest.param("npx-24", ["npx", "-y", "shellpkg"], "<shellpkg>/run", marks=needs_posix),  # type: ignore[list-item]
    ("npx-25", ["npx", "-y", "onlyother"], "node <onlyother>/z.mjs"),
    ("npx-26", ["npm", "exec", "--package", "demo", "--", "demo", "x"], "node <demo>/bin/cli.js x"),
    ("npx-27", ["npm", "exec", "-y", "--package=demo", "--", "demo"], "node <demo>/bin/cli.js"),
    ("npx-32", ["uvx", "demo"], None),
    ("npx-33", ["/usr/bin/npx", "demo"], None),
    # cases with descriptive names
    ("exact", ["npx", "-y", "demo@1.0.0", "a"], "node <demo>/bin/cli.js a"),
    ("exact with v", ["npx", "-y", "demo@v1.0.0"], "node <demo>/bin/cli.js"),
    ("range outside", ["npx", "-y", "demo@^2"], None),
    ("range with a gap", ["npx", "-y", "demo@>=1 <2"], "node <demo>/bin/cli.js"),
    ("not cached", ["npx", "-y", "other"], None),
    ("a bin that is not the package's", ["npx", "-p", "demo", "node", "x.js"], None),
    ("another bin", ["npx", "-y", "--package=@scope/name", "other", "-y"], "node <@scope/name>/b.js -y"),
    ("separator after a package", ["npx", "-p", "demo", "--", "demo", "--"], "node <demo>/bin/cli.js --"),
    ("several bins, none of its name", ["npx", "-y", "@scope/name"], None),
    ("two packages", ["npx", "-p", "demo", "-p", "shellpkg", "demo"], None),
    ("a flag with a value", ["npx", "--yes=true", "demo"], None),
    ("no package after the flag", ["npx", "--package"], None),
    ("an empty package", ["npx", "--package=", "demo"], None),
    ("npm without separator", ["npm", "exec", "demo"], None),
    ("npm with its other -p", ["npm", "exec", "-p", "demo", "--", "demo"], None),
    ("npm without a package", ["npm", "exec", "--", "demo"], None),
    ("npm, flags after the word", ["npm", "exec", "--package", "demo", "demo", "--", "x"], None),
    ("npm does something else", ["npm", "run", "demo"], None),
    ("an alias", ["npx", "demo@npm:other@1"], None),
    ("a file", ["npx", "./demo"], None),
    ("a folder", ["npx", "."], None),
    ("an address", ["npx", "https://example.org/demo.tgz"], None),
    ("a way out", ["npx", "../demo"], None),
    ("nothing after the at", ["npx", "demo@"], None),
]


@pytest.mark.requirement("npx-cases")
@pytest.mark.parametrize(("case", "argv", "expected"), CASES)
def test_the_cases(npm: Npm, case: str, argv: list[str], expected: str | None) -> None:
    assert npm.run(*argv) == expected, case


# -- tags ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("npx-tag-once-a-day")
def test_a_tag_is_npms_decision_once_a_day_and_the_fast_path_after(npm: Npm) -> None:
    words = ("npx", "--yes", "demo@latest", "x")
    assert npm.run(*words) is None
    assert npm.run(*words, now=NOON + 1) == "node <demo>/bin/cli.js x"
    assert npm.run(*words, now=NOON + TAG_FOR_S - 1) == "node <demo>/bin/cli.js x"
    assert npm.run(*words, now=NOON + TAG_FOR_S) is None
    assert npm.run(*words, now=NOON + TAG_FOR_S + 1) == "node <demo>/bin/cli.js x"


def test_every_tag_of_every_package_has_its_own_day(npm: Npm) -> None:
    assert npm.run("npx", "demo@latest") is None
    assert npm.run("npx", "demo@next") is None
    assert npm.run("npx", "shellpkg@latest", now=NOON + TAG_FOR_S / 2) is None
    assert npm.run("npx", "demo@latest", now=NOON + 1) is not None
    assert npm.run("npx", "demo@latest", now=NOON - 1) is None  # the clock was set back


@pytest.mark.requirement("npx-no-arguments-kept")
def test_the_note_of_a_tag_holds_no_argument(npm: Npm) -> None:
    assert npm.run("npx", "-y", "demo", "--token", "s3cret") == "node <demo>/bin/cli.js --token s3cret"
    assert not npm.ours.exists()
    npm.run("npx", "-y", "demo@latest", "--token", "s3cret")
    (note,) = npm.ours.iterdir()
    assert json.loads(note.read_text(encoding="utf-8")) == {"demo@latest": NOON}


@pytest.mark.parametrize("content", ["", "[1]", '{"demo@latest": "x"}', "{", "\0" * 300_000])
def test_a_note_that_cannot_be_read_is_written_anew(npm: Npm, content: str) -> None:
    write(npm.ours / TAGS_FILE, content)
    assert npm.run("npx", "demo@latest") is None
    assert npm.run("npx", "demo@latest") is not None


def test_where_no_note_can_be_kept_npm_always_decides(npm: Npm) -> None:
    write(npm.ours, "a file in the folder's place")
    assert npm.run("npx", "demo@latest") is None
    assert npm.run("npx", "demo@latest") is None
    assert resolve_npx(("npx", "demo@latest"), npm.env, None, NOON, str(npm.work)) is None


# -- choice of the cached copy ---------------------------------------------------------------------------------------


@pytest.fixture
def bare(tmp_path: Path) -> Npm:
    """Return a home with an empty npm cache."""
    return Npm(tmp_path)


@pytest.mark.requirement("npx-which-copy")
def test_the_copy_that_npx_made_for_these_very_words_is_taken(bare: Npm) -> None:
    bare.demo("3.0.0", own={"dependencies": {"demo": "^3.0.0"}})
    bare.demo("1.0.0", own={"_npx": {"packages": ["demo@^1"]}})
    right = bare.demo("2.0.0", own={"_npx": {"packages": ["demo"]}})
    assert (bare.resolve("npx", "demo") or ("", ""))[1] == str(right / "bin" / "cli.js")
    by_hash = bare.demo("1.5.0", entry=entry_name("demo"))
    assert (bare.resolve("npx", "demo") or ("", ""))[1] == str(by_hash / "bin" / "cli.js")


def test_the_name_of_an_entry_is_that_which_npm_gives_it() -> None:
    # computed by: printf %s cowsay | sha512sum | cut -c1-16
    assert entry_name("cowsay") == "8f497369b2d6166e"


def test_else_the_newest_that_may_run(bare: Npm) -> None:
    bare.demo("1.9.0")
    newest = bare.demo("1.10.0")
    bare.demo("2.0.0")
    assert (bare.resolve("npx", "demo@^1.2") or ("", ""))[1] == str(newest / "bin" / "cli.js")


OTHERS_COPY: list[tuple[dict[str, Any], str, bool]] = [
    ({"_npx": {"packages": ["demo@1.0.0"]}}, "demo", False),  # an old pin: npx would run the latest version
    ({"_npx": {"packages": ["demo@1.0.0"]}}, "demo@1.0.0", True),
    ({"_npx": {"packages": ["demo@1.0.0"]}}, "demo@^1", True),
    ({"_npx": {"packages": ["demo@latest"]}}, "demo", True),
    ({"_npx": {"packages": ["demo@next"]}}, "demo", False),
    ({"_npx": {"packages": ["other"]}}, "demo@1.0.0", False),  # installed only as a dependency of another package
    ({"dependencies": {"other": "^1"}}, "demo", False),
    ({"dependencies": {"demo": "^1.0.0"}}, "demo", True),
    ({"_npx": {"packages": [7]}}, "demo", False),
    ({"_npx": 7, "dependencies": 7}, "demo", True),
    ({}, "demo", True),
]


@pytest.mark.requirement("npx-which-copy")
@pytest.mark.parametrize(("own", "words", "taken"), OTHERS_COPY)
def test_a_copy_made_for_other_words_is_taken_only_where_it_means_the_same(
    bare: Npm, own: dict[str, Any], words: str, taken: bool
) -> None:
    bare.demo(own=own)
    assert (bare.run("npx", words) is not None) is taken


def test_an_entry_that_npm_is_writing_or_was_ended_at_is_left_to_npm(bare: Npm) -> None:
    folder = bare.demo(dependencies={"needed": "1"})
    assert bare.run("npx", "demo") is None
    (folder.parent / "needed").mkdir()
    assert bare.run("npx", "demo") is not None
    (folder.parent.parent / "concurrency.lock").mkdir()
    assert bare.run("npx", "demo") is None


# -- hostile and odd packages ----------------------------------------------------------------------------------------


HOSTILE: list[tuple[Any, str]] = [
    ("../../../../../outside.js", "above its package"),
    ("bin/../../demo2/x.js", "beside its package"),
    ("/etc/hosts", "absolute"),
    ({"demo": 7}, "a number"),
    (["bin/cli.js"], "a list"),
    ("bin", "a folder"),
    ("link.js", "a link to the outside"),
    ("loop.js", "a link to itself"),
    ("a\0b", "a NUL"),
    ("", "nothing"),
]


@pytest.mark.requirement("npx-hostile")
@pytest.mark.parametrize(("bins", "why"), HOSTILE)
@needs_posix
def test_a_bin_that_is_no_file_of_its_package_is_left_to_npm(bare: Npm, bins: Any, why: str) -> None:
    folder = bare.add("demo", bins, {"bin/cli.js": NODE, "../demo2/x.js": NODE})
    write(bare.root / "home" / "outside.js", NODE)
    (folder / "link.js").symlink_to(bare.root / "home" / "outside.js")
    (folder / "loop.js").symlink_to("loop.js")
    assert bare.run("npx", "demo") is None, why


@pytest.mark.requirement("npx-hostile")
@pytest.mark.parametrize("text", ["", "[]", "{", "7", "[" * 100_000, '{"name": "other", "version": "1.0.0"}', "{}"])
def test_a_manifest_that_cannot_be_used_is_left_to_npm(bare: Npm, text: str) -> None:
    folder = bare.demo()
    write(folder / "package.json", text)
    assert bare.run("npx", "demo") is None


@needs_posix
def test_a_manifest_that_is_a_pipe_or_endless_is_waited_for_by_nobody(bare: Npm) -> None:
    folder = bare.demo()
    (folder / "package.json").unlink()
    os.mkfifo(folder / "package.json")
    assert bare.run("npx", "demo") is None
    (folder / "package.json").unlink()
    (folder / "package.json").symlink_to("/dev/zero")
    assert bare.run("npx", "demo") is None


STARTS: list[tuple[str, str, int, str | None]] = [
    ("cli", NODE, 0o644, "node <demo>/cli"),
    ("cli", "#!/usr/bin/env node\r\n", 0o755, "node <demo>/cli"),
    ("cli", "#!/usr/local/bin/node\n", 0o755, "node <demo>/cli"),
    ("cli.js", "console.log(1)\n", 0o644, "node <demo>/cli.js"),
    ("cli.cjs", "", 0o644, "node <demo>/cli.cjs"),
    ("cli.js", "#!/usr/bin/env -S node --no-warnings\n", 0o755, "<demo>/cli.js"),  # node alone would lose the flags
    ("cli.js", "#!/usr/bin/env -S node --no-warnings\n", 0o644, None),
    ("cli.js", "#!/usr/bin/env bun\n", 0o755, "<demo>/cli.js"),
    ("cli", "\x7fELF", 0o755, "<demo>/cli"),
    ("cli", "\x7fELF", 0o644, None),
    ("cli.py", "#!/usr/bin/env python3\n", 0o644, None),
]


@needs_posix
@pytest.mark.parametrize(("file", "text", "mode", "expected"), STARTS)
def test_node_runs_what_is_nodes_and_the_system_what_is_executable(
    bare: Npm, file: str, text: str, mode: int, expected: str | None
) -> None:
    folder = bare.add("demo", file, {file: text})
    (folder / file).chmod(mode)
    assert bare.run("npx", "demo") == expected


# -- where npm looks first -------------------------------------------------------------------------------------------


@pytest.mark.requirement("npx-as-npm-would")
def test_a_project_or_global_installation_that_has_the_package_is_left_to_npm(npm: Npm, tmp_path: Path) -> None:
    below = npm.work / "deep" / "er"
    below.mkdir(parents=True)
    assert npm.resolve("npx", "demo", cwd=str(below)) is not None
    write(npm.work / "node_modules" / ".bin" / "demo", NODE)
    assert npm.resolve("npx", "demo", cwd=str(below)) is None
    assert npm.resolve("npx", "onlyother", cwd=str(below)) is not None
    write(npm.work / "deep" / "package.json", json.dumps({"name": "onlyother"}))
    assert npm.resolve("npx", "onlyother", cwd=str(below)) is None
    write(npm.node.parent.parent / "lib" / "node_modules" / "@scope" / "tool" / "package.json", "{}")
    assert npm.resolve("npx", "@scope/tool") is None
    assert npm.resolve("npx", "-p", "@scope/tool", "tool") is not None


@pytest.mark.requirement("npx-as-npm-would")
def test_npms_settings_for_its_cache_are_followed(npm: Npm, tmp_path: Path) -> None:
    npm.env.pop("NPM_CONFIG_CACHE", None)
    npm.npx.parent.rename(tmp_path / "elsewhere")
    assert npm.resolve("npx", "demo") is None
    for variable in ("npm_config_cache", "NPM_CONFIG_CACHE"):
        npm.env[variable] = str(tmp_path / "elsewhere")
        assert npm.resolve("npx", "demo") is not None
        del npm.env[variable]
    home = Path(npm.env["HOME"])
    write(home / ".npmrc", f"# mine\nfund=false\ncache = {tmp_path / 'elsewhere'}\n")
    assert npm.resolve("npx", "demo") is not None
    write(home / ".npmrc", "cache=${WHEREVER}/npm\n")
    assert npm.resolve("npx", "demo") is None


def test_settings_by_which_npm_runs_something_else_are_left_to_npm(npm: Npm) -> None:
    for name in ("npm_config_call", "NPM_CONFIG_NODE_OPTIONS", "npm_config_script-shell"):
        assert resolve_npx(("npx", "demo"), {**npm.env, name: "x"}, None, NOON, str(npm.work)) is None
    write(npm.work / ".npmrc", "cache=/somewhere\n")
    write(npm.work / "package.json", "{}")
    assert npm.resolve("npx", "demo") is None


def test_without_node_on_the_path_npm_decides(npm: Npm) -> None:
    npm.env["PATH"] = str(npm.work)
    assert npm.resolve("npx", "demo") is None


# -- a real server ---------------------------------------------------------------------------------------------------


@needs_posix
@pytest.mark.requirement("npx-real-server")
def test_a_real_server_starts_from_npxs_cache_without_npm(bare: Npm) -> None:
    require("node")
    name = "@modelcontextprotocol/server-sequential-thinking"
    installed = require_file(NPM_SERVERS / "node_modules" / name, REMEDY)
    entry = bare.npx / entry_name(name)
    write(entry / "package.json", json.dumps({"_npx": {"packages": [name]}, "dependencies": {name: "*"}}))
    (entry / "node_modules" / name).parent.mkdir(parents=True)
    (entry / "node_modules" / name).symlink_to(installed)
    env = {**os.environ, "HOME": bare.env["HOME"], "npm_config_cache": str(bare.npx.parent)}
    argv = resolve_npx(("npx", "-y", name), env, bare.ours, NOON, str(bare.work))
    assert argv is not None
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}) + "\n"
    done = subprocess.run(argv, input=frame, capture_output=True, text=True, env=env, timeout=30, check=False)
    answer = json.loads(done.stdout.splitlines()[0])
    assert answer["result"]["serverInfo"]["name"] == "sequential-thinking-server"
