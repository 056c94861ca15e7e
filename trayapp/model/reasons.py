"""Reasons why an address could not be reached, in words instead of error numbers."""

from __future__ import annotations

import errno
import re
import socket
import ssl

NO_HOST = "no such host"
REFUSED = "nothing answers there (connection refused)"
CUT = "the connection was cut"
LATE = "no answer in time"
FORBIDDEN = "this system forbids the connection"

_NUMBER = re.compile(r"^\[(?:Errno|WinError) -?\d+\] ")
_BY_NUMBER = {
    errno.ECONNREFUSED: REFUSED,
    errno.ECONNRESET: CUT,
    errno.ECONNABORTED: CUT,
    errno.EPIPE: CUT,
    errno.EHOSTUNREACH: "there is no route to that host",
    errno.ENETUNREACH: "there is no network",
    errno.ETIMEDOUT: LATE,
    errno.EACCES: FORBIDDEN,
    errno.EPERM: FORBIDDEN,
    errno.EMFILE: "too many open files",
}
_KINDS = {"Timeout": LATE, "TimeoutError": LATE, "ReadError": CUT, "WriteError": CUT}


def reason_of(error: BaseException, host: str = "") -> str:
    """Return why an address could not be reached, never empty.

    The reason is the first of these that exists:
    - a known system or TLS error among the causes
    - the text of the outermost error that has one
    - the kind of error (a timeout, a cut connection)
    - the name of the error's class
    """
    causes: list[BaseException] = []  # the error, then its causes, down to the root
    current: BaseException | None = error
    while current is not None and all(current is not cause for cause in causes):
        causes.append(current)
        if isinstance(current, BaseExceptionGroup):
            current = current.exceptions[0]
        else:
            current = current.__cause__ or current.__context__
    texts = [_NUMBER.sub("", str(cause)).strip(" .") for cause in causes]
    kinds = [type(cause).__name__ for cause in causes]
    by_kind = [words for kind in kinds for end, words in _KINDS.items() if kind.endswith(end)]
    candidates = [*map(_known, causes), *texts, *by_kind, type(error).__name__]
    found = next(filter(None, candidates))
    return f"{found}: {host}" if found == NO_HOST and host else found


def _known(cause: BaseException) -> str:
    """Return the reason for a known system or TLS error, or "" for any other error."""
    if isinstance(cause, socket.gaierror):
        return "its name cannot be resolved now; check the network" if cause.errno == socket.EAI_AGAIN else NO_HOST
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({getattr(cause, 'verify_message', 'TLS')})"
    if isinstance(cause, ssl.SSLError):
        reason = getattr(cause, "reason", None) or ""  # OpenSSL's own name, such as WRONG_VERSION_NUMBER
        return f"no secure connection (TLS): {reason.replace('_', ' ').lower() or 'is it an https address?'}"
    return _BY_NUMBER.get(cause.errno or 0, "") if isinstance(cause, OSError) else ""
