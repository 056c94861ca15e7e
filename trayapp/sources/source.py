"""A recognized source: one server in the keys of servers.yaml, and the values that the user still has to give."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Literal

from trayapp.config.programs import program_of
from trayapp.model.errors import UsageError
from trayapp.model.redact import redacted
from trayapp.sources.placeholders import (
    CONNECTION,
    EXAMPLE_ADDRESS,
    FOLDER_VARIABLE,
    GENERIC_NAME,
    OPTIONAL,
    PLACEHOLDER_PATH,
    RESERVED_HOST,
    as_whole_word,
    is_secret,
    may_be_secret,
    names_itself,
    names_plain_value,
    placeholder_in,
    placeholders_in,
)
from trayapp.sources.programs import ASSIGNMENT, CONTAINERS, SHELLS, name_for, package_of, words_of

Entry = dict[str, Any]
Keys = tuple[str | int, ...]
ValueKind = Literal["string", "number", "boolean", "directory", "file", "path"]

PAIRS = ("env", "headers")
LARGEST = 1_000_000  # characters of pasted text
LARGEST_SNIPPET = 100_000  # characters of pasted text that define servers
LONGEST_LINE = 32_767  # characters of a command line, as in Windows
TOOLS_MOST = 1000  # tools in an author's list, for display
START_FIRST = "Start it, and add its address instead"  # the hint for a server that speaks HTTP


class UnclearSourceError(UsageError):
    """Raised if a text names no server, or does not define it clearly. The hint describes what to do."""

    code = "unclear_source"

    def __init__(self, title: str, hint: str = "Paste the command that starts the server") -> None:
        super().__init__(title, hint)


class TemplateError(UnclearSourceError):
    """Raised for a text with several alternatives, such as every transport of a server. No part of it may be used."""


def refuse_large(length: int) -> None:
    """Raise UnclearSourceError for more than LARGEST_SNIPPET characters: no user would read them before approving."""
    if length > LARGEST_SNIPPET:
        title = f"The servers in this text have {length:,} characters, which is too many"
        raise UnclearSourceError(title, "Paste the snippet of one server")


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that the user has to give. `keys` lead to it in the entry; `placeholder` is the text to replace."""

    name: str
    keys: Keys
    placeholder: str
    description: str = ""
    secret: bool = False
    required: bool = True
    choices: tuple[str, ...] = ()
    default: str = ""
    kind: ValueKind = "string"
    least: float | None = None
    most: float | None = None
    multiple: bool = False  # several values in one text, separated as in PATH
    shared: bool = False
    stays: bool = False  # if the user gives no value, keep the author's empty text

    def hint(self) -> str:
        """Return a note for the user about the form of the value, or "" if any form is valid."""
        least = "" if self.least is None else f"at least {self.least:g}"
        most = "" if self.most is None else f"at most {self.most:g}"
        several = f"several values, separated by {os.pathsep}" if self.multiple else ""
        return ", ".join(filter(None, (least, most, several)))

    def checked(self, text: str) -> str:
        """Return a value as the server needs it, with `~` expanded in paths. Raises UsageError if it is invalid."""
        parts = [part.strip() for part in re.split(rf"[{os.pathsep}\n]", text)] if self.multiple else [text]
        return os.pathsep.join(self._checked(part) for part in parts if part or not self.multiple)

    def _checked(self, text: str) -> str:
        if not text:
            return text
        if self.choices and text not in self.choices:
            raise UsageError(f"{self.name} must be one of: {', '.join(self.choices)}", "Choose one of them")
        if self.kind == "number":
            try:
                number = float(text)
            except ValueError:
                number = math.nan
            low = -math.inf if self.least is None else self.least
            high = math.inf if self.most is None else self.most
            if not (math.isfinite(number) and low <= number <= high):
                title = ", ".join(filter(None, (f"{self.name} must be a number", self.hint())))
                raise UsageError(title, "Enter another number")
        if self.kind in ("directory", "file", "path"):
            path = Path(os.path.expanduser(text))  # noqa: PTH111 (leaves an unknown user's folder as it is)
            if not path.is_absolute():
                title = f"{text} is not an absolute path"
                title += "" if self.kind == "path" else f": {self.name} is a {self.kind}"
                raise UsageError(title, "Begin it with / or ~")
            return str(path)
        return text


@dataclass(frozen=True, slots=True)
class Source:
    """A server recognized in a text: its entry, and the values that the user still has to give."""

    name: str
    entry: Entry  # its entry for servers.yaml
    kind: str  # its original form, as shown to the user
    wants: tuple[Variable, ...] = ()
    left_out: tuple[str, ...] = ()  # ignored keys
    description: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()  # tools, as listed by the author
    more_tools: bool = False  # True if the author's list is incomplete
    run_first: tuple[str, ...] = ()  # lines before the command that install something: only the user runs them


def with_passed(entry: Entry) -> Entry:
    """Return a container's entry with an empty variable for each `-e NAME`: the value comes from the environment.

    A `-e NAME=VALUE` becomes `-e NAME` and a variable if the value contains a password. Other entries stay unchanged.
    """
    own = {
        pair[1]: pair[2]
        for word in _options(entry)
        if (pair := ASSIGNMENT.fullmatch(word)) and CONNECTION.search(pair[2])
    }
    if own:  # a container's variable with a password is passed in the environment, not on the command line
        args = [name if (name := str(word).partition("=")[0]) in own else word for word in entry["args"]]
        entry = {**entry, "args": args, "env": {**(entry.get("env") or {}), **own}}
    names = [name for name in passed_variables(entry) if name not in (entry.get("env") or {})]
    return {**entry, "env": {**(entry.get("env") or {}), **dict.fromkeys(names, "")}} if names else entry


def launch_of(entry: Entry) -> Entry:
    """Return an entry without `type` and empty values. Equal results start the same server in the same way."""
    return {key: value for key, value in entry.items() if value and key != "type"}


def start_of(entry: Entry) -> Entry:
    """Return an entry's command, args and url, without npx's `-y`. Equal results start the same server."""
    start = launch_of({key: entry[key] for key in ("command", "args", "url") if key in entry})
    if program_of(str(entry.get("command") or "")) in ("npx", "bunx"):
        start["args"] = [word for word in entry.get("args") or [] if word not in ("-y", "--yes")]
    return start


def without_keys(entry: Mapping[str, Any], *keys: str) -> Entry:
    """Return an entry without these keys."""
    return {key: value for key, value in entry.items() if key not in keys}


def objects_in(part: Mapping[str, Any], *keys: str) -> list[Mapping[str, Any]]:
    """Return the objects in the list under the first of these keys that holds a list; [] if none does."""
    found: list[Any] = next((part[key] for key in keys if isinstance(part.get(key), list)), [])
    return [one for one in found if isinstance(one, Mapping)]


def given_names(source: Source) -> set[str]:
    """Return the names, in lower case, of a source's variables and headers."""
    return {str(name).lower() for place in ("env", "headers") for name in source.entry.get(place) or {}}


def with_variants(source: Source, variants: Sequence[Source]) -> Source:
    """Return a source, with the variables and headers of other ways to start the same server added.

    A variable or header that any way lacks is optional, such as A and B in `A=... x` and `B=... x`. A way that has
    neither variables nor headers counts only if all ways have the same `kind`. If only one value differs, and is a
    plain word in each way, the user may choose. The source is unchanged if a variable is a placeholder in one way and
    a value in another. Raises TemplateError for other differences between values.
    """
    given: list[dict[Keys, None]] = [
        {(place, str(name)): None for place in PAIRS for name in one.entry.get(place) or {}} for one in variants
    ]
    sets = given if len({one.kind for one in variants}) == 1 else list(filter(None, given))
    needed = [keys for keys in sets[0] if all(keys in own for own in sets)] if sets else []
    offered: dict[Keys, tuple[str, ...]] = {}
    for keys in needed:
        holding = [one for one, own in zip(variants, given, strict=True) if keys in own]
        asking = [keys in {want.keys for want in one.wants} for one in holding]
        values = tuple(dict.fromkeys(str(one.entry[str(keys[0])][keys[1]]) for one in holding))
        if len(values) > 1 and not any(asking):
            offered[keys] = values
        elif len(values) > 1 and not all(asking):
            return source  # each way has its own settings, which must not be mixed
    entry, wants = source.entry, list(source.wants)
    for keys, values in offered.items():
        told = " ".join(f"{keys[1]}={value}" for value in values)
        if len(offered) > 1 or not all(map(_CHOICE.fullmatch, values)) or redacted(told) != told:
            named = ", ".join(str(keys[1]) for keys in offered)
            title = f"This shows several ways to run {source.name}, each with its own values ({named})"
            raise TemplateError(title, "Paste one")
        own = str(entry[str(keys[0])][keys[1]])
        wants.append(Variable(str(keys[1]), keys, own, f"one of {', '.join(values)}", choices=values))
    for one in variants:
        for want in one.wants:
            place, name = str(want.keys[0]), want.keys[-1]
            if place in PAIRS and name not in (entry.get(place) or {}):
                entry = {**entry, place: {**(entry.get(place) or {}), str(name): one.entry[place][name]}}
                wants.append(want)
    asked = (replace(one, required=one.required and (one.keys[0] not in PAIRS or one.keys in needed)) for one in wants)
    return replace(source, entry=entry, wants=tuple(asked))


def without_env(entry: Entry) -> Entry:
    """Return an entry for `env NAME=VALUE PROGRAM` that starts PROGRAM, with NAME as a variable; others unchanged."""
    words = words_of(entry)
    count = 1 + sum(1 for _ in takewhile(re.compile(r"[A-Za-z_]\w*=").match, words[1:]))
    if words[0] not in ("env", "/usr/bin/env") or not 1 < count < len(words):
        return entry
    own = dict(word.split("=", 1) for word in words[1:count])
    return {**entry, "command": words[count], "args": words[count + 1 :], "env": {**own, **(entry.get("env") or {})}}


def with_words_apart(entry: Entry) -> Entry:
    """Return an entry in which an argument of several words (`"-y pkg run"`) is split into these words."""
    words = words_of(entry)
    package = package_of(words)
    for at, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-{1,2}[\w-]+(?: [\w@./:=-]+)+|[\w@][\w@./:-]*(?: [\w@./:=-]+)+", word) and (
            word == package or (word.startswith("-") and not package)
        ):
            return {**entry, "args": [*words[1:at], *word.split(), *words[at + 1 :]]}
    return entry


def passed_variables(entry: Mapping[str, Any]) -> list[str]:
    """Return the variables that a container gets from the environment of its client: `docker run -e NAME`."""
    return [name for name in _options(entry) if re.fullmatch(r"[A-Za-z_]\w*", name)]


def _options(entry: Mapping[str, Any]) -> list[str]:
    """Return the values of a container's `-e` options: `NAME=VALUE`, or `NAME` for a variable that is passed on."""
    words = words_of(entry)
    if program_of(words[0]) not in CONTAINERS or (image := package_of(words)) not in words:
        return []
    return [name for option, name in pairwise(words[: words.index(image)]) if option in ("-e", "--env")]


def with_value(entry: Entry, variable: Variable, value: str) -> Entry:
    """Return the entry with a user's value in place of a placeholder.

    An empty `value` removes an optional argument, and a variable or header unless it `stays`.
    """
    head, *rest = variable.keys
    if not rest:
        return {**entry, str(head): _replaced(str(entry.get(str(head), "")), variable, value)}
    inner = entry[str(head)]
    key = rest[0]
    if isinstance(inner, list):
        assert isinstance(key, int)
        return {**entry, str(head): _words_with(inner, key, variable, value)}
    changed = {name: _replaced(one, variable, value) if name == key else one for name, one in inner.items()}
    if not value and not variable.stays:
        del changed[key]
    return without_keys(entry, str(head)) | ({str(head): changed} if changed else {})


def _replaced(text: str, variable: Variable, value: str) -> str:
    return as_whole_word(variable.placeholder).sub(lambda found: value, text) if variable.placeholder else value


def own_part(source: Source, variable: Variable, text: str) -> str:
    """Return a user's value without the text around its placeholder, such as `a.test` of `https://a.test/mcp`."""
    if not variable.placeholder:
        return text
    whole: Any = source.entry
    for key in variable.keys:
        whole = whole[key]
    halves = as_whole_word(variable.placeholder).split(str(whole), maxsplit=1)
    if len(halves) < 2 or not re.search(r"[^\w.-]$", halves[0]):
        return text
    others = [one.placeholder for one in source.wants if one.keys == variable.keys and one.placeholder]
    mark = re.compile("|".join(map(re.escape, sorted(others, key=len, reverse=True))))
    before, after = (".+?".join(map(re.escape, mark.split(half))) for half in halves)
    found = re.fullmatch(f"{before}(.+){after}", text) or re.fullmatch(f"{before}(.+)", text)
    return found[1] if found else text


def _words_with(words: Sequence[str], at: int, variable: Variable, value: str) -> list[str]:
    """Return the words of a command line with a variable's value filled in.

    Several values become several words if the placeholder is the whole word. Without a value, a word that is optional
    or wholly a shared placeholder is removed, together with the option before it.
    """
    whole = variable.shared and words[at] == variable.placeholder
    is_named = variable.placeholder == "" and words[at].endswith("=")  # `NAME=` without a value
    if is_named and (value or (at and words[at - 1] in ("-e", "--env"))):
        return [*words[:at], words[at] + value, *words[at + 1 :]]
    if not value and (whole or not (variable.shared or variable.required)):
        before = words[at - 1] if at else ""
        option = before.startswith("-") and "=" not in before
        return [*words[: at - 1 if option else at], *words[at + 1 :]]
    values = value.split(os.pathsep) if whole and variable.multiple else [_replaced(words[at], variable, value)]
    return [*words[:at], *values, *words[at + 1 :]]


# --- the values that the user has to give


def source_of(entry: Entry, kind: str) -> Source:
    """Return a source whose name is derived from its entry."""
    return Source(name_for(entry), entry, kind, wanted(entry))


def wanted(entry: Entry, inputs: Mapping[str, Mapping[str, Any]] | None = None) -> tuple[Variable, ...]:
    """Return a Variable for each value that an entry leaves to the user, in the order in which the user is asked.

    Such a value is or contains a placeholder or an author's example, is empty, or only describes the value to enter.
    `inputs`: the text that refers to an input of the snippet (`${input:ID}`) -> the definition of that input.
    """
    found: list[Variable] = []
    passed = passed_variables(entry)
    program = program_of(str(entry.get("command") or ""))
    package = package_of(words_of(entry))

    def add(name: str, keys: Keys, text: Any, secret: Callable[[str], bool], *, is_placeholder: bool = False) -> None:
        if not isinstance(text, str):
            return
        for mark, definition in (inputs or {}).items():
            if mark in text:
                found.append(_input(mark, definition, keys))
        own = re.sub(r"^-{0,2}\w[\w.-]*=", "", text) if keys[0] == "args" else text
        is_mark = is_placeholder or (own != "" and names_itself(name, own))
        marks = [own] if is_mark else placeholders_in(own) or placeholders_in(text)
        if not marks and keys[0] in ("args", "env") and (inside := list(_inside_json(own))):
            found.extend(
                Variable(key, keys, mark, f"in place of {mark}", secret=is_secret(key, f"{key}={mark}", mark))
                for key, mark in inside
            )
            return
        known = RESERVED_HOST.fullmatch if keys == ("url",) else EXAMPLE_ADDRESS.search
        for mark in marks or ([example[0]] if (example := known(text)) else []):
            if folder := FOLDER_VARIABLE.fullmatch(mark):  # the user gives it once, for all places where it occurs
                found.append(Variable(folder[1], keys, mark, kind="directory", shared=True))
                continue
            # A value with a placeholder is needed, and so is an empty secret that is not passed on to a container. A
            # variable or header that its author calls optional is not needed.
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
            option = None  # in `Host=a;Password=b`, `Host` is not the name of an option
        valued = before.startswith("-") and "=" not in before and not _FLAGS.fullmatch(before)
        valued = valued and not (program in SHELLS and before.endswith("c"))  # the word after `-c` is code
        plain = (option[1] if option else before if valued else "").lstrip("-")
        plain = plain or ("package" if word == package else "")
        is_placeholder = isinstance(word, str) and word.isupper() and len(word) > 3 and before not in ("-e", "--env")
        is_placeholder = is_placeholder and GENERIC_NAME.fullmatch(word) is not None  # `ORG_NAME` in place of a name
        plain = plain or (word if is_placeholder else "")
        add(plain, ("args", at), word, partial(is_secret, plain, word), is_placeholder=is_placeholder)
    for key in ("command", "url", "cwd", "client_id"):
        add(key, (key,), entry.get(key), partial(is_secret, "", str(entry.get(key) or "")))
    add("client_secret", ("client_secret",), entry.get("client_secret"), lambda mark: True)
    found = _shared(found)
    # several placeholders in one text are several values, each with its own name
    places = [(one.name, one.keys) for one in found if not one.shared]
    return tuple(
        replace(one, name=f"{one.name} {one.placeholder}") if places.count((one.name, one.keys)) > 1 else one
        for one in found
    )


def _inside_json(text: str) -> Iterator[tuple[str, str]]:
    """Yield key and value of each member of a JSON object in `text` whose value only describes what to enter."""
    pairs: list[tuple[str, str]] = []

    def keep(found: list[tuple[str, Any]]) -> None:
        pairs.extend((key, value) for key, value in found if isinstance(value, str) and value)

    if text.startswith("{") and len(text) < LONGEST_LINE:
        with suppress(ValueError, RecursionError):
            json.loads(text, object_pairs_hook=keep)
            for key, value in pairs:
                if value in text and (names_itself(key, value) or placeholder_in(value) == value):
                    yield key, value


_CHOICE = re.compile(r"[A-Za-z][\w-]*|\d{1,5}")
# A description of a value: three words or more, one of them an article, a preposition or the like. Lists of values have
# no such words.
_DESCRIPTION = re.compile(
    r"(?=.*\b(?:an?|the|your|of|for|to|in|on|if|or|and|with|by|from|name)\b)"
    r"[A-Za-z][\w'/-]*(?:[ ,][\w'(/-][\w'/().,:;=-]*){2,}"
)
_SAID_DEFAULT = re.compile(r"[A-Za-z].*\((?i:default)s?(?: is|:|=| to)? ?[\"'`]?([^()\"'`]{1,60})[\"'`]?\)\.?")


def _described(place: str, values: Mapping[str, Any], asked: Collection[Any]) -> Iterator[Variable]:
    """Yield a Variable for each text that only describes the value to enter, or that has its default in parentheses.

    `asked`: the names of the values with placeholders. A description counts only if there are at least three such
    names, and most values of the block have a placeholder or name a default.
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
    """Return True if an empty variable is for the user to fill in: a secret, with no placeholder beside it.

    If the author uses placeholders elsewhere in the block, an empty value is meant to be empty.
    """
    values = beside.values() if isinstance(beside, Mapping) else ()
    secret = re.search("(?i)(?:token|key|secret|pass(?:word|wd|phrase|code)?|pwd|credentials?|pat|auth)$", name)
    return secret is not None and not any(isinstance(one, str) and one and placeholder_in(one) for one in values)


def _shared(found: Sequence[Variable]) -> list[Variable]:
    """Return the variables, with one shared value for a bracketed placeholder that occurs several times.

    This applies to `<REPO>` in `<REPO>/venv/bin/python <REPO>/server.py`. A variable, a header and the value of an
    option have a name of their own, so their placeholders stay separate.
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
