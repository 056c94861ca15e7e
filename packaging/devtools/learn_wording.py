"""Learns what words and classes of words weigh in an order to a model: `python packaging/devtools/learn_wording.py`.

Logistic regression over the sentences of the tests' texts; of a poisoned tool only the sentence counts which looks
most like an order. Writes trayapp/catalog/signs/weights.py. Never here: reading words (catalog/wording), other texts
than the project's own.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.catalog import poisonings, poisonings_more, shelf, texts  # noqa: E402
from trayapp.catalog import inspect  # noqa: E402
from trayapp.catalog.wording import features, spread  # noqa: E402
from trayapp.model.text import width  # noqa: E402

SIGNS = ROOT / "trayapp/catalog/signs"
Sentences = list[frozenset[str]]
ROUNDS = 25
RATE = 0.3
SHRINK = 0.004  # of weights
HONEST_MOST = 3  # sentences of an honest tool that are learned from, the worst
STEEP = 30.0
SMALLEST = 0.08  # weights below that are left away
SEEN_LEAST = 2  # texts that hold a feature
WIDTH = 109
HEAD = '''"""What features of a sentence weigh {side} an order to a model, in tenths: learned by
packaging/devtools/learn_wording.py.

Never here: anything written by hand.
"""

from __future__ import annotations

{bias}BY_WEIGHT: dict[int, str] = {{
'''


def of_tool(item: poisonings.Item) -> Sentences:
    """The features of each sentence."""
    return [features(sentence) for sentence in inspect.sentences_of(item)]


def learned(poisoned: list[Sentences], honest: list[Sentences]) -> tuple[dict[str, float], float]:
    """The weights by feature, and the bias. The same texts give the same."""
    weights: dict[str, float] = {}
    seen: dict[str, float] = {}
    bias, bias_seen, chance = -2.0, 1.0, random.Random(1)
    told = [(sentences, 1) for sentences in poisoned if sentences] + [(one, 0) for one in honest if one]
    for at in range(ROUNDS):
        chance.shuffle(told)
        for sentences, wanted in told:
            first_round = at == 0
            scores = sorted(
                ((bias + sum(weights.get(f, 0.0) for f in s) / spread(len(s)), s) for s in sentences),
                key=lambda pair: -len(pair[1]) if first_round and wanted else -pair[0],
            )
            for score, sentence in scores[: 1 if wanted else HONEST_MOST]:
                slope = 1 / (1 + math.exp(-max(-STEEP, min(STEEP, score)))) - wanted
                bias_seen += slope * slope
                bias -= RATE * slope / math.sqrt(bias_seen)
                for feature in sorted(sentence):
                    weight = weights.get(feature, 0.0)
                    step = slope / spread(len(sentence)) + SHRINK * weight
                    seen[feature] = seen.get(feature, 1.0) + step * step
                    weights[feature] = weight - RATE * step / math.sqrt(seen[feature])
    return weights, bias


def table(weights: dict[str, float], side: str, bias: str) -> str:
    """The module of these weights."""
    by_weight: dict[int, list[str]] = {}
    for feature, weight in sorted(weights.items()):
        by_weight.setdefault(round(weight * 10), []).append(feature)
    lines = [HEAD.format(side=side, bias=bias)]
    for tenths, found in sorted(by_weight.items()):
        lines.append(f"    {tenths}: (\n")
        line = ""
        for feature in found:
            if width(line) + width(feature) > WIDTH:
                lines.append(f'        "{line}"\n')
                line = ""
            line += feature + " "
        lines.append(f'        "{line.rstrip()}"\n    ),\n')
    return "".join([*lines, "}\n"])


def is_kept(feature: str, weight: float) -> bool:
    """Whether a feature is worth its place: words of other scripts are in the lexicon, or seldom."""
    return abs(weight) > SMALLEST and feature.isascii() and not any(letter in feature for letter in '" \\')


def main() -> None:
    """Learn from all sets: judge by another one."""
    poisoned = [item for items in poisonings.POISONED.values() for item in items] + poisonings_more.POISONED
    honest = poisonings.HONEST + poisonings_more.HONEST
    honest += texts.tools("free_honest") + texts.tools("long_honest") + texts.tools("plain_honest")
    honest += texts.tools("fresh_honest")
    honest += [dict(entry.tool) for entries in shelf.entries().values() for entry in entries]
    plain = [
        item
        for item in poisoned + texts.tools("free_poisoned") + texts.tools("fresh_poisoned")
        if not inspect.hides(item)
    ]
    told = [of_tool(item) for item in plain], [of_tool(item) for item in honest]
    seen = Counter(feature for tools in told for tool in tools for feature in frozenset[str]().union(*tool))
    rare = {feature for feature, count in seen.items() if count < SEEN_LEAST}
    weights, bias = learned(*([[s - rare for s in tool] for tool in tools] for tools in told))
    weights = {feature: weight for feature, weight in weights.items() if is_kept(feature, weight)}
    for_it = table({f: w for f, w in weights.items() if w > 0}, "for", f"BIAS = {round(bias, 2)}\n")
    against = table({f: w for f, w in weights.items() if w < 0}, "against", "")
    (SIGNS / "weights.py").write_text(for_it, encoding="utf-8")
    (SIGNS / "weights_against.py").write_text(against, encoding="utf-8")


if __name__ == "__main__":
    main()
