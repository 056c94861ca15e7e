"""Whether a server's address may be used (interp-10).

Never here: connecting, variables. An address may hold a secret, so no message repeats it.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_VARIABLE = re.compile(r"\$\{|\$env:|\{env:")


def url_fault(url: str) -> str | None:
    """What is wrong with an address whose variables are resolved; None when it is http or https with a host."""
    if re.search(r"[\s\x00-\x1f\x7f]", url):
        return "holds blanks or control characters"
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for one that is no number up to 65535
    except ValueError:
        return "is no web address"
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        return "must begin with http:// or https:// and name a host"
    if "@" in parts.netloc:
        return "holds a user name or password; put it into headers"
    return None


def has_variable(text: str) -> bool:
    """Whether a text may change when its variables are resolved."""
    return _VARIABLE.search(text) is not None
