"""The order of ranks and rings against nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Never

from topodiag.checks.interface import JobCheck, OneStep
from topodiag.checks.job.text import ask_for, domains, hosts_of, members
from topodiag.checks.shared.words import spell_ranks
from topodiag.model.dimensions import judged_by
from topodiag.model.finding import Confidence, Cost, Coverage, Outcome, Severity
from topodiag.model.job import Communicator, Job
from topodiag.words.fold import few, plural

MIN_TIMES = 2
"""How often the ranks' order must come back to a node, on average, to be told: one return is an uneven last node."""


class RankOrder(OneStep[Job], JobCheck[Never]):
    """PLC006: rank order ignores the topology

    What it finds
        World ranks that are dealt to the nodes like cards (round-robin), or that return to a node again and again,
        although nodes have several GPUs.

    Why it matters
        Frameworks build tensor, context and expert groups from consecutive ranks: dealt out, every such group spans
        nodes. Ordering ranks by the network gave 8 to 9 % of step time in a measurement (pytorch issue 191190).

    Evidence it reads
        The host of each world rank, from the Init lines; the other communicators, for whether it does harm.

    When it stays silent
        One GPU per node. Not all ranks are known. NVLink joins the nodes. Whether the order of whole nodes
        suits the switches (node10 sorted before node2) is not in a log. Info where no group of consecutive ranks is
        split by it, and where PLC001 tells it already.

    How to confirm
        topodiag logs LOGS --ranks                     each rank with its host and GPU

    How to fix
        `srun --distribution=block`, `mpirun --map-by ppr:8:node`, or sort the host file.

    References
        Slurm srun, --distribution; Open MPI mpirun, --map-by; pytorch issue 191190.
    """

    id = "PLC006"
    title = "rank order ignores the topology"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        host_of = hosts_of(job)
        if job.world_size < 2 or len(host_of) < job.world_size:
            return self.unknown(job, f"{len(host_of)} of {max(job.world_size, 0)} ranks are known")
        domain_of = domains(job)
        order = [domain_of.get(host_of.get(rank, ""), "") for rank in range(job.world_size)]
        room = Counter(order)
        if "" in room:
            return self.unknown(job, "the world ranks are not numbered without gaps")
        if len(room) < 2 or max(room.values()) < 2:
            return self.not_applicable(job, "one node, or one GPU per node")
        runs = 1 + sum(a != b for a, b in pairwise(order))
        coverage = Coverage(len(host_of), job.world_size, "ranks")
        if runs < MIN_TIMES * len(room):
            return self.clean(job, coverage=coverage)
        dealt = runs == job.world_size
        hurt = [each for each in job.communicators if _split(each, order, max(room.values()))]
        told = any(each.role in judged_by("PLC001") and each.role_sure > Confidence.LOW for each in hurt)
        severity = Severity.WARNING if hurt and not told else Severity.INFO
        start = [host_of[rank] for rank in range(min(4, len(order)))]
        way = "are dealt to" if dealt else f"change the node {runs - 1} times over"
        finding = self.finding(
            severity,
            f"consecutive world ranks {way} {plural(len(room), 'node')} of {max(room.values())} GPUs"
            + (f": {plural(len(hurt), 'group')} of consecutive ranks {'span' if len(hurt) > 1 else 'spans'} nodes"
               if hurt else ""),
            observed=f"ranks 0-{len(start) - 1} on {', '.join(start)}",
            expected=f"ranks 0-{room[order[0]] - 1} on {host_of[0]}, the next ones on the next node",
            fix=("start the ranks in blocks: `srun --distribution=block`, `mpirun --map-by ppr:8:node`",),
            nodes=list(job.hosts),
            ranks=sorted(host_of),
            cost=Cost(text="groups of consecutive ranks talk over the network instead of NVLink"
                      if hurt else "none for communicators of all ranks: NCCL orders its rings by node itself"),
            evidence=[job.by_rank[rank].origin for rank in range(min(4, len(order)))],
            coverage=coverage,
        )  # fmt: skip
        return self.found(job, [finding], coverage)


def _split(communicator: Communicator, order: list[str], room: int) -> bool:
    """Whether a communicator of consecutive ranks would fit into a node and spans several."""
    ranks = members(communicator)
    if not 1 < len(ranks) <= room or len(ranks) < communicator.nranks or max(ranks) >= len(order):
        return False
    return max(ranks) - min(ranks) == len(ranks) - 1 and len({order[rank] for rank in ranks}) > 1


class RingReturns(OneStep[Job], JobCheck[Never]):
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
    title = "a communicator's ring enters and leaves a node more often than once"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        host_of, domain_of = hosts_of(job), domains(job)
        found, judged, rings_seen = [], 0, False
        for communicator in job.communicators:
            rings_seen |= bool(communicator.rings)
            hosts = [host_of.get(int(rank), "") for rank in communicator.ranks]
            nodes = [domain_of.get(host, "") for host in hosts]
            several = len(set(nodes)) > 1 and "" not in nodes
            if not several or communicator.nodes not in (-1, len(set(nodes))) or max(Counter(nodes).values()) < 2:
                continue
            rings = {id(ring): ring for ring in communicator.rings.values()}  # channels share theirs
            counted = {
                number: _entries(ring, nodes)
                for number, ring in rings.items()
                if len(ring) == len(nodes) and set(ring) == set(range(len(nodes)))
            }
            of_channel = {channel: id(ring) for channel, ring in communicator.rings.items()}
            entered = {channel: counted[ring] for channel, ring in of_channel.items() if ring in counted}
            judged += bool(entered)
            back = {channel: counts for channel, counts in entered.items() if max(counts.values(), default=0) > 1}
            if not back:
                continue
            most = max(max(counts.values()) for counts in back.values())
            where = sorted({node for counts in back.values() for node, count in counts.items() if count > 1})
            found.append(
                self.finding(
                    Severity.WARNING,
                    f"{len(back)} of {plural(len(entered), 'ring')} of {communicator.label} enter a node"
                    f" up to {most} times",
                    observed=f"channels {spell_ranks(back)} return to {few(where)}",
                    expected="each ring enters and leaves a node once",
                    fix=("find what keeps GPUs of the node apart: P2P settings, NCCL_HOSTID, NCCL_GRAPH_FILE",),
                    nodes=where,
                    ranks=members(communicator),
                    cost=Cost(None, 1 - 1 / most, f"the NICs carry each byte of such a ring {most} times"),
                    evidence=[communicator.origin],
                    coverage=Coverage(len(entered), len(communicator.rings), "rings closed"),
                    confidence=Confidence.MEDIUM,
                )
            )
        if found:
            return self.found(job, found)
        if judged:
            return self.clean(job)
        if any(len(set(each.hosts)) > 1 for each in job.communicators) and not rings_seen:
            return self.unknown(job, f"no ring in the log: {ask_for(job, 'GRAPH')}")
        return self.not_applicable(job, "no closed ring over several nodes of several GPUs")


def _entries(ring: tuple[int, ...], nodes: list[str]) -> Counter[str]:
    """How often a ring enters each node."""
    return Counter(nodes[b] for a, b in zip(ring, ring[1:] + ring[:1], strict=True) if nodes[a] != nodes[b])
