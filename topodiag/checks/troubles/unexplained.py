"""Lines that say by themselves that something is wrong: which of them a finding explains. The rest is listed, never
dropped, and beside it nobody says that there are no faults.

Each subject gathers its own lines (`checks/troubles/job.py` for jobs); what counts as explained is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from topodiag.lazy import regex
from topodiag.model.finding import Finding
from topodiag.model.result import Trouble

_VARIES = regex(r"0x[0-9a-fA-F]{1,16}|\d{1,20}")
_BEGIN = 60
"""Characters by which a line is recognised among a finding's words."""


def unexplained(lines: Iterable[Trouble], findings: Sequence[Finding]) -> list[Trouble]:
    """The lines that none of these findings shows as evidence; those that differ in numbers only as one, with their
    count."""
    shown = explained_by(findings)
    troubles: dict[tuple[str, str, str, str], Trouble] = {}
    for line in lines:
        if shown(line):
            continue
        key = (line.subject, line.what, shape(line.text), line.harmless)
        known = troubles.get(key)
        troubles[key] = line if known is None else replace(known, count=known.count + line.count)
    return list(troubles.values())


def explained_by(findings: Sequence[Finding]) -> Callable[[Trouble], bool]:
    """Tells of a line whether one of these findings has it, or one like it, among its evidence or its words."""
    evidence = [origin for finding in findings for origin in finding.evidence]
    places = {(origin.source, origin.line) for origin in evidence if origin.line is not None}
    words = {shape(origin.text) for origin in evidence} | {
        shape(f"{finding.message} {finding.observed}") for finding in findings
    }

    def shown(line: Trouble) -> bool:
        if line.origin is not None and (line.origin.source, line.origin.line) in places:
            return True
        begin = shape(line.text)[:_BEGIN]
        return bool(begin) and any(begin in word for word in words)

    return shown


def shape(text: str) -> str:
    """A text without its numbers, on one line: lines of one shape say the same of different things."""
    return _VARIES.sub("#", " ".join(text.split()))
