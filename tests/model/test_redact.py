"""Redaction removes secrets and keeps all other text."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trayapp.model.logs import log_name
from trayapp.model.redact import CUT, HELD_LONGEST, KNOWN, REDACTED, LineRedactor, redacted
from trayapp.model.text import visible

SECRET = "hX7q2Lk9ZpR4vT1s"

# Each form has {} in place of the secret. The text around it must stay.
FORMS = [
    "DB_PASS={}",
    "Authorization: Bearer {}",
    "authorization: {}",
    "> Proxy-Authorization: Basic {}",
    "curl -H 'Authorization: Bearer {}' https://example.com/x",
    'curl -H "X-Api-Key: {}" https://example.com/x',
    "Authorization: AWS4-HMAC-SHA256 Credential=x, Signature={}",
    "Cookie: a=1; session={}",
    "Set-Cookie: sid={}; HttpOnly",
    "sent Bearer {} to the server",
    '{{"Authorization": "Bearer {}", "x": 1}}',
    "headers [('authorization', 'Bearer {}')]",
    "headers [(b'x-api-key', b'{}')]",
    "token={}",
    "GITHUB_TOKEN={} npx server",
    "export OPENAI_API_KEY={}",
    'SECRET_KEY_BASE="{}"',
    "PGPASSWORD={}",
    "$env:API_TOKEN = '{}'",
    'os.environ["AUTH_TOKEN"] = "{}"',
    "  password: {}",
    "  - client_secret: '{}'",
    "api_key: {} # of the test account",
    "2026-01-01T00:00:00Z INFO access-key: {}",
    "level=info msg=started apikey={} port=1",
    "AccountName=x;AccountKey={}==;EndpointSuffix=y",
    "redis:6379,password={},ssl=True",
    "//registry.example.com/:_authToken={}",
    '{{"access_token":"{}","token_type":"bearer","expires_in":3600}}',
    '{{"refreshToken": "{}"}}',
    '{{"body": "{{\\"client_secret\\":\\"{}\\",\\"a\\":1}}"}}',
    '{{"body": "grant_type=refresh_token&refresh_token={}&a=1"}}',
    "{{'code_verifier': '{}', 'n': 1}}",
    '{{"passwd":"a \\" b {}"}}',
    '{{"tokens": ["{}"]}}',
    "{{token: {}, user: bob}}",
    "token => {}, next",
    "GET /callback?code={}&state=x HTTP/1.1",
    "GET /callback?a=1&state={} HTTP/1.1",
    "https://a/login?redirect=https%3A%2F%2Fb%3Fcode%3D{}%26state%3D1",
    "https://a/b?key={}&x=1",
    "https://a/blob?sv=1&sig={}%3D&se=2",
    '"code": "{}"',
    "state={}",
    "https://user:{}@example.com/path",
    "https://{}@github.com/a/b.git",
    "postgres://user:pa/{}@db:5432/x",
    "redis://:{}@localhost:6379/0",
    "npx server --token {} --verbose",
    "npx server --api-key={}",
    'args: ["--password", "{}"]',
    "<password>{}</password>",
    "the token {} was refused",
    "password is {}",
    "Using API key '{}' of the environment",
    "\x1b[36mtoken\x1b[39m: \x1b[32m'{}'\x1b[39m",
    "key sk-{}_{{}}",
    "x ghp_{}",
    "x github_pat_{}",
    "x glpat-{}",
    "x xoxb-{}",
    "x%3Dgho_{}",
    "AIza{}0123456789",
    "eyJ{}.eyJzdWIiOiIxIn0.x",
    "https://hooks.slack.com/services/T0/B0/{}",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n{}\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n  {}",
    '{{"private_key": "-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n"}}',
    "client_secret: |\n  {}\n  more of it\nnext: 1",
]

HARMLESS = [
    "",
    "https://a.test/mcp?token=${TOKEN}",
    "https://a.test/mcp?apiKey=${keyring:a.api-key}&x=1",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "/etc/passwd: Permission denied (EACCES)",
    "open /run/secrets/api_token: No such file or directory",
    "id 123e4567-e89b-12d3-a456-426614174000 done",
    "/home/u/.cache/pip/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "npm ERR! code E404",
    "code: 'ERR_MODULE_NOT_FOUND',",
    '{"code":-32601,"message":"Method not found"}',
    '{"state":"connected","code":0}',
    "exited with code 3; error_code=17 status_code: 401",
    "GET /issues?state=open&page=2 HTTP/1.1",
    "SyntaxError: Unexpected token: expected a comma",
    "Unexpected token < in JSON at position 0",
    "max_tokens=4096 total_tokens: 12 tokens=5 tokenizer: gpt2",
    '{"_meta":{"progressToken":"abc123def456ghi7"}}',
    '{"token_type":"bearer","token_endpoint":"https://a/token"}',
    "bearer_token_env: EXA_TOKEN",
    'env: {GITHUB_TOKEN: "${GITHUB_TOKEN}", B: "${env:B_TOKEN}"}',
    "Set GITHUB_TOKEN or pass --token to the server",
    "usage: server [--token TOKEN] [--password <password>]",
    "the bearer token is missing; Basic usage; basic authentication required",
    'WWW-Authenticate: Bearer realm="x", error="invalid_token"',
    '"required": ["token", "url"]',
    "password is required and secret scanning is on",
    "keyboard: us; monkey: banana; primary_key: id; cache_key: items",
    "git@github.com:a/b.git ssh://git@github.com/a/b http://localhost:8080/path@2",
    "https://example.com:443/@scope/pkg?tab=readme#x@y",
    "task-force-of-several-people sk-estimator-doc-link risk-assessment-of-the-year",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "error: expected -----BEGIN CERTIFICATE----- first\nnothing else",
    "{token: null, secret=undefined, password: ***}",
    "PWD=/home/u OLDPWD=/tmp",
    '"code": "ConnectionRefusedByTheServer", state=WaitingForInput',
    "encode: utf-8, decode(state), signal: SIGTERM",
    "a\tb  c \r",
]

plain = st.text(alphabet="abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=16, max_size=60)
secrets = plain.filter(lambda text: sum(map(str.isdigit, text)) > 2 and not text.isupper() and not text.islower())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.requirement("log-redacted")
def test_a_secret_is_gone_and_the_rest_of_its_line_stays(form: str) -> None:
    said = redacted(form.format(SECRET))
    assert SECRET not in said
    assert REDACTED in said
    assert said.count("\n") == form.count("\n")


@settings(max_examples=300)
@given(st.sampled_from(FORMS), secrets, st.sampled_from(["", "npm info ", "2026-01-01 12:00 ERROR: ", "x\n", "{}\n"]))
@pytest.mark.requirement("log-redacted")
def test_a_planted_secret_never_survives(form: str, secret: str, before: str) -> None:
    before = "x\n" if "|\n" in form else before  # a YAML block needs to begin on a new line
    assert secret not in redacted(before + form.format(secret) + "\nthe next line")


@given(secrets, st.text(max_size=20))
def test_a_secret_with_any_letters_in_it_is_gone_from_json(head: str, more: str) -> None:
    secret = head + more
    for text in (json.dumps({"password": secret, "n": 1}), json.dumps(json.dumps({"api_key": secret}))):
        assert head not in redacted(text)


@pytest.mark.parametrize(
    "secret", ["rWGJrGZJwpsBKpQQ", "p9xsixuieejyequjzsxa", "_BFpZfaPexfyoAtyYhyv", "0" * 8 + "a1b2c3d4"]
)
@pytest.mark.parametrize("form", ["state={}", '"code": "{}"', "password is {}", "Using API key '{}' now", "sk-{}"])
def test_what_looks_random_goes_where_words_and_numbers_stay(form: str, secret: str) -> None:
    assert secret not in redacted(form.format(secret))


@pytest.mark.parametrize(
    ("line", "is_secret"),
    [
        ("DB_PASS=Hunter2x", True),
        ("smtp_pass: hunter", True),
        ("--smtp-pass hunter2", True),
        ("HUB_PAT=Zq8Rr7Tt6Yy5Uu4Ii3", True),
        ("SENTRY_AUTH=Zq8Rr7Tt6Yy5Uu4Ii3", True),
        ("CHAT_KEY=pplx-012345679", True),
        ("WAZUH_KEY=a8f7e6", True),
        ("tests_pass: 12", False),
        ("API_AUTH=oauth2", False),
        ("FILE_PAT=*.py", False),
        ("SORT_KEY=name", False),
        ("PRIMARY_KEY=user_id", False),
        ("SSH_KEY=~/.ssh/id_rsa", False),
    ],
)
def test_the_last_word_of_a_variable_s_name_tells_its_secret(line: str, is_secret: bool) -> None:
    assert (REDACTED in redacted(line)) is is_secret


def test_a_value_of_a_flag_may_begin_as_a_flag() -> None:
    assert redacted("x --token -FNNvtLNYP-mp0oAJwqLyp8E") == f"x --token {REDACTED}"
    assert redacted("x --token --verbose") == "x --token --verbose"


@given(secrets, secrets)
def test_basic_credentials_are_gone(user: str, password: str) -> None:
    value = base64.b64encode(f"{user}:{password}".encode()).decode()
    assert value not in redacted(f"Authorization: Basic {value}")
    assert value not in redacted(f"sent Basic {value}")


@pytest.mark.parametrize("text", HARMLESS)
@pytest.mark.requirement("log-redacted")
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text.rstrip("\r")


@given(st.text())
@example("token=[redacted]]")
def test_lines_stay_lines(text: str) -> None:
    assert redacted(text).count("\n") == text.count("\n")


@pytest.mark.parametrize("text", [form.format(SECRET) for form in FORMS])
def test_a_second_time_changes_nothing(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


def test_what_follows_a_key_is_read_again() -> None:
    text = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\nthe key is wrong: try again\ntoken=abc"
    assert redacted(text).splitlines()[2:] == ["the key is wrong: try again", f"token={REDACTED}"]


ATOMS = (
    "token", "token=", 'token:"', 'token=\\"', "state=", 'state="', "code='", "key=", "key=[", "eyJ", "eyJ.", "SG.",
    "SG.aaaaaaaaaaaaaaaa.", "sk-", "ghp_", "://", "://a:", "://a@", "://a:b@", "Bearer", "Bearer%20", "-----BEGIN",
    "-----END", "\\", '"', "'", "=", "%3D", "%26code%3D", "<token>", "authorization:", "cookie", "_", "(b'token',",
    "token\\\\\\", "/api/webhooks/1/", "x-", "'key=", '"state":"a\\"', 'code="\\"',
)  # fmt: skip


@pytest.mark.parametrize("atom", [*ATOMS, "--token ", "api key: ", "password is ", "-----BEGIN PRIVATE KEY-----", " "])
@pytest.mark.requirement("log-redacted")
def test_no_text_takes_more_than_linear_time(atom: str) -> None:
    """A quadratic rule would take minutes and run into pytest's timeout."""
    text = atom * (100_000 // len(atom))
    assert redacted(f'{text}"@').count("\n") == 0


UNSEEN = (
    "\x1b[K", "\x1b[31m", "\x1b]0;title\x07", "\x1b]8;;https://a\x1b\\", "\x1bPq\x1b\\", "\x9b1m", "\x1bc", "\0",
    "\x7f", "\b", "\x0b", "\x85", "\u200b", "\u200d", "\u2060", "\u00ad", "\u034f", "\u180e", "\u202d", "\u2066",
    "\u061c", "\ufeff", "\ufe0f", "\u3164", "\U000e0041",
)  # fmt: skip


@pytest.mark.parametrize("between", UNSEEN, ids=repr)
@pytest.mark.requirement("log-redacted")
def test_what_draws_nothing_hides_no_secret(between: str) -> None:
    KNOWN.note(["plum-tree-4-lantern"])
    for secret, form in (("plum-tree-4-lantern", "it is {}."), (SECRET, "token={}"), (SECRET * 2, "x ghp_{}")):
        for hidden in (f"{secret[:4]}{between}{secret[4:]}", between.join(secret)):
            said = redacted(form.format(hidden))
            assert said == redacted(said)
            assert not any(secret in visible(text) for text in (said, fed(form.format(hidden) + "\n")))
            assert REDACTED in said


# -- text that arrives in pieces --------------------------------------------------------------------------------------


def fed(*pieces: str) -> str:
    lines = LineRedactor()
    return "".join(map(lines.feed, pieces)) + lines.end()


def test_a_line_is_given_back_when_it_is_whole() -> None:
    lines = LineRedactor()
    assert lines.feed("tok") == ""
    assert lines.feed(f"en={SECRET[:4]}") == ""
    assert lines.feed(f"{SECRET[4:]}\nnext") == f"token={REDACTED}\n"
    assert lines.end() == "next\n"
    assert lines.end() == ""


@given(st.lists(st.sampled_from(FORMS), max_size=3), secrets, st.lists(st.integers(1, 40), max_size=60))
@pytest.mark.requirement("log-redacted")
def test_pieces_of_any_size_say_the_same_as_the_whole(forms: list[str], secret: str, sizes: list[int]) -> None:
    text = "".join(f"{form.format(secret)}\n" for form in forms)
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    assert fed(*pieces, text[at:]) == redacted(text)


PARTS = (
    *FORMS[:12], "plain", " ", "\t", "\u00e9", "\u200b", "=", ": ", "to\u212aen: |", "\u017fecret=", "key: >", "  ",
    "SG.", "sk-", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "hooks.slack.com/services/", SECRET,
)  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(PARTS), max_size=4).map("".join), min_size=2, max_size=6))
def test_many_lines_at_once_are_read_as_one_after_the_other(lines: list[str]) -> None:
    text = "\n".join(lines).replace("{}", SECRET)
    redactor = LineRedactor()
    assert redactor.feed(text + "\n") == redacted(text) + "\n"


@pytest.mark.parametrize("pieces", [("a\r\nb\r\n",), ("a\r", "\nb\r", "\n"), ("a\rb\r",), ("a", "\r", "b", "\n")])
def test_every_kind_of_line_end_ends_a_line_once(pieces: tuple[str, ...]) -> None:
    assert fed(*pieces) == "a\nb\n"


@pytest.mark.parametrize("size", [1, 1000, HELD_LONGEST * 3])
def test_a_line_without_an_end_is_cut_and_the_next_one_is_whole(size: int) -> None:
    text = "y" * (HELD_LONGEST + 5000) + SECRET
    said = fed(*(text[at : at + size] for at in range(0, len(text), size)), "\nnext\n")
    cut, after = said.splitlines()
    assert cut.endswith(CUT)
    assert len(cut) < HELD_LONGEST
    assert after == "next"


def test_a_secret_at_the_cut_does_not_survive_in_half() -> None:
    for offset in range(0, 40, 3):
        lines = LineRedactor()
        said = lines.feed("y " * (HELD_LONGEST // 2 - offset) + f"ghp_{SECRET}{SECRET}" + "z" * 90) + lines.end()
        assert SECRET[:4] not in said


# -- the names of log files ------------------------------------------------------------------------------------------


def test_plain_names_are_their_files_names() -> None:
    assert log_name("github") == "github.log"
    assert log_name("my_server-2") == "my_server-2.log"


@given(st.lists(st.text(max_size=90), unique=True, max_size=20))
@example(["Foo", "foo", "FOO", "con", "../x", "a/b", "", "ı", "I", "i"])
def test_no_two_servers_share_a_file_on_any_file_system(servers: list[str]) -> None:
    names = [log_name(server) for server in servers]
    assert len({name.lower() for name in names}) == len(names)
    assert all(set("/\\:\0") & set(name) == set() and len(name) < 200 for name in names)
    assert not {name.split(".")[0].lower() for name in names} & {"con", "nul", "aux", "prn", "com1"}
