"""PLC007 of a job that ran: the way of NCCL's rings through the nodes, by its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from topodiag.checks.interface import JobCheck, spell_ranks
from topodiag.checks.shared.job.text import ask_for, domains
from topodiag.model.finding import Cost, Coverage, Finding, Outcome
from topodiag.model.job import Communicator, Job
from topodiag.words.units import few, plural


class RingReturns(JobCheck, id="PLC007"):
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

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        host_of, domain_of = {rank.rank: rank.host for rank in judged.ranks if rank.host}, domains(judged)
        closed = [
            (communicator, rings)
            for communicator in judged.communicators
            if (rings := _closed_rings(communicator, host_of, domain_of))
        ]
        if closed:
            return self.any_of(judged, (self._returning(communicator, rings) for communicator, rings in closed))
        rings_seen = any(communicator.rings for communicator in judged.communicators)
        if any(len(set(communicator.hosts)) > 1 for communicator in judged.communicators) and not rings_seen:
            return self.unknown(judged, f"no ring in the log: {ask_for(judged)}")
        return self.not_applicable(judged, "no closed ring over several nodes of several GPUs")

    def _returning(self, communicator: Communicator, rings: Mapping[int, Counter[str]]) -> Finding | None:
        """`rings`: how often each that is closed enters each node, by channel."""
        back = {channel: counts for channel, counts in rings.items() if max(counts.values(), default=0) > 1}
        if not back:
            return None
        most = max(max(counts.values()) for counts in back.values())
        where = sorted({node for counts in back.values() for node, count in counts.items() if count > 1})
        return self.finding(
            self.where(where, ranks=communicator.known.tolist()),
            "ring returns",
            f"{len(back)} of {plural(len(rings), 'ring')} of {communicator.label} enter a node up to {most} times",
            observed=f"channels {spell_ranks(back)} return to {few(where)}",
            cost=Cost(None, 1 - 1 / most, f"the NICs carry each byte of such a ring {most} times"),
            evidence=[communicator],
            coverage=Coverage(len(rings), len(communicator.rings), "rings closed"),
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
    closed = {key: ring for key, ring in rings.items() if len(ring) == len(nodes) and set(ring) == members_of_all}
    counted = {key: _entries(ring, nodes) for key, ring in closed.items()}
    return {channel: counted[id(ring)] for channel, ring in communicator.rings.items() if id(ring) in counted}


def _entries(ring: tuple[int, ...], nodes: list[str]) -> Counter[str]:
    """How often a ring enters each node."""
    return Counter(nodes[b] for a, b in zip(ring, ring[1:] + ring[:1], strict=True) if nodes[a] != nodes[b])
