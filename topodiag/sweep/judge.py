"""What the results say of the fabric's parts: runs beside their like, then the fewest parts that explain the slow ones.

A run is compared with the runs of its own shape (collective, ranks, GPUs per node, inside a rack or across), in all
rounds. A part with one normal run is acquitted. Of the rest, the part that explains most slow runs is taken first;
parts with exactly the same slow runs cannot be told apart and are named together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from statistics import median

from topodiag.model.bench import SLOW_PLACEMENT
from topodiag.sweep.parts import acquits, crosses, parts_of
from topodiag.sweep.values import (
    Fabric,
    Fault,
    Gap,
    JudgedRun,
    Part,
    Standing,
    State,
    SweepJudgement,
    SweepPlan,
    SweepResult,
    SweepRun,
)
from topodiag.words.units import grouped, plural

LOW_SHARE = 0.85
"""Below this share of what is normal a run is slow. Healthy repeats of large messages scatter by a few per cent; the
faults that are looked for (a NIC at half width, a lane down, a throttled GPU) cost a quarter or more."""
SPREADS = 4.0
"""And below the reference by this many robust standard deviations of the runs that are alike; between the two it is
neither slow nor normal."""
BETWEEN = "their like scatter so much that this may be chance"
ONE_RAIL = "all are of one suspect rail, and nothing good could run beside them"
CONTROL = "control"
"""What a run between good nodes says of itself that is there to show what is normal."""
LEAST_ALIKE = 3
"""Fewer runs of a shape have no normal: which of two is the odd one cannot be said."""
LEAST_SLOW = 3
"""Slow runs of its own that a part needs before it is named: two that are slow by chance are no rarity in a sweep."""
LEAST_ALONE = 3
"""Rounds in which something without other partners must have been slow."""
TWO_KINDS_SHARE, LEAST_KIND, KIND_SPREAD = 0.4, 8, 0.05
"""More than this share of at least so many runs (times the nodes of each), slow within so small a spread: another kind
of machine, not faults."""
TWO_KINDS = "so many are slow alike that it may be another kind of machine (sweep each kind by itself, or --kind rails)"
_LAYERS = ("leaf", "uplink", "between", "board", "gpu", "link", "pcie", "host", "path")


def judge(plans: Sequence[SweepPlan], results: Iterable[SweepResult]) -> SweepJudgement:
    """All rounds of one sweep together. Of several attempts at a run the last counts."""
    if not plans:
        return SweepJudgement()
    fabric = plans[0].fabric
    last = {(result.round, result.run): result for result in results if result.state is not State.INTERRUPTED}
    done = [
        _unjudged(run, result)
        for plan in plans
        for run in plan.runs
        if (result := last.get((plan.round, run.id))) is not None
    ]
    judged = _standings(done, fabric)
    parts = {(judged_run.round, judged_run.run.id): parts_of(judged_run.run, fabric) for judged_run in judged}
    passed = {part for run in judged if run.standing is Standing.NORMAL for part in acquits(run.run, fabric)}
    bad = {Standing.LOW, Standing.FAILED}
    slow = [judged_run for judged_run in judged if judged_run.standing in bad]
    faults = _doubted(_explain(slow, parts, passed))
    accused = _accused(faults, fabric)
    # A slow run is a fault's or was slow by chance; but of a bisection only where nothing in it is accused.
    placed = [
        judged_run
        for judged_run in judged
        if judged_run.standing is Standing.NORMAL
        or (
            not (parts[judged_run.round, judged_run.run.id] and judged_run.standing in bad)
            and accused.isdisjoint(_places(judged_run, fabric))
        )
    ]
    return SweepJudgement(
        runs=tuple(judged),
        faults=faults,
        gaps=tuple(_gaps(placed)),
        passed=frozenset(passed),
        missing=sum(len(plan.runs) for plan in plans) - len(done),
        notes=tuple(_notes(judged, fabric)),
    )


def _accused(faults: Iterable[Fault], fabric: Fabric) -> set[str]:
    """Places of the parts that may be bad; what lies between racks accuses them all."""
    parts = [part for fault in faults for part in fault.parts]
    texts = {part.place for part in parts}
    if any(part.kind == "between" for part in parts):
        texts.update(fabric.racks.values())
    return texts


def _places(judged_run: JudgedRun, fabric: Fabric) -> tuple[str, ...]:
    """The nodes of a run and their racks."""
    return (*judged_run.run.nodes, *(fabric.racks.get(node, "") for node in judged_run.run.nodes))


def shape(run: SweepRun, fabric: Fabric) -> tuple[object, ...]:
    """Runs that should be equally fast. Which rail it is makes no difference; which two GPUs does not on NVLink."""
    return (
        run.program, run.collective, run.algorithm, run.protocol, run.max_bytes, len(run.nodes), len(run.gpus),
        crosses(run, fabric), run.rail is None, run.kind == "bisection",
    )  # fmt: skip


def _unjudged(run: SweepRun, result: SweepResult) -> JudgedRun:
    """A run with its bandwidth, or with why it has none."""
    if result.state is State.OK and result.gbs:
        return JudgedRun(run, result.round, Standing.UNKNOWN, result.gbs)
    return JudgedRun(run, result.round, Standing.UNKNOWN, why=result.why or result.state.value)


def _standings(done: Sequence[JudgedRun], fabric: Fabric) -> list[JudgedRun]:
    groups = grouped((shape(run.run, fabric), run) for run in done)
    runs: dict[tuple[int, str], JudgedRun] = {}
    for group in groups.values():
        values = sorted(run.gbs for run in group if run.gbs is not None)
        controls = [run.gbs for run in group if run.run.why == CONTROL and run.gbs is not None]
        reference = _reference(values, controls)
        floor = _floor(values, reference)
        failed = len(group) - len(values)
        of_shape = [_judged(run, reference, floor, failed, len(values)) for run in group]
        if len(controls) < LEAST_ALIKE and _one_suspect(group):
            of_shape = [replace(judged_run, standing=Standing.UNKNOWN, why=ONE_RAIL) for judged_run in of_shape]
        if _two_kinds(of_shape):
            of_shape = [
                replace(judged_run, standing=Standing.UNKNOWN, why=TWO_KINDS)
                if judged_run.standing is Standing.LOW
                else judged_run
                for judged_run in of_shape
            ]
        runs.update(((judged_run.round, judged_run.run.id), judged_run) for judged_run in of_shape)
    return [runs[run.round, run.run.id] for run in done]


def _one_suspect(group: Sequence[JudgedRun]) -> bool:
    """Whether all were asked for because of one rail: if its leaf is bad all are slow alike, and none is normal."""
    rails = {run.run.rail for run in group}
    return len(rails) == 1 and None not in rails and all(run.round > 1 for run in group)


def _two_kinds(group: Sequence[JudgedRun]) -> bool:
    """Whether the slow runs of round 1 look like another kind of machine: many, and all alike. The more nodes a run
    has, the more runs one bad part makes slow."""
    first = [judged_run for judged_run in group if judged_run.round == 1]
    low = [judged_run.share for judged_run in first if judged_run.standing is Standing.LOW and judged_run.share]
    if not first or len(first) < LEAST_KIND * len(first[0].run.nodes) or len(low) <= TWO_KINDS_SHARE * len(first):
        return False
    return _spread(low) < KIND_SPREAD * median(low)


def _spread(values: Sequence[float]) -> float:
    """The robust standard deviation: that of a normal distribution with this median deviation."""
    middle = median(values)
    return 1.4826 * median(abs(value - middle) for value in values)


def _reference(values: Sequence[float], controls: Sequence[float]) -> float | None:
    """The upper quartile: right as long as a quarter of the runs are healthy; or the median of the controls, where the
    suspects outnumber them. None for too few runs. `values` ascend."""
    if len(values) < LEAST_ALIKE:
        return None
    upper = values[(3 * len(values)) // 4]
    return max(upper, median(controls)) if len(controls) >= LEAST_ALIKE else upper


def _floor(values: Sequence[float], reference: float | None) -> float:
    """The least that is normal. The spread is that of the upper half around the reference, so that slow runs, however
    many, do not hide one another."""
    if reference is None:
        return 0.0
    upper = [value for value in values[len(values) // 2 :] if value >= LOW_SHARE * reference]
    return min(LOW_SHARE * reference, reference - SPREADS * _spread(upper))


def _judged(run: JudgedRun, reference: float | None, floor: float, failed: int, measured: int) -> JudgedRun:
    if run.gbs is None:
        # Where most fail alike, it is the program or its options, not this run's machines.
        standing = Standing.FAILED if measured >= LEAST_ALIKE and failed < measured else Standing.UNKNOWN
        return replace(run, standing=standing, reference=reference)
    if reference is None:
        return replace(run, why=f"fewer than {LEAST_ALIKE} runs are alike")
    if floor <= run.gbs < LOW_SHARE * reference:  # too little to acquit, too much to accuse
        return replace(run, reference=reference, why=BETWEEN)
    return replace(run, standing=Standing.LOW if run.gbs < floor else Standing.NORMAL, reference=reference)


def _explain(
    slow: Sequence[JudgedRun], parts: Mapping[tuple[int, str], frozenset[Part]], passed: set[Part]
) -> list[Fault]:
    """The fewest parts that explain all slow runs, greedily: a run is slow because of one part, rarely of two."""
    uses: dict[Part, set[int]] = {}
    for number, judged_run in enumerate(slow):
        for part in parts[judged_run.round, judged_run.run.id] - passed:
            uses.setdefault(part, set()).add(number)
    alike = grouped((frozenset(uses[part]), part) for part in sorted(uses, key=_order))
    by_run = grouped((number, numbers) for numbers in alike for number in numbers)
    # Of sets that explain as many, one layer's first, so that the choice does not hang on the order of a set.
    heap = [(-len(numbers), _order(rows[0]), numbers) for numbers, rows in alike.items()]
    heapify(heap)
    open_runs = set(by_run)
    faults: list[Fault] = []
    while open_runs:
        size, order, numbers = heappop(heap)
        left = numbers & open_runs
        if len(left) < -size:  # another fault has explained some of them meanwhile
            if left:
                heappush(heap, (-len(left), order, numbers))
            continue
        same = [other for other in by_run[next(iter(left))] if other & open_runs == left]
        group = sorted((part for other in same for part in alike[other]), key=_order)
        explained = [slow[number] for number in sorted(numbers)]
        faults.append(_fault(tuple(group), explained, own=len(left)))
        open_runs -= left
    return faults


def _doubted(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """What joins two racks is not confirmed where pairs of nodes were slow on that rail more than once without a
    reason: where most runs are slow, what passes for normal acquits a bad leaf, and it would be that."""
    slow = Counter(part.rail for fault in faults for part in fault.parts if part.kind == "path" for _ in fault.runs)
    unexplained = {rail for rail, runs in slow.items() if runs > 1}
    return tuple(
        replace(fault, confirmed=False)
        if any(part.kind == "between" and part.rail in unexplained for part in fault.parts)
        else fault
        for fault in faults
    )


def _order(part: Part) -> tuple[int, str, int]:
    return _LAYERS.index(part.kind), part.place, part.rail


def _fault(group: tuple[Part, ...], runs: Sequence[JudgedRun], own: int) -> Fault:
    """`own` of its slow runs are explained by no fault before it."""
    shares = [run.share for run in runs if run.share is not None]
    rounds = tuple(sorted({run.round for run in runs}))
    return Fault(
        parts=group,
        runs=tuple(run.run.id for run in runs),
        rounds=rounds,
        share=median(shares) if shares else None,
        confirmed=own >= LEAST_SLOW and len(places(group)) == 1 and len(rounds) > 1 and _partners(group[0], runs),
    )


def places(parts: Iterable[Part]) -> set[tuple[str, str, int]]:
    """What a group of parts comes to in the world: a NIC's link and the GPU's way to it are one place to go to."""
    return {("port" if part.kind in {"link", "pcie"} else part.kind, part.place, part.rail) for part in parts}


def _partners(part: Part, runs: Sequence[JudgedRun]) -> bool:
    """Whether the slow runs had different partners. What has but itself to be measured with (a path, what joins two
    racks, the NVLink of a node as a whole) must be slow once more instead: by chance a run is slow twice in one sweep
    of a hundred."""
    if part.kind in {"path", "between", "board"}:
        return len({run.round for run in runs}) >= LEAST_ALONE
    return len({(run.run.nodes, run.run.gpus) for run in runs}) > 1


def _gaps(judged: Sequence[JudgedRun]) -> list[Gap]:
    """The best against the worst placement of each collective on as many ranks, of runs that are not slow beside their
    like: what is slow by where it runs and not by what is broken. A sweep of settings compares no placements."""
    compared = [judged_run for judged_run in judged if judged_run.gbs and judged_run.run.kind != "settings"]
    groups = grouped((_size_of(judged_run.run), judged_run) for judged_run in compared)
    gaps: list[Gap] = []
    for group in groups.values():
        best = max(group, key=lambda judged_run: judged_run.gbs or 0.0)
        worst = min(group, key=lambda judged_run: judged_run.gbs or 0.0)
        gap = Gap(best.run.collective, len(best.run.nodes) * len(best.run.gpus), best, worst)
        if gap.lost > SLOW_PLACEMENT:
            gaps.append(gap)
    return gaps


def _size_of(run: SweepRun) -> tuple[object, ...]:
    """The program, its ranks, those of a node and the greatest size."""
    return run.program, len(run.nodes) * len(run.gpus), len(run.gpus), run.max_bytes


def _notes(judged: Sequence[JudgedRun], fabric: Fabric) -> list[str]:
    groups = grouped((shape(judged_run.run, fabric), judged_run) for judged_run in judged)
    texts: list[str] = []
    for group in groups.values():
        kind = group[0].run.kind
        unknown = sum(judged_run.standing is Standing.UNKNOWN for judged_run in group)
        if unknown and kind != "settings":
            why = next(judged_run.why for judged_run in group if judged_run.standing is Standing.UNKNOWN)
            texts.append(f"{plural(unknown, f'{kind} run')} cannot be judged: {why}")
    return list(dict.fromkeys(texts))
