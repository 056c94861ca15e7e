"""Find the values that an entry asks its user for, by its placeholders."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from trayapp.sources.placeholders import (
    CONNECTION,
    EXAMPLE_ADDRESS,
    FOLDER_VARIABLE,
    GENERIC_NAME,
    OPTIONAL,
    PLACEHOLDER_PATH,
    RESERVED_HOST,
    is_secret,
    may_be_secret,
    names_itself,
    names_plain_value,
    placeholder_in,
    placeholders_in,
)
from trayapp.sources.programs import SHELLS, package_of, program_of, words_of
from trayapp.sources.source import LONGEST_LINE, PAIRS, Entry, Keys, ValueKind, Variable, passed_variables


def wanted(entry: Entry, inputs: Mapping[str, Mapping[str, Any]] | None = None) -> tuple[Variable, ...]:
    """Return a Variable for each value that an entry leaves to the user, in the order in which the user is asked.

    Such a value is or contains a placeholder or an author's example, is empty, or only describes what belongs there.
    `inputs`: text that stands for an input of the snippet (`${input:ID}`) -> the snippet's definition of that input.
    """
    found: list[Variable] = []
    passed = passed_variables(entry)
    program = program_of(str(entry.get("command") or ""))
    package = package_of(words_of(entry))

    def add(name: str, keys: Keys, text: Any, secret: Callable[[str], bool], *, stands: bool = False) -> None:
        if not isinstance(text, str):
            return
        for mark, definition in (inputs or {}).items():
            if mark in text:
                found.append(_input(mark, definition, keys))
        own = re.sub(r"^-{0,2}\w[\w.-]*=", "", text) if keys[0] == "args" else text
        is_mark = stands or (own != "" and names_itself(name, own))
        marks = [own] if is_mark else placeholders_in(own) or placeholders_in(text)
        if not marks and keys[0] in ("args", "env") and (inside := list(_inside_json(own))):
            found.extend(
                Variable(key, keys, mark, f"in place of {mark}", secret=is_secret(key, f"{key}={mark}", mark))
                for key, mark in inside
            )
            return
        known = RESERVED_HOST.fullmatch if keys == ("url",) else EXAMPLE_ADDRESS.search
        for mark in marks or ([example[0]] if (example := known(text)) else []):
            if folder := FOLDER_VARIABLE.fullmatch(mark):  # one value, wherever it occurs
                found.append(Variable(folder[1], keys, mark, kind="directory", shared=True))
                continue
            # Needed: a value with a placeholder, or an empty secret that is not passed on to a container. Not needed: a
            # variable or header that its author calls optional.
            needed = bool(mark) or (name not in passed and _has_to_be_filled(name, entry.get(str(keys[0]))))
            may_lack = OPTIONAL.search(mark) is not None or mark.startswith("default")
            needed = needed and not (keys[0] in ("env", "headers") and may_lack)
            told = mark in ("", name or mark) or (mark == text and keys[0] in ("env", "headers", "url"))
            why = "" if told else f"in place of {mark}"
            hides = secret(mark) and (mark == text or not names_plain_value(mark.strip("<>{}[]()$%#")))
            kind: ValueKind = "path" if PLACEHOLDER_PATH.fullmatch(mark) and keys != ("command",) else "string"
            found.append(Variable(name or mark, keys, mark, why, secret=hides, required=needed, kind=kind))

    for place in ("env", "headers"):
        values = entry.get(place) or {}
        for name, value in values.items():
            add(str(name), (place, str(name)), value, partial(may_be_secret, str(name)))
        found += _described(place, values, {one.keys[1] for one in found if one.keys[0] == place})
    for at, word in enumerate(entry.get("args") or []):
        before = str(entry["args"][at - 1]) if at else ""
        option = re.match(r"(-{0,2}\w[\w.-]*)=", word) if isinstance(word, str) else None
        if option and word[0] != "-" and CONNECTION.search(word):
            option = None  # `Host=a;Password=b` has no name
        valued = before.startswith("-") and "=" not in before and not _FLAGS.fullmatch(before)
        valued = valued and not (program in SHELLS and before.endswith("c"))  # the word is code
        plain = (option[1] if option else before if valued else "").lstrip("-")
        plain = plain or ("package" if word == package else "")
        stands = isinstance(word, str) and word.isupper() and len(word) > 3 and before not in ("-e", "--env")
        stands = stands and GENERIC_NAME.fullmatch(word) is not None  # `ORG_NAME` in place of a name
        plain = plain or (word if stands else "")
        add(plain, ("args", at), word, partial(is_secret, plain, word), stands=stands)
    for key in ("command", "url", "cwd", "client_id"):
        add(key, (key,), entry.get(key), partial(is_secret, "", str(entry.get(key) or "")))
    add("client_secret", ("client_secret",), entry.get("client_secret"), lambda mark: True)
    found = _shared(found)
    # several placeholders in one text are several values, with names of their own
    places = [(one.name, one.keys) for one in found if not one.shared]
    return tuple(
        replace(one, name=f"{one.name} {one.placeholder}") if places.count((one.name, one.keys)) > 1 else one
        for one in found
    )


def _inside_json(text: str) -> Iterator[tuple[str, str]]:
    """Yield each key and value of a text that is a JSON object, if the value only says what belongs there."""
    pairs: list[tuple[str, str]] = []

    def keep(found: list[tuple[str, Any]]) -> None:
        pairs.extend((key, value) for key, value in found if isinstance(value, str) and value)

    if text.startswith("{") and len(text) < LONGEST_LINE:
        with suppress(ValueError, RecursionError):
            json.loads(text, object_pairs_hook=keep)
            for key, value in pairs:
                if value in text and (names_itself(key, value) or placeholder_in(value) == value):
                    yield key, value


# A sentence that says what belongs there: three words or more, one of them an article, a preposition or the like, which
# lists of values lack.
_DESCRIPTION = re.compile(
    r"(?=.*\b(?:an?|the|your|of|for|to|in|on|if|or|and|with|by|from|name)\b)"
    r"[A-Za-z][\w'/-]*(?:[ ,][\w'(/-][\w'/().,:;=-]*){2,}"
)
_SAID_DEFAULT = re.compile(r"[A-Za-z].*\((?i:default)s?(?: is|:|=| to)? ?[\"'`]?([^()\"'`]{1,60})[\"'`]?\)\.?")


def _described(place: str, values: Mapping[str, Any], asked: Collection[Any]) -> Iterator[Variable]:
    """Yield a Variable for each value that only describes what belongs there or, in parentheses, names its default.

    `asked`: the names of the values with placeholders. A description counts only if there are three of these or more,
    and if most values of the block have a placeholder or name a default.
    """
    texts = {str(name): value for name, value in values.items() if isinstance(value, str) and name not in asked}
    defaults = {name: found[1] for name, value in texts.items() if (found := _SAID_DEFAULT.fullmatch(value))}
    told = len(asked) + len(defaults)
    for name, value in texts.items():
        if name in defaults or (len(asked) > 2 and 2 * told > len(values) and _DESCRIPTION.fullmatch(value)):
            needed = name not in defaults and OPTIONAL.search(value) is None
            secret = may_be_secret(name, value)
            yield Variable(name, (place, name), value, value, secret, needed, default=defaults.get(name, ""))


def _has_to_be_filled(name: str, beside: Any) -> bool:
    """Return True if an empty variable is for the user to fill in.

    Its name must be that of a secret. No value beside it may be a placeholder: an author who writes placeholders means
    an empty value to be empty.
    """
    values = beside.values() if isinstance(beside, Mapping) else ()
    is_secret = re.search("(?i)(?:token|key|secret|pass(?:word|wd|phrase|code)?|pwd|credentials?|pat|auth)$", name)
    return is_secret is not None and not any(
        isinstance(one, str) and one and placeholder_in(one) is not None for one in values
    )


def _shared(found: Sequence[Variable]) -> list[Variable]:
    """Return the variables, with one shared value for a bracketed placeholder that occurs several times.

    This applies to `<REPO>` in `<REPO>/venv/bin/python <REPO>/server.py`. A placeholder in a variable, in a header or
    after an option stays separate, since it has a name of its own.
    """
    own = [one for one in found if one.name in (one.placeholder, "command", "cwd") and one.keys[0] not in PAIRS]
    marks = [one.placeholder for one in own if re.fullmatch(r"<[^<>]+>|\{+[^{}]+\}+", one.placeholder)]
    several = [one for one in own if marks.count(one.placeholder) > 1]
    return [replace(one, name=one.placeholder, description="", shared=True) if one in several else one for one in found]


_FLAGS = re.compile(r"-y|--yes|-it?|--rm|--stdio|--quiet|-q|--|--(?:allow|deny|no|enable|disable|skip)-[\w-]+")


def _input(mark: str, definition: Mapping[str, Any], keys: Keys) -> Variable:
    options = definition.get("options")
    return Variable(
        str(definition["id"]),
        keys,
        mark,
        str(definition.get("description") or ""),
        secret=definition.get("password", not names_plain_value(str(definition["id"]))) is not False,
        choices=tuple(map(str, options)) if isinstance(options, list) else (),
        shared=True,
    )
