"""The checks that found nothing, and those that do not apply, counted over nodes: folded away with their reasons."""

from __future__ import annotations

from collections import Counter
from typing import Any

from topodiag.model.finding import Status
from topodiag.model.maker import dialect_of_all
from topodiag.model.result import Result
from topodiag.report.html.interface import Section, Sheet
from topodiag.report.words import judged, title_of
from topodiag.words.fold import grouped

REASONS_SHOWN = 3


def section(sheet: Sheet) -> Section | None:
    """None where no check ran."""
    result = sheet.result
    if not result.outcomes:
        return None
    groups = [
        {"title": title, "rows": rows, "count": len(rows)}
        for title, status in (("found nothing", Status.CLEAN), ("not applicable here", Status.NOT_APPLICABLE))
        if (rows := _rows(result, status))
    ]
    if not groups:
        return None
    return Section("checks", "Checks that passed", {"groups": groups, "tally": str(judged(result))})


def _rows(result: Result, status: Status) -> list[dict[str, Any]]:
    rows, dialect = [], dialect_of_all(result)
    reasons = grouped((outcome.check, outcome.why) for outcome in result.with_status(status))
    for name, whys in sorted(reasons.items()):
        common = Counter(filter(None, whys)).most_common()
        words = [f"{why} ({times} times)" if times > 1 else why for why, times in common[:REASONS_SHOWN]]
        rest = len(common) - len(words)
        rows.append({"check": name, "title": title_of(name, dialect), "count": len(whys),
                     "why": "; ".join(words) + (f"; and {rest} more reasons" if rest > 0 else "")})  # fmt: skip
    return rows
