"""The finding of an inspection: what was found in a definition, where, and the texts that a person sees."""

from __future__ import annotations

from typing import Literal, NamedTuple

from trayapp.model.text import one_line, shortened

Severity = Literal["high", "medium"]  # high: withheld until approved; medium: served, and reported

EVIDENCE_LONGEST = 240  # columns
MARKED_LONGEST = 120
PLACE_LONGEST = 80
CLEANED_MOST = 8 * EVIDENCE_LONGEST  # characters of evidence that are cleaned: many of them may be invisible


class Finding(NamedTuple):
    """Something suspicious in a definition."""

    code: str  # a stable name for the kind of finding
    severity: Severity
    where: str  # place in the definition
    evidence: str  # the server's text, cleaned, shortened and on one line
    reason: str = ""  # why it is suspicious, as a sentence for people
    marked: str = ""  # the part of `evidence` that a rule matched, or empty


def finding(code: str, severity: Severity, where: str, reason: str, evidence: str = "", marked: str = "") -> Finding:
    """Return a finding, with every text from a server cleaned and shortened."""
    said, part = _plain(evidence[:CLEANED_MOST]), _plain(marked)
    if len(said) > EVIDENCE_LONGEST and part in said:  # begin near the marked part, so that it is shown
        said = said[max(0, said.index(part) - EVIDENCE_LONGEST // 3) :]
    return Finding(
        code,
        severity,
        _plain(where)[:PLACE_LONGEST],
        shortened(said, EVIDENCE_LONGEST),
        shortened(_plain(reason), EVIDENCE_LONGEST),
        shortened(part, MARKED_LONGEST),
    )


def is_held(findings: tuple[Finding, ...]) -> bool:
    """Return True if any of the findings is serious enough to withhold the definition."""
    return any(found.severity == "high" for found in findings)


def _plain(text: str) -> str:
    line = one_line(text)
    return line if line.isprintable() else "".join(filter(str.isprintable, line))
