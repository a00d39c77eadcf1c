"""Which NIC traffic leaves by: the nearest of its GPU, and the same on both sides."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product

from topodiag.checks.common import plural, spell
from topodiag.checks.interface import JobCheck
from topodiag.checks.job_evidence import (
    NEAR,
    between_nodes,
    fold,
    gpu_of,
    gpu_word,
    hcas_by_host,
    multi_node,
    net_of,
    nic_host,
    nic_rank,
    path_between,
    settings_of,
    views,
)
from topodiag.checks.job_text import NET, ask_for
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Job


@dataclass(frozen=True, slots=True)
class Ends:
    """A connection as both its ends print it: entries of the connections, the devices, and on how many channels."""

    sender: int
    receiver: int
    out: int
    into: int
    channels: int


class FarNic(JobCheck):
    """NET004: traffic leaves by a NIC that is not the GPU's closest, or crosses rails

    What it finds
        A connection for collectives over a NIC across a host bridge or the sockets' link, without PXN, while the GPU
        has a NIC behind its own PCIe switch. Connections that leave by one NIC and arrive by another, on nodes that
        list the same NICs: they cross rails.

    Why it matters
        Across the host bridge NCCL goes without GPUDirect RDMA, and between sockets at 22 GB/s or less on many
        processors; the near NIC would give 48 GB/s. On a rail-optimised network the switches of two rails meet at the
        spine only, where other jobs' traffic is.

    Evidence it reads
        `via NET/IB/3` of both ends, the paths of the system print (NCCL_DEBUG_SUBSYS=GRAPH), the listed devices.

    When it stays silent
        PXN hands the data to the GPU beside the NIC. The GPU has no near NIC (GDR002). Rails: the nodes list other
        devices, or NCCL_CROSS_NIC=1 allows it; whether the network has rails no log says, so that it is told at level
        info unless NCCL_CROSS_NIC=0 asks for them. No paths printed: unknown.

    How to confirm
        nvidia-smi topo -m
        NCCL_DEBUG_SUBSYS=GRAPH                             the NET of each channel and the path table

    How to fix
        Leave NCCL_CROSS_NIC and NCCL_PXN_DISABLE alone; check for a topology file that is not of this machine; bind one
        process to each GPU.

    References
        NCCL src/graph/topo.cc (ncclTopoGetLocalNet), src/graph/search.cc v2.30; nccl issues 820 and 1464.
    """

    id = "NET004"
    title = "traffic leaves by a NIC that is not the GPU's closest, or crosses rails"

    def judge(self, job: Job) -> Outcome:
        if not multi_node(job):
            return self.not_applicable(job, "no traffic between nodes")
        conns = job.connections
        judged = 0
        far: dict[str, dict[str, tuple[int, str, str, str]]] = defaultdict(dict)
        view = views(job)
        for at in between_nodes(job):
            host = nic_host(conns, at)
            system = view.get((int(conns.comm[at]), host))
            if system is None or conns.proxy[at] >= 0 or conns.net_dev[at] < 0 or conns.conn[at] == 1:
                continue
            rank, world = nic_rank(conns, at)
            gpu, net = gpu_of(system, rank), net_of(system, int(conns.net_dev[at]))
            if gpu is None or net is None:
                continue
            taken = path_between(system, gpu.name, net.name)
            near = [each.name for each in system.of_kind("NET")
                    if (path_between(system, gpu.name, each.name) or taken or 99) <= NEAR]  # fmt: skip
            if taken is None:
                continue
            judged += 1
            if taken > NEAR and near and net.name not in near:
                far[host].setdefault(
                    f"{gpu.name} {net.name}", (at, gpu_word(job, world) or gpu.name, taken.name, near[0])
                )
        coverage = Coverage(judged, sum(1 for _ in between_nodes(job)), "connections")
        found = [self._report(job, host, list(entries.values()), coverage) for host, entries in sorted(far.items())]
        found = [*fold(found), *self._rails(job, _both_ends(job))]
        if found:
            return self.found(job, found, coverage)
        if not judged:
            return self.unknown(job, f"no path from a GPU to the NIC it uses was printed; {ask_for(job, *NET)}")
        return self.clean(job, "", coverage)

    def _rails(self, job: Job, ends: list[Ends]) -> list[Finding]:
        """Connections that leave by another NIC than they arrive by."""
        conns = job.connections
        crossed = [each for each in ends if each.out != each.into]
        wanted = settings_of(job, "NCCL_CROSS_NIC").get("NCCL_CROSS_NIC", [])
        values = {given.value.strip() for _, given in wanted}
        if not crossed or "1" in values:
            return []
        first = crossed[0]
        listed = hcas_by_host(job)
        hosts = sorted({nic_host(conns, entry) for each in crossed for entry in (each.sender, each.receiver)} - {""})
        names = listed.get(nic_host(conns, first.sender), {})
        out, into = (names[device].name if device in names else f"NIC {device}" for device in (first.out, first.into))
        ranks = {nic_rank(conns, entry)[1] for each in crossed for entry in (each.sender, each.receiver)} - {-1}
        count, total = sum(each.channels for each in crossed), sum(each.channels for each in ends)
        asked = "0" in values
        return [
            self.finding(
                Severity.WARNING if asked else Severity.INFO,
                f"{count} of {total} channels of connections between nodes cross rails, as from {out} to {into}"
                + (", although NCCL_CROSS_NIC=0" if asked else ""),
                observed=f"sent via {conns.label(first.sender)}, received via {conns.label(first.receiver)}",
                expected="one NIC position on both sides of a connection, where the network has rails",
                fix=(
                    "give a communicator the same GPU positions on each node (PLC004, `--comms --ranks`)",
                    "nothing, where all NICs hang on one switch or the fabric has no rails",
                ),
                nodes=hosts,
                ranks=sorted(ranks),
                nics=[out, into],
                cost=Cost(text="on a rail-optimised network this traffic passes the spine"),
                evidence=[conns.origin(entry) for each in crossed[:4] for entry in (each.sender, each.receiver)],
                coverage=Coverage(count, total, "channels seen from both ends"),
                confidence=Confidence.HIGH if asked else Confidence.MEDIUM,
            )
        ]

    def _report(self, job: Job, host: str, entries: list[tuple[int, str, str, str]], coverage: Coverage) -> Finding:
        conns = job.connections
        labels = list(dict.fromkeys(label for _, label, _, _ in entries))
        at, label, kind, near = entries[0]
        ranks = sorted({nic_rank(conns, entry[0])[1] for entry in entries})
        return self.finding(
            Severity.WARNING,
            f"{host}: {spell(labels)} send by a far NIC ({label} over {conns.label(at)} at {kind})",
            observed=f"{plural(len(entries), 'pair')} of GPU and NIC at {kind}, without PXN",
            expected=f"{near} behind the same PCIe switch, or PXN",
            fix=(
                "unset NCCL_CROSS_NIC, NCCL_PXN_DISABLE and NCCL_IB_HCA lists that leave near NICs out",
                "check that the topology file, if there is one, is of this machine",
            ),
            nodes=(host,),
            ranks=[rank for rank in ranks if rank >= 0],
            gpus=labels,
            cost=Cost(text="no GPUDirect RDMA at this distance by default, and one crossing of the host bridge more"),
            evidence=[conns.origin(entry[0]) for entry in entries],
            coverage=coverage,
        )


def _both_ends(job: Job) -> list[Ends]:
    """Connections for collectives between hosts that list the same devices, several of them, and without PXN."""
    conns = job.connections
    listed = hcas_by_host(job)
    lists = {host: tuple((at, hca.name) for at, hca in sorted(hcas.items())) for host, hcas in listed.items()}
    sent: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    received: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    for at in between_nodes(job):
        if conns.comm[at] < 0 or conns.net_dev[at] < 0 or conns.proxy[at] >= 0 or conns.conn[at] == 1:
            continue
        key = (int(conns.comm[at]), int(conns.rank[at]), int(conns.peer[at]), int(conns.conn[at]))
        if conns.direction[at] == 1:
            sent[key].append(at)
        elif conns.direction[at] == 2:
            received[key].append(at)
    made = []
    for key in sorted(sent.keys() & received.keys()):
        for a, b in product(sent[key], received[key]):
            channels = (int(conns.channels[a]) & int(conns.channels[b])).bit_count()
            mine, theirs = lists.get(nic_host(conns, a), ()), lists.get(nic_host(conns, b), ())
            if channels and len(mine) > 1 and mine == theirs:
                made.append(Ends(a, b, int(conns.net_dev[a]), int(conns.net_dev[b]), channels))
    return made
