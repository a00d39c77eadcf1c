"""How GPUs of one node talk in a job: shared memory or the network where peer-to-peer would do."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Never

import numpy as np

from topodiag.checks.interface import JobCheck, OneStep
from topodiag.checks.job.evidence import (
    NEAR,
    gpu_of,
    gpu_word,
    inside_nodes,
    local_ranks,
    nvlink_gbs,
    path_between,
    pcie_gbs,
    prints,
    ranks_on,
    ranks_per_node,
    said_by,
    settings_of,
    transport_kind,
    views,
    world_ranks,
)
from topodiag.checks.job.text import NET, ask_for, unconnected
from topodiag.checks.shared.words import hosts_word
from topodiag.model.connections import Connections, distinct
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Given, Job
from topodiag.model.links import PathType
from topodiag.model.nccl_view import NcclSystem
from topodiag.model.provenance import Origin
from topodiag.words.fold import fold_runs, plural

NO_P2P_LEVELS = ("LOC", "0")
OFF_PAIR = re.compile(r"P2P is disabled between connected GPUs (\d{1,4}) and (\d{1,4})")
"""NCCL src/graph/paths.cc (ncclTopoCheckP2p) 2.17 and later; the numbers are those of NVML."""

OFF_NVLINK = "between nvlink connected"


def _switched_off(job: Job) -> list[tuple[int, Given]]:
    """Settings that switch P2P off for every pair, with the processes they hold for."""
    made = [
        (number, given)
        for number, given in settings_of(job, "NCCL_P2P_DISABLE").get("NCCL_P2P_DISABLE", [])
        if given.value.strip() not in ("", "0")
    ]
    for number, given in settings_of(job, "NCCL_P2P_LEVEL").get("NCCL_P2P_LEVEL", []):
        if given.value.strip().upper() in NO_P2P_LEVELS:
            made.append((number, given))
    return made


@dataclass(frozen=True, slots=True)
class Talk:
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


@dataclass(slots=True)
class Alike:
    """Connections of one host that are judged alike: the number of the first, how many, world ranks that send."""

    first: int
    entries: int = 0
    worlds: dict[int, None] = field(default_factory=dict)

    def add(self, talk: Talk) -> None:
        self.entries += talk.entries
        self.worlds.setdefault(talk.world)


def _around_p2p(batch: Connections, wanted: Callable[[str], bool]) -> Iterator[Talk]:
    """Inside the nodes, by what they go over."""
    at = np.flatnonzero(inside_nodes(batch) & batch.over(wanted))
    columns = [column[at] for column in (batch.comm, batch.host, batch.rank, batch.peer, batch.via)]
    first, counts = distinct(*columns)
    worlds = (batch.world[at], batch.world_peer[at])
    lists = (column[first].tolist() for column in (at, *columns, *worlds))
    for count, row in zip(counts.tolist(), zip(*lists, strict=True), strict=True):
        entry, comm, host, rank, peer, via, world, world_peer = row
        kind = transport_kind(batch.vias[via])
        yield Talk(batch.first + entry, count, comm, host, rank, peer, world, world_peer, kind)


def _is_shm(via: str) -> bool:
    return transport_kind(via) == "SHM"


class ShmInsteadOfP2p(OneStep[Job], JobCheck[Never]):
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
        P2P is off by a setting (P2P002). GPUs under different host bridges or sockets: NCCL's own rule takes shared
        memory there on most processors, which is told as information. No connection lines: unknown.

    How to confirm
        nvidia-smi topo -p2p r                              `OK`, `CNS` chipset, `GNS` GPU not supported, `TNS` topology
        p2pBandwidthLatencyTest                             from the CUDA samples

    How to fix
        Virtualisation and ACS: PCI004. In containers: one that holds all GPUs of the job, with the same IPC namespace.
        GeForce cards of the RTX 40 series and later have no peer-to-peer; there SHM is what can be had.

    References
        NCCL src/graph/paths.cc (ncclTopoCheckP2p), src/transport/p2p.cc (p2pCanConnect) v2.30; nccl issue 1939.
    """

    id = "P2P001"
    title = "GPUs of one node talk through host memory where peer-to-peer is possible"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        refused = _refused_pairs(job)
        if not job.ranks and refused and not _switched_off(job):
            return self.found(job, [self._said(refused)])
        if max(local_ranks(job).values(), default=0) < 2:
            return self.not_applicable(job, "one rank on each node")
        if _switched_off(job):
            return self.clean(job, "P2P is off by a setting: P2P002")
        conns = job.connections
        view = views(job)
        seen = 0
        pairs: dict[tuple[str, str, str], Alike] = {}
        several = len(job.hosts) > 1
        for batch in conns.batches():
            seen += int(inside_nodes(batch).sum())
            for talk in _around_p2p(batch, lambda via: _is_shm(via) or (several and via.startswith("NET/"))):
                host = conns.hosts[talk.host]
                system = view.get((talk.comm, host))
                a = gpu_of(system, talk.rank) if system else None
                b = gpu_of(system, talk.peer) if system else None
                path = path_between(system, a.name, b.name) if system and a and b else None
                direct = bool(system and a and b and a.parent == b.parent and a.parent.startswith("PCI/"))
                near = path is not None and path <= NEAR
                numbers = frozenset((gpu_word(job, talk.world), gpu_word(job, talk.world_peer)))
                if (host, numbers) in refused and talk.kind == "SHM":
                    word = "refused"
                else:
                    word = "near" if near or (direct and talk.kind == "SHM") else "far" if path is not None else "?"
                if talk.kind == "SHM" or word == "near":
                    pairs.setdefault((host, talk.kind, word), Alike(talk.first)).add(talk)
        if not seen and refused:
            return self.found(job, [self._said(refused)])
        if not seen:
            return self.unknown(job, unconnected(job, "a connection inside a node"))
        coverage = Coverage(seen, seen, "connections inside nodes")
        found = self._reports(job, pairs, list(refused.values()), coverage)
        if found:
            return self.found(job, found, coverage)
        if pairs:
            return self.unknown(job, f"SHM inside a node, and no path table to judge it by; {ask_for(job, *NET)}")
        return self.clean(job, "", coverage)

    def _said(self, refused: Mapping[tuple[str, frozenset[str]], Origin | None]) -> Finding:
        """By the driver's refusals alone, where the log shows no connection."""
        hosts = list(dict.fromkeys(host for host, _ in refused))
        labels = sorted({label for _, pair in refused for label in pair})
        return self.finding(
            Severity.WARNING,
            f"{hosts_word(hosts)}: the driver refuses {plural(len(refused), 'pair')} of {fold_runs(labels)}"
            " peer-to-peer",
            observed=f"P2P is disabled between connected GPUs, {plural(len(refused), 'pair')}",
            expected="peer-to-peer between GPUs that NVLink or PCIe switches join",
            fix=(
                "`nvidia-smi topo -p2p r`: what the driver says of each pair",
                "ACS off on the bridges (PCI004); GeForce cards since RTX 40 have no peer-to-peer: then leave it",
            ),
            nodes=hosts,
            gpus=labels,
            cost=Cost(text="each byte goes up to host memory and down again"),
            evidence=list(refused.values()),
            confidence=Confidence.MEDIUM,
        )

    def _reports(
        self,
        job: Job,
        pairs: Mapping[tuple[str, str, str], Alike],
        refusals: Sequence[Origin | None],
        coverage: Coverage,
    ) -> list[Finding]:
        conns = job.connections
        groups: dict[tuple[str, str], dict[str, Alike]] = defaultdict(dict)
        for (host, kind, word), alike in pairs.items():
            if word != "?":
                groups[kind, word][host] = alike
        made = []
        for (kind, word), hosts in groups.items():
            first = next(iter(hosts.values()))
            ranks = sorted({world for each in hosts.values() for world in each.worlds} - {-1})
            labels = list(dict.fromkeys(label for world in first.worlds if (label := gpu_word(job, world))))
            bad, refused = word != "far", word == "refused"
            why = "the driver refuses peer-to-peer" if refused else "NVLink or a PCIe switch joins them"
            made.append(
                self.finding(
                    Severity.WARNING if bad else Severity.INFO,
                    f"{hosts_word(list(hosts))}: {fold_runs(labels)} talk over {kind}, though {why}"
                    if bad
                    else f"{hosts_word(list(hosts))}: {kind} between host bridges, by NCCL's own rule",
                    observed=f"{plural(sum(each.entries for each in hosts.values()), 'connection')}"
                    f" via {conns.label(first.first)}",
                    expected="via P2P/CUMEM or P2P/IPC"
                    if bad
                    else "SHM: NCCL goes peer-to-peer across host bridges on some processors only (NCCL_P2P_LEVEL)",
                    fix=(
                        "`nvidia-smi topo -p2p r`: what the driver says of each pair",
                        "ACS off on the bridges (PCI004); one container with all GPUs and one IPC namespace",
                        "GeForce cards since RTX 40 have no peer-to-peer: then SHM is what can be had",
                    )
                    if bad
                    else ("try NCCL_P2P_LEVEL=SYS and measure; on many processors SHM is the better one",),
                    nodes=list(hosts),
                    ranks=ranks,
                    gpus=labels,
                    cost=_cost(job, list(hosts)) if bad else Cost(text="as the machine is built"),
                    evidence=[conns.origin(first.first), *(refusals if refused else ())],
                    coverage=coverage,
                    confidence=Confidence.MEDIUM if refused or kind != "SHM" else Confidence.HIGH,
                )
            )
        return made


def _refused_pairs(job: Job) -> dict[tuple[str, frozenset[str]], Origin | None]:
    """Pairs of GPUs, by host, that the driver refuses peer-to-peer, and the line that says so."""
    made: dict[tuple[str, frozenset[str]], Origin | None] = {}
    for number, text, where in said_by(job, "p2p off"):
        match = OFF_PAIR.search(text)
        if match:
            for host in [job.processes[number].host] if number >= 0 else job.hosts:
                made.setdefault((host, frozenset((f"GPU{match[1]}", f"GPU{match[2]}"))), where)
    return made


def _cost(job: Job, hosts: list[str]) -> Cost:
    """What the pair would have: NVLink as printed, else only words, since a PCIe print does not say what SHM brings."""
    for each in prints(job):
        best = max(nvlink_gbs(each.system).values(), default=0.0)
        pci = max(pcie_gbs(each.system), default=0.0)
        if each.host in hosts and best and pci:
            left = min(best, pci)
            return Cost(best - left, 1 - left / best, f"at most {left:g} GB/s over PCIe where NVLink has {best:g} GB/s")
    return Cost(text="each byte goes up to host memory and down again")


class P2pSwitchedOff(OneStep[Job], JobCheck[Never]):
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

    id = "P2P002"
    title = "peer-to-peer between GPUs is switched off"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        found = [*self._refused(job)]
        if ranks_per_node(job) < 2:
            if found:
                return self.found(job, found)
            return self.not_applicable(job, "one rank on each node")
        off = _switched_off(job)
        if off:
            found.append(self._by_setting(job, off))
        if found:
            return self.found(job, found)
        if not job.subsystems & {"ENV", "INIT", "GRAPH"} and not any(process.settings for process in job.processes):
            return self.unknown(job, f"no settings were seen; {ask_for(job, *NET)}")
        return self.clean(job)

    def _refused(self, job: Job) -> list[Finding]:
        texts = [(text, where, -1) for _, text, where in said_by(job, "p2p off")]
        texts += [(event.text, event.origin, event.rank) for event in job.events]
        bad = [entry for entry in texts if OFF_NVLINK in entry[0].lower()]
        if not bad:
            return []
        return [
            self.finding(
                Severity.ERROR,
                f"the driver refuses peer-to-peer between GPUs that NVLink joins ({plural(len(bad), 'line')})",
                observed=bad[0][0].strip(),
                expected="peer-to-peer between all GPUs that NVLink joins",
                fix=(
                    "`nvidia-smi topo -p2p n` and `nvidia-smi nvlink -s`; `systemctl status nvidia-fabricmanager`",
                    "reset the GPUs; if it stays, drain the node: NCCL takes it for a fault of the hardware",
                ),
                ranks=sorted({rank for _, _, rank in bad if rank >= 0}),
                cost=_cost(job, list(job.hosts)),
                evidence=[where for _, where, _ in bad],
            )
        ]

    def _by_setting(self, job: Job, off: list[tuple[int, Given]]) -> Finding:
        given = off[0][1]
        hosts = list(dict.fromkeys(job.processes[number].host for number, _ in off))
        view = [each.system for each in prints(job) if each.host in hosts]
        nvlink = any(any(nvlink_gbs(system).values()) for system in view)
        near = nvlink or any(_near_pair(system) for system in view)
        conns = job.connections
        kinds: set[str] = set()
        places: list[int] = []
        for batch in conns.batches():
            for talk in _around_p2p(batch, lambda via: transport_kind(via) != "P2P"):
                kinds.add(talk.kind)
                places += [talk.first] * (len(places) < 2)
        severity = Severity.ERROR if nvlink else Severity.WARNING if near or not view else Severity.INFO
        used = ", ".join(sorted(kinds))
        return self.finding(
            severity,
            f"{given.name}={given.value} switches peer-to-peer off"
            + (": NVLink is not used" if nvlink else "" if severity > Severity.INFO else ", which no pair could use"),
            observed=f"{given.name}={given.value}" + (f"; inside the nodes: {used}" if used else ""),
            expected="not set: NCCL takes NVLink and PCIe peer-to-peer where they work",
            fix=(f"unset {given.name}", "if the job hangs without it, look for ACS or an IOMMU in the way (PCI004)"),
            nodes=hosts,
            ranks=world_ranks(job, [number for number, _ in off]) or ranks_on(job, hosts),
            cost=_cost(job, hosts),
            evidence=[given.origin, *(conns.origin(at) for at in places)],
            coverage=Coverage(len(off), len(job.processes), "processes"),
            settings=((given.name, None),),
        )


def _near_pair(system: NcclSystem) -> bool:
    gpus = [gpu.name for gpu in system.of_kind("GPU")]
    kinds = [path_between(system, a, b) for a in gpus for b in gpus if a < b]
    return any(kind is not None and PathType.LOC < kind <= NEAR for kind in kinds)
