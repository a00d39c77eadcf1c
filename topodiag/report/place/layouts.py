"""`place audit`: what a layout costs by dimension, what could be regained, and which groups lie wrong. `place solve`:
the map that was found beside the layout it replaces and the bound, and why what is split is so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum

import numpy as np
from rich.text import Text

from topodiag.emit.place_map import rows
from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Cluster, Ints, map_of
from topodiag.model.finding import Finding, Input, Outcome
from topodiag.model.result import Result
from topodiag.placement.audit import Audit, DimensionAudit, level_name, names_of
from topodiag.placement.groups import ids_by_rank
from topodiag.placement.price import DemandCost
from topodiag.placement.solve import Solved, split_findings
from topodiag.report.documents.from_model import Document, document_of, from_model
from topodiag.report.findings import draw_findings
from topodiag.report.gaps import draw_gaps
from topodiag.report.grid import Cell, Columns, Field, draw_assumed, draw_grid, draw_table, figure
from topodiag.report.model.words import spell_size
from topodiag.report.text import Page, Part
from topodiag.words.units import fold_hosts, fold_numbers, grouped, percent, plural, spell_time

GROUPS_SHOWN = 8
"""Groups listed one by one of a dimension, those that lose most first; `-v` lists all."""
_SHARE_SHOWN = 0.0005


def draw_audit(page: Page, audit: Audit, findings: Sequence[Finding], outcomes: Sequence[Outcome] = ()) -> None:
    """The verdict, a row per dimension, the worst group, findings, and what was assumed."""
    fixes = (finding.fix[0] for finding in findings if finding.fix)
    _head(page, audit, next(fixes, "write a better map: topodiag place solve"))
    if audit.dimensions and not page.style.quiet:
        page.blank()
        draw_table(page, dimension_columns(audit), audit.dimensions)
        if page.style.verbose or not findings:
            page.blank()
            _worst(page, audit)
        if page.style.verbose:
            _groups(page, audit)
    draw_findings(page, findings, several_nodes=True)
    if page.style.quiet:
        return
    if page.style.verbose:
        draw_gaps(page, Result(findings=tuple(findings), outcomes=tuple(outcomes)))
    draw_assumed(page, (*audit.talk.assumed, *audit.cluster.notes), fold=True)


def _head(page: Page, audit: Audit, action: str) -> None:
    """What a step costs, what can be regained, and by what `action`."""
    short = all(len(name) < 4 for name in audit.talk.sizes)
    sizes = (" " if short else ", ").join(f"{name}{'' if short else ' '}{n}" for name, n in audit.talk.sizes.items())
    unit = audit.talk.unit
    what = f"per {unit}" if audit.talk.base_us is not None else f"of communication in a {unit}"
    ranks, nodes = plural(audit.talk.world, "rank"), plural(audit.nodes, "node")
    answer = page.text((f"{spell_time(audit.step_us)} {what}", "strong"))
    page.add("", answer, f"  {audit.cluster.system or 'cluster'}, {ranks} on {nodes}{f', {sizes}' if sizes else ''}")
    if why := audit.hardly_matters:
        page.note_answer(answer, ": ", ("topology hardly matters here", "ok"))
        page.add(page.text(("topology hardly matters here", "ok"), "  "), why)
    elif audit.gain < _SHARE_SHOWN:
        page.note_answer(answer, ": ", ("nothing to regain", "ok"))
        page.add("", ("nothing to regain", "ok"), f": no order found on these GPUs makes a {unit} shorter")
    else:
        lost = spell_time(audit.waited_us - audit.best_us)
        words = f"{percent(audit.gain)} throughput to regain"
        if audit.talk.base_us is None:
            words = f"communication takes {1 + audit.gain:.2f}× as long as it could"
        page.add("", (words, "error"), f": {lost} of a {unit} is lost to placement")
        page.entry("do", (action, "strong"), hue="ok")
        page.note_answer(answer, ": ", (words, "error"), f", {lost} of a {unit} is lost to placement", action=action)


def dimension_columns(audit: Audit) -> Columns[DimensionAudit]:
    """What each dimension costs as it lies, and what the same GPUs could give."""

    def lost(dimension: DimensionAudit) -> Cell:
        share = audit.lost(dimension)
        words = percent(share) if abs(share) >= _SHARE_SHOWN else "0"
        return Cell((words, "error" if share >= _SHARE_SHOWN else ""), share)

    return {
        Field("dimension"): lambda dim: (dim.dimension, "name"),
        Field("groups", right=True, drop=2): lambda dim: len(dim.groups),
        Field("ranks", right=True, drop=3): lambda dim: dim.demand.size,
        Field("over", least=17): lambda dim: _levels(audit, dim),
        Field("split", right=True): lambda dim: Cell((str(dim.split.size or ""), "error"), dim.split.size),
        Field("waited for", right=True): lambda dim: figure(dim.step_us, spell_time),
        Field("could be", right=True): lambda dim: figure(dim.best_us, spell_time),
        Field("alone", right=True, drop=4): lambda dim: figure(dim.bound_us, spell_time),
        Field("lost", right=True): lost,
        Field(f"traffic of a {audit.talk.unit}", least=16, drop=5): lambda dim: "; ".join(map(_traffic, dim.now)),
    }


def _traffic(cost: DemandCost) -> str:
    demand = cost.demand
    return f"{demand.calls:g} {demand.collective} of {spell_size(demand.bytes)}" if demand.calls else "nothing"


def _levels(audit: Audit, dim: DimensionAudit) -> str:
    """`node`, or `node 24, leaf 8` where groups of a dimension meet at several levels."""
    levels, counts = np.unique(dim.levels, return_counts=True)
    names = [audit.level_name(level) for level in levels.tolist()]
    if len(names) == 1:
        return names[0]
    return ", ".join(f"{name} {count}" for name, count in zip(names, counts.tolist(), strict=True))


def _worst(page: Page, audit: Audit) -> None:
    worst, unit = audit.worst, audit.talk.unit
    if worst is not None and worst.now_us - worst.best_us < _SHARE_SHOWN * audit.step_us:
        worst = None
    if worst is not None:
        where = f"{worst.dimension} group {worst.group}, ranks {fold_numbers(worst.ranks[:64])}"
        page.add(page.text(("worst group", "error"), "  "), where, f" on {fold_hosts(worst.nodes)}")
        more = worst.now_us - worst.best_us
        least = f"{spell_time(worst.best_us)} at best"
        words = f"meets at the {worst.level}: {spell_time(worst.now_us)} of a {unit}, {least}"
        page.add("  ", words, (f"  +{spell_time(more)}, {percent(more / audit.step_us)} of a {unit}", "strong"))
    could = audit.could
    if could is None or could.lost_us <= 0 or not audit.step_us:
        return
    first, second = could.ranks
    title = "worst single misplacement" if worst is None else "it could be worse"
    page.add(
        page.text((title, "strong"), "  "),
        f"ranks {first} ({could.nodes[0]}) and {second} ({could.nodes[1]}) exchanged: {could.dimension} group"
        f" {could.group} pays",
    )
    before, after = could.dimension_us
    words = f"{spell_time(before)} to {spell_time(after)}" if before > 0 else f"{spell_time(after)} in place of nothing"
    cost = f"+{spell_time(could.lost_us)} per {unit}, {percent(could.lost_us / audit.step_us)} slower"
    page.add("  ", (cost, "strong"), f"; {could.dimension} {words}")


def _groups(page: Page, audit: Audit) -> None:
    """Every group of every dimension, those that lose most first."""
    rows: list[list[Part]] = []
    for dimension in audit.dimensions:
        more = dimension.group_us - dimension.best_us
        order = np.argsort(-more, kind="stable")
        shown = order if page.style.verbose > 1 else order[:GROUPS_SHOWN]
        for number in shown.tolist():
            ranks = dimension.groups[number]
            share = float(more[number]) / audit.step_us if audit.step_us else 0.0
            rows.append([
                (f"{dimension.dimension} {number}", "name"), fold_numbers(ranks[:64].tolist()),
                fold_hosts(names_of(audit.cluster, audit.assignment, ranks)),
                audit.level_name(int(dimension.levels[number])), spell_time(float(dimension.group_us[number])),
                spell_time(dimension.best_us), percent(share) if share >= _SHARE_SHOWN else "0",
            ])  # fmt: skip
        if len(shown) < len(order):
            rest = f"{len(order) - len(shown)} more, none worse (-vv lists them)"
            rows.append([(dimension.dimension, "dim"), (rest, "dim"), "", "", "", "", ""])
    fields = (
        Field("group"), Field("members", least=16), Field("nodes", least=12, drop=1), Field("over"),
        Field("waited for", right=True), Field("could be", right=True), Field("lost", right=True),
    )  # fmt: skip
    page.blank()
    draw_grid(page, fields, rows)


def audit_json(audit: Audit, findings: Sequence[Finding], inputs: Iterable[Input] = ()) -> Document:
    """The published shape (schema/place-1.0.schema.json). Times in ms; a level is `node` or the kind of a level of the
    cluster; `levels` are the groups of each that the job's nodes lie in."""
    return document_of(
        "place.AuditDocument",
        audit,
        inputs=inputs,
        map=map_json(audit.cluster, audit.assignment, ids_by_rank(audit.talk)),
        levels=map_of(audit.cluster, audit.assignment).levels,
        cost={
            dimension.dimension: from_model(
                "place.AuditCost",
                dimension,
                level=audit.level_name(int(dimension.levels[dimension.slowest])),
                lost_percent=100 * audit.lost(dimension),
                split=dimension.split.tolist(),
            )
            for dimension in audit.dimensions
        },
        findings=findings,
        violations=findings,
        step_ms=audit.step_us / 1000 if audit.talk.base_us is not None else None,
        groups=[row for dimension in audit.dimensions for row in _group_rows(audit, dimension)],
        assumed=[*audit.talk.assumed, *audit.cluster.notes],
    )


def _group_rows(audit: Audit, dim: DimensionAudit) -> Iterator[tuple[object, ...]]:
    """The groups of a dimension, in the order of the keys of AuditGroup."""
    step, best = audit.step_us or 1.0, dim.best_us
    rows = zip(dim.levels.tolist(), dim.domains.tolist(), dim.group_us.tolist(), strict=True)
    for number, (level, domains, now) in enumerate(rows):
        lost = max(100 * (now - best) / step, 0.0)
        yield dim.dimension, number, audit.level_name(level), domains, now / 1000, best / 1000, lost


def map_json(cluster: Cluster, assignment: Assignment, groups: Mapping[str, Ints]) -> list[Document]:
    """One row per rank. `groups[dimension][rank]` is the number of its group, -1 for none. `nic` is the rail of the
    rank's GPU, null where the fabric has none."""
    return [from_model("place.MappedRank", None, **row) for row in rows(map_of(cluster, assignment, groups))]


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
