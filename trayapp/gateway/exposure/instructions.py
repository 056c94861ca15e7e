"""Write the instructions of a session: the servers' own, or one paragraph about the servers behind the one tool."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from trayapp.catalog.search.words import STOP_WORDS, split
from trayapp.gateway.exposure.catalog import ONE_TOOL
from trayapp.gateway.exposure.exposure import Exposure
from trayapp.model.offer import Item
from trayapp.model.text import count, one_line

INSTRUCTIONS_ALL = 12_000  # characters; a model reads them in every session
LONGEST = 2_048  # bytes: clients show this many in full
WORDS_MOST = 6  # words that describe one server's tools
ABOUT_LONGEST = 60  # characters of a server's title, or of the first words of its instructions
SAYS_NOTHING = frozenset({"mcp", "server", "servers", "reference", "official", "the", "a", "an", "for", "of"})

_SENTENCE = re.compile(r"(?<=\w)[.;:!?](?=\s|\Z)|\s[-\u2013\u2014]\s")
_ORDERING = re.compile(
    r"(?:please |always )?use (?:this|the) (?:mcp )?(?:server|tools?) (?:to|for|when)\s+", re.IGNORECASE
)
# From the longest form to the shortest: (whether servers' own texts are included, word limit for each server's tools)
FORMS = ((True, WORDS_MOST), (True, 4), (True, 2), (False, 4), (False, 3), (False, 2), (False, 1), (False, 0))


def instructions(seen: Exposure) -> str | None:
    """Return the servers' instructions or, in search mode, a short summary of the servers. Return None if empty.

    In search mode, the one tool shows a server's instructions with the list of its tools.
    """
    if seen.mode == "search":
        return summary(seen)
    parts = [f"# {name}\n{text}" for name in seen.servers if (text := seen.instructions_of(name))]
    return "\n\n".join(parts)[:INSTRUCTIONS_ALL] or None


def summary(seen: Exposure) -> str | None:
    """Return the number of tools and a summary of each server, or None if no server is enabled.

    The text has at most LONGEST bytes. The more servers there are, the fewer words each gets.
    """
    servers = [name for name, entry in seen.servers.items() if not entry.disabled]
    if not servers:
        return None
    tools = {name: [item for key, item in seen.entries[name].items() if key in seen.tools] for name in servers}
    number = count(sum(map(len, tools.values())), "tool")
    head = (
        f"{number} of {count(len(servers), 'server')} behind the tool {ONE_TOOL}; "
        'whenever one of these could help, first call it with {"search":"what it should do"}: '
    )
    about = {name: _about(seen, name) for name in servers}
    words = {name: common_words(tools[name], (name, about[name]), WORDS_MOST) for name in servers}
    for whole, most in FORMS:
        said = {name: (about[name] if whole else "", ", ".join(words[name][:most])) for name in servers}
        parts = [f"{name} ({'; '.join(filter(None, both))})" if any(both) else name for name, both in said.items()]
        if len((text := head + ", ".join(parts)).encode("utf-8", "replace")) <= LONGEST:
            return text
    text = head
    for name in servers:  # as many names as fit
        if len(f"{text}{name}, ...".encode("utf-8", "replace")) > LONGEST:
            break
        text += f"{name}, "
    return f"{text}..."


def _about(seen: Exposure, server: str) -> str:
    """Return a server's title or the first words of its instructions, or "" if neither is suitable.

    The text adds to the server's name, has at most ABOUT_LONGEST characters, and contains nothing suspicious.
    """
    from trayapp.inspection.inspect import inspect_text

    prepared = seen.catalog.offers.get(server)
    title = (prepared.offer.server_info or {}).get("title") if prepared is not None else None
    for text in (seen.servers[server].title, title, _first_words(seen.instructions_of(server))):
        said = one_line(text).strip() if isinstance(text, str) else ""
        telling = set(split(said)) - set(split(server)) - SAYS_NOTHING
        if telling and len(said) <= ABOUT_LONGEST and not inspect_text(said, "title"):
            return said.replace("(", "").replace(")", "")
    return ""


def _first_words(instructions: str) -> str:
    """Return the first clause of a text, shortened to ABOUT_LONGEST characters.

    A leading "Use this server to" is left out. Return "" if the text begins with markup.
    """
    if instructions.startswith(("#", "<", "*", "-", "=")):
        return ""
    first = _ORDERING.sub("", _SENTENCE.split(one_line(instructions[: 4 * ABOUT_LONGEST]), maxsplit=1)[0]).strip()
    return first if len(first) <= ABOUT_LONGEST else first[:ABOUT_LONGEST].rpartition(" ")[0]


# --- the most common words of a server's tools

READ_MOST = 160  # characters of a description: usually its first sentence
NAME_WEIGHT = 2  # weight of a word in a tool's name; a word in its description has weight 1
SHORTEST = 3  # characters; shorter words are left out
TOGETHER = 0.75  # two words are one term if they are adjacent in this share of the tools that use the commoner one
UNTELLING = frozenset(
    """
    able all allow allows another available based between both call calls complete contain contains current data
    detailed details enable etc existing following get given include includes including information item items
    list make makes more multiple name names new only optional optionally other perform performs provide
    provided provides result results return returns run runs same server servers set shows single specific
    specified support supports take takes than type types value values without
    """.split()  # noqa: SIM905 - as catalog/search/words
)


def common_words(tools: Iterable[Item], known: Iterable[str], most: int) -> list[str]:
    """Return up to `most` words or word pairs, the most common first. Leave out words of the texts in `known`."""
    from trayapp.catalog.search.words import stem  # takes 2 ms to load; only the one tool needs it

    scores: Counter[str] = Counter()  # stem -> score, in order of appearance
    having: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    spellings: dict[str, str] = {}
    for item in tools:
        name, said = (_stems(item.get(member), spellings) for member in ("name", "description"))
        weights = {**dict.fromkeys(said, 1), **dict.fromkeys(name, NAME_WEIGHT)}
        scores.update({word: weight for word, weight in weights.items() if word})
        having.update(dict.fromkeys(weights, 1))
        pairs.update(dict.fromkeys((pair for pair in (*pairwise(name), *pairwise(said)) if all(pair)), 1))
    passed = {stem(word) for text in known for word in split(text)}
    found: list[str] = []
    for word, _ in scores.most_common():
        if len(found) == most:
            break
        if word not in passed:
            terms = [
                pair
                for pair, times in pairs.items()
                if word in pair and times > 1 and pair[0] != pair[1] and passed.isdisjoint(pair)
                if times >= TOGETHER * max(having[part] for part in pair)
            ]
            term = max(terms, key=pairs.__getitem__, default=(word,))
            found.append(" ".join(spellings[part] for part in term))
            passed.update(term)
    return found


def _stems(text: object, spellings: dict[str, str]) -> list[str]:
    """Return the stems of a text's words, with "" for each uninformative word.

    `spellings` records the first spelling of each stem.
    """
    from trayapp.catalog.search.words import stem

    stems = []
    for word in split(text[:READ_MOST]) if isinstance(text, str) else ():
        tells = len(word) >= SHORTEST and word not in STOP_WORDS and word not in UNTELLING
        stems.append(stem(word) if tells else "")
        if tells:
            spellings.setdefault(stems[-1], word)
    return stems
