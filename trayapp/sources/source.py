"""A recognized source: one server in the keys of servers.yaml, and the values that the user still has to give.

The functions here compare and combine sources, and put the user's values into an entry.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Literal

from trayapp.model.errors import UsageError
from trayapp.model.redact import redacted
from trayapp.sources.placeholders import CONNECTION, as_whole_word
from trayapp.sources.programs import CONTAINERS, package_of, program_of, words_of

Entry = dict[str, Any]
Keys = tuple[str | int, ...]
ValueKind = Literal["string", "number", "boolean", "directory", "file", "path"]

LARGEST = 1_000_000  # characters of pasted text
LARGEST_SNIPPET = 100_000  # characters of pasted text that define servers
LONGEST_LINE = 32_767  # characters of a command line, as in Windows
START_FIRST = "Start it, and add its address instead"  # the hint for a server that speaks HTTP


class UnclearSourceError(UsageError):
    """Raised if a text names no server, or is unclear about it. The hint says what to do."""

    code = "unclear_source"

    def __init__(self, title: str, hint: str = "Paste the command that starts the server") -> None:
        super().__init__(title, hint)


class TemplateError(UnclearSourceError):
    """Raised for a text that shows several ways at once, such as every transport of a server. No part may be used."""


def refuse_large(length: int) -> None:
    """Raise UnclearSourceError for more than LARGEST_SNIPPET characters: no user would read them before approving."""
    if length > LARGEST_SNIPPET:
        raise UnclearSourceError(f"Its servers have {length:,} characters", "Paste the snippet of one server")


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that the user has to give. `keys` lead to it in the entry; `placeholder` is the text to replace.

    A value that is `shared` is given once for all places of that name.
    """

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
    stays: bool = False  # if the user gives no value, the author's empty text stays

    def hint(self) -> str:
        """Return a note for the user about the value's form, "" if there is none."""
        least = "" if self.least is None else f"at least {self.least:g}"
        most = "" if self.most is None else f"at most {self.most:g}"
        return ", ".join(filter(None, (least, most, f"several: separated by {os.pathsep}" if self.multiple else "")))

    def checked(self, text: str) -> str:
        """Return a value as the server gets it: a path without `~`, several values without blanks around them.

        Raises UsageError for a wrong choice or number, and for a path that is not absolute.
        """
        parts = [part.strip() for part in re.split(rf"[{os.pathsep}\n]", text)] if self.multiple else [text]
        return os.pathsep.join(self._checked(part) for part in parts if part or not self.multiple)

    def _checked(self, text: str) -> str:
        if not text:
            return text
        if self.choices and text not in self.choices:
            raise UsageError(f"{self.name} is one of: {', '.join(self.choices)}", "Give one of them")
        if self.kind == "number":
            try:
                number = float(text)
            except ValueError:
                number = math.nan
            low = -math.inf if self.least is None else self.least
            high = math.inf if self.most is None else self.most
            if not (math.isfinite(number) and low <= number <= high):
                raise UsageError(", ".join(filter(None, (f"{self.name} is a number", self.hint()))), "Give another one")
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
    """One recognized server.

    `entry`: in the keys of servers.yaml. `kind`: its original form, as shown to the user. `left_out`: ignored keys.
    """

    name: str
    entry: Entry
    kind: str
    wants: tuple[Variable, ...] = ()
    left_out: tuple[str, ...] = ()
    description: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()  # as listed by its author
    more_tools: bool = False  # True if the author's list is incomplete
    run_first: tuple[str, ...] = ()  # lines before the command that install something: only the user runs them


def with_passed(entry: Entry) -> Entry:
    """Return the entry of a container with an empty variable for each `-e NAME`, whose value comes from outside.

    A `-e NAME=VALUE` becomes `-e NAME` and a variable if the value contains a password. Other entries stay unchanged.
    """
    own = {
        pair[1]: pair[2]
        for word in _options(entry)
        if (pair := _ASSIGNED.fullmatch(word)) and CONNECTION.search(pair[2])
    }
    if own:  # a container's variable with a password is passed in the environment, not on the command line
        args = [name if (name := str(word).partition("=")[0]) in own else word for word in entry["args"]]
        entry = {**entry, "args": args, "env": {**(entry.get("env") or {}), **own}}
    names = [name for name in passed_variables(entry) if name not in (entry.get("env") or {})]
    return {**entry, "env": {**(entry.get("env") or {}), **dict.fromkeys(names, "")}} if names else entry


_STARTS = ("command", "args", "url")


def launch_of(entry: Entry) -> Entry:
    """Return an entry without `type` and empty values.

    Entries with equal results start the same server in the same way.
    """
    return {key: value for key, value in entry.items() if value and key != "type"}


def start_of(entry: Entry) -> Entry:
    """Return an entry's command, args and url. Entries with equal results start the same server.

    `-y` and `--yes` of npx and bunx are left out.
    """
    start = launch_of({key: value for key, value in entry.items() if key in _STARTS})
    if program_of(str(entry.get("command") or "")) in ("npx", "bunx"):
        start["args"] = [word for word in entry.get("args") or [] if word not in ("-y", "--yes")]
    return start


def given_names(source: Source) -> set[str]:
    """Return the names, in lower case, of the variables and headers that a source gives its server."""
    return {str(name).lower() for place in ("env", "headers") for name in source.entry.get(place) or {}}


def with_variants(source: Source, variants: Sequence[Source]) -> Source:
    """Return a source that also asks for the variables and headers of other ways to start the same server.

    A variable or header that one way lacks is optional, such as A and B in `A=... x` and `B=... x`. A way that has
    neither variables nor headers counts only if all ways have the same `kind`. The source is unchanged if a variable is
    a placeholder in one way and a value in another. Raises TemplateError if the ways differ in more than one plain
    word.
    """
    given: list[set[Keys]] = [
        {(place, str(name)) for place in PAIRS for name in one.entry.get(place) or {}} for one in variants
    ]
    sets = given if len({one.kind for one in variants}) == 1 else list(filter(None, given))
    needed = set.intersection(*sets) if sets else set()
    offered: dict[Keys, tuple[str, ...]] = {}
    for keys in needed:
        holding = [one for one, own in zip(variants, given, strict=True) if keys in own]
        asking = [keys in {want.keys for want in one.wants} for one in holding]
        values = tuple(dict.fromkeys(str(one.entry[str(keys[0])][keys[1]]) for one in holding))
        if len(values) > 1 and not any(asking):
            offered[keys] = values
        elif len(values) > 1 and not all(asking):
            return source  # ways with settings of their own, which do not mix
    source = replace(source, wants=(*source.wants, *_choices(source, offered)))
    entry = source.entry
    wants = list(source.wants)
    for one in variants:
        for want in one.wants:
            place, name = str(want.keys[0]), want.keys[-1]
            if place in PAIRS and name not in (entry.get(place) or {}):
                entry = {**entry, place: {**(entry.get(place) or {}), str(name): one.entry[place][name]}}
                wants.append(want)
    own = (replace(one, required=one.required and (one.keys[0] not in PAIRS or one.keys in needed)) for one in wants)
    return replace(source, entry=entry, wants=tuple(own))


def _choices(source: Source, offered: Mapping[Keys, tuple[str, ...]]) -> Iterator[Variable]:
    """Yield a Variable with choices if the ways to start a server differ only in one plain word.

    `offered`: keys -> the values in which the ways differ. Raises TemplateError if they differ in more.
    """
    for keys, values in offered.items():
        told = [f"{keys[1]}={value}" for value in values]
        if len(offered) > 1 or not all(map(_CHOICE.fullmatch, values)) or redacted(" ".join(told)) != " ".join(told):
            named = ", ".join(str(keys[1]) for keys in offered)
            title = f"This shows several ways to run {source.name}, each with its own values ({named})"
            raise TemplateError(title, "Paste one")
        own = str(source.entry[str(keys[0])][keys[1]])
        yield Variable(str(keys[1]), keys, own, f"one of {', '.join(values)}", choices=values)


_CHOICE = re.compile(r"[A-Za-z][\w-]*|\d{1,5}")
PAIRS = ("env", "headers")


def without_env(entry: Entry) -> Entry:
    """Turn an entry with the command `env NAME=VALUE PROGRAM` into one that starts PROGRAM, with NAME as a variable.

    Other entries stay unchanged.
    """
    words = words_of(entry)
    count = 1 + sum(1 for _ in takewhile(re.compile(r"[A-Za-z_]\w*=").match, words[1:]))
    if words[0] not in ("env", "/usr/bin/env") or not 1 < count < len(words):
        return entry
    own = dict(word.split("=", 1) for word in words[1:count])
    return {**entry, "command": words[count], "args": words[count + 1 :], "env": {**own, **(entry.get("env") or {})}}


def with_words_apart(entry: Entry) -> Entry:
    """Return an entry, with an argument that contains several words (`"-y pkg run"`) split into these words.

    Other entries stay unchanged.
    """
    words = words_of(entry)
    package = package_of(words)
    for at, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-{1,2}[\w-]+(?: [\w@./:=-]+)+|[\w@][\w@./:-]*(?: [\w@./:=-]+)+", word) and (
            word == package or (word.startswith("-") and not package)
        ):
            return {**entry, "args": [*words[1:at], *word.split(), *words[at + 1 :]]}
    return entry


_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


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
    """Return the entry with `value` in place of a variable's placeholder.

    If `value` is empty, remove a variable or header (unless it `stays`), or an optional argument.
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
    kept = {name: one for name, one in entry.items() if name != head}
    return kept | ({str(head): changed} if changed else {})


def _replaced(text: str, variable: Variable, value: str) -> str:
    return as_whole_word(variable.placeholder).sub(lambda found: value, text) if variable.placeholder else value


def own_part(source: Source, variable: Variable, text: str) -> str:
    """Return a user's value without the text around its placeholder, if the user typed that text, too.

    For `https://HOST/mcp`, `https://a.test/mcp` becomes `a.test`.
    """
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
    """Return the words of a command line with a variable's value.

    A value for `NAME=` is appended. Several values become several words if the placeholder is the whole word. Without a
    value, a word that is optional or wholly a shared placeholder is removed, together with the option before it.
    """
    whole = variable.shared and words[at] == variable.placeholder
    is_named = variable.placeholder == "" and words[at].endswith("=")  # `NAME=`, with nothing after it
    if is_named and (value or (at and words[at - 1] in ("-e", "--env"))):
        return [*words[:at], words[at] + value, *words[at + 1 :]]
    if not value and (whole or not (variable.shared or variable.required)):
        before = words[at - 1] if at else ""
        option = before.startswith("-") and "=" not in before
        return [*words[: at - 1 if option else at], *words[at + 1 :]]
    several = whole and variable.multiple
    values = value.split(os.pathsep) if several else [_replaced(words[at], variable, value)]
    return [*words[:at], *values, *words[at + 1 :]]
