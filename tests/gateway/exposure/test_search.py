"""Updates of the search index: they pause for other work, and the result equals an index built without pauses."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import anyio.lowlevel
import pytest

from tests.gateway.world import offer, served, server
from trayapp.catalog.search.index import STEP, InvalidPatternError
from trayapp.gateway.exposure.catalog import Catalog
from trayapp.gateway.exposure.exposure import Choice, Exposure
from trayapp.gateway.exposure.search import ToolSearch
from trayapp.model.config import Config, Settings
from trayapp.model.offer import Offer

pytestmark = pytest.mark.anyio
LARGE = {name: offer(*(f"{name}_tool_{number}" for number in range(8 * STEP))) for name in ("one", "two")}


def exposure(offers: Mapping[str, Offer], choice: Choice | None = None, **settings: object) -> Exposure:
    entries = {name: server(name) for name in offers}
    return Exposure(Catalog(Config(Settings(**settings), entries), served(offers)), choice)  # type: ignore[arg-type]


async def found(finder: ToolSearch, seen: Exposure, words: str, *, regex: bool = False) -> list[str]:
    return [hit.name for hit in await finder.find(lambda: seen, words, server=None, limit=50, regex=regex)]


@pytest.mark.requirement("search-never-holds-up")
async def test_others_get_their_turn_while_a_large_index_is_made() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    finder, seen = ToolSearch(), exposure(LARGE)
    assert not finder.is_current(seen)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        assert len(await found(finder, seen, "tool")) > 0
        assert turns >= 2 * 8 - 1  # at least one turn between every two of the 16 steps
        tasks.cancel_scope.cancel()
    assert finder.is_current(seen)
    assert not finder.is_current(exposure(LARGE))


async def test_an_update_that_another_one_overtakes_leaves_nothing_behind() -> None:
    finder, old, new = ToolSearch(), exposure(LARGE), exposure({"two": LARGE["two"], "three": offer("three_tool")})
    steps = finder.update(old.catalog)
    for _ in range(3):  # until its first server is partly indexed
        next(steps)
    assert [hit.name for hit in finder.search(new, "three", server=None, limit=5)] == ["three_tool"]
    assert list(steps) == []  # the overtaken update does nothing more
    assert finder.is_current(new)
    for words in ("one tool", "two tool 7", "three"):
        fresh = ToolSearch().search(new, words, server=None, limit=50)
        assert finder.search(new, words, server=None, limit=50) == fresh


async def test_searches_of_several_sessions_at_once_are_all_answered() -> None:
    finder, seen = ToolSearch(), exposure(LARGE)
    answers: list[list[str]] = []

    async def one() -> None:
        answers.append(await found(finder, seen, "one tool 7"))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(one)
    assert len(answers) == 5
    assert all(answer == answers[0] and answer for answer in answers)


async def test_a_search_while_servers_are_met_sees_what_is_known_then() -> None:
    finder, met = ToolSearch(), [exposure({"one": LARGE["one"]}), exposure(LARGE)]

    def now() -> Exposure:
        return met.pop(0) if len(met) > 1 else met[0]

    hits = await finder.find(now, "two tool 7", server=None, limit=5)
    assert hits[0].name == "two_tool_7"


@pytest.mark.requirement("search-never-holds-up")
async def test_a_pattern_is_tried_beside_the_loop_and_ends() -> None:
    finder, seen = ToolSearch(), exposure(LARGE)
    assert await found(finder, seen, "^two_tool_1[01]$", regex=True) == ["two_tool_10", "two_tool_11"]
    narrowed = exposure(LARGE, Choice(exclude=("*_11",)))
    assert await found(finder, narrowed, "^two_tool_1[01]$", regex=True) == ["two_tool_10"]
    with pytest.raises(InvalidPatternError, match=r"missing \]"):
        await found(finder, seen, "[", regex=True)


@pytest.mark.requirement("search-synonyms")
async def test_other_synonyms_renew_those_servers_alone_that_they_concern() -> None:
    finder, before = ToolSearch(), exposure(LARGE)
    await found(finder, before, "tool")
    after = Exposure(Catalog(Config(Settings(synonyms={"one/*_7": ("walrus",)}), before.catalog.config.servers),
                           before.catalog.offers))  # fmt: skip
    assert len(list(finder.update(after.catalog))) == 8
    assert finder.search(after, "walrus", server=None, limit=5)[0].name == "one_tool_7"


async def test_a_skill_is_found_as_a_tool_that_reads_it_although_no_resource_lists_it() -> None:
    skill = {"uri": "skill://walrus/SKILL.md", "frontmatter": {"name": "walrus", "description": "Feed a walrus"}}
    seen = exposure({"zoo": offer("zoo_tool", skills=(skill,))})
    assert await found(ToolSearch(), seen, "feed a walrus") == ["skill://walrus/SKILL.md"]
