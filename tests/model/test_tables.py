"""Every transition table of the program, found by its name NEXT: no dead ends, unreachable states or useless events."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import trayapp
from trayapp.model.lifecycle import TransitionError

SOURCE = Path(trayapp.__file__).parent
KNOWN = {"trayapp.model.lifecycle", "trayapp.model.child"}  # must be among the tables that are found


def defines(path: Path, name: str) -> bool:
    """True if the module assigns that name at its top level."""
    source = path.read_text(encoding="utf-8")
    for node in ast.parse(source).body if f"\n{name}" in source else ():  # parsing every module would take a second
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return True
    return False


def modules() -> list[str]:
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if defines(path, "NEXT")]
    return [".".join(("trayapp", *path.relative_to(SOURCE).with_suffix("").parts)) for path in paths]


@dataclass(frozen=True)
class Table:
    """One module's table, its two enumerations and the function that reads it."""

    module: str

    @property
    def next(self) -> dict[tuple[Any, Any], Any]:
        table: dict[tuple[Any, Any], Any] = importlib.import_module(self.module).NEXT
        return table

    @property
    def states(self) -> list[Enum]:
        kind: type[Enum] = type(next(iter(self.next))[0])
        return list(kind)

    @property
    def events(self) -> list[Enum]:
        kind: type[Enum] = type(next(iter(self.next))[1])
        return list(kind)

    @property
    def step(self) -> Callable[[Any, Any], Any]:
        named = vars(importlib.import_module(self.module))
        (function,) = [value for name, value in named.items() if name.startswith("next_") and callable(value)]
        step: Callable[[Any, Any], Any] = function
        return step

    def reachable(self, start: Enum) -> set[Enum]:
        """Return all states that can be reached from `start`, including `start` itself."""
        seen, new = {start}, {start}
        while new:
            new = {after for (state, _), after in self.next.items() if state in new} - seen
            seen |= new
        return seen


TABLES = [Table(name) for name in modules()]
every_table = pytest.mark.parametrize("table", TABLES, ids=[table.module for table in TABLES])


def test_the_tables_are_found() -> None:
    assert {table.module for table in TABLES} >= KNOWN


@pytest.mark.requirement("life-table")
@every_table
def test_every_pair_leads_to_a_state_or_raises(table: Table) -> None:
    for state, event in product(table.states, table.events):
        if (state, event) in table.next:
            assert table.step(state, event) in table.states
        else:
            with pytest.raises(TransitionError, match=f"{event} .*{state}"):
                table.step(state, event)


@every_table
def test_no_state_is_a_dead_end_and_none_is_unreachable(table: Table) -> None:
    """Every state can be reached again from any other."""
    for state in table.states:
        assert any(listed is state for listed, _ in table.next), state
        assert table.reachable(state) == set(table.states), state


@every_table
def test_every_event_is_of_use_somewhere(table: Table) -> None:
    assert {event for _, event in table.next} == set(table.events)


@every_table
def test_no_event_leads_nowhere(table: Table) -> None:
    """A row that leaves the state unchanged could hide a mistake."""
    assert [pair for pair, after in table.next.items() if pair[0] is after] == []
