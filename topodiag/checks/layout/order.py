"""The order of ranks in a layout: pipelines in physical order, peers on one rail, nodes and rings in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Never

import numpy as np

from topodiag.checks.interface import OneStep, PlacementCheck
from topodiag.checks.layout.groups import lost, named, used, where
from topodiag.checks.shared.words import spell_ranks
from topodiag.model.cluster import Assignment, Bools, Cluster, Ints
from topodiag.model.dimensions import Pattern, of_label
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.placement.audit import MATTERS, Audit, DimensionAudit, names_of
from topodiag.placement.declared import Elsewhere
from topodiag.placement.price import off_rail_us, pairs_of, price_placement
from topodiag.placement.rings import ring_crossings
from topodiag.words.fold import plural

_WORTH = 0.01
"""Share of a step below which a detour is told at level info."""
_NOTHING = 0.0005
"""Share of a step below which the report says that there is nothing to regain: latency of a hop, in a whole step."""

_BY_RING = ("all_reduce", "all_gather", "reduce_scatter")
"""Collectives whose rings go through the nodes by rank; an all-to-all sends to every peer whatever the order."""
_TOLD = 4
"""Moves of ranks that are named one by one."""
_MANY = {"leaf": "leaves"}


class StagesApart(OneStep[Audit], PlacementCheck[Never]):
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
        topodiag place look --dimension pp             which stages are far apart
        ib_write_bw                                    between the two nodes, then between two nodes of one leaf

    How to fix
        Place stages in physical order: node k of a replica holds stage k, replicas in leaves of their own
        (`topodiag place solve`).

    References
        D. Narayanan et al., Efficient large-scale language model training on GPU clusters using Megatron-LM (2021),
        section 3.
    """

    id = "PLC003"
    title = "pipeline neighbours are further apart than they need to be (spine instead of leaf)"

    def judge(self, audit: Audit, peers: Sequence[Audit] = ()) -> Outcome:
        mine = [
            each for each in audit.dimensions if each.demand.collective == "send_recv" and not _around_attention(each)
        ]
        if not mine:
            return self.not_applicable(audit, "no pipeline in the layout")
        gained = audit.waited_us - sum(each.best_us for each in audit.dimensions)
        apart = [each for each in mine if _further(audit, each) is not None and not audit.instead_of(each)]
        found = [self._report(audit, each) for each in apart if gained > _NOTHING * audit.step_us]
        return self.found(audit, found) if found else self.clean(audit)

    def _report(self, audit: Audit, each: DimensionAudit) -> Finding:
        further = _further(audit, each)
        level, now, best = further or (0, 0, 0)
        name = audit.level_name(level)
        apart = pair_levels(audit.cluster, each.groups, audit.assignment).max(axis=1)
        groups = np.flatnonzero(apart >= level)
        nodes, ranks = where(audit, each, groups)
        cost = lost(audit, each)
        return self.finding(
            Severity.WARNING if (cost.share or 0.0) >= _WORTH else Severity.INFO,
            f"{now} of {plural(each.groups.shape[0] * (each.demand.size - 1), 'pair')} of neighbouring stages meet at"
            f" the {name}, {best} would be enough",
            observed=named(audit, each, groups),
            expected="stages in physical order, each replica in as few leaves as hold it",
            fix=("take the map of `topodiag place solve` for these nodes",),
            nodes=nodes,
            ranks=ranks,
            cost=cost,
        )


def _around_attention(each: DimensionAudit) -> bool:
    """Whether the groups hand keys and values on around a ring."""
    dimension = of_label(each.dimension)
    return dimension is not None and dimension.pattern is Pattern.ATTENTION


def pair_levels(cluster: Cluster, groups: Ints, assignment: Assignment) -> Ints:
    """The level at which neighbours in each row meet; shape (groups, size - 1)."""
    pairs = cluster.node_of(assignment.slot[pairs_of(groups)])
    made: Ints = cluster.level_between(pairs[:, 0], pairs[:, 1]).reshape(len(groups), -1)
    return made


def _further(audit: Audit, each: DimensionAudit) -> tuple[int, int, int] | None:
    """(level, pairs that meet there or further out, pairs that do in the other map) for the outermost level at which
    the two differ, where the layout has more of them; None where it has not."""
    far = len(audit.cluster.levels) + 2
    now = np.bincount(pair_levels(audit.cluster, each.groups, audit.assignment).ravel(), minlength=far)
    best = np.bincount(pair_levels(audit.cluster, each.groups, audit.best).ravel(), minlength=far)
    for level in range(far - 1, 0, -1):
        a, b = int(now[level:].sum()), int(best[level:].sum())
        if a != b:
            return (level, a, b) if a > b else None
    return None


class PeersOnOtherRailsInLayout(OneStep[Audit], PlacementCheck[Never]):
    """PLC004 on a layout: see job_placement.PeersOnOtherRails."""

    id = "PLC004"
    title = "data-parallel peers sit on different rails"

    def judge(self, audit: Audit, peers: Sequence[Audit] = ()) -> Outcome:
        if audit.cluster.rails < 2:
            return self.not_applicable(audit, "the fabric has no rails")
        mine = [each for each in audit.dimensions if each.dimension.split()[-1] in ("dp", "replicas", "shards")]
        several = [each for each in mine if (each.domains > 1).any()]
        if not several:
            return self.not_applicable(audit, "no data-parallel group spans NVLink domains")
        found = []
        for each in several:
            wrong = np.flatnonzero(off_rail(audit.cluster, each.groups, audit.assignment))
            better = int(off_rail(audit.cluster, each.groups, audit.best).sum())
            if wrong.size > better:
                found.append(self._report(audit, each, wrong))
        total = sum(len(each.groups) for each in several)
        coverage = Coverage(total, total, "groups over several domains")
        return self.found(audit, found, coverage) if found else self.clean(audit, coverage=coverage)

    def _report(self, audit: Audit, each: DimensionAudit, wrong: Ints) -> Finding:
        nodes, ranks = where(audit, each, wrong)
        slots = audit.assignment.slot[each.groups[wrong[0]]]
        gpus = audit.cluster.gpu_of(slots).tolist()
        hosts = [audit.cluster.names[node] for node in audit.cluster.node_of(slots).tolist()]
        told = [f"{host}: GPU {gpu}" for host, gpu in list(zip(hosts, gpus, strict=True))[:4]]
        cost = _off_rail_cost(audit, each)
        return self.finding(
            Severity.WARNING if (cost.share or 0.0) >= _WORTH else Severity.INFO,
            f"{wrong.size} of {plural(len(each.groups), f'{each.dimension} group')} use different GPU positions, and"
            " so rails, per node",
            observed=f"ranks {spell_ranks(each.groups[wrong[0]].tolist())}: {'; '.join(told)}",
            expected="the same GPU positions on every node, so that peers share a leaf switch",
            fix=("give peers the same local rank on every node, as `topodiag place solve` does",),
            nodes=nodes,
            ranks=ranks,
            cost=cost,
            confidence=Confidence.MEDIUM,
        )


def _off_rail_cost(audit: Audit, each: DimensionAudit) -> Cost:
    """What a step waits longer because peers change rails."""
    us = sum(off_rail_us(audit.cluster, cost.demand, audit.assignment) for cost in each.now)
    of = "a step" if audit.talk.base_us is not None else "the communication of a step"
    way = "over the spine, or over NVLink to another GPU's NIC"
    if us <= 0:
        return Cost(text=f"gradient traffic crosses rails, {way}: nothing of {of}, as its groups meet further out too")
    share = us / audit.step_us if audit.step_us > 0 else 0.0
    return Cost(None, share, f"{us / 1000:,.1f} of the {audit.step_us / 1000:,.1f} ms of {of}: {way}")


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


@dataclass(frozen=True, slots=True)
class _Detour:
    """The group of a dimension whose ring goes back and forth most: its ranks, how often the ring crosses between
    leaves, and how often it would in the map to compare with."""

    dimension: str
    ranks: Ints
    crossings: int
    enough: int


def _back_and_forth(audit: Audit, each: DimensionAudit) -> _Detour | None:
    """None where the rings of the map to compare with make as many detours in all."""
    now, leaves = ring_crossings(audit.cluster, each.groups, audit.assignment)
    best, best_leaves = ring_crossings(audit.cluster, each.groups, audit.best)
    if int((now - leaves).sum()) <= int((best - best_leaves).sum()):
        return None
    enough = np.maximum(leaves, best)
    worst = int((now - enough).argmax())
    if now[worst] <= enough[worst]:
        return None
    return _Detour(each.dimension, each.groups[worst], int(now[worst]), int(enough[worst]))


def _dearer(audit: Audit) -> bool:
    """Whether the map to compare with makes a step longer than the layout: it is no remedy then."""
    demands = [cost.demand for each in audit.dimensions for cost in each.now]
    best_us = price_placement(audit.cluster, demands, audit.best).step_us
    return best_us > audit.waited_us + _NOTHING * audit.step_us


class RankOrderInLayout(OneStep[Audit], PlacementCheck[Never]):
    """PLC006 on a layout: see job_order.RankOrder. Also groups whose rings go back and forth between leaves, where
    another map of the same ranks has fewer detours and costs no more, and ranks of a job that ran elsewhere than the
    launcher's file declares (the file and the job's log are given)."""

    id = "PLC006"
    title = "rank order ignores the topology"

    def judge(self, audit: Audit, peers: Sequence[Audit] = ()) -> Outcome:
        elsewhere = self._elsewhere(audit)
        if audit.nodes < 2 and elsewhere is None:
            return self.not_applicable(audit, "one node")
        found = [each for each in (self._dealt(audit), self._leaves(audit), elsewhere) if each is not None]
        return self.found(audit, found) if found else self.clean(audit)

    def _dealt(self, audit: Audit) -> Finding | None:
        """Consecutive ranks on changing nodes, where groups are split by it."""
        node = audit.cluster.node_of(audit.assignment.slot)
        runs = 1 + int((np.diff(node) != 0).sum())
        hurt = [each for each in audit.dimensions if each.split.size]
        if runs <= audit.nodes or not hurt:
            return None
        start = [audit.cluster.names[each] for each in node[:4].tolist()]
        groups = sum(each.split.size for each in hurt)
        room = int(used(audit).max())
        dealt = runs >= node.size - node.size // max(room, 1)
        way = "are dealt to" if dealt else f"change the node {runs - 1} times over"
        return self.finding(
            Severity.WARNING,
            f"consecutive ranks {way} {plural(audit.nodes, 'node')} of {room} GPUs:"
            f" {plural(groups, 'group')} {'is' if groups == 1 else 'are'} split by it",
            observed=f"ranks 0-{len(start) - 1} on {', '.join(start)}",
            expected=f"{room} consecutive ranks on each node",
            fix=("start the ranks in blocks: `srun --distribution=block`, `mpirun --map-by ppr:8:node`",),
            nodes=list(dict.fromkeys(start)),
            cost=lost(audit, *hurt),
        )

    def _leaves(self, audit: Audit) -> Finding | None:
        """The groups whose rings go back and forth between leaves, where the map to compare with has fewer such
        detours at no higher price: a pipeline that uses every second node for a stage is one, and harms no ring."""
        levels = [level for level in audit.cluster.levels if level.kind != "nvlink"]
        if len(levels) < 2:
            return None
        rings = [each for each in audit.dimensions if each.demand.collective in _BY_RING and (each.domains > 1).any()]
        hurt = next((made for made in (_back_and_forth(audit, each) for each in rings) if made is not None), None)
        if hurt is None or _dearer(audit):
            return None
        narrower, kind = levels[1].gbs < levels[0].gbs, levels[0].kind
        names = names_of(audit.cluster, audit.assignment, hurt.ranks)
        return self.finding(
            Severity.WARNING if narrower else Severity.INFO,
            f"rings through the nodes in rank order cross between {_MANY.get(kind, kind + 's')} {hurt.crossings} times,"
            f" {hurt.enough} would be enough",
            observed=f"nodes by first rank: {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}",
            expected=f"all nodes of a {kind} one after the other",
            fix=(
                "order the hosts by their place in the fabric, not by name: `topodiag place solve`, `srun --switches`",
            ),
            nodes=names[:6],
            cost=Cost(
                text=f"the ways up carry {hurt.crossings / hurt.enough:.3g} times the traffic of {hurt.dimension} that"
                " they need to"
            ),
            confidence=Confidence.MEDIUM,
        )

    def _elsewhere(self, audit: Audit) -> Finding | None:
        """Ranks that ran elsewhere than declared: a launcher that sorted hosts, another hostfile, another order."""
        declared = audit.declared
        if declared is None or not declared.differs:
            return None
        lost_us = audit.waited_us - declared.step_us if declared.step_us is not None else None
        share = lost_us / audit.step_us if lost_us is not None and audit.step_us > 0 else None
        foreign = bool(declared.hosts or declared.undeclared)
        told = _told(declared.elsewhere)
        of = "a step" if audit.talk.base_us is not None else "the communication of a step"
        if lost_us is None or share is None:
            cost = Cost(text="not priced: the layout declared has no place on the nodes of the job")
        elif share > _NOTHING:
            step_ms = audit.step_us / 1000
            cost = Cost(None, share, f"{lost_us / 1000:,.1f} of the {step_ms:,.1f} ms of {of} would not be waited for")
        else:
            cost = Cost(text=f"the layout declared would make {of} no shorter")
        return self.finding(
            Severity.WARNING if foreign or (share or 0.0) >= _WORTH else Severity.INFO,
            declared.said,
            observed=told or f"{declared.undeclared} ranks more than declared",
            expected=f"each rank on the host that {declared.name} names",
            fix=(
                "see how the launcher orders hosts: `srun --distribution=arbitrary` with SLURM_HOSTFILE, or a rankfile",
                "or declare the layout that ran, if it is the one that is meant",
            ),
            nodes=list(dict.fromkeys(each.ran for each in declared.elsewhere)),
            ranks=[each.rank for each in declared.elsewhere],
            cost=cost,
        )


def _told(elsewhere: Sequence[Elsewhere]) -> str:
    """`ranks 8-15 on gpu-a02, declared on gpu-a01; ...`: ranks that moved alike stand together."""
    alike: dict[tuple[str, str], list[Elsewhere]] = {}
    for each in elsewhere:
        alike.setdefault((each.declared, each.ran), []).append(each)
    words = []
    for (declared, ran), moved in alike.items():
        if declared == ran:
            pairs = [f"rank {each.rank} on GPU {each.ran_gpu}, not {each.declared_gpu}" for each in moved[:_TOLD]]
            words.append(f"{ran}: {', '.join(pairs)}{', ...' if len(moved) > _TOLD else ''}")
        else:
            ranks = spell_ranks([each.rank for each in moved])
            words.append(f"{'rank' if len(moved) == 1 else 'ranks'} {ranks} on {ran}, declared on {declared}")
    more = len(words) - _TOLD
    return "; ".join(words[:_TOLD]) + (f"; and {more} more such moves" if more > 0 else "")


class RingReturnsInLayout(OneStep[Audit], PlacementCheck[Never]):
    """PLC007 on a layout: see job_order.RingReturns. NCCL's own rings enter each node once whatever the rank order;
    rings of send and receive (ring attention) go by rank."""

    id = "PLC007"
    title = "a communicator's ring enters and leaves a node more often than once"

    def judge(self, audit: Audit, peers: Sequence[Audit] = ()) -> Outcome:
        rings = [each for each in audit.dimensions if _around_attention(each) and each.demand.collective == "send_recv"]
        rings = [each for each in rings if (each.domains > 1).any()]
        if not rings:
            return self.not_applicable(audit, "NCCL's rings enter each node once, whatever the order of ranks")
        found = []
        for each in rings:
            node = audit.cluster.node_of(audit.assignment.slot[each.groups])
            changes = (node != np.roll(node, 1, axis=1)).sum(axis=1)
            nodes = 1 + (np.diff(np.sort(node, axis=1), axis=1) != 0).sum(axis=1)
            back = np.flatnonzero((changes > nodes) & (nodes > 1))
            if back.size:
                found.append(self._report(audit, each, back, float((changes[back] / nodes[back]).max())))
        return self.found(audit, found) if found else self.clean(audit)

    def _report(self, audit: Audit, each: DimensionAudit, back: Ints, times: float) -> Finding:
        nodes, ranks = where(audit, each, back)
        return self.finding(
            Severity.WARNING if audit.gain >= MATTERS else Severity.INFO,
            f"{back.size} of {plural(len(each.groups), f'{each.dimension} ring')}"
            f" {'enters' if back.size == 1 else 'enter'} a node up to {times:.2g} times",
            observed=named(audit, each, back),
            expected="each ring enters and leaves a node once: ranks of a node side by side in their group",
            fix=("order the ranks of each group node by node, as `topodiag place solve` does",),
            nodes=nodes,
            ranks=ranks,
            cost=Cost(None, 1 - 1 / times, f"the NICs carry each byte of such a ring {times:.2g} times"),
            confidence=Confidence.MEDIUM,
        )
