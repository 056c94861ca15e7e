"""Tests that exceptions of every kind are caught only at named boundaries, which log them or pass them on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "trayapp"
ALL_KINDS = {"Exception", "BaseException"}


def broad_catches(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the fault ("" if none) of each place that catches all exceptions without raising them again.

    A boundary is named in the docstring of the enclosing function, or in a comment at the `except`.
    """
    tree, lines = ast.parse(source), source.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            if ALL_KINDS & {ast.unparse(kind) for kind in node.args}:
                yield node.lineno, "is lost"
        elif isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _raises_again(node):
            words = f"{_docstring_around(tree, node)} {lines[node.lineno - 1].partition('#')[2]}"
            named = "boundary" in words.lower()
            yield node.lineno, "" if named and _is_told(node) else "is lost" if named else "no boundary"


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or ast.unparse(kind) in ALL_KINDS for kind in kinds)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _is_told(handler: ast.ExceptHandler) -> bool:
    """True if the handler logs the exception or passes it on to the caller."""
    said = "\n".join(ast.unparse(line) for line in handler.body)
    carried = f"({handler.name})" in said and ("raise " in said or "set_exception(" in said)
    return "log." in said or carried


def _docstring_around(tree: ast.Module, handler: ast.ExceptHandler) -> str:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = [one for one in functions if any(inner is handler for inner in ast.walk(one))]
    return ast.get_docstring(around[-1]) or "" if around else ""


def test_whatever_is_caught_without_being_known_is_caught_at_a_named_boundary_and_told() -> None:
    found = [(path, *one) for path in sorted(PACKAGE.rglob("*.py")) for one in broad_catches(path.read_text("utf-8"))]
    assert len(found) > 20  # the scan has found the handlers
    assert [f"{path.relative_to(PACKAGE.parent)}:{line}: {wrong}" for path, line, wrong in found if wrong] == []


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("try:\n    a()\nexcept Exception:  # the boundary of a click\n    log.exception('b')\n", [""]),
        ("try:\n    a()\nexcept Exception:  # the boundary of a click\n    pass\n", ["is lost"]),
        ("try:\n    a()\nexcept Exception:\n    log.exception('b')\n", ["no boundary"]),
        ("def f():\n    'The boundary.'\n    try:\n        a()\n    except:\n        log.debug('b')\n", [""]),
        ("try:\n    a()\nexcept (OSError, Exception):\n    b = 1\n", ["no boundary"]),
        ("try:\n    a()\nexcept BaseException:\n    b()\n    raise\n", []),
        ("try:\n    a()\nexcept Exception as error:  # boundary\n    raise ours(error) from None\n", [""]),
        ("try:\n    a()\nexcept OSError:\n    pass\n", []),
        ("with contextlib.suppress(Exception):\n    a()\n", ["is lost"]),
    ],
)
def test_what_the_rule_says(source: str, missing: list[str]) -> None:
    assert [wrong for _, wrong in broad_catches(source)] == missing
