"""Why an address could not be reached, in words instead of numbers of the system.

Never here: which address.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"^\[(?:Errno|WinError) -?\d+\] ")
_WORDS = {
    "Name or service not known": "no such host",
    "No address associated with hostname": "no such host",
    "nodename nor servname provided, or not known": "no such host",
    "getaddrinfo failed": "no such host",
    "Temporary failure in name resolution": "its name cannot be looked up now; is there a network?",
    "All connection attempts failed": "nothing answers there",
    "Connection refused": "nothing answers there (connection refused)",
    "Network is unreachable": "there is no network",
    "No route to host": "there is no way to that host",
}
_KINDS = {
    "Timeout": "no answer in time",
    "TimeoutError": "no answer in time",
    "ReadError": "the connection was cut",
    "WriteError": "the connection was cut",
}


def reason_of(error: BaseException) -> str:
    """Return why, in words; never empty."""
    text = _NUMBER.sub("", str(error)).strip()
    if text:
        return _WORDS.get(text, text)
    kind = type(error).__name__
    return next((words for end, words in _KINDS.items() if kind.endswith(end)), kind)
