"""What the result does not rest on: unanswered checks, evidence not seen, sources at odds, lines not understood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from topodiag.model.finding import Outcome, Status
from topodiag.model.provenance import PART, NotObserved
from topodiag.model.result import Result, Trouble
from topodiag.report.text import BELOW, Page, Part
from topodiag.report.words import unexplained_words
from topodiag.words.fold import few, grouped, plural

QUOTED = 200
"""Characters of a line of trouble that are shown."""
SHOWN = 3
"""Lines of trouble before the rest is only counted (`-v` shows all)."""


def draw_gaps(page: Page, result: Result) -> None:
    """All of them, each only when there is something to say: a line for all, with -v each with its reason."""
    _draw_unexplained(page, result.unexplained)
    if not page.style.verbose:
        _draw_counts(page, result)
        return
    _draw_unknown(page, result.with_status(Status.UNKNOWN))
    _draw_not_observed(page, gaps_of(result))
    clashes = disagreements(result)
    _draw_by_reason(page, clashes, f"sources disagree on {plural(len(clashes), 'value')}", lead=("● ", "info"))
    _draw_unread(page, result)
    _draw_silent(page, result)


def draw_unreadable(page: Page, result: Result) -> None:
    """Inputs that are there and could not be read, with the reason: they stand at the top, for they may hold the
    cause."""
    broken = [gap for gap in result.not_observed if gap.unreadable]
    rows = [(gap.why if gap.what == PART else f"{gap.what}: {gap.why}",) for gap in broken]
    page.entries("not read", rows, SHOWN, "input", hue="doubtful", lines=2)


def _draw_counts(page: Page, result: Result) -> None:
    """What was not seen, counted in a line; inputs that were not read, each in a line; and what would help most."""
    unknown, probes = result.with_status(Status.UNKNOWN), [gap for node in result.nodes for gap in node.not_observed]
    rooted = sum(gap.needs_root for gap in probes)
    clashes, unread = len(disagreements(result)), unread_count(result)
    need = f" ({plural(rooted, 'needs', 'need')} root)" if rooted else ""
    words = [
        f"{plural(len(unknown), 'check')} could not run" if unknown else "",
        f"{plural(len(probes), 'source')} not observed{need}" if probes else "",
        f"sources disagree on {plural(clashes, 'value')}" if clashes else "",
        f"{plural(unread, 'line')} not understood" if unread else "",
    ]
    inputs = [gap for gap in result.not_observed if gap not in probes and not gap.unreadable]
    if any(words) or inputs:
        page.blank()
    if any(words):
        page.add_items(("? ", "unknown"), [*filter(None, words), ("-v says why", "dim")])
    for gap in inputs[:SHOWN]:
        page.entry("not read", (gap.what, "strong"), f": {gap.why}", most=1)
    page.add_more(len(inputs) - SHOWN, "input", indent=BELOW)
    page.entry("next", _remedy(result, unknown), hue="ok")


def _remedy(result: Result, unknown: Sequence[Outcome]) -> str:
    if result.jobs and all(job.only_ras for job in result.jobs):
        return "give the job's log with the answers: topodiag ras --with LOG"
    return _shared_remedy([outcome.why for outcome in unknown])


def _draw_unexplained(page: Page, lines: Sequence[Trouble]) -> None:
    """Lines of trouble that no finding explains; those that are known to be harmless with the reason."""
    open_ = [line for line in lines if not line.harmless]
    if open_:
        page.heading(unexplained_words(open_), lead=("? ", "doubtful"))
        _draw_troubles(page, open_)
    known = [line for line in lines if line.harmless]
    if known:
        count = plural(sum(line.count for line in known), "line")
        page.heading(f"{count} of trouble known to be harmless", lead=("● ", "info"))
        _draw_troubles(page, known)


def _draw_troubles(page: Page, lines: Sequence[Trouble]) -> None:
    for line in page.listed(lines, SHOWN, "line", indent="    "):
        place = (f"{page.fitting(str(line.origin), 6)}  ", "close") if line.origin is not None else ""
        times = f" ×{line.count}" if line.count > 1 else ""
        text = " ".join(line.text.split())
        reason = f"  {line.harmless}" if line.harmless else ""
        page.add("    ", place, text[:QUOTED], (times, "strong"), (reason, "dim"))


def gaps_of(result: Result) -> list[NotObserved]:
    """What was not observed, of the run and of its nodes, each once."""
    return list(dict.fromkeys((*result.not_observed, *(gap for node in result.nodes for gap in node.not_observed))))


def _draw_unknown(page: Page, outcomes: Sequence[Outcome]) -> None:
    pairs = [(outcome.check, outcome.why or "no reason given") for outcome in outcomes]
    remedy = _shared_remedy([why for _, why in pairs])
    reasons = [(check, why.removesuffix(f"; {remedy}")) for check, why in pairs]
    _draw_by_reason(page, reasons, f"{plural(len(outcomes), 'check')} could not run")
    if remedy:
        checks = [check for check, why in pairs if why.endswith(f"; {remedy}")]
        page.add("    ", (f"for {few(list(dict.fromkeys(checks)), 6)}: ", "dim"), remedy)


def _shared_remedy(reasons: Sequence[str]) -> str:
    """What most reasons end with, after their semicolon: it is told once. "" where fewer than two agree."""
    ends = Counter(why.rpartition("; ")[2] for why in reasons if "; " in why)
    remedy, times = max(ends.items(), key=lambda pair: pair[1], default=("", 0))
    return remedy if times > 1 else ""


def _draw_silent(page: Page, result: Result) -> None:
    texts = {finding.id for finding in result.findings}
    for status, title in ((Status.CLEAN, "found nothing"), (Status.NOT_APPLICABLE, "not applicable here")):
        pairs = [(outcome.check, outcome.why) for outcome in result.with_status(status) if outcome.check not in texts]
        _draw_by_reason(page, pairs, f"{plural(len(pairs), 'check')}: {title}", lead="  ")


def _draw_not_observed(page: Page, gaps: Sequence[NotObserved]) -> None:
    rooted = sum(gap.needs_root for gap in gaps)
    need = f"  {rooted} of these {'needs' if rooted == 1 else 'need'} root" if rooted else ""
    pairs = [(gap.what, why_of(gap)) for gap in gaps]
    _draw_by_reason(page, pairs, f"{plural(len(gaps), 'thing')} not observed", (need, "doubtful"))


def why_of(gap: NotObserved) -> str:
    """Why something was not observed, and whether root would show it."""
    return gap.why if "root" in gap.why.lower() or not gap.needs_root else f"{gap.why} (root would show it)"


def _draw_by_reason(
    page: Page, pairs: Sequence[tuple[str, str]], title: str, *notes: Part, lead: Part = ("? ", "unknown")
) -> None:
    """Where there are any, the title and lines `things — reason`, things of one reason together, in the order in which
    reasons first came."""
    if pairs:
        page.heading(title, *notes, lead=lead)
    for why, whats in grouped((why, what) for what, why in pairs).items():
        reason: list[Part] = [(f"{word} ", "dim") for word in f"— {why}".split()] if why else []
        page.add_items("    ", list(dict.fromkeys(whats)), ", ", tail=[" ", *reason])


def unread_count(result: Result) -> int:
    """Lines that no parser understood, those kept without their text too."""
    return max(sum(piece.unparsed for piece in result.inputs), len(result.unread))


def disagreements(result: Result) -> list[tuple[str, str]]:
    """Values on which sources disagree, each with what is used and what is not."""
    return [
        (
            f"{item.subject}: {item.field}",
            f"used {item.taken} ({item.taken_from}), ignored {item.other} ({item.other_from})",
        )
        for node in result.nodes
        for item in node.disagreements
    ]


def _draw_unread(page: Page, result: Result) -> None:
    if count := unread_count(result):
        page.heading(f"{plural(count, 'line')} of the evidence not understood", lead=("● ", "info"))
    for line in result.unread:
        page.add("    ", (line.place, "close"), f"  {line.text}" if line.text else "", (f"  {line.why}", "dim"))
    if count > len(result.unread):
        page.add("    ", (f"… and {plural(count - len(result.unread), 'more line')}", "dim"))
