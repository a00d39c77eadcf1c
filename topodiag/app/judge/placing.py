"""A layout on its cluster: what it costs, and where its ranks should sit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from topodiag.app.case.place_options import PlaceError, PlaceOptions
from topodiag.app.case.placement import LayoutRead, Placement, open_placement
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.intake.collected import resolve
from topodiag.model.cluster import Assignment, Cluster
from topodiag.model.finding import Outcome, Severity
from topodiag.model.job import Job
from topodiag.model.layout import Layout
from topodiag.model.place_map import map_of
from topodiag.placement.audit import Audit, audit
from topodiag.placement.declared import DeclaredRanks, compare_layouts, price_declared
from topodiag.placement.groups import Talk, ids_by_rank, machine_of, talk_of_groups, talk_of_layout, talk_of_server
from topodiag.placement.job_groups import talk_of_job
from topodiag.placement.price import price_placement
from topodiag.placement.seats import by_rule
from topodiag.placement.solve import Solution, Solved, node_after_node, solve
from topodiag.placement.usable import is_usable, prefer_healthy
from topodiag.words.units import grouped, in_ms, percent

_ALIKE = 1e-3
"""Share by which the times of two maps differ that are the same."""


def talk_for(placement: Placement, trained: Mapping[str, Any] | None = None) -> Talk:
    """Who talks to whom, and how much: by parallel sizes, by groups, or by the communicators of a job's logs. `trained`
    are the options of `topodiag model step` by name, None where nothing is said, empty for a server. Raises
    TopodiagError."""
    cluster, job, layout = placement.cluster, placement.read.job, placement.layout
    if layout is not None:
        if not trained:
            talk = talk_of_layout if trained is None else talk_of_server
            return talk(cluster, layout, placement.world)
        return _trained(cluster, layout, placement.world, trained)
    if placement.groups:
        return talk_of_groups(cluster, placement.groups, placement.world)
    if job is not None:
        return talk_of_job(cluster, job)
    raise PlaceError("Which ranks form groups? Give parallel sizes (--tp 8 --pp 4), --groups FILE, or --log FILE.")


def _trained(cluster: Cluster, layout: Layout, world: int, trained: Mapping[str, Any]) -> Talk:
    from topodiag.cost.training import peak_of, work_of  # noqa: PLC0415 - the step model, for this question only

    peak = peak_of(machine_of(cluster, world), trained["precision"], trained["peak_tflops"])
    work = work_of(trained, layout.for_world(world).dp, peak)
    talk = talk_of_layout(cluster, layout, world, work)
    note = f"computation reaches {percent(work.reached)} of {peak.tflops:g} TFLOPS ({peak.source})"
    return replace(talk, assumed=(*talk.assumed, note))


# --- the answers ----------------------------------------------------------------------------------------------


def audited(placement: Placement, talk: Talk) -> tuple[Audit, tuple[Outcome, ...]]:
    """A layout judged, beside the one that was declared where both were read. Without one ranks are numbered node by
    node. Raises AuditError."""
    cluster = placement.cluster
    assignment = placement.assignment or by_rule(cluster, "block", placement.world)
    judged = replace(audit(cluster, talk, assignment), declared=_declared(placement.read, cluster, talk))
    return judged, run(Subject.LAYOUT, [judged])


BLOCKS = ("hostfile", "mpich", "torchrun")
"""Launchers that fill one node after the other: their ranks are consecutive on each."""


def solve_placement(options: PlaceOptions, trained: Mapping[str, Any] | None = None, *, launcher: str = "") -> Solved:
    """A map from ranks to nodes and GPUs that makes a step wait least, beside the layout given. `launcher` is a format
    of `place emit`: the map is one that this launcher can take. Raises TopodiagError."""
    placement = open_placement(options)
    talk = talk_for(placement, trained)
    cluster, before, given = _before(placement, talk)
    cluster = prefer_healthy(cluster, talk.world, _faults_of(options.bundles, placement.read.job))
    solution = solve(cluster, talk.demands, talk.world, at_most=before if is_usable(cluster, before) else None)
    groups = ids_by_rank(talk)
    place = map_of(cluster, solution.assignment, groups)
    if launcher in BLOCKS and not place.consecutive:
        free, solution = solution, node_after_node(cluster, talk.demands, solution)
        cluster = replace(cluster, notes=(*cluster.notes, *_dearer(launcher, free, solution)))
        place = map_of(cluster, solution.assignment, groups)
    cost = price_placement(cluster, talk.demands, before)
    return Solved(
        cluster, talk, solution, place, groups, before, cost, "the layout given" if given else "node by node", launcher
    )


def _dearer(launcher: str, free: Solution, solution: Solution) -> list[str]:
    """What it costs that the launcher numbers ranks node after node; nothing where it costs nothing."""
    now, best = solution.cost.step_us / 1000, free.cost.step_us / 1000
    if now <= best * (1 + _ALIKE):
        return []
    words = f"{launcher} numbers ranks node after node: a step waits {in_ms(now * 1000)}, and {in_ms(best * 1000)} with"
    return [f"{words} slurm-hostfile or rankfile, which take any order"]


def _before(placement: Placement, talk: Talk) -> tuple[Cluster, Assignment, bool]:
    """The cluster, the layout to start from, and whether it was given; else ranks are numbered node by node."""
    cluster, given = placement.cluster, placement.assignment
    declared = _declared(placement.read, cluster, talk)
    if declared is not None and declared.differs:
        note = f"the layout given is where ranks ran: {declared.difference} (topodiag place audit names them)"
        cluster = replace(cluster, notes=(*cluster.notes, note))
    return cluster, given if given is not None else by_rule(cluster, "block", talk.world), given is not None


def _declared(read: LayoutRead, cluster: Cluster, talk: Talk) -> DeclaredRanks | None:
    """The launcher's file beside the log of the job, None where not both are given."""
    if read.ranks is None or read.declared is None:
        return None
    declared = compare_layouts(read.declared, read.ranks)
    return replace(declared, step_us=price_declared(declared, read.declared, cluster, talk))


_HARDWARE = ("GPU", "NVL", "PCI", "NIC", "TOP", "GDR", "HST")
"""Families whose findings in a log tell of a node, not of the job."""


def _faults_of(bundles: Sequence[str], job: Job | None) -> dict[str, tuple[str, ...]]:
    """By host the ids of its errors. Raises TopodiagError where a bundle's path holds none, or a worker dies."""
    pairs: list[tuple[str, str]] = []
    if bundles:
        from topodiag.fleet.nodes import read_fleet  # noqa: PLC0415 - the checks of nodes, for bundles only

        for node in read_fleet([resolve(path) for path in bundles]).nodes:
            host = node.host.partition("#")[0]  # numbered where several machines have the name
            pairs += [(host, finding.id) for finding in node.findings if finding.severity is Severity.ERROR]
    if job is not None:
        pairs += [
            (host, finding.id)
            for outcome in run(Subject.JOB, [job])
            for finding in outcome.findings
            if finding.severity is Severity.ERROR and finding.id.startswith(_HARDWARE)
            for host in finding.where.nodes
        ]
    return {host: tuple(dict.fromkeys(ids)) for host, ids in grouped(pairs).items()}
