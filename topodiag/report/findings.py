"""The findings, worst first: what was seen beside what was to be expected, what it costs, and how to put it right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from topodiag.model.finding import Confidence, Cost, Finding, Severity, Where
from topodiag.model.verdict import Price
from topodiag.report.node.marks import SIGNS, more
from topodiag.report.places import Places
from topodiag.report.text import LABEL, Page
from topodiag.words.fold import fold_hosts, fold_labels, numbered
from topodiag.words.units import in_gbs, percent

LEAST_STEP = 0.01
"""Share of a step below which it is told as less than that."""
LIKE_SHOWN = 4
"""Places shown in full of one kind of fault with one fix; the rest are counted (`-v` shows all)."""
EVIDENCE_SHOWN = 2
STEPS_SHOWN = 3
"""Steps of a fix; a node with one fault fits a screen (`-v` shows all)."""


def draw_findings(
    page: Page, findings: Sequence[Finding], *, several_nodes: bool, places: Places | None = None
) -> None:
    """Every finding; neighbours of one kind and one fix share their heading and their fix. A note (info) is one line,
    unless the report is verbose. `places` shorten where the evidence stands."""
    folded = [] if page.style.verbose else [each for each in findings if each.severity is Severity.INFO]
    shown = [each for each in findings if each not in folded] if folded else findings
    for (follows, *_), group in groupby(
        shown, key=lambda f: (_is_short(page, f), f.id, f.severity, f.confidence, f.fix)
    ):
        if follows:
            _draw_consequences(page, list(group), several_nodes)
            continue
        page.blank()
        _draw_group(page, list(group), several_nodes, places)
    if folded:
        page.blank()
        _draw_notes(page, folded, several_nodes)


def _draw_notes(page: Page, notes: Sequence[Finding], several_nodes: bool) -> None:
    """A line each; those of one kind and one sentence share it."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for note in notes:
        alike.setdefault((note.id, note.message), []).append(note)
    for (check, message), group in alike.items():
        places = list(dict.fromkeys(where_words(note.where, several_nodes) for note in group))
        where = places[0] if len(places) == 1 else f"{len(group)} places"
        beside = f"  {where}" if where else ""
        page.add(page.text((SIGNS[Severity.INFO], "info"), " ", (check, "info"), "  "), message, (beside, "dim"))
    page.add("  ", ("notes in full: -v", "dim"))


def _is_short(page: Page, finding: Finding) -> bool:
    """Whether it stands in a line or two below its cause: the reader mends the cause, and this goes with it."""
    return finding.follows is not None and not page.style.verbose


def _draw_consequences(page: Page, group: Sequence[Finding], several_nodes: bool) -> None:
    """What follows from a finding above, each with its reason; the same fault at more places is counted."""
    for finding in group[:LIKE_SHOWN]:
        severity = str(finding.severity)
        where = where_words(finding.where, several_nodes)
        begin = len(page.lines)
        page.add(
            page.text("  └ ", (finding.id, severity), "  "), finding.message, (f"  {where}" if where else "", "dim")
        )
        page.keep_lines(begin, 1)
        if finding.follows is not None:
            begin = len(page.lines)
            page.add(" " * 12, (f"from {finding.follows.check}: {finding.follows.why}", "dim"))
            page.keep_lines(begin, 1)
    if len(group) > LIKE_SHOWN:
        page.add(" " * 12, (more(len(group) - LIKE_SHOWN, "like this", "like this"), "dim"))


def _draw_group(page: Page, group: list[Finding], several_nodes: bool, places: Places | None) -> None:
    shown = group if page.style.verbose else group[:LIKE_SHOWN]
    for finding in shown:
        severity = str(finding.severity)
        sign = page.text((SIGNS[finding.severity], severity), " ", (finding.id, severity), "  ")
        sure = "" if finding.confidence is Confidence.HIGH else f"  [{finding.confidence} confidence]"
        page.add(sign, (finding.message, "strong"), (sure, "doubtful"))
        _draw_body(page, finding, several_nodes, places)
    if len(group) > len(shown):
        page.add(" " * 10, (more(len(group) - len(shown), "like this", "like this"), "dim"))
    _draw_fix(page, group[0])


def _draw_body(page: Page, finding: Finding, several_nodes: bool, places: Places | None) -> None:
    if finding.follows is not None:
        _entry(page, "follows", f"from {finding.follows.check} above: {finding.follows.why}")
    _entry(page, "where", where_words(finding.where, several_nodes))
    _entry(page, "seen", finding.observed)
    _entry(page, "expected", finding.expected, most=1)
    _entry(page, "cost", cost_words(finding.cost))
    if finding.coverage is not None and finding.coverage.seen < finding.coverage.total:
        _entry(page, "coverage", str(finding.coverage))
    shown = finding.evidence if page.style.verbose else finding.evidence[:EVIDENCE_SHOWN]
    left = len(finding.evidence) - len(shown)
    for number_, origin in enumerate(shown):
        quote = " ".join(origin.text.split())
        rest = f"  … and {left} more" if left and number_ == len(shown) - 1 else ""
        name = str(origin) if places is None else places.spell(origin, finding)
        place = (page.fitting(name, LABEL + 2), "close")
        page.entry("evidence" if number_ == 0 else "", place, ("  " + quote if quote else "", "dim"), (rest, "dim"),
                   most=1)  # fmt: skip


def _draw_fix(page: Page, finding: Finding) -> None:
    """The steps, but for a first one that the head of the page has as what to do."""
    steps = list(enumerate(finding.fix, start=1))
    if not page.style.verbose and any(answer.action in finding.fix[:1] for answer in page.answers):
        steps = steps[1:]
    left = 0 if page.style.verbose else max(len(finding.fix) - STEPS_SHOWN, 0)
    steps = steps[: len(steps) - left]
    for at, (number, step) in enumerate(steps):
        page.entry("fix" if at == 0 else "", f"{number}. " if len(finding.fix) > 1 else "", step, hue="ok", most=2)
    if left:
        page.entry("", (more(left, "step"), "dim"))
    if page.style.verbose:
        page.entry("", (f"topodiag explain {finding.id}", "dim"))


def _entry(page: Page, label: str, words: str, most: int = 2) -> None:
    if words:
        page.entry(label, words, most=most)


def where_words(where: Where, several_nodes: bool) -> str:
    """The place in words; the node only when there are several. Jobs are there only when they are."""
    parts = [fold_labels(where.jobs)] if where.jobs else []
    parts += [fold_hosts(where.nodes)] if several_nodes and where.nodes else []
    for labels in (where.gpus, where.nics):
        apart = [label for label in labels if not any(_joins(link, label) for link in where.links)]
        parts += [fold_labels(apart)] if apart else []
    parts += [fold_links(where.links)] if where.links else []
    if where.ranks:
        parts.append(
            f"{'rank' if len(where.ranks) == 1 else 'ranks'} {fold_labels([str(rank) for rank in where.ranks])}"
        )
    return " · ".join(parts)


def _joins(link: str, label: str) -> bool:
    return link.startswith(label + " ") or link.endswith(f" to {label}")


def fold_links(labels: Sequence[str]) -> str:
    """`GPU3 link 4`, `GPU3 link 5` as `GPU3 links 4-5`, devices of the same links together; others as they are."""
    links: dict[str, list[int]] = {}
    others: list[str] = []
    for label in labels:
        device, _, digits = label.partition(" link ")
        if digits.isascii() and digits.isdigit() and len(digits) < 4:
            links.setdefault(device, []).append(int(digits))
        else:
            others.append(label)
    alike: dict[tuple[int, ...], list[str]] = {}
    for device, found in links.items():
        alike.setdefault(tuple(sorted(set(found))), []).append(device)
    words = [f"{fold_labels(devices)} {numbered('link', found)}" for found, devices in alike.items()]
    return ", ".join([*words, *([fold_labels(others)] if others else [])])


def cost_words(cost: Cost) -> str:
    """`−159.4 GB/s (33 %): ...`; only the words where no number could be derived."""
    parts = []
    if cost.gbs_lost is not None:
        parts.append(f"{in_gbs(cost.gbs_lost)} lost")
    if cost.share is not None:
        share = percent(cost.share)
        parts.append(f"({share})" if parts else f"{share} lost")
    lead = " ".join(parts)
    return f"{lead}: {cost.text}" if lead and cost.text else lead or cost.text


def step_words(price: Price) -> str:
    """`12 % of a step`, or `3-12 % of a step` where it is not said what is trained; of its communication where nothing
    says how long it computes; "" where no layout is known."""
    if price.step_share is None:
        share = price.communication_share
        return "" if share is None else f"{percent(share)} of the communication of a step"
    if price.step_range is None and price.step_share >= LEAST_STEP:
        return f"{percent(price.step_share)} of a step"
    least, most = price.step_range or (price.step_share, price.step_share)
    low, high = round(100 * least), round(100 * most)
    if high < 1:
        return "less than 1 % of a step"
    return f"{low}-{percent(high / 100)} of a step" if low < high else f"{percent(high / 100)} of a step"
