"""Regular expressions in bounded time: a pattern becomes an automaton, which looks at each character once.

Python's own engine backtracks: a pattern like `(a+)+b`, which any client may send, would block the gateway forever.
What an automaton cannot do (back references, lookaround) is refused. Never here: the texts that are searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from trayapp.model.errors import MultiMcpError

LONGEST = 500  # characters of a pattern
NODES_MOST = 4_000  # of an automaton: `(a{100}){100}` is refused
STATES_MOST = 2_000  # kept; beyond that they are discarded and computed again
DEPTH_MOST = 50  # of nested groups
WORK_MOST = 3_000_000  # nodes visited in one search, about a second; an ordinary pattern needs a few thousand

_CLASSES: dict[str, Callable[[str], bool]] = {
    "d": str.isdecimal, "w": lambda c: c.isalnum() or c == "_", "s": str.isspace
}  # fmt: skip
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_EDGES = {"b": "edge", "B": "no edge", "A": "start", "Z": "end"}

Test = Callable[[str], bool]
State = tuple[frozenset[int], str]  # the nodes reached, and the character before; "" at the start


class InvalidPatternError(MultiMcpError):
    """A regular expression that is invalid, or that has parts which cannot be matched in bounded time."""

    code = "invalid_pattern"

    def __init__(self, pattern: str, why: str) -> None:
        super().__init__(f"The pattern {pattern[:LONGEST]} cannot be used: {why}", "Search with plain words instead")


class Pattern:
    """A compiled pattern, case-insensitive. Raises InvalidPatternError."""

    def __init__(self, pattern: str) -> None:
        self._written = pattern
        self._nodes = _Parser(pattern).nodes
        self._work = 0
        self._steps: dict[tuple[State, str], State | None] = {}

    def matches_any(self, texts: Iterable[str]) -> bool:
        """Return True if the pattern is found anywhere in one of `texts`."""
        return any(map(self.matches, texts))

    def matches(self, text: str) -> bool:
        """Return True if the pattern is found anywhere in `text`; the time grows with the text's length alone.

        Raises InvalidPatternError once all texts so far have taken WORK_MOST.
        """
        state: State = (frozenset({0}), "")
        for character in text:
            following = self._step(state, character)
            if following is None:
                return True
            state = following
        return self._step(state, "") is None

    def _step(self, state: State, character: str) -> State | None:
        """Return the state after one more character ("" at the end of the text); None if the pattern is found."""
        try:
            return self._steps[state, character]
        except KeyError:
            if len(self._steps) >= STATES_MOST:
                self._steps.clear()
            following = self._steps[state, character] = self._follow(state, character)
            return following

    def _follow(self, state: State, character: str) -> State | None:
        nodes, before = state
        reached: set[int] = set()
        todo = [*nodes, 0]  # 0: a match may start anywhere
        seen = set(todo)
        while todo:
            node = self._nodes[todo.pop()]
            if node.found:
                return None
            if node.test is not None and character and _fits(node.test, character):
                reached.update(node.following)
            elif node.test is None and _passes(node.edge, before, character):
                todo += [place for place in node.following if place not in seen]
                seen.update(node.following)
        self._work += len(seen)
        if self._work > WORK_MOST:
            raise InvalidPatternError(self._written, "it takes too long on this text")
        return frozenset(reached), character


@dataclass(slots=True)
class _Node:
    """One node of the automaton: its successors, reached by a character that fits `test` or, with `edge`, at once."""

    following: list[int] = field(default_factory=list)
    test: Test | None = None
    edge: str = ""
    found: bool = False


def _fits(test: Test, character: str) -> bool:
    return test(character) or test(character.lower()) or test(character.upper())


def _passes(edge: str, before: str, after: str) -> bool:
    if edge in ("", "start", "end"):
        return not {"": "", "start": before, "end": after}[edge]
    between = (before != "" and _CLASSES["w"](before)) != (after != "" and _CLASSES["w"](after))
    return between == (edge == "edge")


Part = Callable[[int], int]  # builds the nodes of a part that continues at a given node; returns its first node


class _Parser:
    """Reads a pattern into parts, then builds their nodes from the end to the start. Node 0 is the start.

    It has a method for each construct of the grammar.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern, self._place, self._depth = pattern, 0, 0
        if len(pattern) > LONGEST:
            raise self._wrong("it is too long")
        self.nodes = [_Node(), _Node(found=True)]
        part = self._either()
        if self._more():
            raise self._wrong("a ) has no (")
        self.nodes[0].following = [part(1)]

    def _either(self) -> Part:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else lambda goal: self._node(following=[part(goal) for part in parts])

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while self._more() and self._peek() not in "|)":
            parts.append(self._repeated(self._single()))

        def build(goal: int) -> int:
            for part in reversed(parts):
                goal = part(goal)
            return goal

        return build

    def _repeated(self, part: Part) -> Part:
        times = self._times()
        if times is None:
            return part
        self._take("?")  # greedy or lazy makes no difference: a match is a match
        if self._more() and (self._peek() in "*+" or self._braces() is not None):
            raise self._wrong("a repetition cannot be repeated")
        least, most = times

        def build(goal: int) -> int:
            if most is None:
                loop = self._node()
                self.nodes[loop].following = [part(loop), goal]
                goal = loop
            for _ in range((most or least) - least):
                goal = self._node(following=[part(goal), goal])
            for _ in range(least):
                goal = part(goal)
            return goal

        return build

    def _times(self) -> tuple[int, int | None] | None:
        """Return how often the last part repeats: least and most (None: unlimited); None if there is no quantifier."""
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self._more() and self._peek() in simple:
            return simple[self._next()]
        found = self._braces()
        if found is None:
            return None
        self._place = self._pattern.index("}", self._place) + 1
        least, most = found
        if max(least, most or 0) > NODES_MOST or (most is not None and most < least):
            raise self._wrong("a repetition is too large, or ends before it starts")
        return least, most

    def _braces(self) -> tuple[int, int | None] | None:
        """Return the counts of `{2}`, `{2,}`, `{,3}` or `{2,3}` at this place; None for other braces (literal text)."""
        end = self._pattern.find("}", self._place)
        inner = self._pattern[self._place + 1 : end] if end > 0 and self._more() and self._peek() == "{" else ""
        least, comma, most = inner.partition(",")
        if not (least + most).isdecimal() or len(inner) > 12 or not (least + most).isascii():
            return None
        return int(least or 0), (int(most) if most else None) if comma else int(least)

    def _single(self) -> Part:
        character = self._next()
        if character == "(":
            return self._group()
        if character in "*+?":
            raise self._wrong(f"nothing comes before {character}")
        if character in "^$":
            return self._edge({"^": "start", "$": "end"}[character])
        if character == "\\":
            return self._escaped()
        return self._testing(self._set() if character == "[" else _any if character == "." else character.__eq__)

    def _group(self) -> Part:
        self._depth += 1
        if self._depth > DEPTH_MOST:
            raise self._wrong("groups are nested too deep")
        if self._take("?"):
            self._marked()
        part = self._either()
        if not self._take(")"):
            raise self._wrong("a ( is not closed")
        self._depth -= 1
        return part

    def _marked(self) -> None:
        """Read `(?:`, `(?i)`, `(?i:` or `(?P<name>`; refuse any other extension, which an automaton cannot do."""
        if self._take("P<"):
            end = self._pattern.find(">", self._place)
            if end < 0:
                raise self._wrong("a group's name is not closed")
            self._place = end + 1
            return
        self._take("i")
        if not self._take(":") and not (self._more() and self._peek() == ")"):
            raise self._wrong("only plain groups are supported, not lookaround")

    def _escaped(self) -> Part:
        character = self._next("a \\ ends it")
        if character in _EDGES:
            return self._edge(_EDGES[character])
        if character.isdecimal() and character != "0":
            raise self._wrong("back references are not supported")
        return self._testing(self._escape(character))

    def _escape(self, character: str) -> Test:
        if character.lower() in _CLASSES:
            test = _CLASSES[character.lower()]
            return test if character.islower() else lambda c: not test(c)
        if character in "xuU":
            return self._coded({"x": 2, "u": 4, "U": 8}[character]).__eq__
        if character.isalnum() and character not in _CONTROLS:
            raise self._wrong(f"\\{character} means nothing")
        return _CONTROLS.get(character, character).__eq__

    def _coded(self, length: int) -> str:
        digits = self._pattern[self._place : self._place + length]
        self._place += length
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise self._wrong("a code is not a character") from None

    def _set(self) -> Test:
        """Return the test for a set, up to its closing bracket."""
        negated = self._take("^")
        tests: list[Test] = []
        while not tests or not self._take("]"):
            tests.append(self._member())
        return (lambda c: not any(_fits(test, c) for test in tests)) if negated else lambda c: any(t(c) for t in tests)

    def _member(self) -> Test:
        """Return the test for one character, class or range of a set."""
        first = self._next("a [ is not closed")
        if first == "\\":
            return self._escape(self._next("a \\ ends it"))
        ahead = self._pattern[self._place : self._place + 2]
        if len(ahead) < 2 or ahead[0] != "-" or ahead[1] in "]\\":
            return first.__eq__
        self._place += 2
        if ahead[1] < first:
            raise self._wrong(f"the range {first}-{ahead[1]} is reversed")
        return lambda c: first <= c <= ahead[1]

    def _testing(self, test: Test) -> Part:
        return lambda goal: self._node(following=[goal], test=test)

    def _edge(self, edge: str) -> Part:
        return lambda goal: self._node(following=[goal], edge=edge)

    def _node(self, following: list[int] | None = None, test: Test | None = None, edge: str = "") -> int:
        if len(self.nodes) >= NODES_MOST:
            raise self._wrong("it is too large")
        self.nodes.append(_Node(following or [], test, edge))
        return len(self.nodes) - 1

    def _more(self) -> bool:
        return self._place < len(self._pattern)

    def _peek(self) -> str:
        return self._pattern[self._place]

    def _next(self, missing: str = "it ends too early") -> str:
        if not self._more():
            raise self._wrong(missing)
        self._place += 1
        return self._pattern[self._place - 1]

    def _take(self, text: str) -> bool:
        """Return True and step over `text` if it stands here."""
        here = self._pattern.startswith(text, self._place)
        self._place += len(text) if here else 0
        return here

    def _wrong(self, why: str) -> InvalidPatternError:
        return InvalidPatternError(self._pattern, why)


def _any(character: str) -> bool:
    return character != "\n"
