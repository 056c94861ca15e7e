"""The keys for a server's sign-in, and the problems of keys that have no effect."""

from __future__ import annotations

import pytest

from trayapp.config.read.parse import parse
from trayapp.model.config import Config, ServerConfig, auth_of


def read(entry: str, settings: str = "{}") -> Config:
    return parse(f"settings: {settings}\nservers:\n  s: {entry}\n", "servers.yaml")


def test_all_keys_of_a_sign_in_are_read() -> None:
    client = "clientId: c, client-secret: '${keyring:x}', scopes: a b, callbackPort: 7462, account: work"
    config = read(f"{{url: 'https://h/mcp', auth: oauth, {client}}}")
    server = config.servers["s"]
    assert config.problems == ()
    assert (server.client_id, server.client_secret, server.scopes) == ("c", "${keyring:x}", ("a", "b"))
    assert (server.auth, server.callback_port, server.account) == ("oauth", 7462, "work")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{url: 'https://h/mcp', client_secret: x}", "client_secret has no effect without client_id"),
        ("{url: 'https://h/mcp', auth: none, scopes: [a]}", "scopes has no effect without auth: oauth"),
        ("{url: 'https://h/mcp', auth: bearer, bearer_token_env: T, client_id: c}", "client_id has no effect"),
        ("{url: 'https://h/mcp', auth: none, account: work}", "account has no effect without auth: oauth"),
        ("{command: x, callback_port: 1}", "callback_port has no effect without url"),
    ],
)
def test_a_key_that_means_nothing_is_a_problem_that_is_not_fatal(entry: str, message: str) -> None:
    config = read(entry)
    (problem,) = config.problems
    assert message in problem.message
    assert (problem.fatal, list(config.servers)) == (False, ["s"])


@pytest.mark.parametrize("port", ["-1", "65536", "x", "1.5"])
def test_a_port_that_is_none_is_fatal_for_that_server(port: str) -> None:
    config = read(f"{{url: 'https://h/mcp', callback_port: {port}}}")
    assert (config.servers, config.problems[0].fatal) == ({}, True)


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://h.example/client.json", True),
        ("http://h.example/client.json", False),
        ("https://h.example", False),
        ("https://h.example/", False),
        ("client.json", False),
    ],
)
def test_a_client_metadata_document_has_an_https_address(url: str, good: bool) -> None:
    config = read("{command: x}", f"{{client_metadata_url: '{url}'}}")
    assert config.settings.client_metadata_url == (url if good else None)
    assert (config.problems == ()) == good


@pytest.mark.parametrize(
    ("server", "auth"),
    [
        (ServerConfig("s", url="u"), "oauth"),
        (ServerConfig("s", url="u", headers={"X-Key": "k"}), "oauth"),
        (ServerConfig("s", url="u", headers={"AUTHORIZATION": "k"}), "bearer"),
        (ServerConfig("s", url="u", bearer_token_env="T"), "bearer"),
        (ServerConfig("s", url="u", headers={"Authorization": "k"}, auth="oauth"), "oauth"),
        (ServerConfig("s", url="u", bearer_token_env="T", auth="none"), "none"),
    ],
)
def test_sec_22_a_token_of_the_users_own_means_no_sign_in(server: ServerConfig, auth: str) -> None:
    assert auth_of(server) == auth
