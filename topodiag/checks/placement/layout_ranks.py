"""The order of ranks over nodes, and of nodes over leaves, and where a job ran against where it was declared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topodiag.checks.interface import PlacementCheck, spell_ranks
from topodiag.checks.placement.layout_groups import lost, used, waiting_cost
from topodiag.lazy import dataclass
from topodiag.model.cluster import Ints, Level
from topodiag.model.finding import Cost, Finding, Outcome, Severity
from topodiag.placement.audit import Audit, DimensionAudit, names_of
from topodiag.placement.declared import MovedRank
from topodiag.placement.exchange import exchanges, nodes_by_first_rank, with_nodes_exchanged
from topodiag.placement.price import price_placement
from topodiag.placement.rings import ring_crossings
from topodiag.words.units import few, first_of, grouped, plural

WORTH = 0.01
"""Share of a step below which a detour is told at level info."""
NOTHING = 0.0005
"""Share of a step below which the report says that there is nothing to regain: latency of a hop, in a whole step."""

_BY_RING = ("all_reduce", "all_gather", "reduce_scatter")
"""Collectives whose rings go through the nodes by rank; an all-to-all sends to every peer whatever the order."""
_TOLD = 4
"""Moves of ranks that are named one by one."""
_FEW = 8
"""An exchange is told where it moves no more than this part of all: else the order as a whole is another one."""
_MANY = {"leaf": "leaves"}


@dataclass(frozen=True, slots=True)
class _Detour:
    """The group of a dimension whose ring goes back and forth most: its ranks, how often the ring crosses between
    leaves, and how often it would in the map to compare with."""

    dimension: str
    ranks: Ints
    crossings: int
    enough: int


def _first_detour(audit: Audit) -> _Detour | None:
    rings = (dim for dim in audit.dimensions if dim.demand.collective in _BY_RING and (dim.domains > 1).any())
    return next((detour for ring in rings if (detour := _back_and_forth(audit, ring)) is not None), None)


def _back_and_forth(audit: Audit, dim: DimensionAudit) -> _Detour | None:
    """None where the rings of the map to compare with make as many detours in all."""
    now, leaves = ring_crossings(audit.cluster, dim.groups, audit.assignment)
    best, best_leaves = ring_crossings(audit.cluster, dim.groups, audit.best)
    if int((now - leaves).sum()) <= int((best - best_leaves).sum()):
        return None
    enough = np.maximum(leaves, best)
    worst = int((now - enough).argmax())
    if now[worst] <= enough[worst]:
        return None
    return _Detour(dim.dimension, dim.groups[worst], int(now[worst]), int(enough[worst]))


def _least_exchange(audit: Audit, level: Level, hurt: _Detour) -> list[tuple[int, int]]:
    """The fewest pairs of nodes whose exchange leaves each leaf's nodes side by side. [] where that mends nothing, or
    where so many would change places that the order as a whole is another one."""
    nodes = nodes_by_first_rank(audit.cluster, audit.assignment)
    pairs = [(int(nodes[one]), int(nodes[other])) for one, other in exchanges(level.group[nodes])]
    ranks = np.bincount(audit.cluster.node_of(audit.assignment.slot), minlength=audit.cluster.nodes)
    if not pairs or len(pairs) > max(1, nodes.size // _FEW) or any(ranks[one] != ranks[other] for one, other in pairs):
        return []
    after = with_nodes_exchanged(audit.cluster, audit.assignment, pairs)
    (crossings,), _ = ring_crossings(audit.cluster, hurt.ranks[None, :], after)
    return pairs if int(crossings) <= hurt.enough else []


def _dearer(audit: Audit) -> bool:
    """Whether the map to compare with makes a step longer than the layout: it is no remedy then."""
    demands = [cost.demand for dimension in audit.dimensions for cost in dimension.now]
    best_us = price_placement(audit.cluster, demands, audit.best).step_us
    return best_us > audit.waited_us + NOTHING * audit.step_us


class RankOrder(PlacementCheck, id="PLC006"):
    """PLC006: rank order ignores the topology

    What it finds
        Ranks that are dealt to the nodes like cards (round-robin), or that return to a node again and again, where that
        splits groups. Groups whose rings go back and forth between leaves, where another map of the same ranks has
        fewer detours and costs no more. Ranks of a job that ran elsewhere than the launcher's file declares.

    Why it matters
        Frameworks build tensor, context and expert groups from consecutive ranks. With consecutive ranks on different
        nodes, each group spans nodes. Ordering ranks by the network gave 8 to 9 % of step time in a measurement
        (pytorch issue 191190).

    Evidence it reads
        The host of each rank, from the layout or from the Init lines; the groups, from the sizes that are given or from
        the communicators of the job; the levels of the network, where a file names them.

    When it stays silent
        One GPU per node. Ranks without a known place. NVLink joins the nodes. The order splits no group, or nobody
        says which ranks form groups. A log alone does not show whether the order of whole nodes suits the switches
        (node10 sorted before node2).

    How to confirm
        topodiag logs LOGS --ranks                     each rank with its host and GPU

    How to fix
        `srun --distribution=block`, `mpirun --map-by ppr:8:node`, or sort the host file.

    References
        Slurm srun, --distribution; Open MPI mpirun, --map-by; pytorch issue 191190.
    """

    def observe(self, audit: Audit, peers: Sequence[Audit]) -> Outcome:
        elsewhere = self._moved_ranks(audit)
        if audit.nodes < 2 and elsewhere is None:
            return self.not_applicable(audit, "one node")
        return self.any_of(audit, (self._dealt(audit), self._leaves(audit), elsewhere))

    def _dealt(self, audit: Audit) -> Finding | None:
        """Consecutive ranks on changing nodes, where groups are split by it."""
        node = audit.cluster.node_of(audit.assignment.slot)
        runs = 1 + int((np.diff(node) != 0).sum())
        hurt = [dimension for dimension in audit.dimensions if dimension.split.size]
        if runs <= audit.nodes or not hurt:
            return None
        start = [audit.cluster.names[host] for host in node[:4].tolist()]
        groups = sum(audit.split.size for audit in hurt)
        room = int(used(audit).max())
        dealt = runs >= node.size - node.size // max(room, 1)
        way = "alternate between" if dealt else f"change the node {runs - 1} times over"
        pairs = exchanges(node)
        pairs = pairs if len(pairs) <= max(1, node.size // _FEW) else []
        ranks = np.unique(np.asarray(pairs, np.int64))
        at = [audit.cluster.names[host] for host in node[ranks].tolist()]
        seen = [f"rank {rank} on {host}" for rank, host in zip(ranks.tolist(), at, strict=True)]
        return self.finding(
            self.where(list(dict.fromkeys(at if pairs else start)), ranks=ranks.tolist()),
            self.advice("ranks dealt", room=room),
            f"consecutive ranks {way} {plural(audit.nodes, 'node')} of {room} GPUs, which splits"
            f" {plural(groups, 'group')}",
            observed=few(seen, _TOLD) if pairs else f"ranks 0-{len(start) - 1} on {', '.join(start)}",
            fix=self.steps(
                "exchange ranks" if pairs else "",
                "ranks in blocks",
                pairs=plural(len(pairs), "pair"),
                swaps=few([f"{one} with {other}" for one, other in pairs], _TOLD),
            ),
            cost=lost(audit, *hurt),
        )

    def _leaves(self, audit: Audit) -> Finding | None:
        """The groups whose rings go back and forth between leaves, where the map to compare with has fewer such
        detours at no higher price: a pipeline that uses every second node for a stage is one, and harms no ring."""
        levels = [level for level in audit.cluster.levels if level.kind != "nvlink"]
        hurt = _first_detour(audit) if len(levels) >= 2 else None
        if hurt is None or _dearer(audit):
            return None
        narrower, kind = levels[1].gbs < levels[0].gbs, levels[0].kind
        names = names_of(audit.cluster, audit.assignment, hurt.ranks)
        moved = _least_exchange(audit, levels[0], hurt)
        astray = [node for pair in moved for node in pair]
        node_of = audit.cluster.node_of(audit.assignment.slot)
        seen = [f"{audit.cluster.names[node]} ({levels[0].group_name(int(levels[0].group[node]))})" for node in astray]
        swaps = [" and ".join(audit.cluster.names[node] for node in pair) for pair in moved]
        return self.finding(
            self.where(
                [audit.cluster.names[node] for node in astray] if moved else list(names[:6]),
                ranks=np.flatnonzero(np.isin(node_of, astray)).tolist(),
            ),
            "leaves",
            f"rings through the nodes in rank order cross between {_MANY.get(kind, kind + 's')} {hurt.crossings} times,"
            f" {hurt.enough} would be enough",
            severity=Severity.WARNING if narrower else Severity.INFO,
            observed=f"among nodes of another {kind}: {few(seen)}"
            if moved
            else f"nodes by first rank: {first_of(names, 6)}",
            expected=f"all nodes of a {kind} one after the other",
            fix=self.steps("exchange leaves" if moved else "", "hosts in order", swaps=few(swaps, _TOLD)),
            cost=f"the ways up carry {hurt.crossings / hurt.enough:.3g} times the traffic of {hurt.dimension} that"
            " they need to",
        )

    def _moved_ranks(self, audit: Audit) -> Finding | None:
        """Ranks that ran elsewhere than declared: a launcher that sorted hosts, another hostfile, another order."""
        declared = audit.declared
        if declared is None or not declared.differs:
            return None
        share, cost = 0.0, Cost(text="not priced: the layout declared has no place on the nodes of the job")
        if declared.step_us is not None and audit.step_us > 0:
            us = audit.waited_us - declared.step_us
            share = us / audit.step_us
            nothing, why = "the layout declared would make {} no shorter", " would not be waited for"
            cost = waiting_cost(audit, us if share > NOTHING else 0.0, nothing, why)
        foreign = bool(declared.hosts or declared.undeclared)
        moves = _moves(declared.elsewhere)
        return self.finding(
            self.where(
                list(dict.fromkeys(rank.ran for rank in declared.elsewhere)),
                ranks=[rank.rank for rank in declared.elsewhere],
            ),
            self.advice("elsewhere", named=declared.name),
            declared.difference,
            severity=Severity.WARNING if foreign or share >= WORTH else Severity.INFO,
            observed=moves or f"{declared.undeclared} ranks more than declared",
            cost=cost,
        )


def _moves(elsewhere: Sequence[MovedRank]) -> str:
    """`ranks 8-15 on gpu-a02, declared on gpu-a01; ...`: ranks that moved alike stand together."""
    words = []
    for (declared, ran), moved in grouped(((rank.declared, rank.ran), rank) for rank in elsewhere).items():
        if declared == ran:
            pairs = [f"rank {rank.rank} on GPU {rank.ran_gpu}, not {rank.declared_gpu}" for rank in moved[:_TOLD]]
            words.append(f"{ran}: {', '.join(pairs)}{', ...' if len(moved) > _TOLD else ''}")
        else:
            ranks = spell_ranks([rank.rank for rank in moved])
            words.append(f"{'rank' if len(moved) == 1 else 'ranks'} {ranks} on {ran}, declared on {declared}")
    more = len(words) - _TOLD
    return "; ".join(words[:_TOLD]) + (f"; and {more} more such moves" if more > 0 else "")
