"""What the result does not rest on: unanswered checks, evidence not seen, sources at odds, lines not understood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from topodiag.lazy import dataclass
from topodiag.model.finding import Status
from topodiag.model.provenance import PART, NotObserved
from topodiag.model.result import Result, Trouble
from topodiag.report.text import BELOW, Page, Part
from topodiag.report.words import unexplained_words
from topodiag.words.units import few, grouped, plural

QUOTED = 200
"""Characters of a line of trouble that are shown."""
_LEADS: Mapping[str, Part] = {"unknown": ("? ", "unknown"), "info": ("● ", "info"), "dim": "  "}
SHOWN = 3
"""Lines of trouble before the rest is only counted (`-v` shows all)."""


@dataclass(frozen=True, slots=True)
class Group:
    """Things that are open for reasons alike: how many in the title, each thing with its reason."""

    title: str
    hue: str
    pairs: Sequence[tuple[str, str]]

    def by_reason(self) -> dict[str, list[str]]:
        """Things of one reason together, each once, in the order in which reasons first came."""
        reasons = grouped((why, what) for what, why in self.pairs)
        return {why: list(dict.fromkeys(filter(None, whats))) for why, whats in reasons.items()}


def groups_of(result: Result) -> list[Group]:
    """What the result does not rest on, but for inputs that were not read."""
    unknown, probes = _unjudged(result), [gap for node in result.nodes for gap in node.not_observed]
    rooted = sum(gap.needs_root for gap in probes)
    need = f" ({plural(rooted, 'needs', 'need')} root)" if rooted else ""
    count = unread_count(result)
    clashes = [
        (
            f"{item.subject}: {item.field}",
            f"used {item.taken} ({item.taken_from}), ignored {item.other} ({item.other_from})",
        )
        for node in result.nodes
        for item in node.disagreements
    ]
    unread = [(f"{line.place}  {line.text[:QUOTED]}", line.why) for line in result.unread]
    if count > len(unread):
        unread.append((plural(count - len(unread), "more line"), ""))
    checks = len(result.with_status(Status.UNKNOWN))
    groups = (
        Group(f"{plural(checks, 'check')} could not run", "unknown", unknown),
        Group(f"{plural(len(probes), 'source')} not observed{need}", "unknown", _reasons(probes)),
        Group(f"sources disagree on {plural(len(clashes), 'value')}", "info", clashes),
        Group(f"{plural(count, 'line')} not understood", "info", unread),
    )
    return [group for group in groups if group.pairs]


def not_read(result: Result) -> Group:
    """The inputs that were not read, or not to their end."""
    probes = {gap for node in result.nodes for gap in node.not_observed}
    inputs = [gap for gap in dict.fromkeys(result.not_observed) if gap not in probes]
    return Group(f"{plural(len(inputs), 'input')} not read", "unknown", _reasons(inputs))


def draw_gaps(page: Page, result: Result) -> None:
    """All of them, each only when there is something to say: a line for all, with -v each with its reason."""
    _draw_unexplained(page, result.unexplained)
    if not page.style.verbose:
        _draw_counts(page, result)
        return
    for group in (*groups_of(result), not_read(result), *silent(result)):
        if group.pairs:
            page.heading(group.title, lead=_LEADS[group.hue])
        for why, whats in group.by_reason().items():
            reason: list[Part] = [(f"{word} ", "dim") for word in f"— {why}".split()] if why else []
            page.add_items("    ", whats, ", ", tail=[" ", *reason])


def draw_unreadable(page: Page, result: Result) -> None:
    """Inputs that are there and could not be read, with the reason: they stand at the top, for they may hold the
    cause."""
    broken = [gap for gap in result.not_observed if gap.unreadable]
    rows = [(gap.why if gap.what == PART else f"{gap.what}: {gap.why}",) for gap in broken]
    page.entries("not read", rows, SHOWN, "input", hue="doubtful", lines=2)


def _draw_counts(page: Page, result: Result) -> None:
    """What was not seen, counted in a line; inputs that were not read, each in a line; and what would help most."""
    words: list[Part] = [group.title for group in groups_of(result)]
    probes = {gap for node in result.nodes for gap in node.not_observed}
    inputs = [gap for gap in result.not_observed if gap not in probes and not gap.unreadable]
    if words or inputs:
        page.blank()
    if words:
        page.add_items(("? ", "unknown"), [*words, ("-v says why", "dim")])
    for gap in page.listed(inputs, SHOWN, "input", indent=BELOW):
        page.entry("not read", (gap.what, "strong"), f": {gap.why}", most=1)
    page.entry("next", _remedy(result), hue="ok")


def _remedy(result: Result) -> str:
    if result.jobs and all(job.only_ras for job in result.jobs):
        return "give the job's log with the answers: topodiag ras --with LOG"
    return _shared_remedy([outcome.why for outcome in result.with_status(Status.UNKNOWN)])


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


def _unjudged(result: Result) -> list[tuple[str, str]]:
    """The checks that could not run, each with the reason; and for which of them one remedy is enough."""
    outcomes = result.with_status(Status.UNKNOWN)
    remedy = _shared_remedy([outcome.why for outcome in outcomes])
    pairs = [(one.check, (one.why or "no reason given").removesuffix(f"; {remedy}")) for one in outcomes]
    helped = list(dict.fromkeys(one.check for one in outcomes if one.why.endswith(f"; {remedy}")))
    return [*pairs, (f"for {few(helped, 6)}", remedy)] if remedy else pairs


def _shared_remedy(reasons: Sequence[str]) -> str:
    """What most reasons end with, after their semicolon: it is told once. "" where fewer than two agree."""
    ends = Counter(why.rpartition("; ")[2] for why in reasons if "; " in why)
    remedy, times = max(ends.items(), key=lambda pair: pair[1], default=("", 0))
    return remedy if times > 1 else ""


def silent(result: Result) -> Iterator[Group]:
    """The checks that say nothing."""
    blamed = {finding.id for finding in result.findings}
    for status, title in ((Status.CLEAN, "found nothing"), (Status.NOT_APPLICABLE, "not applicable here")):
        pairs = [(outcome.check, outcome.why) for outcome in result.with_status(status) if outcome.check not in blamed]
        yield Group(f"{plural(len(dict(pairs)), 'check')}: {title}", "dim", pairs)


def _reasons(gaps: Iterable[NotObserved]) -> list[tuple[str, str]]:
    """What was not observed, each with why, and whether root would show it."""
    pairs = []
    for gap in gaps:
        hidden = gap.needs_root and "root" not in gap.why.lower()
        pairs.append((gap.what, f"{gap.why} (root would show it)" if hidden else gap.why))
    return pairs


def unread_count(result: Result) -> int:
    """Lines that no parser understood, those kept without their text too."""
    return max(sum(piece.unparsed for piece in result.inputs), len(result.unread))
