"""What of an offer is looked over, in one form: tools as they are, and what else a model or a person reads of a server.

Pure. Never here: judging it (approvals), what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from trayapp.inspection.finding import Finding
from trayapp.inspection.inspect import find_concealed, find_orders, may_conceal, merged
from trayapp.inspection.text import texts_of
from trayapp.model.offer import Item, Offer

INSTRUCTIONS = "(instructions)"  # under which a server's instructions are looked over; a tool of that name is withheld

# By the list of an offer: how a name begins under which one is looked over, and the member that names it.
KINDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "prompts": ("(prompt) ", "name"),
        "resources": ("(resource) ", "uri"),
        "templates": ("(template) ", "uriTemplate"),
        "events": ("(event) ", "name"),
    }
)
SKILL = "(skill) "  # how a name begins under which a skill is looked over: as a tool is, a changed one waits
# What of a prompt, resource, template or event reaches a model or a person; the URI becomes a tool's description.
TOLD = ("title", "description", "uri", "uriTemplate", "mimeType", "annotations", "inputSchema", "payloadSchema")
_BEGINNINGS = tuple(beginning for beginning, _ in KINDS.values())


def is_apart(name: str) -> bool:
    """Whether a name stands for something else than a tool: what may differ from day to day, and is no call."""
    return name == INSTRUCTIONS or name.startswith(_BEGINNINGS)


def is_tool(name: str) -> bool:
    """True unless a name stands for something else than a tool."""
    return not is_apart(name) and not name.startswith(SKILL)


def subject_name(kind: str, item: Item) -> str | None:
    """The name under which an entry of a list is looked over; None of one that nobody could ask for."""
    beginning, member = (SKILL, "uri") if kind == "skills" else KINDS[kind]
    own = item.get(member)
    return f"{beginning}{own}" if isinstance(own, str) else None


def tools_of(offer: Offer) -> dict[str, Item]:
    """The tools by name; of a name listed twice the first counts, and of one that stands for something else none."""
    tools: dict[str, Item] = {}
    for item in offer.tools:
        if isinstance(name := item.get("name"), str) and is_tool(name):
            tools.setdefault(name, item)
    return tools


def skills_of(offer: Offer) -> dict[str, Item]:
    """The skills in the form of a tool's definition. Their files count by their digests: other content is a change."""
    found: dict[str, Item] = {}
    for item in offer.skills:
        said = item.get("frontmatter")
        about = said if isinstance(said, dict) else {}
        if (name := subject_name("skills", item)) is not None:
            own = {key: about[key] for key in ("name", "description") if key in about}
            found.setdefault(name, {**own, "annotations": {"frontmatter": about, "files": _files(item)}})
    return found


def _files(skill: Item) -> object:
    files = skill.get("resources")
    if not isinstance(files, list):
        return files
    return {str(one.get("uri")): one.get("digest") for one in files if isinstance(one, dict)}


def apart_of(offer: Offer) -> dict[str, Item]:
    """All else, in the form of a tool's definition."""
    found = dict(_listed(offer))
    if offer.instructions:
        found[INSTRUCTIONS] = {"name": INSTRUCTIONS, "description": offer.instructions}
    return found


def _listed(offer: Offer) -> Iterator[tuple[str, Item]]:
    for kind in KINDS:
        for item in getattr(offer, kind):
            name = subject_name(kind, item)
            if name is not None:
                more = {"inputSchema": item["arguments"]} if "arguments" in item else {}
                told = {key: item[key] for key in TOLD if key in item}
                yield name, {"name": str(item.get("name") or name), **told, **more}


def findings_of(name: str, item: Item) -> tuple[Finding, ...]:
    """Return what is found in one subject."""
    return merged(concealed_in(name, item), orders_in(name, item))


def concealed_in(name: str, item: Item) -> tuple[Finding, ...]:
    """Return what hides from people in one subject: reason to hold it back."""
    if not may_conceal(item):
        return ()
    return find_concealed(_texts_of(name, item), "" if is_apart(name) else str(item.get("name", "")))


def orders_in(name: str, item: Item) -> tuple[Finding, ...]:
    """Return what reads like orders in one subject: the user is told."""
    return find_orders(_texts_of(name, item))


def _texts_of(name: str, item: Item) -> list[tuple[str, str]]:
    return [("instructions", str(item.get("description", "")))] if name == INSTRUCTIONS else texts_of(item)
