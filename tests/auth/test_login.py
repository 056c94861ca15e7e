"""The addresses that a sign-in may use, and the wording of its errors."""

from __future__ import annotations

import httpx2
import pytest
from mcp.client.auth.exceptions import OAuthFlowError, OAuthRegistrationError, OAuthTokenError

from trayapp.auth.grant import SignInError
from trayapp.auth.login import explained, is_safe, oauth_error, require_outside

HERE, THERE = "http://127.0.0.1:8080/mcp", "https://mcp.example/mcp"
SERVICE = "https://as.example/token"
HOSTS_INSIDE = [
    "127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F.1", "0177.0.0.1",
    "017700000001", "0", "0.0.0.0", "0x0", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]", "[::127.0.0.1]", "localhost", "LOCALHOST", "localhost.", "x.localhost", "printer.local",
    "box.lan", "intranet", "a.home.arpa", "10.0.0.1", "10.1", "0x0a000001", "192.168.1", "172.16.0.1",
    "100.64.0.1", "[fd00::1]", "[fe80::1%25eth0]", "[fec0::1]", "169.254.169.254", "0xA9FEA9FE", "2852039166",
    "0251.0376.0251.0376", "169.254.43518", "[::ffff:a9fe:a9fe]",
    "169.254.169.254\u00ad", "1\u200b0.0.0.1", "loc\u2060alhost", "[::ffff:0:a9fe:a9fe]", "[64:ff9b:1::a00:1]",
    "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]",
    "[2002:7f00:1::1]", "169\u3002254\uff0e169\u3002254", "%31%32%37.0.0.1", "METADATA.google.Internal.",
    "metadata", "instance-data", "instance-data.ec2.internal", "metadata.azure.internal",
    "metadata.platformequinix.com", "[fd20:ce::254]", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16",
    "224.0.0.1",
]  # fmt: skip
INSIDE = [f"http://{host}{rest}" for host in HOSTS_INSIDE for rest in ("", ":8080/x")]
OUTSIDE = [
    "https://login.example/.well-known/openid-configuration", "https://8.8.8.8/", "https://[2606:4700::1111]/",
    "https://[::ffff:8.8.8.8]/", "https://[64:ff9b::808:808]/", "https://metadata.example.com/", "https://localhost.example/",
    "https://internal.example/", "https://local.example.com./",
]  # fmt: skip


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://as.example/", True),
        ("http://127.0.0.1:1/x", True),
        ("http://[::1]/x", True),
        ("http://localhost/x", True),
        ("http://as.example/", False),
        ("http://127.0.0.1.evil.example/", False),
        ("http://localhost.evil.example/", False),
        ("ftp://127.0.0.1/", False),
        ("", False),
    ],
)
def test_codes_and_tokens_are_sent_encrypted_or_to_this_machine(url: str, safe: bool) -> None:
    assert is_safe(url) == safe


@pytest.mark.requirement("auth-inside")
@pytest.mark.parametrize("url", INSIDE)
def test_a_remote_server_cannot_direct_requests_to_the_local_network(url: str) -> None:
    with pytest.raises(SignInError, match="redirects to"):
        require_outside(url, THERE)
    require_outside(url, HERE)


@pytest.mark.parametrize("url", OUTSIDE)
def test_a_remote_server_may_name_any_other_remote_service(url: str) -> None:
    require_outside(url, THERE)


def answer(status: int, **more: object) -> httpx2.Response:
    return httpx2.Response(status, request=httpx2.Request("POST", SERVICE), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "last", "words"),
    [
        (httpx2.ConnectTimeout("x"), None, "mcp.example did not answer in time"),
        (httpx2.ConnectError("x", request=httpx2.Request("GET", SERVICE)), None, "Cannot reach as.example"),
        (OAuthRegistrationError("hush"), answer(403, text="hush"), "does not register new clients (HTTP 403)"),
        (OAuthTokenError("hush"), answer(400, json={"error": "invalid_grant"}), "rejected the sign-in: invalid_grant"),
        (OAuthTokenError("hush"), answer(502, text="hush"), "rejected the sign-in: HTTP 502"),
        (OAuthTokenError("hush"), answer(200, json={"access_token": ["hush"]}), "cannot be read"),
        (OAuthFlowError("Protected resource a does not match"), answer(200), "does not match"),
        (ValueError("hush"), answer(200, text="hush"), "cannot be read"),
    ],
)
def test_errors_are_readable_and_do_not_quote_services(
    error: Exception, last: httpx2.Response | None, words: str
) -> None:
    told = explained(error, [last] if last else [], THERE)
    assert words in told.title
    assert told.hint
    assert "hush" not in str(told)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"error": "invalid_grant"}', "invalid_grant"),
        ('{"error": "tok en"}', None),
        ('{"error": 7}', None),
        ("[]", None),
        ("<html>", None),
        ("", None),
    ],
)
def test_only_a_plain_error_code_is_read(body: str, kind: str | None) -> None:
    assert oauth_error(answer(400, text=body)) == kind
