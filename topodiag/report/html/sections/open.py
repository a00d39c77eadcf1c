"""What it is not, what nothing explains, and what was not seen: the answer rests on no more than was read."""

from __future__ import annotations

from topodiag.model.maker import dialect_of_all
from topodiag.model.result import Result, Trouble
from topodiag.report.gaps import Group, groups_of, not_read, silent
from topodiag.report.html.interface import Section, Sheet
from topodiag.report.places import Places
from topodiag.report.words import judged, title_of
from topodiag.words.dialect import Dialect
from topodiag.words.units import few

MOST = 200
QUOTED = 300
"""Characters of a line that is quoted."""
NAMED = 40


def section(sheet: Sheet) -> Section | None:
    """None where nothing is open and nothing was ruled out."""
    result = sheet.result
    verdict, spoken = result.verdict, dialect_of_all(result)
    cleared = [(part.what, part.by) for part in verdict.ruled_out] if verdict is not None else []
    rests = [(line, "") for line in verdict.joined] if verdict is not None else []
    groups = [
        ("Ruled out", "ok", cleared),
        ("Not explained", "warning", _unexplained(result)),
        ("Sources that contradict each other", "warning", [(c.subject, c.text) for c in result.identity.conflicts]),
        *((group.title, group.hue, _folded(group, spoken)) for group in (*groups_of(result), not_read(result))),
        ("Known to be harmless", "info", [_trouble(line, result) for line in result.unexplained if line.harmless]),
        ("What the verdict rests on", "info", rests),
        *((group.title, group.hue, _folded(group, spoken)) for group in silent(result)),
    ]
    shown = [group for group in groups if group[2]]
    note = str(judged(result)) if result.outcomes else ""
    return (
        Section("open", "Ruled out, not seen, not explained", {"groups": shown, "most": MOST}, note) if shown else None
    )


def _unexplained(result: Result) -> list[tuple[str, str]]:
    verdict = result.verdict
    texts = {cause.price.says for cause in verdict.causes} if verdict is not None else set()
    words = [(line, "") for line in (verdict.not_explained if verdict is not None else ()) if line not in texts]
    return words + [_trouble(trouble, result) for trouble in result.unexplained if not trouble.harmless]


def _trouble(line: Trouble, result: Result) -> tuple[str, str]:
    place = f"{Places(result).spell(line.origin)}  " if line.origin is not None else ""
    times = f" (x {line.count})" if line.count > 1 else ""
    return f"{place}{' '.join(line.text.split())[:QUOTED]}{times}", line.harmless or line.what


def _folded(group: Group, spoken: Dialect) -> list[tuple[str, str]]:
    """Things of one reason together, checks with their titles."""
    return [
        (few([f"{what} {title_of(what, spoken)}".strip() for what in whats], NAMED), why)
        for why, whats in group.by_reason().items()
    ]
