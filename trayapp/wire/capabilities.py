"""Capabilities of clients and servers: their union, the requests that a client can answer, and extensions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from trayapp.wire.jsonio import member_at

SAMPLING, ELICITATION, ROOTS = "sampling/createMessage", "elicitation/create", "roots/list"
QUESTIONS = {SAMPLING: "sampling", ELICITATION: "elicitation", ROOTS: "roots"}

Capabilities = Mapping[str, Any]

# --- extensions that the gateway routes to any number of servers, and how servers announce them
# Sources:
# - Tasks: SEP-2663 (Final), modelcontextprotocol/ext-tasks, specification/draft of 2026-08-21; and the tasks of MCP
#   2025-11-25, basic/utilities/tasks.
# - Skills: SEP-2640 (Final), modelcontextprotocol/ext-skills, specification/stable of September 2026.
# - Events: SEP-3415 (Final). Its full text was not available, so this follows its abstract and the working group's
#   design sketch (modelcontextprotocol/experimental-ext-triggers-events), which name the same methods.
# - Apps: SEP-1865, modelcontextprotocol/ext-apps, specification/2026-01-26.

TASKS = "io.modelcontextprotocol/tasks"
SKILLS = "io.modelcontextprotocol/skills"
EVENTS = "io.modelcontextprotocol/events"
APPS = "io.modelcontextprotocol/ui"
APP = "text/html;profile=mcp-app"  # the media type of a user interface (SEP-1865)

# Client extensions that do not affect what a server lists. The gateway provides the first three for clients without
# them; the others are about signing in.
NOT_LISTED_BY = frozenset(
    {
        TASKS,
        SKILLS,
        EVENTS,
        "io.modelcontextprotocol/oauth-client-credentials",
        "io.modelcontextprotocol/enterprise-managed-authorization",
    }
)
EXTENSIONS = "extensions"
SETTINGS = {APPS: {"mimeTypes": [APP]}}  # extension -> the settings with which a client declares it, if any

# Capabilities declared to a server that has no client yet: every request that a client may be able to answer.
EVERYTHING: Capabilities = {
    "roots": {"listChanged": True},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
    EXTENSIONS: SETTINGS,
}


def unite_members(all_of_them: Iterable[Capabilities]) -> dict[str, Any]:
    """Return the deep union of objects, such as capabilities. Of any other values, the first non-empty one counts."""
    union: dict[str, Any] = {}
    for key, value in (member for capabilities in all_of_them for member in capabilities.items()):
        old = union.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            # An empty elicitation object means forms (MCP 2025-11-25, elicitation). The union keeps that meaning.
            if key == "elicitation":
                old, value = spelled_out(old), spelled_out(value)
            union[key] = unite_members((old, value))
        elif not old:
            union[key] = value
    return union


def spelled_out(elicitation: dict[str, Any]) -> dict[str, Any]:
    """Return `{"form": {}}` for `{}`, which means the same, and any other value unchanged."""
    return elicitation or {"form": {}}


def with_user(capabilities: Capabilities) -> dict[str, Any]:
    """Return a client's capabilities, plus elicitation by a user who can be asked outside the client."""
    return unite_members([capabilities, {"elicitation": EVERYTHING["elicitation"]}])


def can_answer(capabilities: Capabilities, method: str, params: Any) -> bool:
    """Return True if a client with these capabilities can answer that request, or if its method is unknown."""
    name = QUESTIONS.get(method)
    if name is None:
        return True
    able = capabilities.get(name)
    if not isinstance(able, dict):
        return False
    asked = params if isinstance(params, dict) else {}
    if method == ELICITATION:
        return ("url" if asked.get("mode") == "url" else "form") in spelled_out(able)
    if method == SAMPLING and ("tools" in asked or "toolChoice" in asked):
        return "tools" in able
    return True


def questions_of(capabilities: Capabilities) -> frozenset[str]:
    """Return the names of the capabilities for server requests: sampling, elicitation, roots."""
    return frozenset(name for name in QUESTIONS.values() if isinstance(capabilities.get(name), Mapping))


class ClientKind(NamedTuple):
    """The traits of a client that decide which connections it uses and what it sees.

    `newer`: True for a client of MCP 2026-07-28. `able`: the server requests that it can answer, those that it can
    answer with a task (MCP 2025-11-25, tasks), and those of its extensions that may affect servers' lists.
    """

    newer: bool = False
    able: frozenset[str] = frozenset()  # `elicitation`, `elicitation.url`, `tasks.elicitation.create`, `extensions.X`

    @property
    def extensions(self) -> frozenset[str]:
        """Return the names of the extensions in `able`."""
        return frozenset(name for kind, _, name in (one.partition(".") for one in self.able) if kind == EXTENSIONS)

    def told(self, known: Collection[str]) -> ClientKind:
        """Return this kind without the extensions that are not in `known`."""
        return self._replace(able=self.able - {f"{EXTENSIONS}.{name}" for name in self.extensions.difference(known)})


NO_KIND = ClientKind()


def kind_of(capabilities: Capabilities, *, newer: bool) -> ClientKind:
    """Return the kind of a client with these capabilities."""
    able: set[str] = set()
    for name in questions_of(capabilities):
        members = capabilities[name]
        members = spelled_out(members) if name == "elicitation" else members
        able |= {name, *(f"{name}.{member}" for member, value in members.items() if value not in (None, False))}
    able |= {f"{EXTENSIONS}.{name}" for name in listed_by(capabilities)}
    if not newer:
        able |= {f"tasks.{capability}.{request}" for capability, request in _requests_as_tasks(capabilities)}
    return ClientKind(newer, frozenset(able))


def listed_by(capabilities: Capabilities) -> frozenset[str]:
    """Return the extensions of a client or a server that may affect servers' lists."""
    extensions = capabilities.get(EXTENSIONS)
    return frozenset(extensions) - NOT_LISTED_BY if isinstance(extensions, Mapping) else frozenset()


def _requests_as_tasks(capabilities: Capabilities) -> Iterable[tuple[str, str]]:
    """Yield the server requests that a client can answer with a task, as in ("sampling", "createMessage")."""
    for method in QUESTIONS:
        capability, _, request = method.partition("/")
        if isinstance(member_at(capabilities, "tasks", "requests", capability, request), Mapping):
            yield capability, request


def capabilities_of(kind: ClientKind) -> dict[str, Any]:
    """Return the capabilities that a client of this kind declares to a server."""
    found: dict[str, Any] = {name: {} for name in kind.able if name in QUESTIONS.values()}
    for name in sorted(kind.able):
        capability, _, member = name.partition(".")
        if capability == "tasks":
            of, _, request = member.partition(".")
            found = unite_members([found, {"tasks": {"requests": {of: {request: {}}}}}])
        elif capability == EXTENSIONS:
            found = unite_members([found, {EXTENSIONS: {member: SETTINGS.get(member, {})}}])
        elif member and capability in found:
            found[capability][member] = True if name == "roots.listChanged" else {}
    return found


def lacks_capabilities(told: Capabilities, wanted: Capabilities) -> bool:
    """Return True if `wanted` has capabilities that `told`, those declared to a server, does not include."""
    return unite_members([told, wanted]) != unite_members([told])


# --- extensions of servers, and how they announce them

RELATED_TASK = "io.modelcontextprotocol/related-task"  # MCP 2025-11-25, tasks, in `_meta`

# Task methods. A client repeats their `taskId` in the header Mcp-Name (SEP-2663, routing headers).
TASK_METHODS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})

# extension -> the capability that also announces it (MCP 2025-11-25, tasks; the Events sketch)
_MEMBERS = {TASKS: "tasks", EVENTS: "events"}


def announces(capabilities: Mapping[str, Any] | None, extension: str) -> bool:
    """Return True if a server with these capabilities announces that extension."""
    known = capabilities or {}
    return declares(known, extension) or _MEMBERS.get(extension) in known


def declares(capabilities: Mapping[str, Any], extension: str) -> bool:
    """Return True if a client with these capabilities declares that extension."""
    extensions = capabilities.get(EXTENSIONS)
    return isinstance(extensions, dict) and extension in extensions
