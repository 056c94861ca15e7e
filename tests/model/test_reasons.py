"""Texts that explain why an address could not be reached."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest

from trayapp.model.reasons import reason_of


class ReadError(Exception):
    """An error with a name that HTTP libraries use."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError("[Errno -2] Something of the system"), "Something of the system"),
        (ConnectionRefusedError(111, "Connection refused"), "nothing answers there (connection refused)"),
        (ReadError(), "the connection was cut"),
        (TimeoutError(), "no answer in time"),
        (ValueError("something else"), "something else"),
    ],
)
def test_no_number_of_the_system_and_never_nothing(error: Exception, words: str) -> None:
    assert reason_of(error) == words


class TheirError(Exception):
    """An error with which a library wraps the cause."""


class ReadTimeout(Exception):
    """An error with a library's name for a timeout."""


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "no such host: h.example"),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), "cannot be resolved now"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "connection refused"),
        (ConnectionResetError(errno.ECONNRESET, "reset"), "the connection was cut"),
        (OSError(errno.EHOSTUNREACH, "x"), "no route to that host"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"), "TLS"),
        (TimeoutError(), "no answer in time"),
        (ReadTimeout(), "no answer in time"),
        (
            ExceptionGroup("all", [ConnectionRefusedError(errno.ECONNREFUSED, "x"), OSError(1, "y")]),
            "connection refused",
        ),
        (OSError("nothing answers there"), "nothing answers there"),
        (TheirError(""), "TheirError"),
        (TheirError("."), "TheirError"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_reason_is_at_the_root_and_never_empty(cause: BaseException, words: str, wrapped: bool) -> None:
    error = cause
    if wrapped:
        error = TheirError("")
        error.__cause__ = TheirError()
        error.__cause__.__cause__ = cause
    told = reason_of(error, "h.example")
    assert words in told
    assert "Errno" not in told
