"""The order of ranks in a layout: pipelines in physical order, peers on one rail, rings of attention in turn."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np

from topodiag.checks.interface import PlacementCheck, spell_ranks
from topodiag.checks.placement.layout_groups import lost, named, waiting_cost, where
from topodiag.checks.placement.layout_ranks import NOTHING, WORTH
from topodiag.cost.step import MATTERS
from topodiag.model.cluster import Assignment, Bools, Cluster, Ints
from topodiag.model.finding import Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.layout import Pattern, of_label
from topodiag.placement.audit import Audit, DimensionAudit
from topodiag.placement.price import off_rail_us, pairs_of
from topodiag.words.units import plural


class StagesApart(PlacementCheck, id="PLC003"):
    """PLC003: pipeline neighbours are further apart than they need to be (spine instead of leaf)

    What it finds
        Neighbouring pipeline stages that meet at a level further out (the spine, another rack) than they do in a map
        of the same ranks on the same GPUs that keeps every inner group together.

    Why it matters
        Stages pass an activation forward and its gradient back for every micro-batch, 64 MiB for a sequence of 4096
        at hidden size 8192, and the next stage waits. Over a spine of half the bandwidth that takes twice as long, and
        meets the traffic of others.

    Evidence it reads
        The layout, the levels of the fabric, and the price of both maps.

    When it stays silent
        No pipeline. The other map would make the step no shorter, because other groups would pay for it. All nodes
        hang on one switch.

    How to confirm
        topodiag place audit --dimension pp            which stages are far apart
        ib_write_bw                                    between the two nodes, then between two nodes of one leaf

    How to fix
        Place stages in physical order: node k of a replica holds stage k, replicas in leaves of their own
        (`topodiag place solve`).

    References
        D. Narayanan et al., Efficient large-scale language model training on GPU clusters using Megatron-LM (2021),
        section 3.
    """

    def observe(self, audit: Audit, peers: Sequence[Audit]) -> Outcome:
        mine = [
            dimension
            for dimension in audit.dimensions
            if dimension.demand.collective == "send_recv" and not _around_attention(dimension)
        ]
        if not mine:
            return self.not_applicable(audit, "no pipeline in the layout")
        gained = audit.waited_us - fsum(dimension.best_us for dimension in audit.dimensions)
        further = mine if gained > NOTHING * audit.step_us else []
        pairs = [(dim, _outermost_difference(audit, dim)) for dim in further if not audit.instead_of(dim)]
        return self.any_of(audit, [self._report(audit, dim, *pair) for dim, pair in pairs if pair is not None])

    def _report(self, audit: Audit, dim: DimensionAudit, level: int, now: int, best: int) -> Finding:
        """Pairs of stages that meet at a level or further out, and how many would have to."""
        name = audit.level_name(level)
        levels = pair_levels(audit.cluster, dim.groups, audit.assignment).max(axis=1)
        groups = np.flatnonzero(levels >= level)
        cost = lost(audit, dim)
        return self.finding(
            where(audit, dim, groups),
            "stages apart",
            f"{now} of {plural(dim.groups.shape[0] * (dim.demand.size - 1), 'pair')} of neighbouring stages meet at"
            f" the {name}, {best} would be enough",
            severity=Severity.WARNING if (cost.share or 0.0) >= WORTH else Severity.INFO,
            observed=named(audit, dim, groups),
            cost=cost,
        )


def _around_attention(audit: DimensionAudit) -> bool:
    """Whether the groups hand keys and values on around a ring."""
    dimension = of_label(audit.dimension)
    return dimension is not None and dimension.pattern is Pattern.ATTENTION


def pair_levels(cluster: Cluster, groups: Ints, assignment: Assignment) -> Ints:
    """The level at which neighbours in each row meet; shape (groups, size - 1)."""
    pairs = cluster.node_of(assignment.slot[pairs_of(groups)])
    levels: Ints = cluster.level_between(pairs[:, 0], pairs[:, 1]).reshape(len(groups), -1)
    return levels


def _outermost_difference(audit: Audit, dim: DimensionAudit) -> tuple[int, int, int] | None:
    """(level, pairs that meet there or further out, pairs that do in the other map) for the outermost level at which
    the two differ, where the layout has more of them; None where it has not."""
    far = len(audit.cluster.levels) + 2
    now = np.bincount(pair_levels(audit.cluster, dim.groups, audit.assignment).ravel(), minlength=far)
    best = np.bincount(pair_levels(audit.cluster, dim.groups, audit.best).ravel(), minlength=far)
    for level in range(far - 1, 0, -1):
        a, b = int(now[level:].sum()), int(best[level:].sum())
        if a != b:
            return (level, a, b) if a > b else None
    return None


class PeersOnOtherRails(PlacementCheck, id="PLC004"):
    """PLC004: data-parallel peers sit on different rails

    What it finds
        Data-parallel communicators that use other GPU positions on one node than on the next, so that the peers' own
        NICs hang on different rails (leaf switches).

    Why it matters
        On a rail-optimised network GPU n of every node reaches its peers over one leaf. Peers on other rails cross
        the spine, where they meet everybody's traffic, or take a detour over NVLink and another GPU's NIC (PXN).

    Evidence it reads
        The host and the GPU of each rank, from the layout or from the Init lines (NVML index, 2.4, 2.18 and later), the
        groups, and the rails of the fabric.

    When it stays silent
        Nodes have fewer NICs than GPUs, so that there are no rails. The group has members of all positions, or
        not the same number on each node. NVLink joins the nodes. The better map crosses as many rails.

    How to confirm
        topodiag logs LOGS --comms --ranks             the local GPU numbers of the group's members

    How to fix
        Give the same local rank to a group on every node: all GPUs of a node, in the same order, in the same job.

    References
        NCCL src/graph/search.cc (ncclTopoSearchCheckNet: which NIC a ring may return by) v2.28; NCCL environment,
        NCCL_CROSS_NIC.
    """

    def observe(self, audit: Audit, peers: Sequence[Audit]) -> Outcome:
        if audit.cluster.rails < 2:
            return self.not_applicable(audit, "the fabric has no rails")
        mine = [dim for dim in audit.dimensions if dim.dimension.split()[-1] in ("dp", "replicas", "shards")]
        several = [dim for dim in mine if (dim.domains > 1).any()]
        if not several:
            return self.not_applicable(audit, "no data-parallel group spans NVLink domains")
        findings = []
        for dim in several:
            wrong = np.flatnonzero(off_rail(audit.cluster, dim.groups, audit.assignment))
            if wrong.size > int(off_rail(audit.cluster, dim.groups, audit.best).sum()):
                findings.append(self._report(audit, dim, wrong))
        total = sum(len(dim.groups) for dim in several)
        return self.any_of(audit, findings, Coverage(total, total, "groups over several domains"))

    def _report(self, audit: Audit, dim: DimensionAudit, wrong: Ints) -> Finding:
        slots = audit.assignment.slot[dim.groups[wrong[0]]]
        gpus = audit.cluster.gpu_of(slots).tolist()
        hosts = [audit.cluster.names[node] for node in audit.cluster.node_of(slots).tolist()]
        texts = [f"{host}: GPU {gpu}" for host, gpu in list(zip(hosts, gpus, strict=True))[:4]]
        cost = _off_rail_cost(audit, dim)
        return self.finding(
            where(audit, dim, wrong),
            "peers on other rails",
            f"{wrong.size} of {plural(len(dim.groups), f'{dim.dimension} group')} use different GPU positions, and"
            " so rails, per node",
            severity=Severity.WARNING if (cost.share or 0.0) >= WORTH else Severity.INFO,
            observed=f"ranks {spell_ranks(dim.groups[wrong[0]].tolist())}: {'; '.join(texts)}",
            cost=cost,
        )


def _off_rail_cost(audit: Audit, dim: DimensionAudit) -> Cost:
    """What a step waits longer because peers change rails."""
    us = fsum(off_rail_us(audit.cluster, cost.demand, audit.assignment) for cost in dim.now)
    way = "over the spine, or over NVLink to another GPU's NIC"
    nothing = f"gradient traffic crosses rails, {way}: nothing of {{}}, as its groups meet further out too"
    return waiting_cost(audit, us, nothing, f": {way}")


def off_rail(cluster: Cluster, groups: Ints, assignment: Assignment) -> Bools:
    """Which groups use other rails on one node than on the next. Groups with unequal shares per node are not judged."""
    slots = assignment.slot[groups]
    node, rail = cluster.node_of(slots), cluster.gpu_of(slots) % max(cluster.rails, 1)
    order = np.argsort(node * (cluster.slots + 1) + rail, axis=1, kind="stable")
    node, rail = np.take_along_axis(node, order, axis=1), np.take_along_axis(rail, order, axis=1)
    count = 1 + (np.diff(node, axis=1) != 0).sum(axis=1)
    wrong = np.zeros(len(groups), bool)
    size = groups.shape[1]
    for nodes in np.unique(count[(count > 1) & (size % count == 0)]).tolist():
        rows = np.flatnonzero(count == nodes)
        shape = (rows.size, nodes, size // nodes)
        hosts, rails = node[rows].reshape(shape), rail[rows].reshape(shape)
        even = (hosts == hosts[:, :, :1]).all(axis=(1, 2))
        wrong[rows] = even & (rails != rails[:, :1]).any(axis=(1, 2))
    return wrong


class LayoutRings(PlacementCheck, id="PLC007"):
    """PLC007 on a layout: see job_rings.RingReturns. NCCL's own rings enter each node once whatever the rank order;
    rings of send and receive (ring attention) go by rank."""

    def observe(self, audit: Audit, peers: Sequence[Audit]) -> Outcome:
        attention = [dim for dim in audit.dimensions if _around_attention(dim) and (dim.domains > 1).any()]
        rings = [dim for dim in attention if dim.demand.collective == "send_recv"]
        if not rings:
            return self.not_applicable(audit, "NCCL's rings enter each node once, whatever the order of ranks")
        findings = []
        for ring in rings:
            node = audit.cluster.node_of(audit.assignment.slot[ring.groups])
            changes = (node != np.roll(node, 1, axis=1)).sum(axis=1)
            nodes = 1 + (np.diff(np.sort(node, axis=1), axis=1) != 0).sum(axis=1)
            back = np.flatnonzero((changes > nodes) & (nodes > 1))
            if back.size:
                findings.append(self._report(audit, ring, back, float((changes[back] / nodes[back]).max())))
        return self.any_of(audit, findings)

    def _report(self, audit: Audit, dim: DimensionAudit, back: Ints, times: float) -> Finding:
        return self.finding(
            where(audit, dim, back),
            "ring returns in layout",
            f"{back.size} of {plural(len(dim.groups), f'{dim.dimension} ring')}"
            f" {'enters' if back.size == 1 else 'enter'} a node up to {times:.2g} times",
            severity=Severity.WARNING if audit.gain >= MATTERS else Severity.INFO,
            observed=named(audit, dim, back),
            cost=Cost(None, 1 - 1 / times, f"the NICs carry each byte of such a ring {times:.2g} times"),
        )
