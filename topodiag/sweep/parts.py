"""Which parts of the fabric a run uses: what its result acquits or accuses; and the parts in words and as findings, as
`bench read` counts and prints them: what is at fault, what cannot be told apart, and what to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from topodiag.model.bench import SLOW_PLACEMENT
from topodiag.model.finding import Confidence, Cost, Finding, Severity, Where
from topodiag.sweep.values import Fabric, Fault, Gap, JudgedRun, Part, SweepJudgement, SweepRun
from topodiag.words.own_data import own_data
from topodiag.words.units import few, fold_hosts, fold_numbers, grouped, in_gbs, numbered, percent, plural, spell_gbs

_WORDS = own_data("sweep/words")
_PORT = frozenset({"link", "pcie"})
GAP_ID = "BEN005"
SEVERE_SHARE = 1 - SLOW_PLACEMENT
"""BEN005's 30 %: from here on a cell is red."""


def severe(fault: Fault) -> bool:
    """Whether it is BEN005: more than 30 % slower than other placements of the same collective."""
    return fault.share is not None and fault.share < SEVERE_SHARE


def fault_words(fault: Fault, fabric: Fabric) -> list[str]:
    """One phrase a place; more than one where it is one of them."""
    ports = grouped(((part.place, part.rail), part.kind) for part in fault.parts if part.kind in _PORT)
    by_node = grouped(((node, frozenset(kinds)), rail) for (node, rail), kinds in ports.items())
    lines = [_port(node, rails, kinds, fabric) for (node, kinds), rails in by_node.items()]
    others = grouped(((part.kind, part.place), part.rail) for part in fault.parts if part.kind not in _PORT)
    return [_path_text(kind, place, rails) for (kind, place), rails in others.items()] + lines


def _port(node: str, rails: Sequence[int], kinds: frozenset[str], fabric: Fabric) -> str:
    if len(rails) > 1:
        return f"one of rails {fold_numbers(rails)} of {node}"
    nic = fabric.nic(rails[0])
    name = f"{nic} of {node} (rail {rails[0]})" if nic else f"rail {rails[0]} of {node}"
    if kinds == {"pcie"}:
        return f"the PCIe way from GPU {fabric.gpu_of(rails[0])} to {name}"
    return name


def _path_text(kind: str, place: str, rails: Sequence[int]) -> str:
    if kind == "path" and " and " in place and "GPU" not in place:
        kind = "nodes"
    several = _WORDS["several"] if len(rails) > 1 else {}
    text: str = several.get(kind, _WORDS["places"][kind])
    return text.format(place=place, on=_on(rails), rails=fold_numbers(rails))


def _on(rails: Sequence[int]) -> str:
    """`, rail 3`; "" for a part that is of all rails."""
    return "" if list(rails) == [-1] else f", {numbered('rail', rails)}"


def untold(fault: Fault) -> str:
    """What the runs cannot tell apart in a place that is named, or ""."""
    words: str = _WORDS["untold"].get(" ".join(sorted({part.kind for part in fault.parts})), "")
    return words


def look_at(fault: Fault, fabric: Fabric) -> list[str]:
    """What to do next about a confirmed fault."""
    (kind, place, rail), kinds = fault.parts[0], {part.kind for part in fault.parts}
    if kinds <= _PORT:
        kind = " ".join(sorted(kinds))
    elif kind in _PORT:
        kind = "path"
    path = "" if kinds <= _PORT else _path_text(kind, place, [rail])
    given = {"place": place, "rail": rail, "on": _on([rail]), "nic": fabric.nic(rail) or "DEVICE", "path": path}
    return [line.format(**given) for line in _WORDS["look_at"][kind]]


def run_words(judged: JudgedRun) -> str:
    """`1-pairs-a+b: 22.1 GB/s, 49 % of 45`."""
    if judged.gbs is None:
        return f"{judged.run.id}: {judged.why or judged.standing.value}"
    beside = f", {percent(judged.share)} of {spell_gbs(judged.reference)}" if judged.share and judged.reference else ""
    return f"{judged.run.id}: {in_gbs(judged.gbs)}{beside}"


NAMED_PATHS = 8
"""Nodes up to which a run's own path is a part: what else could explain a run of many nodes is no path."""


def parts_of(run: SweepRun, fabric: Fabric) -> frozenset[Part]:
    """The parts whose fault would make this run slow. Runs of `settings` and `bisection` have none: they compare
    settings, and what crosses the middle with what does not, which may differ by design."""
    if run.kind in {"settings", "bisection"}:
        return frozenset()
    if len(run.nodes) == 1:
        node = run.nodes[0]
        gpus = {Part("gpu", node, gpu) for gpu in run.gpus}
        whole = Part("board", node) if len(run.gpus) == fabric.gpus else Part("path", _path(run))
        return frozenset(gpus | {whole})
    rails = tuple(range(fabric.rails)) if run.rail is None else (run.rail,)
    kinds = ["link"] if run.kind == "fabric" else ["link", "pcie"]  # ib_write_bw moves host memory, not a GPU's
    rows: set[Part] = set()
    for node in run.nodes:
        for kind in kinds:
            rows |= _on_rails(kind, node, rails)
        if run.rail is None:
            rows.add(Part("host", node))
    racks = {fabric.racks.get(node, "") for node in run.nodes}
    leaves = rails if fabric.leaf_per_rail else (-1,)
    for rack in racks - {""}:
        rows |= _on_rails("leaf", rack, leaves)
        if len(racks) > 1 and run.kind == "racks":
            # One pair's flow takes one uplink of many, so that it says nothing of the others.
            rows |= _on_rails(*joint(fabric, rack), leaves)
    if len(run.nodes) <= NAMED_PATHS and not any(part.kind == "between" for part in rows):
        rows.add(Part("path", _path(run), -1 if run.rail is None else run.rail))
    return frozenset(rows)


def joint(fabric: Fabric, rack: str) -> tuple[str, str]:
    """What joins this rack to the others, as a part's kind and place. Of two racks every flow that leaves one enters
    the other: whose uplinks it is cannot be told."""
    racks = tuple(fabric.by_rack())
    return ("between", " and ".join(racks)) if len(racks) == 2 else ("uplink", rack)


@lru_cache(maxsize=1 << 16)
def _on_rails(kind: str, place: str, rails: tuple[int, ...]) -> frozenset[Part]:
    return frozenset(Part(kind, place, rail) for rail in rails)


def acquits(run: SweepRun, fabric: Fabric) -> frozenset[Part]:
    """The parts that a normal run shows to be good. Runs of whole racks share so many parts that a few faults make
    most of them slow, and what is normal among them is no proof: they speak of uplinks alone."""
    parts = parts_of(run, fabric)
    return parts if len(run.nodes) <= 2 else frozenset(part for part in parts if part.kind in {"uplink", "between"})


def _path(run: SweepRun) -> str:
    if len(run.nodes) == 1:
        return f"{run.nodes[0]} GPU {' and '.join(map(str, run.gpus))}"
    return " and ".join(sorted(run.nodes))


def crosses(run: SweepRun, fabric: Fabric) -> bool:
    """Whether its nodes are in more than one rack."""
    return len({fabric.racks.get(node, "") for node in run.nodes}) > 1


RUNS_TOLD = 4
LOW_ID = "BEN001"
"""The check of what is slower than it should be, and not by 30 %."""


def sweep_findings(judged: SweepJudgement, fabric: Fabric) -> list[Finding]:
    """Confirmed faults (errors), then suspects and slow placements (warnings), as `--fail-on` counts them."""
    faults = [_fault_finding(fault, judged, fabric) for fault in (*judged.confirmed, *judged.suspects)]
    return faults + [_gap_finding(gap) for gap in judged.gaps]


def _fault_finding(fault: Fault, judged: SweepJudgement, fabric: Fabric) -> Finding:
    words = fault_words(fault, fabric)
    state = "its runs fail" if fault.share is None else f"at {percent(fault.share)} of what is normal"
    named = words[0] if len(words) == 1 else f"one of {len(words)} places, not told apart yet: {'; '.join(words)}"
    own = set(fault.runs)
    runs = [run for run in judged.runs if run.run.id in own]
    rounds = numbered("round", fault.rounds)
    nodes = {part.place for part in fault.parts} & set(fabric.nodes)
    nics = {name for part in fault.parts if part.kind == "link" and (name := fabric.nic(part.rail))}
    slow = [run for run in runs if run.gbs is not None]
    worst = min(slow, key=lambda judged_run: judged_run.gbs or 0.0, default=None)
    return Finding(
        id=GAP_ID if severe(fault) else LOW_ID,
        severity=Severity.ERROR if fault.confirmed else Severity.WARNING,
        message=f"{named}: {state}" if fault.confirmed else f"suspect: {named}, {state}",
        observed=f"{plural(len(runs), 'run')} of {rounds}: {few([run_words(run) for run in runs], RUNS_TOLD, '; ')}",
        expected="" if worst is None or worst.reference is None else f"{in_gbs(worst.reference)}, as runs alike",
        fix=_steps(fault, fabric) if fault.confirmed else (),
        where=Where(nodes=tuple(sorted(nodes)), nics=tuple(sorted(nics))),
        cost=_lost(worst),
        confidence=Confidence.HIGH if fault.confirmed else Confidence.LOW,
    )


def _gap_finding(gap: Gap) -> Finding:
    best, worst = gap.best, gap.worst
    return Finding(
        id=GAP_ID,
        severity=Severity.WARNING,
        message=f"{gap.collective} on {gap.ranks} ranks: one placement is {percent(gap.lost)} slower than another",
        observed=_placed(worst),
        expected=_placed(best),
        fix=(),
        where=Where(nodes=tuple(worst.run.nodes)),
        cost=Cost((best.gbs or 0.0) - (worst.gbs or 0.0), gap.lost, "of the bus bandwidth of the better placement"),
    )


def _placed(judged_run: JudgedRun) -> str:
    run = judged_run.run
    return f"{in_gbs(judged_run.gbs or 0.0)} on {fold_hosts(run.nodes)}, {run.why or run.id}"


def _steps(fault: Fault, fabric: Fabric) -> tuple[str, ...]:
    """What to look at; the first step says what the runs cannot tell apart."""
    first, *rest = look_at(fault, fabric)
    alike = untold(fault)
    return (f"{first} ({alike})" if alike else first, *rest)


def _lost(worst: JudgedRun | None) -> Cost:
    if worst is None or worst.gbs is None or worst.reference is None or worst.share is None:
        return Cost(text="its runs give no bandwidth")
    return Cost(worst.reference - worst.gbs, 1 - worst.share, f"of the bus bandwidth of run {worst.run.id}")
