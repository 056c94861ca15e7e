"""Why an address could not be reached, in words."""

from __future__ import annotations

import pytest

from trayapp.model.reasons import reason_of


class ReadError(Exception):
    """As a library of HTTP names it."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError("[Errno -2] Name or service not known"), "no such host"),
        (OSError(-3, "Temporary failure in name resolution"), "its name cannot be looked up now; is there a network?"),
        (OSError("[Errno 11001] getaddrinfo failed"), "no such host"),
        (ConnectionRefusedError(111, "Connection refused"), "nothing answers there (connection refused)"),
        (OSError("All connection attempts failed"), "nothing answers there"),
        (ReadError(), "the connection was cut"),
        (TimeoutError(), "no answer in time"),
        (ValueError("something else"), "something else"),
    ],
)
def test_no_number_of_the_system_and_never_nothing(error: Exception, words: str) -> None:
    assert reason_of(error) == words
