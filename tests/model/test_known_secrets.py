"""Redaction of the secrets that this process was given, in every form in which they may appear."""

from __future__ import annotations

import html
import json
import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from trayapp.model.redact import KNOWN, MOST, REDACTED, KnownSecrets, LineRedactor, is_telling, redacted

PLAIN = "plum-tree-4-lantern"
ODD = 'a "quoted" vålue & more/+='
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n-----END PRIVATE KEY-----\n"


def knowing(*values: str) -> KnownSecrets:
    known = KnownSecrets()
    known.note(values)
    return known


@pytest.mark.parametrize("secret", [PLAIN, ODD])
@pytest.mark.parametrize(
    "written",
    [
        str,
        quote,
        quote_plus,
        lambda value: re.sub("%..", lambda found: found[0].lower(), quote(value)),
        lambda value: json.dumps(value)[1:-1].replace("/", "\\/"),
        lambda value: json.dumps(value)[1:-1],
        lambda value: json.dumps(json.dumps(value)[1:-1])[1:-1],
        lambda value: value.replace("/", "\\/"),
        html.escape,
        lambda value: html.escape(value, quote=False),
        lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
        lambda value: b64encode(value.encode()).decode().rstrip("="),
        lambda value: urlsafe_b64encode(value.encode() + b"\n").decode(),
    ],
)
def test_a_known_secret_goes_in_every_form_in_which_it_may_be_written(secret: str, written: object) -> None:
    assert callable(written)
    form = written(secret)
    text = knowing(secret).without(f"could not use {form} for that")
    assert form not in text
    assert text.startswith(f"could not use {REDACTED}")


@pytest.mark.parametrize("user", ["", "u", "me", "you", "user", "a long name"])
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
@pytest.mark.parametrize("secret", [PLAIN, ODD, "pw7abc"])
def test_a_known_secret_goes_out_of_basic_credentials_whatever_the_user(
    user: str, encode: Callable[[bytes], bytes], secret: str
) -> None:
    text = encode(f"{user}:{secret}".encode()).decode()
    left = knowing(secret).without(f"Basic_{text}.").removeprefix("Basic_").removesuffix(".")
    assert REDACTED in left
    before, _, after = left.partition(REDACTED)
    assert len(after) <= 4  # the rest of the last base64 group
    assert secret[:1].encode() not in b64decode(f"{before[: len(before) // 4 * 4]}")[len(user) + 1 :]


def test_each_line_of_a_secret_of_several_lines_goes_by_itself() -> None:
    known = knowing(KEY)
    assert known.without("BgkqhkiG9w0B is wrong") == f"{REDACTED} is wrong"
    assert known.without("-----END PRIVATE KEY----- is missing") == "-----END PRIVATE KEY----- is missing"


def test_of_secrets_that_begin_alike_the_longer_one_goes_whole() -> None:
    assert knowing(PLAIN, PLAIN + "-more").without(f"x {PLAIN}-more y") == f"x {REDACTED} y"


@pytest.mark.parametrize(
    ("value", "telling"),
    [("", False), ("true", False), ("pw1", False), ("pw7abc", True), ("postgres", False), ("12345678", True),
     ("        ", False), ("correct-horse", True), ("correcthorsebattery", True), ("日本語の秘密です長い", True)],
)  # fmt: skip
def test_only_what_is_no_everyday_word_is_taken_out_of_texts(value: str, telling: bool) -> None:
    assert is_telling(value) is telling


def test_the_oldest_of_very_many_secrets_is_forgotten() -> None:
    known = knowing("the-first-secret-0")
    known.note(f"a-later-secret-{number}" for number in range(MOST))
    assert known.without("the-first-secret-0") == "the-first-secret-0"
    assert known.without("a-later-secret-0 x") == f"{REDACTED} x"
    known.note((f"a-token-of-the-hour-{number}" for number in range(MOST + 1)), renewed=True)
    assert known.without("a-later-secret-0 x") == f"{REDACTED} x"
    assert known.without("a-token-of-the-hour-1000") == REDACTED
    assert known.without("a-token-of-the-hour-0 x") == "a-token-of-the-hour-0 x"


def test_every_redacted_text_is_without_what_the_process_was_given() -> None:
    KNOWN.note([PLAIN])
    lines = LineRedactor()
    assert redacted(f"one\ntwo {PLAIN}") == f"one\ntwo {REDACTED}"
    assert lines.feed(f"it is {PLAIN[:7]}") + lines.feed(f"{PLAIN[7:]} now\n") == f"it is {REDACTED} now\n"


def test_what_follows_a_private_key_in_its_last_line_is_looked_at_too() -> None:
    KNOWN.note([KEY])
    text = redacted(f"{KEY.rstrip()} and BgkqhkiG9w0B again")
    assert "BgkqhkiG9w0B" not in text
    assert text.endswith(f" and {REDACTED} again")
