"""The order of ranks and rings against nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.job.text import ask_for, domains, hosts_of, members
from topodiag.checks.words import spell_ranks
from topodiag.lazy import dataclass
from topodiag.model.dimensions import judged_by
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Communicator, Job
from topodiag.words.fold import few, plural

MIN_TIMES = 2
"""How often the ranks' order must come back to a node, on average, to be told: one return is an uneven last node."""


@dataclass(frozen=True, slots=True)
class RankOrderReturns:
    """World ranks whose order comes back to nodes: the node of each rank, how often it changes, what is hurt."""

    host_of: Mapping[int, str]
    order: tuple[str, ...]
    runs: int
    hurt: tuple[Communicator, ...]
    told_elsewhere: bool
    coverage: Coverage


class RankOrder(JobCheck[RankOrderReturns]):
    """PLC006: rank order ignores the topology

    What it finds
        World ranks that are dealt to the nodes like cards (round-robin), or that return to a node again and again,
        although nodes have several GPUs.

    Why it matters
        Frameworks build tensor, context and expert groups from consecutive ranks. With consecutive ranks on different
        nodes, each group spans nodes. Ordering ranks by the network gave 8 to 9 % of step time in a measurement
        (pytorch issue 191190).

    Evidence it reads
        The host of each world rank, from the Init lines. The other communicators show whether the order does harm.

    When it stays silent
        One GPU per node. Not all ranks are known. NVLink joins the nodes. Whether the order of whole nodes suits the
        switches (node10 sorted before node2) is not in a log. Info where the order splits no group of consecutive
        ranks, and where PLC001 already reports it.

    How to confirm
        topodiag logs LOGS --ranks                     each rank with its host and GPU

    How to fix
        `srun --distribution=block`, `mpirun --map-by ppr:8:node`, or sort the host file.

    References
        Slurm srun, --distribution; Open MPI mpirun, --map-by; pytorch issue 191190.
    """

    id = "PLC006"

    def observe(self, judged: Job, peers: Sequence[Job]) -> RankOrderReturns | Outcome:
        host_of, size = hosts_of(judged), judged.world_size
        if size < 2 or len(host_of) < size:
            return self.unknown(judged, f"{len(host_of)} of {max(size, 0)} ranks are known")
        domain_of = domains(judged)
        order = [domain_of.get(host_of.get(rank, ""), "") for rank in range(size)]
        room = Counter(order)
        if "" in room:
            return self.unknown(judged, "the world ranks are not numbered without gaps")
        if len(room) < 2 or max(room.values()) < 2:
            return self.not_applicable(judged, "one node, or one GPU per node")
        runs = 1 + sum(a != b for a, b in pairwise(order))
        coverage = Coverage(len(host_of), size, "ranks")
        if runs < MIN_TIMES * len(room):
            return self.clean(judged, coverage=coverage)
        hurt = tuple(
            communicator for communicator in judged.communicators if _split(communicator, order, max(room.values()))
        )
        known = any(
            communicator.role in judged_by("PLC001") and communicator.role_sure > Confidence.LOW
            for communicator in hurt
        )
        return RankOrderReturns(host_of, tuple(order), runs, hurt, known, coverage)

    def tell(self, judged: Job, observed: RankOrderReturns) -> Iterator[Finding]:
        host_of, order, hurt = observed.host_of, observed.order, observed.hurt
        room = Counter(order)
        start = [host_of[rank] for rank in range(min(4, len(order)))]
        dealt = observed.runs == judged.world_size
        way = "alternate between" if dealt else f"change the node {observed.runs - 1} times over"
        yield self.finding(
            self.where(list(judged.hosts), ranks=sorted(host_of)),
            "rank order that hurts" if hurt else "rank order",
            f"consecutive world ranks {way} {plural(len(room), 'node')} of {max(room.values())} GPUs"
            + (
                f": {plural(len(hurt), 'group')} of consecutive ranks {'span' if len(hurt) > 1 else 'spans'} nodes"
                if hurt
                else ""
            ),
            severity=Severity.WARNING if hurt and not observed.told_elsewhere else Severity.INFO,
            observed=f"ranks 0-{len(start) - 1} on {', '.join(start)}",
            expected=f"ranks 0-{room[order[0]] - 1} on {host_of[0]}, the next ones on the next node",
            evidence=[judged.by_rank[rank].origin for rank in range(min(4, len(order)))],
        )


def _split(communicator: Communicator, order: Sequence[str], room: int) -> bool:
    """Whether a communicator of consecutive ranks would fit into a node and spans several."""
    ranks = members(communicator)
    if not 1 < len(ranks) <= room or len(ranks) < communicator.nranks or max(ranks) >= len(order):
        return False
    return max(ranks) - min(ranks) == len(ranks) - 1 and len({order[rank] for rank in ranks}) > 1


@dataclass(frozen=True, slots=True)
class ReturningRings:
    """Rings of a communicator: how many are closed, and how often those that come back enter each node, by channel."""

    communicator: Communicator
    closed: int
    back: Mapping[int, Counter[str]]


class RingReturns(JobCheck[tuple[ReturningRings, ...]]):
    """PLC007: a communicator's ring enters and leaves a node more often than once

    What it finds
        Channels whose ring comes back to a node after it has left it.

    Why it matters
        A ring that visits each node once sends each byte once through the node's NICs. Each further visit takes the
        same share of the network again: with two visits a ring has half of the bandwidth.

    Evidence it reads
        `Channel 00/16 : 0 1 2 ..` or `Ring 00 : a -> b -> c` lines, and the hosts of the ranks.

    When it stays silent
        One node; NVLink joins the nodes. A ring that the log shows in part. NCCL counts other nodes than there are
        hosts (P2P switched off, containers): its rings then follow nodes that the log does not name.

    How to confirm
        topodiag logs LOGS --rings                     each ring, with the transport of each hop

    How to fix
        Look for what keeps GPUs of a node apart: P2P001 and P2P002, a wrong NCCL_HOSTID, an NCCL_GRAPH_FILE made for
        another machine.

    References
        NCCL src/graph/rings.cc (ncclBuildRings), src/graph/connect.cc (ncclTopoPreset, connectRings), v2.28.
    """

    id = "PLC007"

    def observe(self, judged: Job, peers: Sequence[Job]) -> tuple[ReturningRings, ...] | Outcome:
        host_of, domain_of = hosts_of(judged), domains(judged)
        closed = [
            (communicator, rings)
            for communicator in judged.communicators
            if (rings := _closed_rings(communicator, host_of, domain_of))
        ]
        returning = []
        for communicator, rings in closed:
            back = {channel: counts for channel, counts in rings.items() if max(counts.values(), default=0) > 1}
            if back:
                returning.append(ReturningRings(communicator, len(rings), back))
        if returning:
            return tuple(returning)
        if closed:
            return self.clean(judged)
        rings_seen = any(communicator.rings for communicator in judged.communicators)
        if any(len(set(communicator.hosts)) > 1 for communicator in judged.communicators) and not rings_seen:
            return self.unknown(judged, f"no ring in the log: {ask_for(judged, 'GRAPH')}")
        return self.not_applicable(judged, "no closed ring over several nodes of several GPUs")

    def tell(self, judged: Job, observed: tuple[ReturningRings, ...]) -> Iterator[Finding]:
        for rings in observed:
            communicator, back = rings.communicator, rings.back
            most = max(max(counts.values()) for counts in back.values())
            where = sorted({node for counts in back.values() for node, count in counts.items() if count > 1})
            yield self.finding(
                self.where(where, ranks=members(communicator)),
                "ring returns",
                f"{len(back)} of {plural(rings.closed, 'ring')} of {communicator.label} enter a node"
                f" up to {most} times",
                observed=f"channels {spell_ranks(back)} return to {few(where)}",
                cost=Cost(None, 1 - 1 / most, f"the NICs carry each byte of such a ring {most} times"),
                evidence=[communicator.origin],
                coverage=Coverage(rings.closed, len(communicator.rings), "rings closed"),
            )


def _closed_rings(
    communicator: Communicator, host_of: Mapping[int, str], domain_of: Mapping[str, str]
) -> dict[int, Counter[str]]:
    """How often the closed rings of a communicator over several nodes enter each, by channel."""
    nodes = [domain_of.get(host_of.get(int(rank), ""), "") for rank in communicator.ranks]
    several = len(set(nodes)) > 1 and "" not in nodes
    if not several or communicator.nodes not in (-1, len(set(nodes))) or max(Counter(nodes).values()) < 2:
        return {}
    rings = {id(ring): ring for ring in communicator.rings.values()}  # channels share theirs
    members_of_all = set(range(len(nodes)))
    counted = {
        number: _entries(ring, nodes)
        for number, ring in rings.items()
        if len(ring) == len(nodes) and set(ring) == members_of_all
    }
    return {channel: counted[id(ring)] for channel, ring in communicator.rings.items() if id(ring) in counted}


def _entries(ring: tuple[int, ...], nodes: list[str]) -> Counter[str]:
    """How often a ring enters each node."""
    return Counter(nodes[b] for a, b in zip(ring, ring[1:] + ring[:1], strict=True) if nodes[a] != nodes[b])
