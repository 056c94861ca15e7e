"""One sign of an order: a pattern over lower-case text, what it points to, what it weighs.

Never here: the signs themselves, weighing them together (orders).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trayapp.model.late import late


@dataclass(frozen=True, slots=True)
class Sign:
    """`code` names what it points to; `hint`: lower-case parts one of which every match holds, split at "|"
    "", which are
    cheap to look for first."""

    code: str
    weight: int
    pattern: re.Pattern[str]  # compiled where `hint` is found, which in honest catalogs is seldom
    hint: str
    needs: re.Pattern[str] | None  # a part of the pattern that is rare, and quicker to look for


def sign(code: str, weight: int, pattern: str, hint: str, needs: str = "") -> Sign:
    """See Sign."""
    return Sign(code, weight, late(pattern), hint, late(needs) if needs else None)
