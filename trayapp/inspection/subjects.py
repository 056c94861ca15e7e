"""Subjects of inspection, in one form: tools, and the other texts of a server that a model or a person reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from trayapp.inspection.finding import Finding
from trayapp.inspection.inspect import find_concealed, find_orders, merged
from trayapp.inspection.text import texts_of
from trayapp.model.offer import ITEM_KEYS, Item, Offer

INSTRUCTIONS = "(instructions)"  # the subject name of a server's instructions; a tool of that name is withheld

# List of an offer -> prefix of its subject names
KINDS = {"prompts": "(prompt) ", "resources": "(resource) ", "templates": "(template) ", "events": "(event) "}
OLDER = "(older) "  # comes before any other prefix, if the subject's definition differs in the older era
SKILL = "(skill) "  # prefix of a skill's subject name. Like a changed tool, a changed skill waits for approval
# Members of a prompt, resource, template or event that reach a model or a person. A URI may be shown in place of a
# missing description.
TOLD = ("title", "description", "uri", "uriTemplate", "mimeType", "annotations", "inputSchema", "payloadSchema")
SCREENED_TOGETHER = 10  # definitions. Ten typical ones take 7 KB, and larger groups would hardly save time
_BEGINNINGS = tuple(KINDS.values())


def is_apart(name: str) -> bool:
    """Return True if the subject is neither a tool nor a skill. It cannot be called, and may change from day to day."""
    if not name.startswith("("):
        return False
    own = name.removeprefix(OLDER)
    return own == INSTRUCTIONS or own.startswith(_BEGINNINGS)


def is_tool(name: str) -> bool:
    """Return True if a subject name is a tool's name, without the prefix for the older era."""
    return not name.startswith("(") or (not is_apart(name) and not name.startswith((SKILL, OLDER)))


def subject_name(kind: str, item: Item) -> str | None:
    """Return the subject name of a list's item, or None if it has no name or URI by which clients could request it."""
    own = item.get(ITEM_KEYS[kind])
    return f"{SKILL if kind == 'skills' else KINDS[kind]}{own}" if isinstance(own, str) else None


def subjects_of(offer: Offer) -> dict[str, Item]:
    """Return all subjects of an offer by name, in the form of a tool's definition, including those of the older era."""
    found, older = {**tools_of(offer), **skills_of(offer), **apart_of(offer)}, offer.of_older_era
    return found if older is None else found | {f"{OLDER}{name}": item for name, item in subjects_of(older).items()}


def tools_of(offer: Offer) -> dict[str, Item]:
    """Return the tools by name: the first of each name, and none with a name that is reserved for other subjects."""
    tools: dict[str, Item] = {}
    for item in offer.tools:
        if isinstance(name := item.get("name"), str) and is_tool(name):
            tools.setdefault(name, item)
    return tools


def skills_of(offer: Offer) -> dict[str, Item]:
    """Return the skills by subject name, each in the form of a tool's definition. Files are compared by digest."""
    found: dict[str, Item] = {}
    for item in offer.skills:
        said = item.get("frontmatter")
        about = said if isinstance(said, dict) else {}
        if (name := subject_name("skills", item)) is not None:
            own = {key: about[key] for key in ("name", "description") if key in about}
            files = item.get("resources")
            if isinstance(files, list):
                files = {str(one.get("uri")): one.get("digest") for one in files if isinstance(one, dict)}
            found.setdefault(name, {**own, "annotations": {"frontmatter": about, "files": files}})
    return found


def apart_of(offer: Offer) -> dict[str, Item]:
    """Return the instructions and the items of all lists in KINDS by name, each in the form of a tool's definition."""
    found = dict[str, Item]()
    for kind in KINDS:
        for item in getattr(offer, kind):
            if (name := subject_name(kind, item)) is not None:
                more = {"inputSchema": item["arguments"]} if "arguments" in item else {}
                told = {key: item[key] for key in TOLD if key in item}
                found[name] = {"name": str(item.get("name") or name), **told, **more}
    if offer.instructions:
        found[INSTRUCTIONS] = {"name": INSTRUCTIONS, "description": offer.instructions}
    return found


def findings_of(name: str, item: Item) -> tuple[Finding, ...]:
    """Return the findings of hidden content and of orders in one subject."""
    return merged(concealed_in(name, item), orders_in(name, item))


def screened(subjects: Mapping[str, Item]) -> Iterator[tuple[dict[str, Item], bool]]:
    """Yield groups of subjects, each with True if at least one of them may hide content. Most groups hide nothing."""
    from trayapp.inspection.screening import may_conceal  # imported at the first check: a cached list needs none

    rest = iter(subjects.items())
    while group := dict(islice(rest, SCREENED_TOGETHER)):
        yield group, may_conceal(*group.values())


def concealed_in(name: str, item: Item) -> tuple[Finding, ...]:
    """Return the findings of hidden content in one subject. Those of severity "high" withhold the subject."""
    from trayapp.inspection.screening import may_conceal

    if not may_conceal(item):
        return ()
    return find_concealed(_texts_of(name, item), "" if is_apart(name) else str(item.get("name", "")))


def orders_in(name: str, item: Item) -> tuple[Finding, ...]:
    """Return the findings of orders in one subject. They withhold the subject only with `suspicious: hold`."""
    return find_orders(_texts_of(name, item))


def _texts_of(name: str, item: Item) -> list[tuple[str, str]]:
    is_said = name.removeprefix(OLDER) == INSTRUCTIONS
    return [("instructions", str(item.get("description", "")))] if is_said else texts_of(item)
