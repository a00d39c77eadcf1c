"""What it is not, what nothing explains, and what was not seen: the answer rests on no more than was read."""

from __future__ import annotations

from collections.abc import Iterable

from topodiag.model.finding import Status
from topodiag.model.result import Result, Trouble
from topodiag.report.gaps import disagreements, gaps_of, unread_count, why_of
from topodiag.report.html.interface import Section, Sheet
from topodiag.report.html.sections.shared import distinct
from topodiag.report.places import Places
from topodiag.words.fold import few, grouped, plural

MOST = 200
QUOTED = 300
"""Characters of a line that is quoted."""
NAMED = 12


def section(sheet: Sheet) -> Section | None:
    """None where nothing is open and nothing was ruled out."""
    result = sheet.result
    verdict, unknown = result.verdict, result.with_status(Status.UNKNOWN)
    groups = [
        ("Ruled out", "ok", [(part.what, part.by) for part in (verdict.ruled_out if verdict is not None else ())]),
        ("Not explained", "warning", _unexplained(result)),
        ("Sources that contradict each other", "warning", [(c.subject, c.text) for c in result.identity.conflicts]),
        ("Could not be judged", "unknown", _folded((o.check, o.why or "no reason given") for o in unknown)),
        ("Not seen", "unknown", _folded((gap.what, why_of(gap)) for gap in gaps_of(result))),
        ("Sources disagree", "note", _folded(disagreements(result))),
        ("Known to be harmless", "note", [_trouble(line, result) for line in result.unexplained if line.harmless]),
        ("Lines that were not understood", "note", _unread(result)),
        ("What the verdict rests on", "note", [(line, "") for line in (verdict.joined if verdict is not None else ())]),
    ]
    shown = [group for group in groups if group[2]]
    return Section("open", "Ruled out, not seen, not explained", {"groups": shown, "most": MOST}) if shown else None


def _unexplained(result: Result) -> list[tuple[str, str]]:
    verdict = result.verdict
    texts = {cause.price.says for cause in verdict.causes} if verdict is not None else set()
    words = [(line, "") for line in (verdict.not_explained if verdict is not None else ()) if line not in texts]
    return words + [_trouble(trouble, result) for trouble in result.unexplained if not trouble.harmless]


def _trouble(line: Trouble, result: Result) -> tuple[str, str]:
    place = f"{Places(result).spell(line.origin)}  " if line.origin is not None else ""
    times = f" (x {line.count})" if line.count > 1 else ""
    return f"{place}{' '.join(line.text.split())[:QUOTED]}{times}", line.harmless or line.what


def _folded(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Things of one reason together."""
    return [(few(distinct(whats), NAMED), why) for why, whats in grouped((why, what) for what, why in pairs).items()]


def _unread(result: Result) -> list[tuple[str, str]]:
    pairs = [(f"{line.place}  {line.text[:QUOTED]}", line.why) for line in result.unread[:MOST]]
    rest = unread_count(result) - len(pairs)
    return [*pairs, (plural(rest, "more line"), "")] if rest > 0 else pairs
