"""`place solve`: the map that was found beside the layout it replaces and the bound, and why what is split is so."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

import numpy as np
from rich.text import Text

from topodiag.lazy import dataclass
from topodiag.model.finding import Input
from topodiag.placement.audit import level_name
from topodiag.placement.solve import Solved, split_findings
from topodiag.report.documents.from_model import Document, document_of
from topodiag.report.grid import Columns, Field, draw_assumed, draw_table, figure
from topodiag.report.place.audit import map_json
from topodiag.report.text import Page
from topodiag.words.units import fold_hosts, fold_numbers, grouped, percent, plural, spell_time

_ALIKE = 0.0005


def draw_solution(page: Page, solved: Solved) -> None:
    """The verdict, a row per dimension, the nodes to ask for, their ranks, and the splits that remain."""
    solution, cost = solved.solution, solved.solution.cost
    what, unit = "of a step wait for communication", solved.talk.unit
    what = f"of communication in a {unit}" if solved.talk.base_us is None else what
    ranks, nodes = plural(solved.talk.world, "rank"), plural(len(solved.place.hosts), "node")
    answer = page.text((f"{spell_time(cost.step_us)} {what}", "strong"))
    page.add("", answer, f"  {ranks} on {nodes} of {solved.cluster.nodes}")
    action = f"ask the scheduler for {fold_hosts(solved.place.hosts)}"
    page.note_answer(answer, ": ", _compared(page, solved), action=action)
    page.add("", _compared(page, solved))
    page.entry("do", (action, "strong"), hue="ok")
    if solution.bound_us > 0:
        gap = f"{percent(solution.gap)} above it" if solution.gap > _ALIKE else "reached"
        words = f"bound {spell_time(solution.bound_us)}, {gap}: no placement on these GPUs waits less"
        page.add((words, "dim"))
    if page.style.quiet:
        return
    page.blank()
    draw_table(page, DIMENSIONS, costs_of(solved))
    for split in solution.splits:
        example = fold_numbers(split.example[:64])
        words = f"{split.groups} of {split.of} {split.dimension} groups, such as ranks {example}"
        page.add(page.text(("split", "warning"), "  "), f"{words} on {fold_hosts(split.nodes)}")
        page.add("  ", split.why)
    form = solved.launcher or "slurm-hostfile"
    page.entry("next", "for a launcher, this command with", hue="ok")
    page.entry("", (f"--format json | topodiag place emit {form} - -o hosts", "close"))
    rest = Page(page.style)
    rest.blank()
    _nodes(rest, solved)
    draw_assumed(rest, (*solved.talk.assumed, *solved.cluster.notes))
    page.add_rest(rest, rows=len(solved.place.hosts), of="node")


def _compared(page: Page, solved: Solved) -> Text:
    """What the map gains over the layout before it."""
    before = spell_time(solved.before_cost.step_us)
    if solved.gain > _ALIKE and solved.talk.base_us is None:
        return page.text((f"{1 + solved.gain:.2f}× as fast", "ok"), f" as {solved.before_name}, which takes {before}")
    if solved.gain > _ALIKE:
        than = f" than {solved.before_name}, which waits {before}"
        return page.text("steps ", (f"{percent(solved.gain)} faster", "ok"), than)
    same = np.array_equal(solved.before.slot, solved.solution.assignment.slot)
    more = "nothing to gain from another order" if same else "either is fine"
    return page.text((f"as fast as {solved.before_name}", "ok"), f": {more}")


@dataclass(frozen=True, slots=True)
class DimensionCost:
    """What the collectives of a dimension cost in the map that was found, in us, and what they cost before; `level` is
    where the slowest group of the first one meets."""

    dimension: str
    groups: int
    size: int
    level: str
    step_us: float
    before_us: float
    bound_us: float


DIMENSIONS: Columns[DimensionCost] = {
    Field("dimension"): lambda cost: (cost.dimension, "name"),
    Field("groups", right=True, drop=2): lambda cost: cost.groups,
    Field("ranks", right=True, drop=3): lambda cost: cost.size,
    Field("over", least=8): lambda cost: cost.level,
    Field("waits", right=True): lambda cost: figure(cost.step_us, spell_time),
    Field("before", right=True): lambda cost: figure(cost.before_us, spell_time),
    Field("alone", right=True, drop=4): lambda cost: figure(cost.bound_us, spell_time),
}


def costs_of(solved: Solved) -> list[DimensionCost]:
    """The cost of each dimension; one without groups is left out."""
    pairs = zip(solved.solution.cost.demands, solved.before_cost.demands, strict=True)
    by_dimension = grouped((now.demand.dimension, (now, before)) for now, before in pairs if now.each_us.size)
    costs = []
    for dimension, own in by_dimension.items():
        first = own[0][0]
        level = level_name(solved.cluster, int(first.spans.level[first.slowest]))
        columns = zip(*((now.step_us, before.step_us, now.bound_us) for now, before in own), strict=True)
        costs.append(DimensionCost(dimension, len(first.demand.groups), first.demand.size, level, *map(fsum, columns)))
    return costs


def _nodes(page: Page, solved: Solved) -> None:
    place = solved.place
    members: list[list[int]] = [[] for _ in place.hosts]
    for rank, host in enumerate(place.host.tolist()):
        members[host].append(rank)
    columns: Columns[tuple[str, list[int]]] = {
        Field("node", least=8): lambda row: (row[0], "name"),
        Field("ranks", least=16): lambda row: fold_numbers(row[1]),
        Field("GPUs", least=4): lambda row: fold_numbers(int(place.gpu[rank]) for rank in row[1]),
    }
    draw_table(page, columns, zip(place.hosts, members, strict=True))


def solution_json(solved: Solved, inputs: Iterable[Input] = ()) -> Document:
    """The published shape (schema/place-1.0.schema.json). Times in ms; `splits` are the groups that stay split."""
    solution = solved.solution
    return document_of(
        "place.SolveDocument",
        solution,
        inputs=inputs,
        map=map_json(solved.cluster, solution.assignment, solved.groups),
        levels=solved.place.levels,
        cost={cost.dimension: cost for cost in costs_of(solved)},
        findings=split_findings(solved),
        gain_percent=100 * solved.gain,
        before=(solved.before_name, solved.before_cost.step_us / 1000),
        nodes=solved.place.hosts,
        assumed=[*solved.talk.assumed, *solved.cluster.notes],
    )
