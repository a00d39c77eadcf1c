"""The findings, worst first: what was seen beside what was to be expected, what it costs, and how to put it right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from topodiag.model.finding import Confidence, Cost, Finding, Severity, Where
from topodiag.model.verdict import Price
from topodiag.report.places import Places
from topodiag.report.text import BELOW, LABEL, LAST, SCREEN, Page
from topodiag.report.words import SIGNS
from topodiag.words.units import fold_hosts, fold_labels, grouped, in_gbs, neighbours, numbered, percent

LEAST_STEP = 0.01
"""Share of a step below which it is told as less than that."""
LIKE_SHOWN = 4
"""Lines of one kind of finding; the rest are counted (`-v` shows all)."""
EVIDENCE_SHOWN = 2
MARK = "  (-v: in full)"
STEPS_SHOWN = 3
"""Steps of a fix; a node with one fault fits a screen (`-v` shows all)."""


def draw_findings(
    page: Page, findings: Sequence[Finding], *, several_nodes: bool, places: Places | None = None, most: int = 1
) -> None:
    """The first `most` faults whole; below them a line for each other one, for what follows from it, and last for each
    note (info). With -v all whole. Neighbours of one kind and one fix have one heading. `places` shorten where the
    evidence stands."""
    worst = [finding for finding in findings if finding.severity is not Severity.INFO]
    whole = findings if page.style.verbose else worst[:most]
    for group in neighbours(whole, key=lambda f: (f.id, f.severity, f.confidence, f.fix)):
        page.blank()
        _draw_group(page, group, several_nodes, places)
    if not page.style.verbose:
        notes = [finding for finding in findings if finding.severity is Severity.INFO]
        _draw_lines(page, [*worst[most:], *notes], several_nodes)


def _draw_lines(page: Page, findings: Sequence[Finding], several_nodes: bool) -> None:
    """A line each; those of one kind and one sentence share it. What follows from the finding above stands below it."""
    alike = grouped(
        ((one.id, one.severity, one.follows is not None and one.severity is not Severity.INFO, one.message), one)
        for one in findings
    )
    below = True
    for (check, severity, follows), kind in groupby(alike, key=lambda key: key[:3]):
        if below and not follows:
            page.blank()
        below = below and follows
        keys, hue = list(kind), str(severity)
        lead = page.text("  └ " if follows else page.text((SIGNS[severity], hue), " "), (check, hue), "  ")
        for key in page.listed(keys, LIKE_SHOWN, "like this", "like this", indent=" " * 10):
            places = list(dict.fromkeys(where_words(finding.where, several_nodes) for finding in alike[key]))
            where = page.text(f"  {places[0] if len(places) == 1 else f'{len(alike[key])} places'}".rstrip())
            most = page.width - 2 * len(MARK) - len(key[3]) if follows else page.width // 2
            where = where if where.cell_len <= most else page.text("")  # what follows is where its cause is
            words = page.cut(page.text(key[3]), page.width - lead.cell_len - where.cell_len)
            page.lines.append(page.text(lead, words, (where.plain, "dim")))
    if alike:
        mark = page.text((MARK, "dim"))
        page.lines[-1] = page.text(page.cut(page.lines[-1], page.width - mark.cell_len), mark)


def _draw_group(page: Page, group: list[Finding], several_nodes: bool, places: Places | None) -> None:
    for finding in group:
        severity = str(finding.severity)
        sign = page.text((SIGNS[finding.severity], severity), " ", (finding.id, severity), "  ")
        note = "" if finding.confidence is Confidence.HIGH else f"  [{finding.confidence} confidence]"
        page.add(sign, (finding.message, "strong"), (note, "doubtful"))
        _draw_body(page, finding, several_nodes, places)
    _draw_fix(page, group[0])


def _draw_body(page: Page, finding: Finding, several_nodes: bool, places: Places | None) -> None:
    if finding.follows is not None:
        page.entry("follows", f"from {finding.follows.check} above: {finding.follows.why}", most=2)
    page.entry("where", where_words(finding.where, several_nodes), most=2)
    page.entry("seen", finding.observed, most=1)
    page.entry("expected", finding.expected, most=1)
    page.entry("cost", cost_words(finding.cost), most=2)
    if page.style.verbose and finding.coverage is not None and finding.coverage.seen < finding.coverage.total:
        page.entry("coverage", str(finding.coverage))
    shown = page.some(finding.evidence, EVIDENCE_SHOWN)
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
    is_told = not page.style.verbose and any(answer.action in finding.fix[:1] for answer in page.answers)
    draw_steps(page, finding.fix, first=int(is_told))
    if page.style.verbose:
        page.entry("", (f"topodiag explain {finding.id}", "dim"))


def draw_steps(page: Page, fix: Sequence[str], first: int = 0, most: int = STEPS_SHOWN) -> None:
    """The first `most` steps of a fix from the place `first` on, numbered where there are several; with -v all."""
    steps = list(enumerate(fix, start=1))[first:]
    for at, (number, step) in enumerate(steps):
        begin = len(page.lines)
        page.entry("fix" if at == 0 else "", f"{number}. " if len(fix) > 1 else "", step, hue="ok")
        if at and not page.style.verbose and (at == most or len(page.lines) > SCREEN - LAST - 2):
            del page.lines[begin:]  # a step is shown whole or not at all: half a command cannot be typed
            _count_steps(page, len(steps) - at)
            break


def _count_steps(page: Page, left: int) -> None:
    """How many steps are not shown, behind the last one that is, where there is room."""
    count = page.text((f"  … {left} more (-v)", "dim"))
    if page.lines[-1].cell_len + count.cell_len <= page.width:
        page.lines[-1].append_text(count)
    else:
        page.add_more(left, "step", indent=BELOW)


def where_words(where: Where, several_nodes: bool) -> str:
    """The place in words; the node only when there are several. Jobs are there only when they are."""
    parts = [fold_labels(where.jobs)] if where.jobs else []
    parts += [fold_hosts(where.nodes)] if several_nodes and where.nodes else []
    for labels in (where.gpus, where.nics):
        texts = [label for label in labels if not any(_joins(link, label) for link in where.links)]
        parts += [fold_labels(texts)] if texts else []
    parts += [fold_links(where.links)] if where.links else []
    if where.ranks:
        parts.append(numbered("rank", where.ranks))
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
    alike = grouped((tuple(sorted(set(numbers))), device) for device, numbers in links.items())
    words = [f"{fold_labels(devices)} {numbered('link', numbers)}" for numbers, devices in alike.items()]
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


def price_words(price: Price, text: str) -> str:
    """What a cause costs; of a job that ended the `text` says it all."""
    if text and price.gbs_lost is None and price.share == 1.0:
        return text
    return cost_words(Cost(price.gbs_lost, price.share, text))


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
