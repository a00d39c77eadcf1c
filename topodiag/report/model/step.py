"""`model step`: a training step by dimension: time, tier, share, memory, and the worst misplacement."""

from __future__ import annotations

from typing import Any

from topodiag.cost.collectives import algbw_gbs, busbw_gbs
from topodiag.cost.step import FEW_NODES, MATTERS, Piece, Step
from topodiag.cost.training import weak_scaling
from topodiag.model.layout import BY_NAME, DIMENSIONS
from topodiag.report.documents.from_model import Document, document_of, from_model
from topodiag.report.grid import Columns, Field, draw_assumed, draw_table, draw_terms
from topodiag.report.model.words import draw_tiers, machine_json, spell_size, spelt
from topodiag.report.plot import draw_bars
from topodiag.report.text import Page
from topodiag.words.units import percent, plural, spell_time

NAMES = {dimension.name: dimension.noun for dimension in DIMENSIONS}


def draw_step(page: Page, step: Step, assumed: tuple[str, ...], *, explain: bool) -> None:
    """The verdict, a bar per part, a row per collective, memory, the misplacement; with `explain` tiers and terms."""
    layout = step.layout
    sizes = " ".join(
        f"{name}{size}" for name, size in layout.all_sizes.items() if size > 1 or BY_NAME[name].numbers_ranks
    )
    where_to = f"  {step.machine.name}, {layout.world} GPUs, {sizes}"
    page.add("", (f"{spell_time(step.time_us)} per step", "strong"), where_to)
    page.note_answer((f"{spell_time(step.time_us)} per step", "strong"), f", {step.tokens_per_s:,.0f} tokens/s")
    page.add_items("  ", [
        f"{step.tokens_per_s:,.0f} tokens/s",
        f"{percent(step.mfu)} of the peak (MFU)",
        f"{percent(step.compute_us / step.time_us)} of the step computes",
        *([f"{spell_time(step.unhidden_us)} if nothing ran beside compute"] if page.style.verbose else []),
    ])  # fmt: skip
    page.blank()
    bars = [(name, us, f"{spell_time(us)}  {percent(us / step.time_us)}", hue) for name, us, hue in parts(step)]
    draw_bars(page, bars)
    if step.pieces:
        page.blank()
        _pieces(page, step)
    page.blank()
    _memory(page, step)
    draw_misplaced(page, step)
    scaled = weak_scaling(step)
    if len(scaled) > 1:
        words = [f"{plural(point.nodes, 'node')} {percent(point.efficiency)}" for point in scaled]
        page.add_items(page.text(("scaling", "strong"), "  tokens per GPU  "), words)
    if explain:
        draw_tiers(page, step.machine)
        draw_terms(page, spelt(step.terms))
        for piece in step.pieces:
            title = f"one {piece.traffic.collective} of {piece.dimension}, {piece.algorithm}"
            draw_terms(page, spelt(piece.terms), title)
    draw_assumed(page, (*assumed, *step.machine.assumed), fold=not explain)


def parts(step: Step) -> list[tuple[str, float, str]]:
    """(name, us of the step, hue): what the step is made of."""
    bars = [("compute", step.compute_us, "nvlink")]
    bars += [(NAMES[name], step.dimension_us(name)[1], "doubtful") for name in step.dimensions]
    if step.bubble_us > 0:
        bars.append(("bubble", step.bubble_us, "dim"))
    return bars


def where(piece: Piece) -> str:
    """`8 in 1 domain`, `2 × 4 domains`."""
    spread = piece.spread
    return f"{spread.ranks} in 1 domain" if spread.nodes == 1 else f"{spread.per_node} in each of {spread.nodes}"


def _pieces(page: Page, step: Step) -> None:
    columns: Columns[Piece] = {
        Field("dimension"): lambda piece: (_label(piece, step), "name"),
        Field("calls", right=True, drop=4): lambda piece: f"{piece.traffic.calls:g}×",
        Field("collective", drop=1): lambda piece: piece.traffic.collective,
        Field("bytes", right=True, drop=3): lambda piece: spell_size(piece.traffic.size),
        Field("ranks", drop=2): where,
        Field("over"): lambda piece: piece.spread.level,
        Field("each", right=True, drop=5): lambda piece: spell_time(piece.each_us),
        Field("in all", right=True): lambda piece: spell_time(piece.total_us),
        Field("waited for", right=True): lambda piece: spell_time(piece.exposed_us),
        Field("of step", right=True): lambda piece: (percent(piece.exposed_us / step.time_us), "strong"),
        Field("algorithm", drop=6): lambda piece: piece.algorithm,
    }
    draw_table(page, columns, step.pieces)


def _label(piece: Piece, step: Step) -> str:
    """The dimension; gradients of experts, which fewer ranks share, apart from those of all other weights."""
    fewer = piece.spread.ranks < step.layout.copies
    apart_note = piece.dimension == "dp" and step.work.experts and not step.work.shard and fewer
    return NAMES[piece.dimension] + (" (experts)" if apart_note else "")


def _memory(page: Page, step: Step) -> None:
    kept, total = step.memory, step.memory.total + step.activations_gb
    has = step.machine.gpu.memory_gb if step.machine.gpu is not None else 0.0
    words = f"{total:.1f} GB per GPU" + (f" of {has:g}" if has else "")
    over = has and total > has
    begin = len(page.lines)
    page.add_items(page.text(("memory  ", "strong"), (words, "error" if over else ""), "  "), [
        f"weights {kept.weights:.1f}", f"gradients {kept.gradients:.1f}", f"optimiser {kept.optimiser:.1f}",
        f"activations {step.activations_gb:.1f}",
    ])  # fmt: skip
    page.keep_lines(begin, 1)
    if over:
        page.add("        ", "does not fit: a higher ZeRO stage, more tp or pp, or --recompute full")


def draw_misplaced(page: Page, step: Step) -> None:
    """The worst misplacement and its cost, or that topology hardly matters and why."""
    why = step.hardly_matters
    if why:
        page.add(page.text(("topology hardly matters here", "ok"), "  "), why)
        return
    if step.better is not None:
        saved = step.time_us - step.better.step_us
        order = "-".join(step.better.order)
        page.add(page.text(("placed badly", "error"), "  "), f"ranks numbered {order} would put the groups closer")
        words = f"-{spell_time(saved)} per step, {percent(saved / step.better.step_us)} more throughput"
        page.add("  ", (words, "strong"), f" (--order {order})")
    if not step.misplaced or step.misplaced[0].step_us < (1 + MATTERS) * step.time_us:
        return
    worst = step.misplaced[0]
    more = worst.step_us - step.time_us
    now = step.dimension_us(worst.dimension)[0]
    page.add(page.text(("worst misplacement", "error"), "  "), f"{NAMES[worst.dimension]}: {worst.words}")
    words = f"+{spell_time(more)} per step, {percent(more / step.time_us)} slower"
    moved = f"{spell_time(now)} to {spell_time(worst.dimension_us)}, {worst.dimension_us / now:.1f}×" if now > 0 else ""
    page.add("  ", (words, "strong"), f"; {NAMES[worst.dimension]} traffic {moved}")
    if not page.style.verbose:
        return
    gain = percent(more / step.time_us)
    page.add("  ", (f"a job placed so gains {gain} throughput by moving the groups back together", "dim"))
    if step.machine.nodes < FEW_NODES:
        nodes = plural(step.machine.nodes, "node")
        page.add("  ", (f"otherwise placement hardly matters on {nodes} under one switch", "dim"))
    for other in step.misplaced[1:]:
        cost = other.step_us / step.time_us - 1
        page.add("  ", (f"{NAMES[other.dimension]}: {other.words}: {percent(cost, signed=True)}", "dim"))


def step_json(step: Step, assumed: tuple[str, ...], inputs: dict[str, Any]) -> Document:
    """The published shape (schema/model-1.0.schema.json).

    The bandwidths at the top are those of the collective that is waited for longest.
    """
    longest = max(step.pieces, key=lambda piece: piece.exposed_us, default=None)
    algbw = busbw = None
    if longest is not None:
        size = longest.traffic.size
        algbw = algbw_gbs(size, longest.each_us)
        busbw = busbw_gbs(longest.traffic.collective, longest.spread.ranks, size, longest.each_us)
    better = step.better
    return document_of(
        "model.StepDocument",
        step,
        inputs={**inputs, "system": machine_json(step.machine), "assumed": list(assumed)},
        algbw_gbs=algbw,
        busbw_gbs=busbw,
        dimensions=[
            from_model(
                "model.StepCollective",
                piece,
                share=piece.exposed_us / step.time_us,
                busbw_gbs=busbw_gbs(piece.traffic.collective, piece.spread.ranks, piece.traffic.size, piece.each_us),
            )
            for piece in step.pieces
        ],
        memory_gb=from_model("model.MemoryGb", step.memory, activations=step.activations_gb),
        misplacements=[
            from_model("model.Misplacement", dimension, cost=dimension.step_us / step.time_us - 1)
            for dimension in step.misplaced
        ],
        better=from_model("model.BetterOrder", better, order="-".join(better.order)) if better is not None else None,
        scaling=weak_scaling(step),
    )
