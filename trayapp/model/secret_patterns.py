"""Patterns of secrets in a line of text: by their own shape, or by the name before them.

A name precedes its value, as in `token=x`, `"api_key": "x"`, `Authorization: x` or `--password x`. Names are found in
JSON (also escaped), YAML, query strings (also escaped), headers, environment files, XML, command lines and prose. The
redact module handles secrets of several lines.

Matching takes linear time. The pattern of a shape starts at a literal and cannot restart inside what it has read. The
text after a name is examined up to a fixed length, or read only once.

Rule: if in doubt, redact. Exceptions are numbers and words after names that often have them (`code: ENOENT`,
`state=open`, `token_type: bearer`, `max_tokens=5`), references (`${TOKEN}`), and plain prose (`invalid token: expected
a comma`).
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from trayapp.model.late import late

REDACTED = "[redacted]"
# --- secrets recognized by their own shape: API keys of providers, tokens, credentials in addresses

_START = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2}))"  # not after a letter or digit, except an escape: %3Dghp_...

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
# Every text that `without_shapes` changes contains one of these.
_MARKS = ("://", "earer", "asic", "BEARER", "BASIC", "sk-", *_PREFIXES, "eyJ", "SG.", "hooks")
_SK = late(_START + r"sk-[A-Za-z0-9_-]{16,}")  # OpenAI, Anthropic and others
_DOTTED = late(
    r"(?:(?<![A-Za-z0-9_-])|(?<=%[0-9A-Fa-f]{2}))"
    r"(?:eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)+|SG(?:\.[A-Za-z0-9_-]{16,}+){2})"  # JWT (RFC 7519), SendGrid
)
_WEBHOOK = late(r"(hooks\.slack\.com/(?:services|workflows)/|/api/webhooks/\d{1,30}/)[A-Za-z0-9_/-]+")
_AUTHORIZATION = late(r"\b(Bearer|Basic)((?:\s|%20|\+){1,4})([A-Za-z0-9._~+/%-]{4,}={0,2})(?![=\w])", re.IGNORECASE)
# At most 200 characters before the @, since each :// of a line may cost that many steps. After a colon, anything but a
# port is a password.
_USERINFO = late(
    r"""(?x) (://) (?: ([^\s/?\#@"'<>\\]{1,200}) @(?=[\w\[])
    | [^\s/:@"'<>\\]{0,80} : (?!\d{1,5}(?:[/?\#]|$)) [^\s"'<>\\]{1,200} @(?=[\w\[]) )"""
)
_LOGIN_NAMES = frozenset(("git", "hg", "svn", "user", "username", "anonymous"))  # as in ssh://git@host
_PLAIN_WORDS = late(r"(?:[A-Z]?[a-z]{1,15}|[A-Z]{1,10})(?:[._-](?:[A-Z]?[a-z]{1,15}|[A-Z]{1,10}))*=?")


def may_have_shape(text: str) -> bool:
    """Return True if `without_shapes` may change a line of the text."""
    return any(mark in text for mark in _MARKS)


def without_shapes(line: str) -> str:
    """Return `line` without the secrets that are recognized by their shape."""
    if "://" in line and "@" in line:
        # A common login name without a password is kept.
        line = _USERINFO.sub(lambda found: found[0] if found[2] in _LOGIN_NAMES else f"{found[1]}{REDACTED}@", line)
    if "earer" in line or "asic" in line or "BEARER" in line or "BASIC" in line:
        # `Bearer token` and `basic usage` are words.
        line = _AUTHORIZATION.sub(
            lambda found: found[0] if _PLAIN_WORDS.fullmatch(found[3]) else f"{found[1]}{found[2]}{REDACTED}", line
        )
    if "sk-" in line:
        line = _SK.sub(lambda found: found[0] if _PLAIN_WORDS.fullmatch(found[0]) else REDACTED, line)
    if any(prefix in line for prefix in _PREFIXES):
        line = _PREFIXED.sub(REDACTED, line)
    if "eyJ" in line or "SG." in line:
        line = _DOTTED.sub(REDACTED, line)
    return _WEBHOOK.sub(rf"\1{REDACTED}", line) if "hooks" in line else line


# --- secrets recognized by the name before them

NAME_LONGEST = 48  # characters of a name on either side of the telltale word
WEAK_LONGEST = 256  # characters of a value that must look random to be redacted

TURNS_OF_WORDS = 0.34  # the most case changes per letter in words. ConnectionRefused has half as many

_NAME_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}  # unlike str.lower, never changes the length
_STEMS = (
    "token", "secret", "passw", "passphrase", "pwd", "key", "credential", "assertion", "verifier", "otp", "_auth",
    "_pass", "-pass", "_pat", "-pat",
    "authorization", "cookie", "code", "state", "nonce", "sig", "jwt",
)  # fmt: skip
_ODD_LETTERS = "\u0130\u0131\u017f\u212a"  # these match i, s or k if case is ignored
_WORD = late(  # matches lower-case text
    r"(?P<rest_of_line>authorization|cookie)"
    r"|(?P<strong>token|secret|passw(?:or)?d|passphrase|credential|assertion|code[_-]?verifier|device[_-]?code)"
    r"|(?P<part>(?<=[_-])pass)(?![a-z])|(?P<lone>(?<=_)auth|pwd|otp)(?![a-z])|(?P<key>key)"
    r"|(?P<weak>code|state|nonce|sig(?:nature)?|jwt|(?<=[_-])pat)(?![a-z])"
)
_KEY_OF = late(
    r"(?:api|access|private|signing|encryption|account|auth|subscription|master|licen[cs]e|shared|deploy)[ _-]?\Z"
)
_WEAK_PREFIX = late(r"(?:.*(?:auth|[_.-]))?\Z")  # does not match in exitCode or monkeystate
_AFTER = late(
    r"""(?x)
    [A-Za-z0-9_-]{0,48}+
    (?P<close> (?:\\{0,8} ["'`] \]?)? )
    (?P<gap> [ \t]{0,8}+ )
    (?P<sep> (?: := | => | ==? | : | %(?:25)?3[DdAa] | > | , )? )
    [ \t]{0,8}+"""
)
_SUFFIX = late(r"[A-Za-z0-9_-]{0,48}")  # 48 is NAME_LONGEST
_PROSE = late(  # 256 is WEAK_LONGEST
    r"""["'`]?s?(?:\s{1,4}(is|was|value|of))?\s{0,4}["'`(]?([A-Za-z0-9+/=_.~@!$-]{4,256})"""
)
_OPEN = late(r"""[bBrRuU]{0,2}(\\{0,8})(["'`])""")
_PLAIN = late(r"""[^\s"'`&;<>\\%]*+(?:(?:%(?!26|2526)|\\(?![nrtu"'\\]))[^\s"'`&;<>\\%]*+)*+""")
_WEAK_PLAIN = late(r"(?:[A-Za-z0-9+/_.~-]|%(?!26|2526)){0,256}+={0,2}")  # 256 is WEAK_LONGEST
_TO_BLANK = late(r"\S+")
_SCHEME = late(r"(?i)(?:bearer|basic|digest|token|apikey|negotiate|bot)(?:\s+|%20|\+)")
_PAIR = late(r""".?\(b?["']""")  # ('x-key', 'value')
_LINE_HEAD = late(r"\s*(?:- )?(?:export |set |ENV |\$env:)?[\"'`]?")

# Values and names that are harmless. Names that end in `id` are not among them, because some ids are half a secret.
_REFERENCE = late(
    r"\$\{(?:keyring:[\w.-]+|[A-Za-z_][\w:]*)\}|\$(?:env:)?[A-Za-z_]\w*|\{env:\w+\}|%\w+%|<[\w -]*>|\*+|\.\.\.|x{3,}"
)
_NOTHING = frozenset(("null", "none", "nil", "true", "false", "undefined", "yes", "no", "required", "optional"))
_PROSE_WORDS = frozenset(
    ("to", "and", "or", "is", "for", "the", "in", "with", "from", "flag", "option", "must", "if", "not", "can", "when")
)
_HARMLESS_ENDS = {
    "type", "types", "count", "counts", "limit", "limits", "budget", "length", "len", "size", "usage", "used",
    "index", "url", "uri", "endpoint", "endpoints", "server", "servers", "name", "names", "file", "path", "dir",
    "store", "prompt", "expires", "expiry", "expiration", "at", "in", "ttl", "env", "method", "methods", "challenge",
    "error", "supported", "required", "enabled", "disabled", "policy", "hint", "format", "header", "scheme",
    "status", "field", "provider", "version",
}  # fmt: skip
_COUNTED = ("progress", "page", "pagination", "continuation", "max", "total", "prompt", "completion", "input", "output")
_HARMLESS_STARTS = late(rf"(?i)(?:{'|'.join(_COUNTED)})[_-]?$")  # before `token`
_PARTS = late(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WORDS = late(r"[a-z]+(?:[_ -][a-z]+)*")
_CONSTANT = late(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z0-9]{1,12}")
_RUN = late(r"[A-Za-z0-9+/=_.~%-]{6,256}")


class _Span(NamedTuple):
    """A value in a line: its start and end, and whether it is quoted."""

    start: int
    end: int
    quoted: bool


class _SecretName(NamedTuple):
    """The name of a secret, split at its telltale word. `before` is the character before the whole name."""

    start: int
    before: str
    prefix: str  # begins with `-` in a command-line flag, such as --token
    word: str
    kind: str  # strong, weak or rest_of_line
    suffix: str


def may_name(text: str) -> bool:
    """Return True if a line of the text may contain the name of a secret, in upper or lower case."""
    small = text.lower()  # also lowers non-ASCII letters, which `without_named` does not
    return any(stem in small for stem in _STEMS) or (not small.isascii() and any(odd in text for odd in _ODD_LETTERS))


def without_named(line: str) -> str:
    """Return one line with the value after each name of a secret redacted."""
    small = line.lower() if line.isascii() else line.translate(_LOWER)
    if not any(stem in small for stem in _STEMS):
        return line
    parts: list[str] = []
    done = at = 0
    while (word := _WORD.search(small, at)) is not None:
        at = word.end()
        name = _name(line, small, word)
        if name is None or _is_harmless(name):
            continue
        after = _AFTER.match(line, at)
        assert after is not None
        value: _Span | None
        if not _separates(line, name, after):
            value = _prose_value(line, word, name)
        elif not _is_secret(line, value := _span(line, after, name), name, after):
            value = None
        if value is not None and value.end > value.start:
            parts += [line[done : value.start], REDACTED]
            done = at = value.end
    return "".join(parts) + line[done:] if parts else line


def _name(line: str, small: str, word: re.Match[str]) -> _SecretName | None:
    """Return the name that contains the telltale word, or None if the word does not mark a secret there (exitCode)."""
    chunk = line[max(0, word.start() - NAME_LONGEST) : word.start()]
    head = chunk.rstrip(_NAME_LETTERS)
    prefix, before, kind = chunk[len(head) :], head[-1:], word.lastgroup or ""
    if before == "%" and len(prefix) >= 2:  # %3Fcode, %26state
        before, prefix = "&", prefix[2:]
    ahead = small[max(0, word.start() - NAME_LONGEST) : word.start()]
    if kind == "part":  # DB_PASS
        kind = "strong"
    elif kind == "lone":  # npm's bare `_auth` is strong; the value of SENTRY_AUTH may also be a scheme
        kind = "weak" if prefix[-1:].isalpha() or (prefix[:-1] and word[0] == "auth") else "strong"
    if kind == "key":
        kind = "strong" if _KEY_OF.search(ahead) else "weak"
    elif kind == "weak" and not _WEAK_PREFIX.match(prefix.lower()):
        return None
    suffix = _SUFFIX.match(line, word.end())
    assert suffix is not None
    return _SecretName(word.start() - len(prefix), before, prefix, line[word.start() : word.end()], kind, suffix[0])


def _is_harmless(name: _SecretName) -> bool:
    """Return True if the whole name implies that no secret follows."""
    suffix, word = name.suffix, name.word
    goes_on = suffix[:1].isalpha() and suffix[0].islower() == word[-1].islower()
    if goes_on and suffix.lower() != "s":  # a different word: tokenizer, SECRETARY
        return True
    if _HARMLESS_STARTS.search(name.prefix) and word.lower() == "token":
        return True
    words = _PARTS.findall(suffix)
    return bool(words) and words[-1].lower() in _HARMLESS_ENDS


def _separates(line: str, name: _SecretName, after: re.Match[str]) -> bool:
    """Return True if a value follows the name.

    Besides the usual separators, these count: a space or comma after a --flag, a comma in a pair, and `>` in XML.
    """
    sep = after["sep"]
    if sep == ">":
        return name.before == "<" and not after["gap"]
    if sep == ",":
        return after["close"] != "" and (
            name.prefix.startswith("-") or _PAIR.fullmatch(line, max(0, name.start - 3), name.start) is not None
        )
    return sep != "" or (name.prefix.startswith("-") and after["close"] == "" and after["gap"] != "")


def _span(line: str, after: re.Match[str], name: _SecretName) -> _Span:
    """Return the position of the value that follows the name, empty if there is no value."""
    start = after.end()
    opening = _OPEN.match(line, start)
    start = opening.end() if opening else start
    scheme = _SCHEME.match(line, start) if name.kind == "rest_of_line" else None
    start = scheme.end() if scheme else start
    if opening:
        return _Span(start, _closing(line, start, len(opening[1]), opening[2]), True)
    if line.startswith("[", start) and name.kind == "strong" and not line.startswith(REDACTED, start):
        end = line.find("]", start)
        return _Span(start, end + 1 if end >= 0 else len(line), True)
    begins_line = name.kind == "strong" and _LINE_HEAD.fullmatch(line, 0, name.start) is not None
    if name.before in ("'", '"', "`") and not after["close"].strip("\\]"):  # 'X-Key: a b' is quoted as a whole
        end = line.find(name.before, start)
        end = end if end >= 0 else len(line)
    elif name.kind == "rest_of_line" or (begins_line and after["sep"] == ":"):
        end = len(line.rstrip())
    elif begins_line and after["sep"] == "=" and (run := _TO_BLANK.match(line, start)):
        end = run.end()
    else:
        run = (_WEAK_PLAIN if name.kind == "weak" else _PLAIN).match(line, start)
        end = start + len(_without_close(run[0])) if run else start
    return _Span(start, max(start, end), False)


def _without_close(run: str) -> str:
    """Return the run without trailing punctuation. A closing brace stays if the run has its opening one: `${TOKEN}`."""
    value = run.rstrip(",.)]}:")
    return run[: len(value) + 1] if run[len(value) :].startswith("}") and value.count("{") > value.count("}") else value


def _closing(line: str, start: int, depth: int, quote: str) -> int:
    """Return the end of a string whose opening quote had `depth` backslashes before it, or the line's end."""
    at = line.find(quote, start)
    while at >= 0:
        escapes = 0
        while at - escapes > start and line[at - escapes - 1] == "\\":
            escapes += 1
        if escapes % 2 == 0 if depth == 0 else escapes <= depth:
            return at - min(escapes, depth)
        at = line.find(quote, at + 1)
    return len(line)


def _is_secret(line: str, span: _Span, name: _SecretName, after: re.Match[str]) -> bool:
    """Return True if the value may be a secret. After a weak name it must look random."""
    value = line[span.start : min(span.end, span.start + WEAK_LONGEST)]
    if value.lower() in _NOTHING or _REFERENCE.fullmatch(value) or line.startswith(REDACTED, span.start):
        return False
    if name.kind == "weak":
        in_query = name.before in ("?", "&") or after["sep"].startswith("%")
        return is_random(value, in_query=in_query) or (name.word == "KEY" and _is_mixed(value))
    if name.word.lower() in ("token", "pass") and not span.quoted and value.isdecimal() and len(value) < 7:
        return False
    if name.word.lower() == "pwd" and value.startswith(("/", "~")):
        return False
    if name.prefix.startswith("-") and after["sep"] in ("", ","):
        return is_random(value) or not (
            value.startswith("-") or (value.isupper() and value.isalpha()) or value in _PROSE_WORDS
        )
    if name.before in ("/", "\\") and after[0].endswith(" "):  # /etc/passwd: Permission denied
        value = value.lower()
    follows = line[span.end : span.end + 2]
    goes_on = len(follows) == 2 and follows[0] == " " and follows[1].isalpha()
    # A plain word followed by another word is prose, not a value.
    is_prose = value.isalpha() and value.islower() and goes_on
    return not (after["sep"] == ":" and not span.quoted and is_prose)


def _prose_value(line: str, word: re.Match[str], name: _SecretName) -> _Span | None:
    """Return the position of a secret in prose (`the token 8f3b...`, `password is hunter2`), or None if there is none.

    The secret must be long and look random, or follow `is` or `was` and contain a digit.
    """
    found = _PROSE.match(line, word.end()) if name.kind == "strong" else None
    if found is None or found.start(2) == word.end():
        return None
    value = found[2].rstrip(".")
    is_told = found[1] in ("is", "was") and any(map(str.isdigit, value))
    if not (is_told or (len(value) >= 16 and is_random(value))):
        return None
    return _Span(found.start(2), found.end(2), False)


def _is_mixed(value: str) -> bool:
    """Return True if the value mixes letters and digits and so may be a short key."""
    mixed = len(value) >= 6 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return mixed and _CONSTANT.fullmatch(value) is None and not value.startswith(("/", "~", "."))


def is_random(value: str, *, in_query: bool = False) -> bool:
    """Return True if a value resembles no word, number or constant. In a query string, shorter values count, too."""
    value = value.split("%26")[0]
    if not _RUN.fullmatch(value) or _WORDS.fullmatch(value) or _CONSTANT.fullmatch(value):
        return False
    digits = sum(map(str.isdigit, value))
    if digits == len(value):
        return digits >= 16
    if in_query and (digits > 0 or len(value) >= 16):
        return True
    if digits > 0 and (len(value) >= 16 if value.isalnum() else digits > 1 and len(value) >= 16):
        return True
    turns = sum(one.isupper() != two.isupper() for one, two in pairwise(filter(str.isalpha, value)))
    return len(value) >= 8 and ((digits > 0 and turns > 0) or turns > len(value) * TURNS_OF_WORDS)
