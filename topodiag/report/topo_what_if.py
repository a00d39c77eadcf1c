"""`topo what-if`: before and after side by side, and the sentence that an engineer would send to the data centre.

It takes the two predictions and the words of the changes; `WhatIf` of the pipeline has this shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from topodiag.cost.nccl.prediction import Choice, Prediction
from topodiag.report.grid import Field, draw_grid
from topodiag.report.text import Page, Part
from topodiag.report.topo_predict import GRAPHS, prediction_json
from topodiag.report.units import spell_bytes, spell_gbs, spell_us
from topodiag.report.words import plural

NOTICEABLE = 0.01
"""A change of time below this share is no change: the model's own figures are not better."""


class _Words(Protocol):
    @property
    def words(self) -> str: ...


class Answer(Protocol):
    """Two predictions and what lies between them."""

    @property
    def size(self) -> int: ...
    @property
    def changes(self) -> Sequence[_Words]: ...
    @property
    def before(self) -> Prediction: ...
    @property
    def after(self) -> Prediction: ...


def draw_what_if(page: Page, answer: Answer, name: str) -> None:
    before, after = answer.before, answer.after
    what = ", ".join(change.words for change in answer.changes)
    page.add(page.text((name, "strong"), "  "), f"{what}  ", (_where(before), "dim"))
    page.blank()
    rows: list[list[Part]] = [[title, old, _marked(old, new)] for title, old, new in _rows(answer)]
    draw_grid(page, (Field(""), Field("before", least=12), Field("after", least=12)), rows)
    moved = list(moved_paths(before, after))
    if moved:
        page.blank()
        shown = moved if page.style.verbose else moved[:6]
        for text in shown:
            page.add("  ", text)
        if len(moved) > len(shown):
            page.add("  ", (f"… and {plural(len(moved) - len(shown), 'more path')} (-v shows all)", "dim"))
    page.blank()
    page.add("  ", (sentence(answer), "strong"))


def _where(made: Prediction) -> str:
    return f"NCCL {made.version}, {plural(made.nodes, 'node')}, {plural(made.ranks, 'rank')}"


def _marked(old: str, new: str) -> Part:
    return (new, "doubtful") if old != new else (new, "dim")


def all_reduce(made: Prediction) -> Choice | None:
    return next((choice for choice in made.choices if choice.collective == "AllReduce"), None)


def _rows(answer: Answer) -> Iterator[tuple[str, str, str]]:
    before, after = answer.before, answer.after
    if not (before.accepted and after.accepted):
        yield "NCCL", _verdict(before), _verdict(after)
        return
    yield "ranks", str(before.ranks), str(after.ranks)
    yield "best path", f"{spell_gbs(before.max_bw)} GB/s", f"{spell_gbs(after.max_bw)} GB/s"
    for number, title in GRAPHS.items():
        old, new = spell_graph(before, number), spell_graph(after, number)
        if old or new:
            yield title, old or "none", new or "none"
    yield "channels", _channels(before), _channels(after)
    old_choice, new_choice = all_reduce(before), all_reduce(after)
    title = f"all-reduce of {spell_bytes(answer.size)}"
    yield title, _choice(old_choice), _choice(new_choice)
    if old_choice and new_choice:
        yield "  time", spell_us(old_choice.time_us), spell_us(new_choice.time_us)
        yield "  busbw", f"{spell_gbs(old_choice.busbw_gbs)} GB/s", f"{spell_gbs(new_choice.busbw_gbs)} GB/s"


def _verdict(made: Prediction) -> str:
    return "accepts it" if made.accepted else f"refuses it: {made.why}"


def spell_graph(made: Prediction, number: int) -> str:
    """`8 × 48 = 384 GB/s, NVL, PIX`; "" where the graph was not found."""
    graph = made.graph(number)
    if graph is None or not graph.channels:
        return ""
    total = graph.channels * graph.bw_inter
    types = f"{graph.type_intra}, {graph.type_inter}"
    return f"{graph.channels} × {spell_gbs(graph.bw_inter)} = {spell_gbs(total)} GB/s, {types}"


def _channels(made: Prediction) -> str:
    counts = made.channels
    if counts is None:
        return "?"
    return f"{counts.coll}" + (f", {counts.nvls} NVLS" if counts.nvls else "")


def _choice(choice: Choice | None) -> str:
    return f"{choice.algorithm} {choice.protocol}" if choice else "none"


def moved_paths(before: Prediction, after: Prediction) -> Iterator[str]:
    """Paths whose type or bandwidth is another one."""
    for a, row in before.paths.items():
        for b, (_, old_gbs, old_type) in row.items():
            new = after.paths.get(a, {}).get(b)
            if new is None:
                continue
            if (new[1], new[2]) != (old_gbs, old_type):
                yield f"{a} to {b}: {old_type} {spell_gbs(old_gbs)} GB/s, then {new[2]} {spell_gbs(new[1])} GB/s"


def sentence(answer: Answer) -> str:
    """What an engineer would write to the data centre, in one or two sentences."""
    what = ", ".join(change.words for change in answer.changes)
    before, after = answer.before, answer.after
    if not before.accepted:
        return f"NCCL {before.version} already refuses the topology as it is: {before.why}."
    if not after.accepted:
        return f"With {what}, NCCL {after.version} no longer starts on this machine: {after.why}."
    old, new = all_reduce(before), all_reduce(after)
    if old is None or new is None:
        return f"With {what}, no all-reduce can be compared."
    on = f"an all-reduce of {spell_bytes(answer.size)} over {plural(after.ranks, 'GPU')}"
    lost = new.time_us / old.time_us - 1
    if abs(lost) < NOTICEABLE:
        return (
            f"With {what}, {on} takes as long as before ({spell_us(new.time_us)} by NCCL's model): no loss to expect."
        )
    ratio = new.time_us / old.time_us
    by = f"{ratio:.1f} times as long" if ratio >= 2 else f"{abs(lost) * 100:.0f} % {'longer' if lost > 0 else 'less'}"
    text = (
        f"With {what}, {on} takes {spell_us(new.time_us)} instead of {spell_us(old.time_us)} ({by}): bus bandwidth"
        f" {spell_gbs(new.busbw_gbs)} GB/s instead of {spell_gbs(old.busbw_gbs)}"
    )
    return text + _why(before, after) + "."


def _why(before: Prediction, after: Prediction) -> str:
    """The ring's loss, which is what fewer links or NICs do."""
    old, new = before.graph(0), after.graph(0)
    reasons = []
    if old and new and (old.channels, old.bw_inter) != (new.channels, new.bw_inter):
        reasons.append(
            f"the ring search finds {new.channels} channels of {spell_gbs(new.bw_inter)} GB/s"
            f" where it found {old.channels} of {spell_gbs(old.bw_inter)}"
        )
    nvls = before.graph(3), after.graph(3)
    if nvls[0] and nvls[0].channels and not (nvls[1] and nvls[1].channels):
        reasons.append("NVLS is lost")
    return f", because {' and '.join(reasons)}" if reasons else ""


def what_if_json(answer: Answer) -> dict[str, Any]:
    return {
        "changes": [change.words for change in answer.changes],
        "bytes": answer.size,
        "before": prediction_json(answer.before),
        "after": prediction_json(answer.after),
        "sentence": sentence(answer),
    }
