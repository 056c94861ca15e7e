"""Secrets recognized by their own shape: API keys of providers, tokens, credentials in addresses.

secret_names handles names before a value, redact handles several lines. Each pattern starts at a literal and cannot
restart inside what it has read, so that every text takes linear time.
"""

from __future__ import annotations

import re

from trayapp.model.late import late

REDACTED = "[redacted]"
USERINFO_LONGEST = 200  # characters before the @: each :// of a line may cost as many

_START = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2}))"  # no letter before it, or an escaped one as in %3Dghp_...

# Prefixes that identify the key after them. Sources: the providers' own documentation of their key formats.
_PREFIXED = late(
    _START
    + r"""(?x:
      gh[opsur]_[A-Za-z0-9_-]{16,} | github_pat_[A-Za-z0-9_-]{16,} | gl[a-z]{2,6}-[A-Za-z0-9_-]{16,}  # GitHub, GitLab
    | xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9_-]{8,} | xapp-[A-Za-z0-9-]{16,}                            # Slack
    | (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,} | ABSK[A-Za-z0-9+/=]{40,}                               # AWS
    | AIza[A-Za-z0-9_-]{24,} | ya29\.[A-Za-z0-9_.-]{16,} | GOCSPX-[A-Za-z0-9_-]{16,} | 1//0[A-Za-z0-9_-]{24,}  # Google
    | [sr]k_(?:live|test)_[A-Za-z0-9]{8,} | whsec_[A-Za-z0-9+/=]{16,}                              # Stripe
    | npm_[A-Za-z0-9]{20,} | pypi-[A-Za-z0-9_-]{32,} | hf_[A-Za-z0-9]{20,} | gsk_[A-Za-z0-9]{20,}
    | lin_(?:api|oauth)_[A-Za-z0-9]{16,} | (?:ntn|figd|shp(?:at|ca|pa|ss)|dop_v1|doo_v1|dor_v1|r8)_[A-Za-z0-9_-]{20,}
    | (?:pplx|tvly|nvapi|fc|xai|ctx7sk|dckr_pat)-[A-Za-z0-9_-]{20,} | AGE-SECRET-KEY-1[A-Z0-9]{16,}
    )"""
)
_PREFIXES = (
    "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "gl", "xox", "xapp-", "AKIA", "ASIA", "ABIA", "ACCA", "ABSK",
    "AIza", "ya29.", "GOCSPX-", "1//0", "k_live_", "k_test_", "whsec_", "npm_", "pypi-", "hf_", "gsk_", "lin_", "ntn_",
    "figd_", "shp", "_v1_", "r8_", "pplx-", "tvly-", "nvapi-", "fc-", "xai-", "ctx7sk-", "dckr_pat-", "AGE-SECRET",
)  # fmt: skip
# One of these is in each text that `without_shapes` changes.
_MARKS = ("://", "earer", "asic", "BEARER", "BASIC", "sk-", *_PREFIXES, "eyJ", "SG.", "hooks")
_SK = late(_START + r"sk-[A-Za-z0-9_-]{16,}")  # OpenAI, Anthropic and others
_DOTTED = late(
    r"(?:(?<![A-Za-z0-9_-])|(?<=%[0-9A-Fa-f]{2}))"
    r"(?:eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)+|SG(?:\.[A-Za-z0-9_-]{16,}+){2})"  # JWT (RFC 7519), SendGrid
)
_WEBHOOK = late(r"(hooks\.slack\.com/(?:services|workflows)/|/api/webhooks/\d{1,30}/)[A-Za-z0-9_/-]+")
_SCHEME = late(r"\b(Bearer|Basic)((?:\s|%20|\+){1,4})([A-Za-z0-9._~+/%-]{4,}={0,2})(?![=\w])", re.IGNORECASE)
_USERINFO = late(  # USERINFO_LONGEST; after a colon, anything but a port is a password
    r"""(?x) (://) (?: ([^\s/?\#@"'<>\\]{1,200}) @(?=[\w\[])
    | [^\s/:@"'<>\\]{0,80} : (?!\d{1,5}(?:[/?\#]|$)) [^\s"'<>\\]{1,200} @(?=[\w\[]) )"""
)
_LOGIN_NAMES = frozenset(("git", "hg", "svn", "user", "username", "anonymous"))  # as in ssh://git@host
_WORDS = late(r"(?:[A-Z]?[a-z]{1,15}|[A-Z]{1,10})(?:[._-](?:[A-Z]?[a-z]{1,15}|[A-Z]{1,10}))*=?")


def may_have_shape(text: str) -> bool:
    """Return False if `without_shapes` would leave every line of the text as it is."""
    return any(mark in text for mark in _MARKS)


def without_shapes(line: str) -> str:
    """Return `line` without the secrets that are recognized by their shape."""
    if "://" in line and "@" in line:
        line = _USERINFO.sub(_userinfo, line)
    if "earer" in line or "asic" in line or "BEARER" in line or "BASIC" in line:
        line = _SCHEME.sub(_scheme, line)
    if "sk-" in line:
        line = _SK.sub(lambda found: found[0] if _WORDS.fullmatch(found[0]) else REDACTED, line)
    if any(prefix in line for prefix in _PREFIXES):
        line = _PREFIXED.sub(REDACTED, line)
    if "eyJ" in line or "SG." in line:
        line = _DOTTED.sub(REDACTED, line)
    return _WEBHOOK.sub(rf"\1{REDACTED}", line) if "hooks" in line else line


def _userinfo(found: re.Match[str]) -> str:
    """Return a URL's user info, redacted. A common login name without a password stays."""
    return found[0] if found[2] in _LOGIN_NAMES else f"{found[1]}{REDACTED}@"


def _scheme(found: re.Match[str]) -> str:
    """Return an Authorization header with its credentials redacted. `Bearer token` and `basic usage` are words."""
    return found[0] if _WORDS.fullmatch(found[3]) else f"{found[1]}{found[2]}{REDACTED}"
