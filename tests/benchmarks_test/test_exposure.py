"""The benchmark of tool lists runs and measures what it claims to."""

from __future__ import annotations

from tests.benchmarks.exposure import EACH, config, figures, offers


def test_every_figure_has_its_rounds_and_every_list_has_a_target() -> None:
    found = figures((2 * EACH,), rounds=2)
    assert len(found) == 5
    assert {len(values) for figure in found for values in figure.rounds.values()} == {2}
    assert [figure.target is None for figure in found] == ["search" in figure.name for figure in found]


def test_the_catalog_has_as_many_tools_as_it_says() -> None:
    made = offers(5 * EACH)
    assert sum(len(offer.tools) for offer in made.values()) == 5 * EACH
    assert len(config(made).servers) == 5
