"""Classifies each tool by what a call may do: read, write or destroy.

A server's annotations decide, with the specification's defaults (MCP 2025-11-25, ToolAnnotations). Without them the
verb in the name decides. A clear verb also overrides milder annotations: a server can make its tools stricter, never
more harmless than their names say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

ToolClass = Literal["read", "write", "destructive"]
Basis = Literal["annotations", "name"]
STRICTNESS: dict[ToolClass, int] = {"read": 0, "write": 1, "destructive": 2}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READ = _words(
    """get gets getter fetch fetches read reads find finds search searches searcher list lists show shows view views
    describe lookup browse explore inspect preview check checks count summarize summarise analyze analyse compare
    validate verify explain calculate compute retrieve recommend suggest estimate detect parse extract geocode
    translate whoami whois ping echo resolve ls cat head tail stat tree trace diff status info"""
)
_WRITE = _words(
    """create add insert append send post put patch update upsert set write save upload submit publish push
    commit apply approve assign attach move rename copy replace merge import invite share book buy order pay
    transfer enable disable deactivate stop restart pause resume close cancel archive restore register subscribe
    unsubscribe schedule deploy configure modify change mark toggle press click fill drag grant reply comment"""
)
# Not among them: open, convert, generate, build, start. Tools that only read have these names, too (`open_nodes`,
# `convert_time`). Without an annotation they count as a write anyway.
_DESTRUCTIVE = _words(
    """delete deletes del deletion drop drops remove removes removal rm rmdir unlink erase destroy purge wipe truncate
    clear revoke reset kill terminate shutdown uninstall discard prune flush trash forget overwrite obliterate evict
    ban kick cleanup rollback revert undo expunge force edit"""
)
# These run anything: a destructive call cannot be ruled out.
_RUN = _words("run runs execute exec eval evaluate start spawn launch invoke interact call")
_COMMAND = _words(
    "command commands cmd shell bash sh zsh powershell terminal process script scripts sql code python node ssh"
)
_SHELLS = _words("bash shell powershell terminal exec")  # only if this word is the whole name
_EVALUATES = _words("eval evaluate")  # only as the last word: code is evaluated (`browser_evaluate`)
# Verbs that are also nouns: after another word they decide only if no verb follows (`user_list_delete`).
_ALSO_NOUNS = _words(
    """list lists search view views check checks count tree trace diff status info post order book share comment set
    store start stop close open change select switch mark schedule build import patch head tail force run call"""
)
_JOINED = frozenset(("and", "or", "then"))
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class ToolClassification:
    """Class of one tool, and where the class came from."""

    tool_class: ToolClass
    basis: Basis


def classify(item: dict[str, Any]) -> ToolClassification:
    """Return the class of a tool's definition."""
    name = item.get("name")
    named = class_of_name(name) if isinstance(name, str) else None
    annotated = _class_of_annotations(item.get("annotations"))
    if annotated is None or (named is not None and STRICTNESS[named] > STRICTNESS[annotated]):
        return ToolClassification(named or "write", "name")
    return ToolClassification(annotated, "annotations")


def _class_of_annotations(annotations: Any) -> ToolClass | None:
    """Return the class that annotations give; None if they do not say what a call may do."""
    if not isinstance(annotations, dict):
        return None
    reads, destroys = annotations.get("readOnlyHint"), annotations.get("destructiveHint")
    if destroys is True:
        return "destructive"
    if reads is True:
        return "read"
    if destroys is False:
        return "write"
    return "destructive" if reads is False else None  # the specification's default of destructiveHint


def class_of_name(name: str) -> ToolClass | None:
    """Return the class that the verb in a tool's name gives; None without a clear verb, which counts as a write.

    The first verb decides, as in a sentence. Verbs joined by "and" also count, and so does a last word that destroys.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if _runs_commands(words):
        return "destructive"
    found: list[ToolClass] = []
    for place, word in enumerate(words):
        joined = place > 0 and words[place - 1] in _JOINED
        tool_class = _class_of_word(word)
        if tool_class is None or (found and not joined):
            continue
        if place and word in _ALSO_NOUNS and not joined and any(map(_class_of_word, words[place + 1 :])):
            continue
        found.append(tool_class)
    if words and words[-1] in _DESTRUCTIVE:
        found.append("destructive")
    return max(found, key=lambda one: STRICTNESS[one], default=None)


def _class_of_word(word: str) -> ToolClass | None:
    if word in _DESTRUCTIVE:
        return "destructive"
    if word in _WRITE:
        return "write"
    return "read" if word in _READ else None


def _runs_commands(words: list[str]) -> bool:
    if words and words[-1] in _EVALUATES:
        return True
    if len(words) == 1:
        return words[0] in _SHELLS
    runs = next((place for place, word in enumerate(words) if word in _RUN), None)
    return runs is not None and any(word in _COMMAND for word in words[runs + 1 :])
