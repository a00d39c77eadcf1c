"""How GPUs of one node talk in a job: shared memory or the network where peer-to-peer would do, or is switched off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np

from topodiag.checks.interface import Advice, JobCheck, hosts_word, ranks_in
from topodiag.checks.shared.job import logs
from topodiag.checks.shared.job.text import ask_for, unconnected
from topodiag.lazy import dataclass
from topodiag.model.connections import Connections, distinct
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import GivenSetting, Job
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_view import NcclSystem
from topodiag.model.provenance import Fact, Origin
from topodiag.words.units import fold_runs, grouped, in_gbs, plural

APART = ("NCCL_SHM_DISABLE", "NCCL_HOSTID")
"""Settings that part ranks of one node: ENV001 judges them."""

DETOUR = "each byte goes up to host memory and down again"

NO_P2P_LEVELS = ("LOC", "0")


def switched_off(job: Job) -> list[tuple[int, GivenSetting]]:
    """Settings that switch P2P off for every pair, with the processes they hold for."""
    given = logs.settings_of(job, "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL")
    return [
        *(pair for pair in given.get("NCCL_P2P_DISABLE", ()) if pair[1].value.strip() not in ("", "0")),
        *(pair for pair in given.get("NCCL_P2P_LEVEL", ()) if pair[1].value.strip().upper() in NO_P2P_LEVELS),
    ]


@dataclass(frozen=True, slots=True)
class GpuConnection:
    """Connections of two ranks of one host: the number of the first, how many, the communicator (-1 unknown), its
    ranks, world ranks (-1), index of the host, and the transport without its details."""

    first: int
    entries: int
    comm: int
    host: int
    rank: int
    peer: int
    world: int
    world_peer: int
    kind: str


def around_p2p(batch: Connections, wanted: Callable[[str], bool]) -> Iterator[GpuConnection]:
    """Inside the nodes, by what they go over."""
    at = np.flatnonzero(logs.inside_nodes(batch) & batch.over(wanted))
    columns = [column[at] for column in (batch.comm, batch.host, batch.rank, batch.peer, batch.via)]
    first, counts = distinct(*columns)
    lists = (column[first].tolist() for column in (at, *columns, batch.world[at], batch.world_peer[at]))
    for count, row in zip(counts.tolist(), zip(*lists, strict=True), strict=True):
        entry, comm, host, rank, peer, via, world, world_peer = row
        kind = logs.transport_kind(batch.vias[via])
        yield GpuConnection(batch.first + entry, count, comm, host, rank, peer, world, world_peer, kind)


Refusals: TypeAlias = Mapping[tuple[str, frozenset[str]], Origin | None]
"""Pairs of GPUs, by host, that the driver refuses peer-to-peer, and the line that says so."""


class ShmInsteadOfP2p(JobCheck, id="P2P001"):
    """P2P001: GPUs of one node talk through host memory where peer-to-peer is possible

    What it finds
        Connections over SHM (or the network) between two GPUs of one node that NVLink or one PCIe switch hierarchy
        joins, or for which the driver refuses peer-to-peer.

    Why it matters
        Through shared memory each byte goes up to host memory and down again: 10 to 15 GB/s for a pair where PCIe
        peer-to-peer brings 20 to 50 GB/s and NVLink 150 to 900 GB/s.

    Evidence it reads
        `via SHM/direct/direct`, `P2P is disabled between connected GPUs`, the path table of the system print.

    When it stays silent
        P2P is off by a setting (P2P002). GPUs under different host bridges or sockets: NCCL's rule chooses shared
        memory there on most processors, so info. No path table in the log: info that shared memory carries the
        data, and a warning where the network does. No connection lines: unknown.

    How to confirm
        nvidia-smi topo -p2p r                              `OK`, `CNS` chipset, `GNS` GPU not supported, `TNS` topology
        p2pBandwidthLatencyTest                             from the CUDA samples

    How to fix
        Virtualisation and ACS: PCI004. In containers: one that holds all GPUs of the job, with the same IPC namespace.
        GeForce cards of the RTX 40 series and later have no peer-to-peer: SHM is the best they can use.

    References
        NCCL src/graph/paths.cc (ncclTopoCheckP2p), src/transport/p2p.cc (p2pCanConnect) v2.30; NVIDIA/nccl issue
        406 (a maintainer on when shared memory is chosen between GPUs of one node).
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        refused = _refused_pairs(judged)
        off = switched_off(judged)
        if not judged.ranks and refused and not off:
            return self.any_of(judged, [self._by_driver(refused)])
        seen = sum(int(logs.inside_nodes(batch).sum()) for batch in judged.connections.batches())
        if max(logs.local_ranks(judged).values(), default=0) < 2 and not seen:
            return self.not_applicable(judged, "one rank on each node")
        if off:
            return self.clean(judged, "P2P is off by a setting: P2P002")
        if not seen:
            if refused:
                return self.any_of(judged, [self._by_driver(refused)])
            return self.unknown(judged, unconnected(judged, "a connection inside a node"))
        pairs = _by_distance(judged, refused)
        coverage = Coverage(seen, seen, "connections inside nodes")
        known = {key: alike for key, alike in pairs.items() if key[2] != "?"} or pairs
        groups = grouped(((kind, word), (host, alike)) for (host, kind, word), alike in known.items())
        findings = [self._by_connections(judged, refused, dict(hosts), group) for group, hosts in groups.items()]
        return self.any_of(judged, findings, coverage)

    def _by_driver(self, refused: Refusals) -> Finding:
        """By the driver's refusals alone, where the log shows no connection."""
        hosts = list(dict.fromkeys(host for host, _ in refused))
        labels = sorted({label for _, pair in refused for label in pair})
        return self.finding(
            self.where(hosts, gpus=labels),
            "refused by the driver",
            f"{hosts_word(hosts)}: the driver refuses {plural(len(refused), 'pair')} of {fold_runs(labels)}"
            " peer-to-peer",
            observed=f"P2P is disabled between connected GPUs, {plural(len(refused), 'pair')}",
            cost=DETOUR,
            evidence=refused.values(),
        )

    def _by_connections(
        self, job: Job, refusals: Refusals, hosts: Mapping[str, Sequence[GpuConnection]], group: tuple[str, str]
    ) -> Finding:
        """Pairs of one kind: kept from peer-to-peer by NCCL's own rule for their distance (`far`), of a distance that
        no path table shows (`?`), `refused` by the driver, or `near` and on the detour all the same."""
        kind, word = group
        conns, shm, named = job.connections, kind == "SHM", hosts_word(list(hosts))
        first, *_ = own = next(iter(hosts.values()))
        labels = list(dict.fromkeys(filter(None, (logs.gpu_word(job, talk.world) for talk in own))))
        talks = list(chain(*hosts.values()))
        worlds = sorted({talk.world for talk in talks} - {-1})
        evidence: list[Origin | None] = [conns.origin(first.first)]
        severity, confidence, cost = Severity.WARNING, Confidence.MEDIUM, Cost(text=DETOUR)
        expected = "via P2P/CUMEM or P2P/IPC"
        if word == "far":
            severity, confidence = Severity.INFO, Confidence.HIGH if shm else Confidence.MEDIUM
            message = f"{kind} between host bridges, by NCCL's own rule"
            expected = "SHM: NCCL goes peer-to-peer across host bridges on some processors only (NCCL_P2P_LEVEL)"
            fix = self.steps("try the level")
            cost = Cost(text="as the machine is built")
        elif word == "?":
            severity, confidence = (Severity.INFO, Confidence.LOW) if shm else (severity, confidence)
            message = f"GPUs of one node talk over {'shared memory' if shm else 'the network'}, not peer-to-peer"
            expected += ", where NVLink or a PCIe switch joins the GPUs"
            asked = ask_for(job)
            fix = self.steps("could the pair", "" if shm else "one container", "log the paths", ask=asked)
        else:
            refused = word == "refused"
            why = "the driver refuses peer-to-peer" if refused else "NVLink or a PCIe switch joins them"
            message = f"{fold_runs(labels)} talk over {kind}, though {why}"
            confidence = Confidence.HIGH if shm and not refused else confidence
            fix = self.steps("kept from peer-to-peer")
            cost = cost_of_detour(job, list(hosts))
            joined = joined_by(job, next(iter(hosts)), (first.world,))
            evidence += [joined.origin if joined is not None else None, *(refusals.values() if refused else ())]
        return self.finding(
            self.where([host for host in hosts if host], ranks=worlds, gpus=labels),
            Advice(severity, confidence, expected, fix, cost),
            f"{named}: {message}",
            observed=f"{plural(sum(talk.entries for talk in talks), 'connection')} via {conns.label(first.first)}",
            evidence=evidence,
        )


def _by_distance(job: Job, refused: Refusals) -> dict[tuple[str, str, str], list[GpuConnection]]:
    """Connections inside nodes over SHM, or the network where a nearer way is there, by host, kind and distance."""
    view = logs.views(job)
    several = len(job.hosts) > 1
    single = not several and not logs.multi_node(job) and not logs.settings_of(job, *APART)
    pairs: dict[tuple[str, str, str], list[GpuConnection]] = defaultdict(list)
    for batch in job.connections.batches():
        for talk in around_p2p(batch, lambda via: logs.transport_kind(via) == "SHM" or via.startswith("NET/")):
            host = logs.host_name(job.connections, talk.host)
            word = _distance_word(job, talk, view.get((talk.comm, host)), (host, refused))
            over_net = (several and word == "near") or (single and word in ("near", "?") and _two_gpus(job, talk))
            if talk.kind == "SHM" or over_net:
                pairs[host, talk.kind, word].append(talk)
    return pairs


def _two_gpus(job: Job, talk: GpuConnection) -> bool:
    """Whether two ranks have GPUs of different numbers: machines that share a host name have the same ones."""
    a, b = logs.gpu_word(job, talk.world), logs.gpu_word(job, talk.world_peer)
    return bool(a) and bool(b) and a != b


def _distance_word(job: Job, talk: GpuConnection, system: NcclSystem | None, refusals: tuple[str, Refusals]) -> str:
    """`refused` by the driver, `near`, `far`, or `?` where no path table says, nor a capture of the machine."""
    host, refused = refusals
    shm = talk.kind == "SHM"
    if joined_by(job, host, (talk.world, talk.world_peer)) is not None:
        return "near"
    if shm and (host, frozenset((logs.gpu_word(job, talk.world), logs.gpu_word(job, talk.world_peer)))) in refused:
        return "refused"
    a = logs.gpu_of(system, talk.rank) if system else None
    b = logs.gpu_of(system, talk.peer) if system else None
    if system is None or a is None or b is None:
        return "?"
    path = logs.path_between(system, a.name, b.name)
    direct = a.parent == b.parent and a.parent.startswith("PCI/")
    if (path is not None and path <= logs.NEAR) or (direct and shm):
        return "near"
    return "far" if path is not None else "?"


def joined_by(job: Job, host: str, ends: Sequence[int]) -> Fact[str] | None:
    """The state of a link by which a capture of the host shows that NVLink joins the GPUs of these world ranks, None
    where it does not."""
    node, ranks = job.machines.get(host), job.by_rank
    if node is None or any(end not in ranks or not ranks[end].bus_id for end in ends):
        return None
    gpus = [next((gpu for gpu in node.gpus if gpu.bus_id == ranks[end].bus_id), None) for end in ends]
    up = [[link for link in gpu.nvlinks if link.state.value == "active"] if gpu is not None else [] for gpu in gpus]
    others = {ranks[end].bus_id for end in ends}
    joined = [[k for k in links if k.remote_type.value == "switch" or k.remote_bus_id.value in others] for links in up]
    return joined[0][0].state if all(joined) else None


def _refused_pairs(job: Job) -> Refusals:
    pairs: dict[tuple[str, frozenset[str]], Origin | None] = {}
    for line in logs.named_by(job, "other_gpu", "p2p off"):
        pair = frozenset((f"GPU{line.details['gpu']}", f"GPU{line.details['other_gpu']}"))
        for host in [line.host] if line.process >= 0 else job.hosts:
            pairs.setdefault((host, pair), line.origin)
    return pairs


def cost_of_detour(job: Job, hosts: list[str]) -> Cost:
    """What the pair would have: NVLink as printed, else only words, since a PCIe print does not say what SHM brings."""
    for system_print in logs.prints(job):
        best = max(logs.nvlink_gbs(system_print.system).values(), default=0.0)
        pci = max(logs.pcie_gbs(system_print.system), default=0.0)
        if system_print.host in hosts and best and pci:
            left = min(best, pci)
            text = f"at most {in_gbs(left)} over PCIe where NVLink has {in_gbs(best)}"
            return Cost(best - left, 1 - left / best, text)
    return Cost(text=DETOUR)


OFF_NVLINK = "between nvlink connected"


class P2pSwitchedOff(JobCheck, id="P2P002"):
    """P2P002: peer-to-peer between GPUs is switched off

    What it finds
        NCCL_P2P_DISABLE=1, or NCCL_P2P_LEVEL=LOC, in a job with several GPUs on a node; or a driver that refuses
        peer-to-peer between GPUs that NVLink joins.

    Why it matters
        NVLink is then not used at all: 8 H100 go from 360 GB/s to about 40 GB/s through host memory, or over the NICs.
        Often the setting is left over from a search for another fault.

    Evidence it reads
        `NCCL_P2P_DISABLE set by environment to 1`, NCCL_P2P_LEVEL, transports inside the nodes, `P2P is disabled
        between NVLINK connected GPUs`.

    When it stays silent
        One GPU on each node. Where no pair could use P2P anyhow (no NVLink, no common PCIe switch): info.

    How to confirm
        grep -h 'NCCL_P2P' LOGS; env | grep NCCL; cat /etc/nccl.conf ~/.nccl.conf
        grep -ho 'via [A-Z0-9]*/[a-zA-Z]*' LOGS | sort | uniq -c

    How to fix
        Unset it. If the job hangs without it, look for ACS or an IOMMU in the way (PCI004) instead.

    References
        NCCL environment, NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; NCCL src/graph/paths.cc v2.30.
    """

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        findings = [*self._refused(job)]
        several = logs.ranks_per_node(job) > 1
        if not findings and not several:
            return self.not_applicable(job, "one rank on each node")
        if several and (off := switched_off(job)):
            findings.append(self._by_setting(job, off))
        seen = job.subsystems & {"ENV", "INIT", "GRAPH"}
        return self.any_of(job, findings, unknown="" if seen else f"no settings were seen; {ask_for(job)}")

    def _refused(self, job: Job) -> Iterator[Finding]:
        lines = (*logs.said_by(job, "p2p off"), *job.events)
        bad = [line for line in lines if OFF_NVLINK in line.text.lower()]
        if bad:
            yield self.of_events(
                bad,
                "refused by nccl",
                f"the driver refuses peer-to-peer between GPUs that NVLink joins ({plural(len(bad), 'line')})",
                self.where(ranks=ranks_in(bad)),
                cost=cost_of_detour(job, list(job.hosts)),
            )

    def _by_setting(self, job: Job, off: list[tuple[int, GivenSetting]]) -> Finding:
        given = off[0][1]
        hosts = list(dict.fromkeys(job.processes[number].host for number, _ in off))
        view = [system_print.system for system_print in logs.prints(job) if system_print.host in hosts]
        nvlink = any(any(logs.nvlink_gbs(system).values()) for system in view)
        near = nvlink or any(_near_pair(system) for system in view)
        conns = job.connections
        around = (around_p2p(batch, lambda via: logs.transport_kind(via) != "P2P") for batch in conns.batches())
        first = {talk.first: talk.kind for talks in around for talk in talks}
        severity = Severity.ERROR if nvlink else Severity.WARNING if near or not view else Severity.INFO
        used = ", ".join(sorted(set(first.values())))
        return self.finding(
            self.where(hosts, ranks=logs.world_ranks(job, [number for number, _ in off]) or logs.ranks_on(job, hosts)),
            "switched off",
            f"{given.name}={given.value} switches peer-to-peer off"
            + (": NVLink is not used" if nvlink else "" if severity > Severity.INFO else ", which no pair could use"),
            severity=severity,
            observed=f"{given.name}={given.value}" + (f"; inside the nodes: {used}" if used else ""),
            fix=self.steps("without the setting", name=given.name),
            cost=cost_of_detour(job, hosts),
            evidence=[given, *(conns.origin(at) for at in list(first)[:2])],
            coverage=Coverage(len(off), len(job.processes), "processes"),
            settings=((given.name, None),),
        )


def _near_pair(system: NcclSystem) -> bool:
    gpus = [gpu.name for gpu in system.of_kind("GPU")]
    kinds = [logs.path_between(system, a, b) for a in gpus for b in gpus if a < b]
    return any(kind is not None and PathType.LOC < kind <= logs.NEAR for kind in kinds)
