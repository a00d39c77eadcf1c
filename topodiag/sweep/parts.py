"""Which parts of the fabric a run uses: what its result acquits or accuses."""

from __future__ import annotations

from functools import lru_cache

from topodiag.model.sweep import Fabric, Part, SweepRun

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
