"""Classification of tools by what a call may do: read, write or destroy.

A server's annotations decide, with the specification's defaults (MCP 2025-11-25, ToolAnnotations). Without them the
verb in the name decides. A clear verb also overrides milder annotations: a server can make a tool stricter than its
name, never milder.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

from trayapp.model.json_schema import choices, properties_of

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
    transfer enable disable deactivate stop restart pause resume close archive restore register subscribe
    unsubscribe schedule deploy configure modify change mark toggle press click fill drag grant reply comment"""
)
# These are not included: open, convert, generate, build, start. Tools that only read have such names, too
# (`open_nodes`, `convert_time`), and without an annotation they count as a write in any case.
_DESTRUCTIVE = _words(
    """delete deletes del deletion drop drops remove removes removal rm rmdir unlink erase destroy purge wipe truncate
    clear revoke reset kill terminate shutdown teardown uninstall discard prune flush trash forget overwrite
    obliterate evict ban kick cleanup rollback revert undo expunge edit cancel abort nuke shred decommission
    deprovision exec hdel lpop lrem rpop srem xdel zrem"""
)
_NOUNS = _words("trash edit reset drop kick ban kill exec undo cleanup rollback shutdown")  # also nouns (`last_edit`)
_FUSED = ("delete", "remove", "destroy", "erase", "purge", "truncate", "uninstall", "flush")  # `flushdb`, `deleteuser`
_INFLECTIONS = _words("d ed er ers es ing ment r rs s")  # inflections of _FUSED, not compounds (`list_deleted`)
_LAST = _words("clean eval evaluate repl interpreter")  # destructive as the last word (`git_clean`, `browser_evaluate`)
_ALONE = _words("bash sh zsh shell powershell terminal command execute")  # destructive as the whole name
# (verbs, objects): a tool counts as destructive if one of the objects follows one of the verbs, or precedes it at the
# name's end (`shell_run`).
_ON_OBJECTS = (
    (
        _words("run runs execute eval evaluate start spawn launch invoke interact call"),
        _words(
            """command commands cmd cli shell bash sh zsh powershell terminal process script scripts sql code python ssh
            javascript js applescript cell notebook statement"""
        ),
    ),
    (_words("write"), _words("file files query sql cypher")),
    (_words("empty"), _words("trash bin bucket folder directory queue cart inbox")),
)
_STUDIES = _words("analysis review scan lint audit search report")  # if one of these is last, the code is not run
_FORCE = "force"  # makes an adjacent write destructive (`git_force_push`)
_PREDICATES = _words(
    "is are has can does should"
)  # such a name is a question, so its verb is not carried out (`can_delete`)
# Verbs that are also nouns: after another word they decide only if no verb follows (`user_list_delete`).
_ALSO_NOUNS = _words(
    """list lists search view views check checks count tree trace diff status info post order book share comment set
    store start stop close open change select switch mark schedule build import patch head tail run call"""
)
_ACTIONS = _words("action operation op method command subcommand mode")  # parameters that choose what a tool does
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class ToolClassification(NamedTuple):
    """The class of one tool, and where the class came from."""

    tool_class: ToolClass
    basis: Basis


def classify(item: dict[str, Any]) -> ToolClassification:
    """Return the class of a tool, and its basis. A tool whose action is unknown counts as a write."""
    name = item.get("name")
    annotated = _class_of_annotations(item.get("annotations"))
    named = class_of_name(name, guess=annotated is None) if isinstance(name, str) else None
    if annotated is None or (named is not None and STRICTNESS[named] > STRICTNESS[annotated]):
        if annotated is None and named != "read" and _can_choose_to_destroy(item.get("inputSchema")):
            named = "destructive"
        return ToolClassification(named or "write", "name")
    return ToolClassification(annotated, "annotations")


def _class_of_annotations(annotations: Any) -> ToolClass | None:
    """Return the class that annotations give, or None if they do not state what a call may do."""
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


def _can_choose_to_destroy(schema: Any) -> bool:
    """Return True if a parameter chooses the tool's action and one of the choices destroys (`action: delete`)."""
    given = properties_of(schema).items()
    actions = [value for name, inner in given if name.lower() in _ACTIONS for value, _ in choices(inner)]
    return any(isinstance(action, str) and class_of_name(action) == "destructive" for action in actions)


def class_of_name(name: str, *, guess: bool = True) -> ToolClass | None:
    """Return the class that the verb in a tool's name gives, or None without a clear verb (which counts as a write).

    The first verb decides, as in a sentence. Verbs joined by "and" also count. So does a last word that destroys, or
    that writes if the first verb may be a noun (`list_create`). `guess`: count tools that can run anything as
    destructive. It is False for a tool with annotations, which are more reliable (`execute_sql` may be read-only).
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if guess and len(words) == 1 and words[0] in _ALONE:
        return "destructive"
    found: list[ToolClass] = []
    first = words[0] if words and words[0] in _PREDICATES else ""
    for place, word in enumerate(words):
        joined = place > 0 and (words[place - 1] in ("and", "or", "then") or word == "replace")  # `find_replace`
        tool_class = _class_of_word(words, place, guess=guess)
        if tool_class is None or (found and not joined):
            continue
        if place and word in _ALSO_NOUNS and not joined and any(map(_class_of, words[place + 1 :])):
            continue
        first = first or word
        found.append(tool_class)
    last = words[-1] if words else ""
    if first in _PREDICATES:
        return "read"
    if (guess and last in _LAST) or _ends_destructive(words, first):
        found.append("destructive")
    elif first in _ALSO_NOUNS and last in _WRITE and last not in _ALSO_NOUNS:
        found.append("write")
    return max(found, key=lambda one: STRICTNESS[one], default=None)


def _ends_destructive(words: list[str], first: str) -> bool:
    """Return True if the last word destroys, also after another verb (`post_delete`). `first`: the verb found first."""
    last, before = words[-1] if words else "", words[-2] if len(words) > 1 else ""
    if last == _FORCE:
        return _class_of(before) == "write"
    noun = last in _NOUNS and (first not in _ALSO_NOUNS or last == "trash")
    return _class_of(last) == "destructive" and not noun


def _class_of_word(words: list[str], place: int, *, guess: bool) -> ToolClass | None:
    word, after = words[place], words[place + 1 :]
    if word == _FORCE:
        return "destructive" if after and _class_of(after[0]) == "write" else None
    for verbs, objects in _ON_OBJECTS if guess and words[-1] not in _STUDIES else ():
        if word in verbs and not objects.isdisjoint(after or words[:place]):
            return "destructive"
    return _class_of(word)


def _class_of(word: str) -> ToolClass | None:
    fused = next(filter(word.startswith, _FUSED), None) if word.startswith(_FUSED) else None
    if word in _DESTRUCTIVE or (fused and word != fused and word.removeprefix(fused) not in _INFLECTIONS):
        return "destructive"
    if word in _WRITE:
        return "write"
    return "read" if word in _READ else None
