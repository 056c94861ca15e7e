"""The action that a query asks for, and that a tool does, by the verb: read, write or delete.

A word that is as often a noun (check, draw) is ignored here. Never here: synonyms, scores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from trayapp.catalog.search.stem import stem

READ, WRITE, DELETE = "read", "write", "delete"

_VERBS = {
    READ: """
        get list search find show read fetch query describe view look lookup count retrieve browse explain inspect
        analyze analyse summarize compare see display download export discover locate enumerate monitor watch preview
        identify select pull print tell know open examine audit diagnose
    """,
    WRITE: """
        create add new make insert generate build write save store upload append post send register import draft start
        launch deploy install submit publish compose record schedule book attach commit push clone copy fork duplicate
        update edit modify change set rename move configure enable disable replace patch put alter assign merge transfer
        adjust turn switch mark toggle convert close resolve
    """,
    DELETE: """
        delete remove drop clear purge revoke forget destroy erase wipe cancel uninstall detach discard trash clean stop
        kill terminate unsubscribe
    """,
}
_ACTIONS = {stem(verb): action for action, verbs in _VERBS.items() for verb in verbs.split()}
# A clause that begins with one of these is a question, which asks to read something.
_QUESTIONS = frozenset(
    "what which who whom whose how where when why is are was were does did do has have can".split()  # noqa: SIM905
)


def of_query(clauses: Iterable[Sequence[str]], verbs: Collection[str]) -> str:
    """Return the action of the first question or known verb of a query, or ""."""
    for clause in clauses:
        for place, word in enumerate(clause):
            if not place and word in _QUESTIONS:
                return READ
            if word in verbs and (action := _ACTIONS.get(stem(word))):
                return action
    return ""


def of_tool(name: Iterable[str], head: Sequence[str]) -> str:
    """Return the action of a tool by the stems of its name, else by the first of its description; "" if unclear."""
    return next((_ACTIONS[known] for known in (*name, *head[:1]) if known in _ACTIONS), "")
