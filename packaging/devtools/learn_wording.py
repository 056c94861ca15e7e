"""Learns what words and classes of words weigh in an order to a model: `python packaging/devtools/learn_wording.py`.

A linear support vector machine over the windows of the tests' texts; of a poisoned tool only the window counts which
looks most like an order. Writes trayapp/catalog/signs/weights.py and weights.bin. `--held-out` measures instead: each
author's texts by what was learned from others'. Never here: reading words (catalog/wording), other texts than the
project's own.
"""

from __future__ import annotations

import math
import random
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.catalog import poisonings, poisonings_more, shelf, texts  # noqa: E402
from trayapp.catalog import inspect  # noqa: E402
from trayapp.catalog.signs import weights as known  # noqa: E402
from trayapp.catalog.wording import BY_CHANCE, ZERO, features, tag, windows  # noqa: E402
from trayapp.model.offer import Item  # noqa: E402

SIGNS = ROOT / "trayapp/catalog/signs"
LARGEST = 127  # of a byte with a sign
COST = 0.15  # of what is on the wrong side: chosen by --held-out among 0.03 to 1
PICKS = 3  # times the window of a poisoned tool is chosen anew
PASSES = 12  # over all texts, a pick
MARGIN = 0.03  # above that threshold: real catalogs have longer descriptions than the authors' texts
KEPT = 40_000  # features, the heaviest: with more, and without the table's limits, no more is found
SMALL = 25  # words of a small window: what honest texts say in few words is learned, too
SEEN_LEAST = 2  # windows that hold a feature
SIGN_VALUE = 0.9  # of a sign, beside 1 / sqrt(features) x rareness of a feature
FOLDS = 6
FLAGGED = 0.05  # of honest look-alikes by an unseen author, that a threshold is chosen for
NAME = '''"""What the signs of an order weigh beside its wording, and how the table of weights is read: learned by
packaging/devtools/learn_wording.py.

Never here: anything written by hand.
"""

from __future__ import annotations

MASK = {mask}  # places in the table, less one
SCALE = {scale}  # of a byte of it
BIAS = {bias}
BY_SIGN = {{
{signs}}}
'''
Places = frozenset[int]
Table = dict[int | str, float]


class Told(NamedTuple):
    """One tool: the features of its windows, of honest ones those of small windows, too; the names of its signs."""

    author: str
    windows: list[Places]
    small: list[Places]
    signs: tuple[str, ...]
    poisoned: bool


class Sample(NamedTuple):
    """One window as it is learned from: its features, already scaled, and the side that it belongs to."""

    parts: list[tuple[int | str, float]]
    side: int


def told(author: str, items: Iterable[Item], *, poisoned: bool) -> list[Told]:
    """The tools of one set; of the poisoned those whose words alone give them away."""
    return [tool_of(author, item, poisoned=poisoned) for item in items if not (poisoned and inspect.hides(item))]


def tool_of(author: str, item: Item, *, poisoned: bool) -> Told:
    """One tool."""
    found = list(inspect.sentences_of(item))
    large = list(map(features, windows(found))) or [frozenset()]
    small = [] if poisoned else [part for part in map(features, windows(found, SMALL)) if part not in large]
    return Told(author, large, small, inspect.signs_of(item), poisoned)


def everything() -> list[Told]:
    """All texts that there are."""
    found = told("own", [item for items in poisonings.POISONED.values() for item in items], poisoned=True)
    found += told("own", poisonings_more.POISONED, poisoned=True)
    found += told("own", poisonings.HONEST + poisonings_more.HONEST, poisoned=False)
    real = [dict(entry.tool) for entries in shelf.entries().values() for entry in entries]
    found += told("real", real, poisoned=False)
    found += told("catalogs", texts.catalogs(), poisoned=False)
    for author in texts.AUTHORS:
        found += told(author, texts.tools(f"{author}_poisoned"), poisoned=True)
        found += told(author, texts.tools(f"{author}_honest"), poisoned=False)
    return found


def rareness(tools: Sequence[Told]) -> Table:
    """How much a feature is worth by how seldom it is; 0 for one that is not worth its place."""
    seen = Counter(place for tool in tools for window in tool.windows for place in window)
    count = sum(len(tool.windows) for tool in tools)
    return {place: math.log((1 + count) / (1 + n)) + 1 for place, n in seen.items() if n >= SEEN_LEAST}


def sample(window: Places, signs: tuple[str, ...], side: int, rare: Table) -> Sample:
    """A window with the signs of its tool."""
    spread = math.sqrt(max(1, len(window)))
    parts: list[tuple[int | str, float]] = [(place, rare[place] / spread) for place in sorted(window) if place in rare]
    return Sample([*parts, *((sign, SIGN_VALUE) for sign in signs), ("bias", 1.0)], side)


def solved(samples: list[Sample]) -> Table:
    """The machine's weights, by dual coordinate descent (Hsieh and others, 2008; squared loss)."""
    weights: Table = dict.fromkeys({part for one in samples for part, _ in one.parts}, 0.0)
    held = [0.0] * len(samples)
    norms = [sum(value * value for _, value in one.parts) + 0.5 / COST for one in samples]
    order, chance = list(range(len(samples))), random.Random(1)
    for _ in range(PASSES):
        chance.shuffle(order)
        for at in order:
            parts, side = samples[at]
            slope = side * sum([weights[part] * value for part, value in parts]) - 1 + held[at] * 0.5 / COST
            new = max(held[at] - slope / norms[at], 0.0)
            if step := (new - held[at]) * side:
                held[at] = new
                for part, value in parts:
                    weights[part] += step * value
    return weights


def learned(tools: Sequence[Told]) -> Table:
    """The weights by feature and by sign, and the bias. The same texts give the same."""
    rare = rareness(tools)
    poisoned, others = [tool for tool in tools if tool.poisoned], [tool for tool in tools if not tool.poisoned]
    honest = [sample(window, tool.signs, -1, rare) for tool in others for window in tool.windows]
    honest += [sample(window, (), -1, rare) for tool in others for window in tool.small]
    chosen = [max(tool.windows, key=len) for tool in poisoned]
    for _ in range(PICKS):
        picked = [sample(window, tool.signs, 1, rare) for window, tool in zip(chosen, poisoned, strict=True)]
        weights = solved(honest + picked)
        by_place = {place: weights.get(place, 0.0) * rare[place] for place in rare}
        chosen = [max(tool.windows, key=lambda window: worded(window, by_place)) for tool in poisoned]
    return {**weights, **by_place}


def worded(window: Places, weights: Table) -> float:
    """The score of a window's words."""
    return sum(weights.get(place, 0.0) for place in window) / math.sqrt(max(1, len(window)))


def scored(tool: Told, weights: Table) -> float:
    """The score of a tool, as catalog/inspect has it."""
    signs = sum(weights.get(sign, 0.0) for sign in tool.signs) * SIGN_VALUE
    chance = BY_CHANCE * math.log2(len(tool.windows))
    return max(worded(window, weights) for window in tool.windows) + signs + weights["bias"] - chance


def rounded(weights: Table) -> tuple[Table, float]:
    """The weights as their bytes hold them, and the scale of these."""
    scale = max(abs(weight) for part, weight in weights.items() if isinstance(part, int)) / LARGEST
    return {p: round(w / scale) * scale if isinstance(p, int) else w for p, w in weights.items()}, scale


def write(weights: Table, threshold: float) -> None:
    """What the program reads."""
    exact, scale = rounded(weights)
    table = array("H", bytes(2 * (known.MASK + 1)))
    by_weight = sorted((-abs(weight), place, weight) for place, weight in exact.items() if isinstance(place, int))
    for _, place, weight in by_weight[:KEPT]:
        if not table[place & known.MASK]:  # else it is a heavier one's
            table[place & known.MASK] = tag(place) << 8 | round(weight / scale) + ZERO
    if sys.byteorder == "big":
        table.byteswap()
    (SIGNS / "weights.bin").write_bytes(table.tobytes())
    names = sorted(part for part in weights if isinstance(part, str) and part != "bias")
    signs = "".join(f'    "{name}": {weights[name] * SIGN_VALUE:.2f},\n' for name in names)
    bias = round(weights["bias"] - threshold - MARGIN, 3)
    text = NAME.format(mask=known.MASK, scale=f"{scale:.5f}", bias=bias, signs=signs)
    (SIGNS / "weights.py").write_text(text, encoding="utf-8")


def held_out(tools: Sequence[Told], say: Callable[[str], None]) -> float:
    """What is found, and flagged, of each author's texts by what was learned from others'; the threshold at which
    no more than FLAGGED of all the honest ones are flagged."""
    scores: dict[str, list[tuple[float, bool]]] = {}
    authors = sorted({tool.author for tool in tools if tool.poisoned})
    for away in (authors[at::FOLDS] for at in range(FOLDS)):
        weights, _ = rounded(learned([tool for tool in tools if tool.author not in away]))
        for author in away:
            scores[author] = [(scored(tool, weights), tool.poisoned) for tool in tools if tool.author == author]
    honest = sorted(score for found in scores.values() for score, poisoned in found if not poisoned)
    threshold = honest[-max(1, int(len(honest) * FLAGGED))]
    for author, found in [*scores.items(), ("all", [pair for pairs in scores.values() for pair in pairs])]:
        rates = [
            sum(score > threshold for score, of in found if of is side) / max(1, sum(of is side for _, of in found))
            for side in (True, False)
        ]
        say(f"{author:10} found {rates[0]:.2f} flagged {rates[1]:.2f}")
    say(f"threshold {threshold:.2f}")
    return threshold


def main() -> None:
    """Learn from all sets."""
    tools = everything()
    threshold = held_out(tools, print)
    if "--held-out" not in sys.argv:
        write(learned(tools), threshold)


if __name__ == "__main__":
    main()
