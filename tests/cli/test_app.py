"""The program's entry point and the table of verbs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.cli.running import PROGRAM, FakeGateway, Launch, environment, run_cli
from tests.cli.samples import row
from trayapp.cli.app import program
from trayapp.cli.verbs import HIDDEN, VERB_GROUPS, VERBS
from trayapp.service.version import version_text
from trayapp.wire.control import LIST

ROOT = Path(__file__).resolve().parents[2]
LOADED = """
import sys
from trayapp.__main__ import main
sys.argv = ["multi-mcp", *{argv!r}]
try:
    main()
except SystemExit:
    pass
print(*sorted(sys.modules), file=sys.stderr)
"""


def modules_after(home: Path, *argv: str) -> set[str]:
    """Run the program and return the names of all modules that it imported."""
    code = LOADED.format(argv=list(argv))
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(home), capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.requirement("proc-import-weight")
def test_nothing_heavy_is_on_the_way_to_the_shim(home: Path) -> None:
    loaded = modules_after(home, "stdio", "--no-such-option")
    ours = {name for name in loaded if name.startswith("trayapp")}
    expected = {
        "trayapp",
        "trayapp.__main__",
        "trayapp.shim",
        "trayapp.shim.main",  # imported because an option is given
        "trayapp.shim.relay",
        "trayapp.wire",
        "trayapp.wire.rundir",
    }
    assert ours == expected
    assert not loaded & {"click", "json", "asyncio", "logging", "subprocess", "threading"}


def test_the_version_is_told_without_click(home: Path) -> None:
    assert run_cli(home, "--version").stdout == f"multi-mcp {version_text()}\n"
    assert run_cli(home, "--version", "status").stdout == f"multi-mcp {version_text()}\n"
    assert not modules_after(home, "--version") & {"click", "trayapp.cli"}


def test_a_gateway_in_the_foreground_never_loads_click(home: Path) -> None:
    program = (
        "import sys; from trayapp.cli import run_gateway; from trayapp.__main__ import dispatch\n"
        "run_gateway.run_here = lambda linger, on_ready: on_ready() or 0\n"
        "print(dispatch(['start']), 'trayapp.gateway.main' in sys.modules, 'click' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment(home), capture_output=True, text=True)
    assert (done.stdout, done.stderr[:14]) == ("0 False False\n", "Gateway ready ")


@pytest.mark.parametrize(
    ("verb", "module"),
    [(["status"], "status"), (["call", "tool", "--no-start"], "call"), (["list", "--no-start"], "tools")],
)
def test_a_short_verb_loads_neither_gateway_nor_files_nor_rich(verb: list[str], module: str, home: Path) -> None:
    loaded = modules_after(home, *verb)
    assert f"trayapp.cli.{module}" in loaded
    assert not {name for name in loaded if name.startswith(("trayapp.gateway", "trayapp.backends", "trayapp.config"))}
    assert not loaded & {"rich", "mcp", "yaml", "psutil"}


def test_python_m_trayapp_is_the_same_program(home: Path) -> None:
    command = [sys.executable, "-m", "trayapp", "-V"]
    done = subprocess.run(command, cwd=ROOT, env=environment(home), capture_output=True, text=True, check=True)
    assert done.stdout == f"multi-mcp {version_text()}\n"


@pytest.mark.parametrize("verb", [*VERBS, *HIDDEN])
def test_every_verb_loads_and_has_help_of_80_columns(verb: str) -> None:
    with click.Context(program, info_name="multi-mcp") as context:
        command = program.get_command(context, verb)
        assert command is not None
        assert command.name == verb
        help_text = command.get_help(click.Context(command, context, info_name=verb, max_content_width=80))
    assert all(len(line) <= 80 for line in help_text.splitlines())
    assert verb in HIDDEN or "Example: multi-mcp" in help_text


def test_help_lists_every_verb_from_the_table(home: Path) -> None:
    done = run_cli(home, "--help")
    assert all(word in done.stdout for word in ("4 no gateway", "7 already running", "MULTI_MCP_HOME=DIR"))
    sections = {head: rest for head, _, rest in (part.partition(":\n") for part in done.stdout.split("\n\n"))}
    for title, verbs in VERB_GROUPS.items():
        assert [line.split()[0] for line in sections[title].splitlines()] == list(verbs)
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_help_of_stdio_is_no_business_of_the_shim(home: Path) -> None:
    assert "--servers A,B" in run_cli(home, "stdio", "--help").stdout


@pytest.mark.requirement("cli-exit-codes", "cli-error-lines")
@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["stat"], ["Error: multi-mcp has no verb stat", "Did you mean status? See: multi-mcp --help"]),
        (["lst"], ["Error: multi-mcp has no verb lst", "Did you mean list? See: multi-mcp --help"]),
        (["qqq"], ["Error: multi-mcp has no verb qqq", "See: multi-mcp --help"]),
        (["login"], ["Error: multi-mcp has no verb login", "Did you mean auth? See: multi-mcp --help"]),
        (["--foo"], ["Error: No such option '--foo'", "See: multi-mcp --help"]),
        (["list", "a", "b"], ["Error: Got unexpected extra argument (b)", "See: multi-mcp list --help"]),
        (["secret"], ["Error: multi-mcp secret needs one of: delete, list, set", "See: multi-mcp secret --help"]),
        (["enable"], ["Error: Missing argument 'SERVER[/TOOL-GLOB]'", "See: multi-mcp enable --help"]),
    ],
)
def test_wrong_words_are_two_lines_and_exit_code_2(home: Path, words: list[str], lines: list[str]) -> None:
    done = run_cli(home, *words)
    assert done.stderr.splitlines() == lines
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end in another way there")
def test_a_reader_that_goes_away_is_no_error_worth_a_word(home: Path, start_cli: Launch) -> None:
    rows = [row(f"tool_{number}", description="x" * 500) for number in range(2000)]
    with FakeGateway(home, {LIST: rows}):
        listing = start_cli("list")
        assert listing.stdout is not None
        listing.stdout.readline()
        listing.stdout.close()
        assert listing.stderr is not None
        errors = listing.stderr.read()
        listing.stderr.close()
        listing.wait(20)
    assert errors == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no such device")
@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["--help"], ["--version"]])
@pytest.mark.requirement("cli-error-lines")
def test_an_output_that_takes_nothing_is_an_error_in_two_lines(home: Path, words: list[str]) -> None:
    with FakeGateway(home, {LIST: [row("search")]}), Path("/dev/full").open("w") as full:
        command = [*PROGRAM, *words]
        done = subprocess.run(
            command, env=environment(home), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Error: Cannot write the output: No space left on device",
        "Free some space, or redirect the output elsewhere",
    ]


def test_letters_that_the_output_does_not_know_become_escapes(home: Path) -> None:
    with FakeGateway(home, {LIST: [row("search", description="Größe 漢字")]}):
        done = run_cli(home, "list", env=environment(home, PYTHONIOENCODING="ascii"))
    assert "Gr\\xf6\\xdfe \\u6f22\\u5b57" in done.stdout
    assert done.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="modes")
def test_a_home_that_cannot_be_used_is_an_error_in_two_lines(home: Path) -> None:
    (home / "servers.yaml").mkdir()
    done = run_cli(home, "enable", "x")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 2
    assert "Traceback" not in done.stderr
