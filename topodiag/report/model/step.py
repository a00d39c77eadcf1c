"""`model step`: a training step by dimension: time, tier, share, memory, and the worst misplacement."""

from __future__ import annotations

from typing import Any

from topodiag.cost.collectives import algbw_gbs, busbw_gbs
from topodiag.cost.step import FEW_NODES, MATTERS, Piece, Step
from topodiag.cost.training import weak_scaling
from topodiag.model.dimensions import BY_NAME, DIMENSIONS
from topodiag.report.answer import note_answer
from topodiag.report.documents.from_model import Document, document_of, from_model
from topodiag.report.grid import Field, draw_grid
from topodiag.report.model.words import draw_tiers, machine_json, spell_size, spelt
from topodiag.report.plot.terminal import draw_bars
from topodiag.report.terms import draw_assumed, draw_terms
from topodiag.report.text import Page, Part
from topodiag.words.fold import plural
from topodiag.words.units import percent, spell_time

NAMES = {each.name: each.noun for each in DIMENSIONS}


def draw_step(page: Page, made: Step, assumed: tuple[str, ...], *, explain: bool) -> None:
    """The verdict, a bar per part, a row per collective, memory, the misplacement; with `explain` tiers and terms."""
    layout = made.layout
    sizes = " ".join(
        f"{name}{size}" for name, size in layout.all_sizes.items() if size > 1 or BY_NAME[name].numbers_ranks
    )
    where_to = f"  {made.machine.name}, {layout.world} GPUs, {sizes}"
    page.add("", (f"{spell_time(made.time_us)} per step", "strong"), where_to)
    note_answer(page, (f"{spell_time(made.time_us)} per step", "strong"), f", {made.tokens_per_s:,.0f} tokens/s")
    page.add_items("  ", [
        f"{made.tokens_per_s:,.0f} tokens/s",
        f"{percent(made.mfu)} of the peak (MFU)",
        f"{percent(made.compute_us / made.time_us)} of the step computes",
        *([f"{spell_time(made.unhidden_us)} if nothing ran beside compute"] if page.style.verbose else []),
    ])  # fmt: skip
    page.blank()
    draw_bars(
        page, [(name, us, f"{spell_time(us)}  {percent(us / made.time_us)}", hue) for name, us, hue in parts(made)]
    )
    if made.pieces:
        page.blank()
        _pieces(page, made)
    page.blank()
    _memory(page, made)
    draw_misplaced(page, made)
    scaled = weak_scaling(made)
    if len(scaled) > 1:
        words = [f"{plural(each.nodes, 'node')} {percent(each.efficiency)}" for each in scaled]
        page.add_items(page.text(("scaling", "strong"), "  tokens per GPU  "), words)
    if explain:
        page.blank()
        draw_tiers(page, made.machine)
        draw_terms(page, spelt(made.terms))
        for piece in made.pieces:
            draw_terms(
                page, spelt(piece.terms), f"one {piece.traffic.collective} of {piece.dimension}, {piece.algorithm}"
            )
    draw_assumed(page, (*assumed, *made.machine.assumed), fold=not explain)


def parts(made: Step) -> list[tuple[str, float, str]]:
    """(name, us of the step, hue): what the step is made of."""
    bars = [("compute", made.compute_us, "nvlink")]
    bars += [(NAMES[name], made.dimension_us(name)[1], "doubtful") for name in made.dimensions]
    if made.bubble_us > 0:
        bars.append(("bubble", made.bubble_us, "dim"))
    return bars


def where(piece: Piece) -> str:
    """`8 in 1 domain`, `2 × 4 domains`."""
    spread = piece.spread
    return f"{spread.ranks} in 1 domain" if spread.nodes == 1 else f"{spread.per_node} in each of {spread.nodes}"


def _pieces(page: Page, made: Step) -> None:
    rows: list[list[Part]] = [
        [
            (_label(piece, made), "name"),
            f"{piece.traffic.calls:g}×",
            piece.traffic.collective,
            spell_size(piece.traffic.size),
            where(piece),
            piece.spread.level,
            spell_time(piece.each_us),
            spell_time(piece.total_us),
            spell_time(piece.exposed_us),
            (percent(piece.exposed_us / made.time_us), "strong"),
            piece.algorithm,
        ]
        for piece in made.pieces
    ]
    fields = (
        Field("dimension"),
        Field("calls", right=True, drop=4),
        Field("collective", drop=1),
        Field("bytes", right=True, drop=3),
        Field("ranks", drop=2),
        Field("over"),
        Field("each", right=True, drop=5),
        Field("in all", right=True),
        Field("waited for", right=True),
        Field("of step", right=True),
        Field("algorithm", drop=6),
    )
    draw_grid(page, fields, rows)


def _label(piece: Piece, made: Step) -> str:
    """The dimension; gradients of experts, which fewer ranks share, apart from those of all other weights."""
    fewer = piece.spread.ranks < made.layout.copies
    apart = piece.dimension == "dp" and made.work.experts and not made.work.shard and fewer
    return NAMES[piece.dimension] + (" (experts)" if apart else "")


def _memory(page: Page, made: Step) -> None:
    kept, total = made.memory, made.memory.total + made.activations_gb
    has = made.machine.gpu.memory_gb if made.machine.gpu is not None else 0.0
    words = f"{total:.1f} GB per GPU"
    over = has and total > has
    if has:
        words += f" of {has:g}"
    begin = len(page.lines)
    page.add_items(page.text(("memory  ", "strong"), (words, "error" if over else ""), "  "), [
        f"weights {kept.weights:.1f}", f"gradients {kept.gradients:.1f}", f"optimiser {kept.optimiser:.1f}",
        f"activations {made.activations_gb:.1f}",
    ])  # fmt: skip
    page.keep_lines(begin, 1)
    if over:
        page.add("        ", "does not fit: a higher ZeRO stage, more tp or pp, or --recompute full")


def draw_misplaced(page: Page, made: Step) -> None:
    """The worst misplacement and its cost, or that topology hardly matters and why."""
    why = made.hardly_matters
    if why:
        page.add(page.text(("topology hardly matters here", "ok"), "  "), why)
        return
    if made.better is not None:
        saved = made.time_us - made.better.step_us
        order = "-".join(made.better.order)
        page.add(page.text(("placed badly", "error"), "  "), f"ranks numbered {order} would put the groups closer")
        words = f"-{spell_time(saved)} per step, {percent(saved / made.better.step_us)} more throughput"
        page.add("  ", (words, "strong"), f" (--order {order})")
    if not made.misplaced or made.misplaced[0].step_us < (1 + MATTERS) * made.time_us:
        return
    worst = made.misplaced[0]
    more = worst.step_us - made.time_us
    now = made.dimension_us(worst.dimension)[0]
    page.add(page.text(("worst misplacement", "error"), "  "), f"{NAMES[worst.dimension]}: {worst.words}")
    words = f"+{spell_time(more)} per step, {percent(more / made.time_us)} slower"
    moved = f"{spell_time(now)} to {spell_time(worst.dimension_us)}, {worst.dimension_us / now:.1f}×" if now > 0 else ""
    page.add("  ", (words, "strong"), f"; {NAMES[worst.dimension]} traffic {moved}")
    if not page.style.verbose:
        return
    gain = percent(more / made.time_us)
    page.add("  ", (f"a job placed so gains {gain} throughput by moving the groups back together", "dim"))
    if made.machine.nodes < FEW_NODES:
        page.add(
            "  ",
            (f"otherwise placement hardly matters on {plural(made.machine.nodes, 'node')} under one switch", "dim"),
        )
    for other in made.misplaced[1:]:
        cost = other.step_us / made.time_us - 1
        page.add("  ", (f"{NAMES[other.dimension]}: {other.words}: {percent(cost, signed=True)}", "dim"))


def step_json(made: Step, assumed: tuple[str, ...], inputs: dict[str, Any]) -> Document:
    """The published shape (schema/model-1.0.schema.json).

    The bandwidths at the top are those of the collective that is waited for longest.
    """
    longest = max(made.pieces, key=lambda piece: piece.exposed_us, default=None)
    algbw = busbw = None
    if longest is not None:
        size = longest.traffic.size
        algbw = algbw_gbs(size, longest.each_us)
        busbw = busbw_gbs(longest.traffic.collective, longest.spread.ranks, size, longest.each_us)
    better = made.better
    return document_of(
        "model.StepDocument",
        made,
        inputs={**inputs, "system": machine_json(made.machine), "assumed": list(assumed)},
        algbw_gbs=algbw,
        busbw_gbs=busbw,
        dimensions=[
            from_model(
                "model.StepCollective",
                piece,
                share=piece.exposed_us / made.time_us,
                busbw_gbs=busbw_gbs(piece.traffic.collective, piece.spread.ranks, piece.traffic.size, piece.each_us),
            )
            for piece in made.pieces
        ],
        memory_gb=from_model("model.MemoryGb", made.memory, activations=made.activations_gb),
        misplacements=[
            from_model("model.Misplacement", each, cost=each.step_us / made.time_us - 1) for each in made.misplaced
        ],
        better=from_model("model.BetterOrder", better, order="-".join(better.order)) if better is not None else None,
        scaling=weak_scaling(made),
    )
