"""The waterfall of bandwidth: intended, negotiated, used, measured, and between them what each check found takes.

Every figure is one of the verdict's prices. Causes in the hardware stand between intended and negotiated, those in
settings and placement between negotiated and used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from topodiag.draw.levels import Levels, is_hardware, levels_of
from topodiag.draw.svg import Canvas, wrap
from topodiag.lazy import dataclass
from topodiag.model.verdict import Agreement, Cause, Price, State, Verdict
from topodiag.words.units import few, spell_gbs

WIDE, VALUE, INSET = 490, 96, 14
"""The picture, which a telephone shows whole, the figures behind the bars, and the step to the right of a loss, px."""
BAR, LINE, GAP, TOP = 18, 13, 12, 50
"""A bar, a line of words above it, the room below it, and what stands above the first, px."""
MOST_STEPS = 12
LEAST = 0.005
"""Share of the whole below which a step is none: rounding."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One row. `kind`: `level` stands on zero, `loss` takes `start - end` away, `missing` has no figure. Figures in the
    unit of the whole."""

    name: str
    note: str
    kind: str
    start: float = 0.0
    end: float = 0.0
    check: str = ""


def bars_of(verdict: Verdict) -> tuple[str, str, tuple[Bar, ...]]:
    """What is measured out, its unit and the rows; no rows where no cause has a price that they could show."""
    if verdict.state in (State.FAILED, State.HUNG):  # nobody asks what bandwidth a job lost that does not run
        return "", "", ()
    causes = _of_one_ground(verdict.causes)
    if causes:
        return _of_job(causes)
    for cause in verdict.causes[:1]:
        levels = levels_of(cause.finding)
        if levels is not None:
            return _of_place(cause, levels)
    return "", "", ()


def draw_waterfall(verdict: Verdict, *, named: Callable[[str], str] = str, prefix: str = "") -> str:
    """The picture, "" where the verdict has no price to draw; `named` spells the files in its words."""
    what, unit, bars = bars_of(verdict)
    if not bars:
        return ""
    words = ", ".join(f"{bar.name} {_figure(bar, unit)}".strip() for bar in bars)
    canvas = Canvas("Bandwidth from intended to measured", f"{what}: {words}", prefix)
    whole = max(max(bar.start, bar.end) for bar in bars)
    scale = (WIDE - VALUE - 9) / whole
    canvas.heading(what, WIDE)
    y, ends = float(TOP), None
    for bar in bars:
        x, top = ends or (0.0, y)
        y = _label(canvas, bar, y, named(bar.note))
        if bar.kind == "missing":
            continue
        if ends:
            canvas.line(x, top, x, y, "mark")
        low, high = sorted((bar.start, bar.end)) if bar.kind != "level" else (0.0, bar.end)
        _bar(canvas, bar, 1 + low * scale, y, max((high - low) * scale, 1.5))
        canvas.text(high * scale + 9, y + 14, _figure(bar, unit), "badtext" if bar.check else "name")
        ends = (1 + bar.end * scale, y + BAR)
        y += BAR + GAP
    return canvas.document(WIDE, y)


def _figure(bar: Bar, unit: str) -> str:
    if bar.kind == "missing":
        return bar.note
    if bar.kind == "level":
        return f"{spell_gbs(bar.end)} {unit}"
    return f"−{spell_gbs(bar.start - bar.end)} {unit}"


def _label(canvas: Canvas, bar: Bar, y: float, note: str) -> float:
    """The words above a bar; where it begins."""
    inset = 0 if bar.kind in ("level", "missing") else INSET
    canvas.text(inset, y + 11, bar.name, "halo name" if not bar.check else "halo badtext", room=WIDE - inset)
    lines = wrap(note, WIDE - inset, 10.5, most=2) if note else []
    for number, line in enumerate(lines, 1):
        canvas.text(inset, y + 11 + number * LINE, line, "halo small")
    return y + 17 + len(lines) * LINE


def _bar(canvas: Canvas, bar: Bar, x: float, y: float, wide: float) -> None:
    if bar.kind == "level":
        kind = {"intended": "plain", "measured": "inkfill"}.get(bar.name, "netbox")
        canvas.rect(x, y, wide, BAR, kind, bar.name)
    else:
        hatch = "badhatch" if bar.check else "hatch"
        canvas.rect(x, y, wide, BAR, "bad" if bar.check else "plain", f"{bar.name} {bar.note}", hatch=hatch)


def _of_one_ground(causes: Sequence[Cause]) -> list[Cause]:
    """The causes that are priced together with the first that has a job's price: figures of others do not add up."""
    priced = [cause for cause in causes if cause.price.all_gone and cause.price.predicted and cause.price.job_share]
    if not priced:
        return []
    ground = _ground(priced[0].price)
    return [cause for cause in priced if _ground(cause.price) == ground]


def _ground(price: Price) -> tuple[object, object, object]:
    return price.all_gone, price.predicted, price.measured


def _of_job(causes: Sequence[Cause]) -> tuple[str, str, tuple[Bar, ...]]:
    price = causes[0].price
    assert price.all_gone is not None  # noqa: S101 - _of_one_ground took those alone
    assert price.predicted is not None  # noqa: S101
    whole, used = price.all_gone.value, price.predicted.value
    bars = [Bar("intended", "what this machine is built to reach", "level", whole, whole)]
    at = whole
    for hardware in (True, False):
        for cause in [cause for cause in causes if is_hardware(cause.finding.id) is hardware][:MOST_STEPS]:
            # What two causes take together is less than the sum where one hides the other: no step goes below all.
            end = max(at - whole * (cause.price.job_share or 0.0), min(used, at))
            bars.append(_loss(cause, at, end, whole * (cause.price.job_share or 0.0)))
            at = end
        if hardware:
            bars.append(Bar("negotiated", "what the hardware trained to", "level", at, at))
    if at - used > LEAST * whole:
        bars.append(Bar("together", "the causes worsen each other", "loss", at, used))
    bars.append(Bar("used", "what the job can reach with these causes", "level", used, used))
    if price.measured is None:
        bars.append(Bar("measured", "not in the evidence", "missing"))
        return price.all_gone.what, price.all_gone.unit, tuple(bars)
    gbs = price.measured.value
    if used - gbs > LEAST * whole:
        name = "as expected" if price.agreement is Agreement.AGREES else "not explained"
        bars.append(Bar(name, price.says, "loss", used, gbs))
    bars.append(Bar("measured", price.measured.source, "level", gbs, gbs))
    return price.all_gone.what, price.all_gone.unit, tuple(bars)


def _of_place(cause: Cause, levels: Levels) -> tuple[str, str, tuple[Bar, ...]]:
    """One cause at its narrowest place, where no job shows what it costs."""
    where = cause.finding.where
    parts = [few(names) for names in (where.nodes, where.gpus, where.nics) if names]
    bars = [Bar("intended", "what the narrowest place is built for", "level", levels.intended, levels.intended)]
    if levels.negotiated < levels.intended:
        bars.append(_loss(cause, levels.intended, levels.negotiated))
    bars.append(Bar("negotiated", "what the hardware trained to", "level", levels.negotiated, levels.negotiated))
    if levels.used is None:
        bars.append(Bar("used", "not in the evidence", "missing"))
    else:
        bars.append(_loss(cause, levels.negotiated, levels.used))
        bars.append(Bar("used", "what a job uses of it", "level", levels.used, levels.used))
    bars.append(Bar("measured", "not in the evidence", "missing"))
    return f"one direction, {', '.join(parts)}" if parts else "one direction", "GB/s", tuple(bars)


def _loss(cause: Cause, start: float, end: float, lost: float = 0.0) -> Bar:
    """`alone` is what the cause takes by itself: said where other causes hide a part of it."""
    finding = cause.finding
    hidden = lost - (start - end) > LEAST * lost + 1e-9
    note = f"by itself it takes {spell_gbs(lost)}; {finding.message}" if hidden else finding.message
    return Bar(f"{finding.id} {finding.severity}", note, "loss", start, end, finding.id)
