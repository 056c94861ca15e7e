"""Estimate of how many tokens a text costs a model (o200k), without the vocabulary of 200,000 entries.

A text is split into pieces by the rules of that encoding, and most pieces are one token. The average cost of longer
pieces was measured on real tool definitions with the real encoding.
"""

from __future__ import annotations

from trayapp.model.late import late

# Splits roughly as o200k_base does: a word with the punctuation mark or space before it (an inner capital begins
# another word), up to three digits, a run of punctuation, whitespace. In scripts without spaces, characters count.
_PIECE = late(
    r"(?:(?![\r\n])[\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f])?(?:(?P<word>[A-Z]*[a-z]+(?:'(?:s|t|re|ve|m|ll|d)\b)?)"
    r"|(?P<capitals>[A-Z]+)|(?P<signs>[\u0e00-\u0eff\u3040-\u9fff\uac00-\ud7af]+)|(?P<other>[^\W\d_a-zA-Z]+[a-z]*))"
    r"|(?P<number>\d{1,3})|(?P<marks> ?(?:[^\s\w]|_)+[\r\n/]*)|(?P<space>\s*[\r\n]+|\s+(?!\S)|\s+)"
)
# Tokens of a piece: the base cost, the length that it covers, and the cost of each further character.
_COSTS: dict[str, tuple[float, int, float]] = {
    "word": (1.03, 6, 0.07), "after_space": (1.01, 8, 0.015), "capitals": (1.0, 1, 0.26), "signs": (1.0, 1, 0.62),
    "other": (1.0, 5, 0.22), "number": (1.0, 3, 1.0), "marks": (1.0, 3, 0.4), "space": (1.0, 64, 0.02),
}  # fmt: skip


def tokens(text: str) -> int:
    """Estimate the tokens of `text`. For 527 real definitions, the error is 3% at the median, a third at worst."""
    total = 0.0
    for piece in _PIECE.finditer(text):
        kind = piece.lastgroup or "marks"
        start, end = piece.span()
        if kind == "word" and text[start] == " ":
            kind = "after_space"
        always, free, each = _COSTS[kind]
        total += always + max(0, end - start - free) * each
    return round(total)
