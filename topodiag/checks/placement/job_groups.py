"""Groups of ranks against the machine: tensor and expert groups in NVLink domains, data-parallel peers on rails."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Never

from topodiag.checks.interface import Advice, JobCheck, OneStep
from topodiag.checks.shared.job.text import ask_for, domains, hosts_of, members
from topodiag.checks.words import hosts_word, spell_ranks
from topodiag.lazy import dataclass
from topodiag.model.dimensions import Role, flags, judged_by
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Communicator, Job
from topodiag.model.job_wires import nics_of
from topodiag.model.nccl_enums import PathType
from topodiag.words.fold import few, plural
from topodiag.words.units import in_gbs

RING = 4
"""Pattern of the ring graph in NCCL's print (src/include/graph.h)."""


@dataclass(frozen=True, slots=True)
class PlacedGroup:
    """A communicator with the domains its known members run in."""

    communicator: Communicator
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    domains: tuple[str, ...]


def placed(job: Job, roles: Sequence[Role]) -> tuple[list[PlacedGroup], int]:
    """The communicators of these roles that are inferred with some confidence, and how many there are in all."""
    host_of, domain_of = hosts_of(job), domains(job)
    split = {(comm.parent, comm.role) for comm in job.communicators if comm.parent >= 0}
    # A root with children of the same role is what they were split from, whatever its name.
    of_role = [comm for comm in job.communicators if comm.role in roles and comm.nranks > 1
               and (comm.parent >= 0 or (comm.index, comm.role) not in split)]  # fmt: skip
    groups = []
    for communicator in of_role:
        ranks = members(communicator)
        hosts = tuple(dict.fromkeys(host_of[rank] for rank in ranks if rank in host_of)) or communicator.hosts
        if communicator.role_sure is not Confidence.LOW and hosts:
            spans = tuple(dict.fromkeys(domain_of.get(host, host) for host in hosts))
            groups.append(PlacedGroup(communicator, tuple(ranks), hosts, spans))
    return groups, len(of_role)


def sizes(job: Job) -> Mapping[str, int]:
    """GPUs that the job uses in each NVLink domain."""
    domain_of = domains(job)
    return Counter(domain_of.get(rank.host, rank.host) for rank in job.ranks)


def _nvlink_gbs(job: Job, hosts: Sequence[str]) -> float | None:
    """The best NVLink path between two GPUs of these hosts, GB/s, as NCCL printed it."""
    best = 0.0
    for communicator in job.communicators:
        for host in hosts:
            system = communicator.systems.get(host)
            for (a, b), path in system.paths.items() if system is not None else ():
                if path.type is PathType.NVL and a.startswith("GPU") and b.startswith("GPU"):
                    best = max(best, path.gbs)
    return best or None


def _network_gbs(communicator: Communicator) -> float | None:
    """What the ring of a communicator carries from node to node, GB/s: channels times the rate of one."""
    rates = [
        graph.channels * graph.bw_inter
        for graphs in communicator.graphs.values()
        for graph in graphs
        if graph.pattern == RING
    ]
    return min((rate for rate in rates if rate > 0), default=None)


def split_cost(job: Job, one: PlacedGroup) -> Cost:
    """NVLink inside a node against the ring between nodes, by NCCL's own figures."""
    inside, between = _nvlink_gbs(job, one.hosts), _network_gbs(one.communicator)
    if inside is None or between is None:
        return Cost(text="its collectives run at the speed of the network instead of NVLink, in every layer")
    text = f"NCCL assumes {in_gbs(between)} for the ring between nodes and {in_gbs(inside)} per GPU over NVLink"
    if inside <= between:
        return Cost(text=text)
    return Cost(inside - between, 1 - between / inside, text)


class SplitGroups(OneStep[Job], JobCheck[Never]):
    """What PLC001 and PLC002 share: groups of some roles that should lie within one NVLink domain."""

    roles: tuple[Role, ...] = ()
    worst = Severity.ERROR
    tell_large = True
    """Whether groups that fit into no domain are told, at level info."""

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        words = " or ".join(role.value for role in self.roles)
        known, total = placed(job, self.roles)
        if not total:
            return self.not_applicable(job, f"no {words} communicator of several ranks in the log")
        if not known:
            return self.unknown(
                job, f"which communicators are {words} is a guess: name the layout ({flags()}, --order)"
            )
        room = max(sizes(job).values(), default=0)
        families: dict[tuple[Role, int], list[PlacedGroup]] = defaultdict(list)
        for group in known:
            families[group.communicator.role, group.communicator.nranks].append(group)
        findings = []
        for (_, nranks), family in families.items():
            split = [group for group in family if len(group.domains) > 1]
            if split and (nranks <= room or self.tell_large):
                findings.append(self._report(job, family, split, room))
        coverage = Coverage(len(known), total, f"{words} groups")
        return self.found(job, findings, coverage) if findings else self.clean(job, coverage=coverage)

    def _report(self, job: Job, family: Sequence[PlacedGroup], split: Sequence[PlacedGroup], room: int) -> Finding:
        first = split[0].communicator
        role, nranks = first.role.value, first.nranks
        fits = nranks <= room
        confidence = min(group.communicator.role_sure for group in split)
        severity = Severity.INFO
        if fits:
            severity = self.worst if confidence is Confidence.HIGH else Severity.WARNING
        ranks = sorted({rank for group in split for rank in group.ranks})
        hosts = list(dict.fromkeys(host for group in split for host in group.hosts))
        groups = [f"{spell_ranks(group.ranks)} on {hosts_word(group.hosts)}" for group in split]
        spans = max(len(group.domains) for group in split)
        message = f"{len(split)} of {plural(len(family), f'{role} group')} of {nranks} ranks"
        message += f" {'span' if len(split) > 1 else 'spans'} {spans} NVLink domains"
        message += "" if fits else f": a domain has {plural(room, 'GPU')}"
        why = f" (role: {first.role_why})" if first.role_why else ""
        return self.finding(
            self.where(hosts, ranks=ranks),
            Advice(),
            message,
            severity=severity,
            observed=f"ranks {few(groups, 3)}{why}",
            expected=f"each group on one node: {nranks} of its {plural(room, 'GPU')}"
            if fits
            else f"at most {plural(room, 'rank')} in a {role} group, or NVLink domains of {nranks}",
            fix=(
                f"give consecutive ranks to the GPUs of one node (`srun --distribution=block`, `mpirun --map-by "
                f"ppr:{room}:node`), with {role} as the fastest dimension of the mesh",
            )
            if fits
            else (f"lower {role} to {room} and use more pipeline or data parallelism, then measure",),
            cost=split_cost(job, split[0]),
            evidence=[group.communicator.origin for group in split],
            coverage=Coverage(sum(len(group.ranks) for group in split), len(split) * nranks, "members seen"),
            confidence=confidence,
        )


class TensorGroupSplit(SplitGroups):
    """PLC001: a tensor-parallel or context-parallel group spans NVLink domains

    What it finds
        Communicators of tensor or context parallelism whose members run on several nodes although one node has enough
        GPUs for them. Racks joined by NVLink (MNNVL) count as one domain. Groups larger than a domain: info.

    Why it matters
        Tensor parallelism reduces activations twice per layer and direction, and nothing hides it. Over NVLink that
        runs at some 370 GB/s per GPU on H100, between nodes at 50 GB/s per NIC and with ten times the latency.

    Evidence it reads
        Communicators and their members from the Init lines; their role from their name, from the layout that was
        given, or from sizes and strides; connections that show which hosts NVLink joins; NCCL's graphs for the cost.

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

    id = "PLC001"
    roles = judged_by("PLC001")


class ExpertGroupSplit(SplitGroups):
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

    id = "PLC002"
    roles = judged_by("PLC002")
    worst = Severity.WARNING
    tell_large = False


@dataclass(frozen=True, slots=True)
class CrossedRails:
    """Groups with the GPU positions that they use, by host, where these differ; of how many groups over nodes."""

    groups: tuple[tuple[PlacedGroup, Mapping[str, Sequence[int]]], ...]
    several: int
    coverage: Coverage


class PeersOnOtherRails(JobCheck[CrossedRails]):
    """PLC004: data-parallel peers sit on different rails

    What it finds
        Data-parallel communicators that use other GPU positions on one node than on the next, so that the peers' own
        NICs hang on different rails (leaf switches).

    Why it matters
        On a rail-optimised network GPU n of every node reaches its peers over one leaf. Peers on other rails cross
        the spine, where they meet everybody's traffic, or take a detour over NVLink and another GPU's NIC (PXN).

    Evidence it reads
        The NVML index of each rank's GPU from the Init lines (2.4, 2.18 and later), members of the communicators, and
        the NICs that NCCL lists per process.

    When it stays silent
        Nodes have fewer NICs than GPUs, so that there are no rails. The group has members of all positions, or
        not the same number on each node. The GPU's position is hidden by a container. NVLink joins the nodes.

    How to confirm
        topodiag logs LOGS --comms --ranks             the local GPU numbers of the group's members

    How to fix
        Give the same local rank to a group on every node: all GPUs of a node, in the same order, in the same job.

    References
        NCCL src/graph/search.cc (ncclTopoSearchCheckNet: which NIC a ring may return by) v2.28; NCCL environment,
        NCCL_CROSS_NIC.
    """

    id = "PLC004"

    def observe(self, judged: Job, peers: Sequence[Job]) -> CrossedRails | Outcome:
        known, total = placed(judged, (Role.DP,))
        if not total:
            return self.not_applicable(judged, "no data-parallel communicator in the log")
        if not known:
            return self.unknown(judged, "which communicators are DP is a guess: name the layout (--dp, --order)")
        several = [group for group in known if len(group.domains) > 1]
        if not several:
            return self.not_applicable(judged, "no data-parallel group spans nodes")
        gpus = max(Counter(rank.host for rank in judged.ranks).values(), default=0)
        nics = max((len(nics_of(process)) for process in judged.processes), default=0)
        if not nics:
            return self.unknown(judged, f"which NICs the nodes have was not logged: {ask_for(judged, 'NET')}")
        if nics < gpus or gpus < 2:
            return self.not_applicable(judged, "fewer NICs than GPUs per node: there are no rails")
        crossed = tuple((group, rails) for group in several if (rails := _rails(judged, group)) is not None)
        coverage = Coverage(len(several), total, "DP groups over several nodes")
        if not crossed:
            return self.clean(judged, coverage=coverage)
        return CrossedRails(crossed, len(several), coverage)

    def tell(self, judged: Job, observed: CrossedRails) -> Iterator[Finding]:
        groups = [group for group, _ in observed.groups]
        first, rails = observed.groups[0]
        texts = [f"{host}: GPU {', '.join(map(str, indices))}" for host, indices in list(rails.items())[:4]]
        yield self.finding(
            self.where(
                list(dict.fromkeys(host for group in groups for host in group.hosts)),
                ranks=sorted({rank for group in groups for rank in group.ranks}),
            ),
            "job groups",
            f"{len(groups)} of {plural(observed.several, 'DP group')} use different GPU positions, and so rails,"
            " per node",
            observed=f"ranks {spell_ranks(first.ranks)}: {'; '.join(texts)}",
            evidence=[group.communicator.origin for group in groups],
            confidence=min(Confidence.MEDIUM, *(group.communicator.role_sure for group in groups)),
        )


def _rails(job: Job, group: PlacedGroup) -> dict[str, list[int]] | None:
    """GPU positions by host where they differ, None where they agree or cannot be compared."""
    by_rank = job.by_rank
    rails: dict[str, list[int]] = defaultdict(list)
    for rank in group.ranks:
        here = by_rank.get(rank)
        if here is None or here.nvml_dev < 0:
            return None
        rails[here.host].append(here.nvml_dev)
    rails = {host: sorted(indices) for host, indices in rails.items()}
    alike = len({len(indices) for indices in rails.values()}) == 1
    differ = len({tuple(indices) for indices in rails.values()}) > 1
    hidden = any(len(set(indices)) < len(indices) for indices in rails.values())
    return rails if alike and differ and not hidden else None
