"""Groups of a layout against the machine: together where they belong together, and whether the GPUs allow it."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np

from topodiag.checks.interface import PlacementCheck, hosts_word, spell_ranks
from topodiag.model.cluster import Ints
from topodiag.model.finding import Cost, Coverage, Finding, Outcome, Severity, Where
from topodiag.model.layout import of_label
from topodiag.placement.audit import Audit, DimensionAudit, names_of, whole_us
from topodiag.words.units import few, in_ms, plural

MAX_RANKS = 4096
"""Ranks and nodes that a finding names; a layout of 100,000 would fill pages."""
_SHOWN = 3


def lost(audit: Audit, *dimensions: DimensionAudit) -> Cost:
    """What a step loses to these dimensions lying as they do."""
    us = fsum(dimension.step_us - dimension.best_us for dimension in dimensions)
    return waiting_cost(audit, us, "nothing of {} by these sizes")


def waiting_cost(audit: Audit, us: float, nothing: str, why: str = "") -> Cost:
    """What waiting so long costs; `nothing` where it is none."""
    of = of_what(audit)
    if us <= 0:
        return Cost(text=nothing.format(of))
    share = us / audit.step_us if audit.step_us > 0 else 0.0
    return cost_of(audit, share, f"{in_ms(us)} of the {in_ms(audit.step_us)} of {of}{why}")


def of_what(audit: Audit) -> str:
    """What the times of an audit are parts of: a step, or its communication where nothing says how long one takes."""
    return "a step" if audit.talk.base_us is not None else f"the communication of a {audit.talk.unit}"


def cost_of(audit: Audit, share: float, text: str) -> Cost:
    """The cost of a share of what `of_what` names."""
    if audit.talk.base_us is not None:
        return Cost(share=share, text=text, step_share=share)
    return Cost(share=share, text=text, communication_share=share)


def where(audit: Audit, dim: DimensionAudit, groups: Ints) -> Where:
    """The nodes and ranks of these groups."""
    ranks = np.sort(dim.groups[groups].ravel())[:MAX_RANKS]
    return Where(tuple(names_of(audit.cluster, audit.assignment, ranks)), ranks=tuple(ranks.tolist()))


def named(audit: Audit, dim: DimensionAudit, groups: Ints) -> str:
    """The first of these groups with their nodes."""
    shown, rest = [dim.groups[number] for number in groups[:_SHOWN].tolist()], len(groups) - _SHOWN
    places = (hosts_word(names_of(audit.cluster, audit.assignment, ranks)) for ranks in shown)
    words = (f"{spell_ranks(ranks.tolist())} on {place}" for ranks, place in zip(shown, places, strict=True))
    return f"ranks {'; '.join(words)}" + (f" and {plural(rest, 'more group')}" if rest > 0 else "")


def room_in(audit: Audit, usable: Ints) -> Ints:
    """GPUs in each NVLink domain; `usable` are GPUs by node."""
    return np.bincount(audit.cluster.nvlink_domain, weights=usable).astype(np.int64)


def largest_domain(audit: Audit) -> int:
    """GPUs in the largest NVLink domain of the cluster, free or not."""
    return int(room_in(audit, np.full(audit.cluster.nodes, audit.cluster.slots, np.int64)).max())


def used(audit: Audit) -> Ints:
    """GPUs of the job by node."""
    nodes = audit.cluster.node_of(audit.assignment.slot)
    return np.bincount(nodes, minlength=audit.cluster.nodes).astype(np.int64)


class SplitGroups(PlacementCheck):
    """What PLC001 and PLC002 share on a layout."""

    worst = Severity.ERROR
    large_findings = True

    def observe(self, audit: Audit, peers: Sequence[Audit]) -> Outcome:
        mine = [dim for dim in audit.dimensions if dim.demand.keep_together and _judge_of(dim) == self.id]
        if not mine:
            return self.not_applicable(audit, "no group of this kind in the layout")
        room = largest_domain(audit)
        findings = [
            self._split(audit, dim, room) if dim.split.size else self._large(audit, dim, room)
            for dim in mine
            if dim.split.size or (dim.demand.size > room and self.large_findings)
        ]
        total = sum(len(dim.groups) for dim in mine)
        return self.any_of(audit, findings, Coverage(total, total, "groups"))

    def _split(self, audit: Audit, dim: DimensionAudit, room: int) -> Finding:
        groups, size = dim.split, dim.demand.size
        spans = int(dim.domains[groups].max())
        least = int(min(dim.domains.min(), dim.best_domains.min()))
        verb = "spans" if groups.size == 1 else "span"
        instead = audit.instead_of(dim)
        paid = f", at the price of {' and '.join(instead)} groups, which cost less" if instead else ""
        return self.finding(
            where(audit, dim, groups),
            self.advice("split", least=plural(least, "domain"), paid=paid, dimension=dim.dimension),
            f"{groups.size} of {plural(len(dim.groups), f'{dim.dimension} group')} of {size} ranks {verb}"
            f" {spans} NVLink domains",
            severity=self.worst if size <= room and not instead else Severity.WARNING,
            observed=named(audit, dim, groups),
            cost=lost(audit, dim),
        )

    def _large(self, audit: Audit, dim: DimensionAudit, room: int) -> Finding:
        size = dim.demand.size
        return self.finding(
            where(audit, dim, np.arange(len(dim.groups))),
            self.advice("larger than a domain", dim=dim.dimension, size=size, room=room, ranks=plural(room, "rank")),
            f"{dim.dimension} groups of {size} ranks fit into no NVLink domain: it has {plural(room, 'GPU')}",
            observed=f"each {dim.dimension} group spans {int(dim.domains.max())} domains",
            cost=f"its collectives run over the {audit.level_name(int(dim.levels.max()))}, in every layer",
        )


def _judge_of(audit: DimensionAudit) -> str:
    """The check that speaks of a dimension's split groups; PLC001 of groups that somebody named."""
    dimension = of_label(audit.dimension)
    return (dimension.split_check if dimension is not None else "") or TensorGroupSplit.id


class TensorGroupSplit(SplitGroups, id="PLC001"):
    """PLC001: a tensor-parallel or context-parallel group spans NVLink domains

    What it finds
        Communicators of tensor or context parallelism whose members run on several nodes although one node has enough
        GPUs for them. Racks joined by NVLink (MNNVL) count as one domain. Groups larger than a domain: info.

    Why it matters
        Tensor parallelism reduces activations twice per layer and direction, and nothing hides it. Over NVLink that
        runs at some 370 GB/s per GPU on H100, between nodes at 50 GB/s per NIC and with ten times the latency.

    Evidence it reads
        Communicators and their members from the Init lines; their role from their name, from the layout that was
        given, or from sizes and strides; connections that show which hosts NVLink joins.

    When it stays silent
        No communicator has such a role. Its role is a guess of low confidence: unknown. A guess of medium
        confidence makes a warning, not an error.

    How to confirm
        topodiag logs LOGS --comms                     the members of the group with their hosts
        all_reduce_perf -b 1G -e 1G                    on the hosts of one such group, then on a group within one domain

    How to fix
        Start ranks so that consecutive ones share a node, and build the mesh with the tensor dimension innermost.

    References
        NCCL src/init.cc (ncclCommInitRankFunc); Megatron-LM, Efficient Large-Scale Language Model Training, SC21,
        section 3.2.
    """


class ExpertGroupSplit(SplitGroups, id="PLC002"):
    """PLC002: an expert-parallel group spans domains while it would fit in one

    What it finds
        Communicators of expert parallelism with no more ranks than a node (or NVLink rack) has GPUs, spread over
        several.

    Why it matters
        Experts exchange tokens all to all, twice per layer: the share that leaves the node is (n-1)/n for a group
        spread over n nodes, through 50 GB/s NICs instead of NVLink, and in many small messages.

    Evidence it reads
        As PLC001: communicators, members, roles, connections.

    When it stays silent
        The group has more ranks than any domain: large expert groups span nodes by design. Roles of low confidence.

    How to confirm
        topodiag logs LOGS --comms                     the members of the group with their hosts
        alltoall_perf -b 1G -e 1G                      on the hosts of the group, then on one node

    How to fix
        Place the group's ranks on one node: expert parallelism inside, data and pipeline parallelism outside.

    References
        NCCL src/init.cc (ncclCommInitRankFunc); DeepSeek-V3 technical report, sections 2.1.2 (node-limited routing) and
        3.2.2 (all-to-all across nodes).
    """

    worst = Severity.WARNING
    large_findings = False


class Fragmented(PlacementCheck, id="PLC005"):
    """PLC005: the allocation is fragmented: a group cannot be packed although the job's GPU count would allow it

    What it finds
        Groups that belong inside one NVLink domain and would fit into one. But the job's GPUs are in parts too small
        to hold all groups whole: four free GPUs as two and two, for one tensor-parallel group of four.

    Why it matters
        No order of ranks mends it. A tensor-parallel group over two nodes has its all-reduce, twice per layer and
        direction, at what the NICs of its smallest part carry: 50 GB/s for each of its GPUs there in place of some
        370 GB/s over NVLink on H100.

    Evidence it reads
        The layout and the cluster: which GPUs the job has, the NVLink domains, the sizes of the groups, and for the
        remedy which other GPUs are free.

    When it stays silent
        The groups are larger than any domain (PLC001 reports that as info). Groups that are split although there is
        room: PLC001 and PLC002. The job has too few GPUs for its groups.

    How to confirm
        topodiag place audit --picture                 the groups on the nodes
        squeue -w NODE                                 the jobs that hold the rest of a node

    How to fix
        Ask for whole nodes (`--exclusive`, `--gpus-per-node`), for the nodes that `topodiag place solve` names, or let
        the scheduler pack small jobs (Slurm: CR_Pack, the topology plugin).

    References
        NVIDIA/topograph and Slurm's topology/block, which keep allocations in blocks; D. Narayanan et al., Efficient
        large-scale language model training on GPU clusters using Megatron-LM (2021), section 3.2.
    """

    def observe(self, audit: Audit, peers: Sequence[Audit]) -> Outcome:
        mine = [dimension for dimension in audit.dimensions if dimension.demand.keep_together]
        if not mine:
            return self.not_applicable(audit, "no group has to stay together")
        own = room_in(audit, used(audit))
        fitting = [audited for audited in mine if audited.demand.size <= largest_domain(audit)]
        if not fitting:
            return self.not_applicable(audit, "the groups are larger than any NVLink domain")
        rooms = [(dim, int((own // dim.demand.size).sum())) for dim in fitting if (dim.domains > 1).any()]
        tight = [(dim, room) for dim, room in rooms if room < len(dim.groups)]
        return self.any_of(audit, [self._report(audit, dim, own, room) for dim, room in tight])

    def _report(self, audit: Audit, dim: DimensionAudit, own: Ints, room: int) -> Finding:
        size, wanted = dim.demand.size, len(dim.groups)
        elsewhere = int((room_in(audit, audit.cluster.usable.sum(axis=1)) // size).sum())
        parts = np.bincount(own[own > 0] % size, minlength=1)
        spelt = few([f"{plural(int(many), 'domain')} with {left}" for left, many in enumerate(parts) if left and many])
        wide = np.flatnonzero(dim.domains > 1)
        whole = largest_domain(audit)
        if -(-int(own.sum()) // whole) * (whole // size) < wanted:
            # Not even whole domains would do: the size does not divide them.
            fix: tuple[str, ...] = (f"choose a size of {dim.dimension} that divides the {whole} GPUs of a domain",)
        else:
            fix = ("ask for whole nodes: `--exclusive`, or `--gpus-per-node` with the size of the group",)
        if elsewhere >= wanted:
            fix = (f"free GPUs elsewhere have room for {elsewhere} groups: `topodiag place solve` names nodes", *fix)
        return self.finding(
            where(audit, dim, wide),
            self.advice("fragmented", parts=plural(wanted, "part"), size=size),
            f"{plural(wanted - room, f'{dim.dimension} group')} of {size} cannot be packed: the GPUs leave room"
            f" for {room} of {wanted}",
            observed=f"{int(own.sum())} GPUs; beyond whole groups, {spelt or 'none'}; {named(audit, dim, wide)}",
            fix=fix,
            cost=Cost(None, None, _split_words(audit, dim)),
        )


def _split_words(audit: Audit, dim: DimensionAudit) -> str:
    """What the split groups cost beside whole ones."""
    whole = fsum(whole_us(audit.cluster, cost.demand) for cost in dim.now)
    return f"{in_ms(dim.step_us)} per {audit.talk.unit}; with each group in one domain {in_ms(whole)}"
