"""Which NIC traffic leaves by: the nearest of its GPU, and the same on both sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Never

from topodiag.checks.interface import JobCheck, OneStep
from topodiag.checks.job.evidence import (
    NEAR,
    fold,
    gpu_word,
    multi_node,
    net_uses,
    nic_host,
    nic_world,
    path_between,
    settings_of,
)
from topodiag.checks.job.nic_uses import nic_uses, nics_by_host
from topodiag.checks.job.rail_ends import both_ends
from topodiag.checks.job.text import NET, ask_for
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Job
from topodiag.words.fold import fold_runs, plural


@dataclass(frozen=True, slots=True)
class _Far:
    """A GPU and the far NIC that it sends by: the first such connection, the path between them, a nearer NIC."""

    entry: int
    gpu: str
    kind: str
    near: str
    ports: tuple[str, ...]


class FarNic(OneStep[Job], JobCheck[Never]):
    """NET004: traffic leaves by a NIC that is not the GPU's closest, or crosses rails

    What it finds
        A connection for collectives over a NIC across a host bridge or the sockets' link, without PXN, while the GPU
        has a NIC behind its own PCIe switch. Connections that leave by one NIC and arrive by another, on nodes that
        list the same NICs: they cross rails. In captures, InfiniBand ports that are cabled crosswise: port 1 of one
        node is in the subnet of port 2 of another one.

    Why it matters
        Across the host bridge NCCL uses no GPUDirect RDMA. Between sockets it reaches 22 GB/s or less on many
        processors. The near NIC would give 48 GB/s. On a rail-optimised network the switches of two rails meet at the
        spine only, where other jobs' traffic is.

    Evidence it reads
        `via NET/IB/3` of both ends, the paths of the system print (NCCL_DEBUG_SUBSYS=GRAPH), the listed devices. The
        first GID of each InfiniBand port of several nodes.

    When it stays silent
        PXN hands the data to the GPU beside the NIC. The GPU has no near NIC (GDR002). Rails: the nodes list other
        devices, or NCCL_CROSS_NIC=1 allows it; no log shows whether the network has rails, so the finding is info
        unless NCCL_CROSS_NIC=0 asks for rails. No paths printed: unknown. Nodes of other subnets altogether.

    How to confirm
        nvidia-smi topo -m
        Run the job once more with this setting. NCCL then prints the NET of each channel and the path table:
        export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET

    How to fix
        Leave NCCL_CROSS_NIC and NCCL_PXN_DISABLE alone; check for a topology file that is not of this machine; bind one
        process to each GPU.

    References
        NCCL src/graph/topo.cc (ncclTopoGetLocalNet), src/graph/search.cc v2.30; nccl issues 820 and 1464.
    """

    id = "NET004"
    title = "traffic leaves by a NIC that is not the GPU's closest, or crosses rails"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        if not multi_node(job):
            return self.not_applicable(job, "no traffic between nodes")
        judged = 0
        far: dict[str, dict[str, _Far]] = defaultdict(dict)
        for use in nic_uses(job, send_recv=False):
            system, gpu, net = use.system, use.gpu, use.net
            taken = path_between(system, gpu.name, net.name)
            if taken is None:
                continue
            judged += use.entries
            near = [each.name for each in system.of_kind("NET")
                    if (path_between(system, gpu.name, each.name) or taken or 99) <= NEAR]  # fmt: skip
            if taken > NEAR and near and net.name not in near:
                label = gpu_word(job, use.world) or gpu.name
                found = _Far(use.entry, label, taken.name, use.names.get(near[0], near[0]), use.ports)
                far[use.host].setdefault(f"{gpu.name} {net.name}", found)
        total = sum(use.entries for use in net_uses(job.connections))
        coverage = Coverage(judged, total, "connections")
        reports = [self._report(job, host, list(entries.values()), coverage) for host, entries in sorted(far.items())]
        reports = [*fold(reports), *self._rails(job)]
        if reports:
            return self.found(job, reports, coverage)
        if not judged:
            return self.unknown(job, f"no path from a GPU to the NIC it uses was printed; {ask_for(job, *NET)}")
        return self.clean(job, "", coverage)

    def _rails(self, job: Job) -> list[Finding]:
        """Connections that leave by another NIC than they arrive by."""
        conns = job.connections
        wanted = settings_of(job, "NCCL_CROSS_NIC").get("NCCL_CROSS_NIC", [])
        values = {given.value.strip() for _, given in wanted}
        listed = nics_by_host(job)
        ends = None if "1" in values else both_ends(job, listed)
        if ends is None or not ends.crossed:
            return []
        first = ends.first[0]
        hosts = sorted({conns.hosts[host] for host in ends.hosts})
        names = listed.get(nic_host(conns, first.sender), {})
        out, into = (names[device].name if device in names else f"NIC {device}" for device in (first.out, first.into))
        count, total = ends.crossed, ends.channels
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
                ranks=sorted(ends.ranks),
                nics=[out, into],
                cost=Cost(text="on a rail-optimised network this traffic passes the spine"),
                evidence=[conns.origin(entry) for each in ends.first for entry in (each.sender, each.receiver)],
                coverage=Coverage(count, total, "channels seen from both ends"),
                confidence=Confidence.HIGH if asked else Confidence.MEDIUM,
            )
        ]

    def _report(self, job: Job, host: str, entries: list[_Far], coverage: Coverage) -> Finding:
        conns = job.connections
        labels = list(dict.fromkeys(each.gpu for each in entries))
        first = entries[0]
        nic = "+".join(first.ports) or conns.label(first.entry)
        ranks = sorted({nic_world(conns, each.entry) for each in entries})
        return self.finding(
            Severity.WARNING,
            f"{host}: {fold_runs(labels)} send by a far NIC ({first.gpu} over {nic} at {first.kind})",
            observed=f"{plural(len(entries), 'pair')} of GPU and NIC at {first.kind}, without PXN",
            expected=f"{first.near} behind the same PCIe switch, or PXN",
            fix=(
                "unset NCCL_CROSS_NIC, NCCL_PXN_DISABLE and NCCL_IB_HCA lists that leave near NICs out",
                "check that the topology file, if there is one, is of this machine",
            ),
            nodes=(host,),
            ranks=[rank for rank in ranks if rank >= 0],
            gpus=labels,
            nics=sorted({port for each in entries for port in each.ports}),
            cost=Cost(text="no GPUDirect RDMA at this distance by default, and one crossing of the host bridge more"),
            evidence=[conns.origin(each.entry) for each in entries],
            coverage=coverage,
        )
