"""Each cause with what follows from it, as a tree: how it makes the job slow, why each consequence follows."""

from __future__ import annotations

from topodiag.draw.chain import draw_chain
from topodiag.report.html.interface import Anchors, Section, Sheet, causes_of, drawings_of
from topodiag.report.places import Places
from topodiag.report.verdict.cause import STATUS, groups_below

CAUSES_SHOWN = 20
EVIDENCE_SHOWN = 4
LEAST_DRAWN = 2


def section(sheet: Sheet) -> Section | None:
    """The causes of a verdict; for other reports the findings that explain others."""
    result, causes = sheet.result, causes_of(sheet.result)
    if result.verdict is None:
        causes = [cause for cause in causes if cause.consequences]
    if not causes:
        return None
    below = sum(len(cause.consequences) for cause in causes)
    # A box or two say no more than their words.
    svg = draw_chain(result.verdict, prefix="chain") if result.verdict is not None and below >= LEAST_DRAWN else ""
    values = {
        "causes": [(cause, groups_below(cause)) for cause in causes[:CAUSES_SHOWN]],
        "left": len(causes) - CAUSES_SHOWN,
        "drawings": drawings_of(("Each cause with what follows from it", svg)),
        "anchors": Anchors(result),
        "places": Places(result),
        "quoted": EVIDENCE_SHOWN if result.verdict is not None else 0,
        "words": {status: words[0] for status, words in STATUS.items()} if result.verdict is not None else {},
    }
    return Section("chain", "Cause and consequences", values)
