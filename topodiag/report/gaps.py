"""What the result does not rest on: unanswered checks, evidence not seen, sources at odds, lines not understood."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from topodiag.model.finding import Outcome, Status
from topodiag.model.provenance import Disagreement, NotObserved
from topodiag.model.result import Result, Trouble
from topodiag.report.node.marks import more
from topodiag.report.text import Page
from topodiag.report.words import unexplained_words
from topodiag.words.fold import plural

QUOTED = 200
"""Characters of a line of trouble that are shown."""
SHOWN = 8
"""Lines of each kind before the rest is only counted (`-v` shows all)."""


def draw_gaps(page: Page, result: Result) -> None:
    """All of them, each only when there is something to say."""
    _draw_unexplained(page, result.unexplained)
    if result.jobs and not any(job.processes for job in result.jobs) and not page.style.verbose:
        _draw_without_nccl(page, result.with_status(Status.UNKNOWN), by_ras=all(job.only_ras for job in result.jobs))
    else:
        _draw_unknown(page, result.with_status(Status.UNKNOWN))
    _draw_not_observed(page, gaps_of(result))
    _draw_disagreements(page, [d for node in result.nodes for d in node.disagreements])
    _draw_unread(page, result)
    if page.style.verbose:
        _draw_silent(page, result)


def _draw_unexplained(page: Page, lines: Sequence[Trouble]) -> None:
    """Lines of trouble that no finding explains; those that are known to be harmless with the reason."""
    open_ = [line for line in lines if not line.harmless]
    if open_:
        page.blank()
        page.add(page.text(("? ", "doubtful")), (unexplained_words(open_), "strong"))
        _draw_troubles(page, open_)
    known = [line for line in lines if line.harmless]
    if known:
        page.blank()
        count = plural(sum(line.count for line in known), "line")
        page.add(page.text(("● ", "info")), (f"{count} of trouble known to be harmless", "strong"))
        _draw_troubles(page, known)


def _draw_troubles(page: Page, lines: Sequence[Trouble]) -> None:
    shown = lines if page.style.verbose else lines[:SHOWN]
    for line in shown:
        place = (f"{page.fitting(str(line.origin), 6)}  ", "close") if line.origin is not None else ""
        times = f" ×{line.count}" if line.count > 1 else ""
        text = " ".join(line.text.split())
        page.add(
            "    ", place, text[:QUOTED], (times, "strong"), (f"  {line.harmless}" if line.harmless else "", "dim")
        )
    if len(lines) > len(shown):
        page.add("    ", (more(len(lines) - len(shown), "line"), "dim"))


def gaps_of(result: Result) -> list[NotObserved]:
    """What was not observed, of the run and of its nodes, each once."""
    return list(dict.fromkeys((*result.not_observed, *(gap for node in result.nodes for gap in node.not_observed))))


def _draw_unknown(page: Page, outcomes: Sequence[Outcome]) -> None:
    if not outcomes:
        return
    page.blank()
    page.add(page.text(("? ", "unknown")), (plural(len(outcomes), "check") + " could not judge", "strong"))
    pairs = [(outcome.check, outcome.why or "no reason given") for outcome in outcomes]
    remedy = _shared_remedy([why for _, why in pairs])
    _draw_by_reason(page, ((check, why.removesuffix(f"; {remedy}")) for check, why in pairs))
    if remedy:
        page.add("    ", (f"for {'these' if len(pairs) > 1 else 'this'}: ", "dim"), remedy)


def _draw_without_nccl(page: Page, outcomes: Sequence[Outcome], *, by_ras: bool) -> None:
    """One reason for all of them: not a line of NCCL's."""
    if not outcomes:
        return
    page.blank()
    words = f"{plural(len(outcomes), 'check')} could not judge: no line is NCCL's"
    if by_ras:
        words = f"{plural(len(outcomes), 'check')} could not judge: they need the job's log, which RAS does not have"
    page.add(page.text(("? ", "unknown")), (words, "strong"))
    if by_ras:
        page.add("    ", ("for these: ", "dim"), "give its log with the answers: topodiag ras --with LOG")
        return
    remedy = _shared_remedy([outcome.why for outcome in outcomes])
    if remedy:
        page.add("    ", ("for these: ", "dim"), remedy)


def _shared_remedy(reasons: Sequence[str]) -> str:
    """What most reasons end with, after their semicolon: it is told once. "" where fewer than two agree."""
    ends = Counter(why.rpartition("; ")[2] for why in reasons if "; " in why)
    remedy, times = max(ends.items(), key=lambda each: each[1], default=("", 0))
    return remedy if times > 1 else ""


def _draw_silent(page: Page, result: Result) -> None:
    for status, title in ((Status.CLEAN, "found nothing"), (Status.NOT_APPLICABLE, "not applicable here")):
        outcomes = result.with_status(status)
        if outcomes:
            page.blank()
            page.add("  ", (f"{plural(len(outcomes), 'check')}: {title}", "strong"))
            _draw_by_reason(page, ((outcome.check, outcome.why) for outcome in outcomes))


def _draw_not_observed(page: Page, gaps: Sequence[NotObserved]) -> None:
    if not gaps:
        return
    page.blank()
    rooted = sum(1 for gap in gaps if gap.needs_root)
    need = f"  {rooted} of these {'needs' if rooted == 1 else 'need'} root" if rooted else ""
    page.add(page.text(("? ", "unknown")), (plural(len(gaps), "thing") + " not observed", "strong"), (need, "doubtful"))
    _draw_by_reason(page, ((gap.what, _root_said(gap)) for gap in gaps))


def _root_said(gap: NotObserved) -> str:
    return gap.why if "root" in gap.why.lower() or not gap.needs_root else f"{gap.why} (root would show it)"


def _draw_by_reason(page: Page, pairs: Iterable[tuple[str, str]]) -> None:
    """Lines `things — reason`, things of one reason together, in the order in which reasons first came."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for what, why in pairs:
        by_reason[why].append(what)
    reasons = list(by_reason.items())
    shown = reasons if page.style.verbose else reasons[:SHOWN]
    for why, whats in shown:
        distinct = list(dict.fromkeys(whats))
        names = distinct if page.style.verbose else distinct[:SHOWN]
        rest = f" and {len(distinct) - len(names)} more" if len(distinct) > len(names) else ""
        reason = [(f"{word} ", "dim") for word in f"{rest} — {why}".split()] if why else [rest]
        page.add_items("    ", names, ", ", tail=[" ", *reason])
    if len(reasons) > len(shown):
        page.add("    ", (more(len(reasons) - len(shown), "reason"), "dim"))


def _draw_disagreements(page: Page, items: Sequence[Disagreement]) -> None:
    """Like ones (one field, one pair of values) stand on one line, with the sources of the first."""
    if not items:
        return
    page.blank()
    page.add(page.text(("● ", "info")), (f"sources disagree on {plural(len(items), 'value')}", "strong"))
    alike: dict[tuple[str, ...], list[Disagreement]] = defaultdict(list)
    for item in items:
        alike[item.field, item.taken, item.other, item.subject if page.style.verbose else ""].append(item)
    groups = list(alike.values())
    for group in groups if page.style.verbose else groups[:SHOWN]:
        item = group[0]
        rest = f" and {len(group) - 1} more" if len(group) > 1 else ""
        page.add(
            "    ", f"{item.subject}{rest}: {item.field} ",
            ("took ", "dim"), item.taken, (f" ({item.taken_from})", "dim"),
            (", not ", "dim"), item.other, (f" ({item.other_from})", "dim"),
        )  # fmt: skip
    if len(groups) > SHOWN and not page.style.verbose:
        page.add("    ", (more(len(groups) - SHOWN, "value"), "dim"))


def unread_count(result: Result) -> int:
    """Lines that no parser understood, those kept without their text too."""
    return max(sum(piece.unparsed for piece in result.inputs), len(result.unread))


def _draw_unread(page: Page, result: Result) -> None:
    count = unread_count(result)
    if not count:
        return
    page.blank()
    page.add(page.text(("● ", "info")), (f"{plural(count, 'line')} of the evidence not understood", "strong"))
    shown = result.unread if page.style.verbose else result.unread[:3]
    for line in shown:
        place = line.source if line.line is None else f"{line.source}:{line.line}"
        page.add("    ", (place, "close"), f"  {line.text}" if line.text else "", (f"  {line.why}", "dim"))
    if count > len(shown):
        page.add("    ", (more(count - len(shown), "line"), "dim"))
