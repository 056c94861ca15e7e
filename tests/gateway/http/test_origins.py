"""Which Host, Origin and Referer are the machine's own: pure rules."""

from __future__ import annotations

import pytest

from trayapp.gateway.http.guard import is_own_host, is_own_origin, is_own_referer

pytestmark = pytest.mark.requirement("http-guard")

HOSTS = ("127.0.0.1", "localhost", "LOCALHOST", "[::1]", "127.0.0.1:7461", "localhost:1", "[::1]:65535")
FOREIGN = (
    *("", "evil.test", "127.0.0.1.evil.test", "localhost.", "localhost.evil.test", "[::1].evil", "[::1]evil", "::1"),
    *(
        "127.0.0.1/evil",
        "127.0.0.1/",
        "localhost:80:80",
        "localhost:",
        "localhost:x",
        "localhost:65536",
        "localhost:-1",
    ),
    *("evil@127.0.0.1", "127.0.0.1@evil.test", "127.0.0.1 ", " 127.0.0.1", "127.0.0.1\t", "127.0.0.1#", "127.0.0.1?"),
    *("127.0.0.2", "127.1", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]", "[::1%25lo]", "localhost,evil.test"),
    *("localhost\\evil", "local\u212ahost", "localhost:\u0667", "localhost:80\n", "null"),
)


@pytest.mark.parametrize("host", HOSTS)
def test_this_machine_by_loopback(host: str) -> None:
    assert is_own_host(host)
    assert is_own_origin(f"http://{host}")
    assert is_own_origin(f"https://{host}")
    assert is_own_referer(f"http://{host}/a?b#c")
    assert is_own_referer(f"http://{host}")


@pytest.mark.parametrize("host", FOREIGN)
def test_any_other_spelling_is_foreign(host: str) -> None:
    assert not is_own_host(host)
    assert not is_own_origin(f"http://{host}")
    if not host.startswith("127.0.0.1") or host[9:10] not in ("/", "#", "?"):
        assert not is_own_referer(f"http://{host}/page")


@pytest.mark.parametrize(
    "origin", ["null", "file://localhost", "ftp://localhost", "localhost", "http://localhost/", "x"]
)
def test_an_origin_is_a_scheme_and_an_authority(origin: str) -> None:
    assert not is_own_origin(origin)


def test_with_a_port_only_the_server_there() -> None:
    assert is_own_origin("http://localhost:7461", 7461)
    assert is_own_origin("http://localhost", 80)
    assert not is_own_origin("http://localhost", 7461)
    assert not is_own_origin("https://localhost:7461", 7461)
    assert not is_own_referer("http://localhost:3000/", 7461)
