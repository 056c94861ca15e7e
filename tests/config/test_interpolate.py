"""Variables in configuration values: replaced, left alone, or missing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.config.interpolate import ExpandedText, expand, resolve
from trayapp.model.config import ServerConfig
from trayapp.model.errors import ConfigError, ExitCode, MissingVariableError

ENVIRON = {"FOO": "foo-val", "BAR": "b a r", "EMPTY": "", "TRICK": "${FOO}", "ProgramFiles(x86)": "C:\\P"}
KEYS = {
    "github": "hush",
    "my-key.1": "hush2",
    "a b": "hush3",
    "cmd:op read op://a/b": "of-op",
    "cmd:pass x:-y": "of-pass",
}


def expanded(text: str, environ: Mapping[str, str] = ENVIRON) -> ExpandedText:
    return expand(text, environ.get, KEYS.get)


CASES = [
    ("interp-01", "${FOO}/x", "foo-val/x"),
    ("interp-02", "$env:FOO", "foo-val"),
    ("interp-05", "$FOO", "$FOO"),
    ("interp-06", "%FOO%", "%FOO%"),
    ("interp-07", "${env:FOO}", "foo-val"),
    ("interp-08", "${NOPE:-d}", "d"),
    ("interp-12", "https://h/${FOO}", "https://h/foo-val"),
    ("braces", "{env:FOO}", "foo-val"),
    ("twice", "${FOO}${FOO}-$env:FOO.", "foo-valfoo-val-foo-val."),
    ("env in text", "a$env:FOO/b", "afoo-val/b"),
    ("default unused", "${FOO:-d}", "foo-val"),
    ("default for empty", "${EMPTY:-d}", "d"),
    ("empty is no missing", "a${EMPTY}b", "ab"),
    ("empty default", "a${NOPE:-}b", "ab"),
    ("default with blanks", "${NOPE:-a b: c}", "a b: c"),
    ("default of env:", "${env:NOPE:-d}", "d"),
    ("default is a variable", "${NOPE:-${FOO}}", "foo-val"),
    ("default around a variable", "${NOPE:-<${FOO}>$env:FOO}", "<foo-val>foo-val"),
    ("default in a default", "${NOPE:-${NOPE2:-d}}", "d"),
    ("only one level", "${NOPE:-${NOPE2:-${FOO}}}", "${FOO}"),
    ("default in braces", '${NOPE:-{"a": 1}}', '{"a": 1}'),
    ("keyring", "Bearer ${keyring:github}", "Bearer hush"),
    ("keyring names", "${keyring:my-key.1} ${keyring:a b}", "hush2 hush3"),
    ("command", "Bearer ${cmd:op read op://a/b}", "Bearer of-op"),
    ("command with a default is none", "${cmd:pass x:-y}", "of-pass"),
    ("keyring default", "${keyring:nope:-${FOO}}", "foo-val"),
    ("windows name", "${env:ProgramFiles(x86)}", "C:\\P"),
    ("values stay", "${TRICK}", "${FOO}"),
    ("unterminated", "${FOO", "${FOO"),
    ("unterminated before one", "${A ${FOO}", "${A foo-val"),
    ("unterminated default", "${NOPE:-${FOO}", "${NOPE:-foo-val"),
    ("no name", "${} ${ FOO } ${1} ${a-b} ${a:b} ${input:x}", "${} ${ FOO } ${1} ${a-b} ${a:b} ${input:x}"),
    ("braces of others", "{FOO} {{FOO}} {env:} {env:a b} }{", "{FOO} {{FOO}} {env:} {env:a b} }{"),
    ("dollars", "$ $$ $$FOO ${", "$ $$ $$FOO ${"),
    ("dollar before", "$${FOO}", "$foo-val"),
    ("no env name", "$env: $env:1", "$env: $env:1"),
    ("json", '{"a": "${FOO}", "b": {}}', '{"a": "foo-val", "b": {}}'),
    ("unicode", "é${FOO}😀", "éfoo-val😀"),
]


@pytest.mark.requirement("var-forms")
@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_a_text_is_expanded(text: str, expected: str) -> None:
    assert expanded(text) == ExpandedText(expected)


MISSING = [
    ("a${NOPE}b", "ab", ("NOPE",)),
    ("${A}$env:B{env:C}${env:D}${keyring:e}${A}", "", ("A", "B", "C", "D", "keyring:e")),
    ("${NOPE:-${ALSO}}x", "x", ("ALSO",)),
]


@pytest.mark.requirement("var-missing")
@pytest.mark.parametrize(("text", "expected", "missing"), MISSING)
def test_a_missing_variable_is_empty_and_named(text: str, expected: str, missing: tuple[str, ...]) -> None:
    assert expanded(text) == ExpandedText(expected, missing)


@given(
    st.one_of(
        st.text(), st.lists(st.sampled_from(["${", "}", "{", "FOO", ":-", "env:", "$", "keyring:", " "])).map("".join)
    )
)
def test_any_text_is_expanded(text: str) -> None:
    found = expanded(text)
    if "$" not in text and "{" not in text:
        assert found == ExpandedText(text)


@given(st.text(alphabet="ab$ %-/\\~"))
def test_a_text_without_variables_stays(text: str) -> None:
    assert expanded(text) == ExpandedText(text)


def test_hundreds_of_thousands_of_open_braces_are_no_work() -> None:
    text = "${" * 300_000
    assert expanded(text).text == text
    text = "${A:-" * 50_000 + "}" * 50_000
    assert expanded(text).missing == ()


# --- resolving a whole server


def resolved(server: ServerConfig, environ: Mapping[str, str] = ENVIRON) -> ServerConfig:
    return resolve(server, environ, KEYS.get, "/home/me")


@pytest.mark.requirement("var-forms")
def test_every_text_of_a_server_is_resolved() -> None:
    server = resolved(
        ServerConfig("s", command="${FOO}", args=("-${FOO}", "~/x", "${BAR}"), env={"A": "$env:FOO"}, cwd="~/${FOO}")
    )
    assert (server.command, server.args, server.env) == ("foo-val", ("-foo-val", "~/x", "b a r"), {"A": "foo-val"})
    assert server.cwd == "/home/me/foo-val"
    server = resolved(
        ServerConfig("s", url="https://h/${FOO}", headers={"X": "${keyring:github}"}, client_secret="${FOO}")
    )
    assert (server.url, server.headers, server.client_secret) == ("https://h/foo-val", {"X": "hush"}, "foo-val")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("~", "/home/me"),
        ("~/x", "/home/me/x"),
        ("~user/x", "~user/x"),
        ("/abs", "/abs"),
        ("~\\x", "/home/me\\x"),
        ("a/~/b", "a/~/b"),
    ],
)
def test_the_home_folder_is_followed_in_cwd_and_command(path: str, expected: str) -> None:
    server = resolved(ServerConfig("s", command=path, cwd=path, args=(path,)))
    assert (server.cwd, server.command, server.args) == (expected, expected, (path,))


@pytest.mark.requirement("var-forms")
def test_a_variable_that_only_the_server_s_own_environment_sets_is_left_to_its_program() -> None:
    server = resolved(
        ServerConfig("s", command="x", args=("A:${A} ${FOO}",), env={"A": "${keyring:github}", "FOO": "f"})
    )
    assert (server.args, server.env) == (("A:${A} foo-val",), {"A": "hush", "FOO": "f"})


@pytest.mark.requirement("var-missing")
def test_all_missing_names_are_in_one_error_and_no_value_is() -> None:
    server = ServerConfig(
        "s", command="x", args=("${A}${FOO}",), env={"K": "${keyring:nope}${keyring:github}"}, cwd="${A}/${B}"
    )
    with pytest.raises(MissingVariableError) as caught:
        resolved(server)
    assert sorted(caught.value.names) == ["A", "B", "keyring:nope"]
    assert caught.value.exit_code == ExitCode.SERVER_UNAVAILABLE
    assert "hush" not in str(caught.value)
    assert "foo-val" not in str(caught.value)


@pytest.mark.parametrize("environ", [{}, {"TOK": ""}])
def test_a_missing_bearer_token_is_named_before_any_request(environ: dict[str, str]) -> None:
    with pytest.raises(MissingVariableError, match="TOK"):
        resolved(ServerConfig("s", url="https://x", bearer_token_env="TOK"), environ)
    server = resolved(ServerConfig("s", url="https://x", bearer_token_env="TOK"), {"TOK": "t"})
    assert server.bearer_token_env == "TOK"


@pytest.mark.parametrize("value", ["not a url", "ftp://x", "https://u:hush@h/", "", "https://h/\r\nX: y"])
def test_an_address_is_checked_after_its_variables(value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolved(ServerConfig("s", url="${U}"), {"U": value})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "server",
    [
        ServerConfig("s", command="${V}"),
        ServerConfig("s", command="x", args=("${V}",)),
        ServerConfig("s", command="x", env={"A": "${V}"}),
        ServerConfig("s", command="x", cwd="${V}"),
        ServerConfig("s", url="https://x", headers={"A": "${V}"}),
    ],
)
def test_a_value_that_nothing_can_be_started_with_is_refused_by_place(server: ServerConfig) -> None:
    with pytest.raises(ConfigError, match="of s contains a character") as caught:
        resolved(server, {"V": "hush\0"})
    assert "hush" not in str(caught.value)


def test_a_header_takes_no_second_line_and_a_command_is_not_empty() -> None:
    with pytest.raises(ConfigError, match="header X"):
        resolved(ServerConfig("s", url="https://x", headers={"X": "${V}"}), {"V": "a\r\nY: b"})
    for unsent in ("a\x07", "\u00fc", "\u6f22"):  # headers must be ASCII
        with pytest.raises(ConfigError, match="header X of s contains a character that cannot be sent"):
            resolved(ServerConfig("s", url="https://x", headers={"X": "${V}"}), {"V": unsent})
    with pytest.raises(ConfigError, match="empty"):
        resolved(ServerConfig("s", command="${V}"), {"V": " "})
    assert resolved(ServerConfig("s", command="x", args=("a\nb",))).args == ("a\nb",)


@pytest.mark.parametrize("name", ["", "A b", "A:", "\u00e4"])
def test_a_header_whose_name_cannot_be_sent_is_refused_before_any_request(name: str) -> None:
    with pytest.raises(ConfigError, match="a name that cannot be sent"):
        resolved(ServerConfig("s", url="https://x", headers={name: "v"}))


def test_a_missing_secret_is_stored_in_the_keyring_rather_than_written_down() -> None:
    hint = "Store API_KEY: multi-mcp secret set API_KEY, and write ${keyring:API_KEY} in servers.yaml"
    assert MissingVariableError(["HOST", "API_KEY"]).hint.startswith(hint)
    assert MissingVariableError(["HOST"]).hint.endswith("or write ${NAME:-default} in servers.yaml")
    assert MissingVariableError(["keyring:API_KEY"]).hint == "Store it with: multi-mcp secret set API_KEY"
