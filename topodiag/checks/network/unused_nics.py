"""Which NICs a job's traffic leaves by, against those that the nodes list."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from topodiag.checks.interface import JobCheck, hosts_word
from topodiag.checks.shared.job import logs, nic_uses
from topodiag.checks.shared.job.text import ask_for, unconnected
from topodiag.model.connections import distinct
from topodiag.model.finding import Coverage, Finding, Outcome
from topodiag.model.job import Hca, Job
from topodiag.words.units import fold_runs, in_gbs

FEW = 4
"""GPUs on one NIC at which a node with NVSwitches is short of NICs: NVIDIA's and the clouds' have one for each GPU or
for two."""

FAST_NVLINK_GBS = 200.0
"""NVLink of a GPU, A100 and later, that several NICs are built for."""

Listed = dict[str, dict[int, Hca]]
"""By host the RDMA devices by their number in connections."""


class FewerNicsUsed(JobCheck, id="NET003"):
    """NET003: NCCL uses fewer NICs than the node has

    What it finds
        A node whose traffic to other nodes uses fewer NICs than NCCL lists, although its ranks could use more. Or a
        node with many NVSwitch GPUs where NCCL sees only one NIC. Or an NCCL_IB_HCA that leaves out NICs which another
        job uses there, or which the capture of the node shows up at the same rate.

    Why it matters
        The bandwidth of each unused NIC is lost: with 7 of 8 NICs of 400 Gb/s a node has 50 GB/s less, and the other
        nodes wait for it.

    Evidence it reads
        `via NET/IB/3` of the connections for collectives, `NET/IB : Using [0]mlx5_0:1/IB ..`, the system print,
        NCCL_IB_HCA. In a diagnosis, captures of the same machines.

    When it stays silent
        One node; sockets (NET001). NICs slower than the fastest of the node: storage and management. Fewer ranks on
        the node than NICs. Machines without NVLink, where PCIe bounds the ring before the NICs do. The number of
        channels was limited by a setting. No connection lines: unknown.

    How to confirm
        grep -ho 'via NET/IB/[0-9]*' LOGS | sort | uniq -c
        ibstat | grep -E 'CA |State|Rate'

    How to fix
        Unset NCCL_IB_HCA or name all compute NICs; check ports that are down; give the container all devices; in
        virtual machines, a topology file that places the NICs.

    References
        NCCL src/graph/search.cc v2.30; NCCL environment, NCCL_IB_HCA and NCCL_CROSS_NIC; nccl issue 1464.
    """

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        others = nic_uses.fewer_than_others(job, peers)
        if others is not None:
            return self.with_findings(job, [self._left_to_others(job, others)])
        if not logs.multi_node(job):
            return self.not_applicable(job, "no traffic between nodes")
        if logs.only_sockets(job):
            return self.not_applicable(job, "sockets carry the traffic: NET001")
        listed = nic_uses.nics_by_host(job)
        used, carried = _used(job)
        if not listed:
            return self.unknown(job, f"no line lists the RDMA devices; {ask_for(job)}")
        findings = list(self._one_for_many(job, listed))
        limited = bool(logs.settings_of(job, "NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_MAX_NRINGS"))
        limited = limited or len({process.network for process in job.processes if process.network}) > 1  # NET007
        if used and not limited:
            findings += self._left_out(job, listed, used, carried)
        unseen = "" if used else unconnected(job, "a connection for collectives between nodes")
        return self.any_of(job, findings, Coverage(len(used), len(job.hosts), "nodes"), unknown=unseen)

    def _left_out(self, job: Job, listed: Listed, used: dict[str, set[int]], carried: dict[str, int]) -> list[Finding]:
        groups: dict[tuple[int, int], list[str]] = defaultdict(list)
        fast_by_host = {}
        view = {system_print.host: system_print.system for system_print in logs.prints(job)}
        for host, hcas in listed.items():
            fast = _fastest(hcas)
            fast_by_host[host] = fast
            system = view.get(host)
            if host not in used or system is None or min(logs.nvlink_gbs(system).values(), default=0) < FAST_NVLINK_GBS:
                continue
            want = min(len(fast), carried[host], len(system.of_kind("NET")) or len(fast))
            have = len(used[host] & set(fast))
            if have < want and not used[host] - set(hcas):
                groups[have, want].append(host)
        return [self._report(job, hosts, counts, fast_by_host, used[hosts[0]]) for counts, hosts in groups.items()]

    def _report(self, job: Job, hosts: list[str], counts: tuple[int, int], fast: Listed, busy: set[int]) -> Finding:
        have, want = counts
        first = fast[hosts[0]]
        idle = [hca.name for index, hca in sorted(first.items()) if index not in busy]
        return self.finding(
            self.where(hosts, ranks=logs.ranks_on(job, hosts), nics=idle),
            self.advice("nics left out", want=want),
            f"{hosts_word(hosts)}: traffic leaves by {have} of {want} NICs that the ranks could use",
            observed=f"no connection over {fold_runs(idle)}",
            cost=nic_uses.cost_of_fewer(have, want, first.values()),
            evidence=[hca for hca in first.values() if hca.name in idle],
            coverage=Coverage(len(hosts), len(fast), "nodes"),
        )

    def _left_to_others(self, job: Job, shorter: nic_uses.FewerThanOthers) -> Finding:
        """A setting of this job alone: the NICs are there, as another job or the capture of the node shows."""
        have, want, setting = len(shorter.kept), len(shorter.more), shorter.filters[0]
        idle = sorted({hca.name for hca in shorter.more} - {hca.name for hca in shorter.kept})
        shown = "the capture shows" if shorter.captured else "in the other job"
        return self.finding(
            self.where(list(shorter.hosts), ranks=logs.ranks_on(job, list(shorter.hosts)), nics=idle),
            self.advice("nics left to others", want=want, shown=shown),
            f"{hosts_word(shorter.hosts)}: NCCL_IB_HCA={setting.value} leaves this job {have} of the {want} NICs that"
            + (" are up there" if shorter.captured else " another job uses there"),
            observed=f"{fold_runs([hca.name for hca in shorter.kept])} in use; without {fold_runs(idle)}",
            cost=nic_uses.cost_of_fewer(have, want, shorter.more),
            evidence=[setting, *(*shorter.kept[:1], *shorter.more[:1])],
            settings=(("NCCL_IB_HCA", None),),
        )

    def _one_for_many(self, job: Job, listed: Listed) -> Iterator[Finding]:
        """Nodes with NVSwitches whose only NIC serves many GPUs."""
        hosts = []
        for system_print in logs.prints(job):
            host, system = system_print.host, system_print.system
            gpus = len(system.of_kind("GPU"))
            fast = min(logs.nvlink_gbs(system).values(), default=0) >= FAST_NVLINK_GBS and system.of_kind("NVS")
            if fast and len(listed.get(host, {})) == 1 and gpus >= 2 * FEW and nic_uses.ranks_of(job, host) >= 2 * FEW:
                hosts.append(host)
        if not hosts or any(len(listed.get(host, {})) > 1 for host in listed):
            return  # where other nodes list more, that is NIC005's to tell
        hca = next(iter(listed[hosts[0]].values()))
        gpus = nic_uses.ranks_of(job, hosts[0])
        speed = (hca.speed_mbps or 0) / 8000
        filtered = logs.settings_of(job, "NCCL_IB_HCA").get("NCCL_IB_HCA", [])
        share = f"{in_gbs(speed)}: {in_gbs(speed / gpus)} each" if speed else "one NIC"
        yield self.finding(
            self.where(hosts, ranks=logs.ranks_on(job, hosts), nics=[hca.name]),
            self.advice("one nic for many", gpus=gpus, share=share),
            f"{hosts_word(hosts)}: one NIC, {hca.name}, serves {gpus} NVSwitch GPUs"
            + (f" (NCCL_IB_HCA={filtered[0][1].value})" if filtered else ""),
            observed=f"NCCL lists {hca.name} only",
            evidence=[hca, *(given for _, given in filtered[:1])],
            coverage=Coverage(len(hosts), len(job.hosts), "nodes"),
        )


def _fastest(hcas: dict[int, Hca]) -> dict[int, Hca]:
    """The devices of the fastest rate of a node; all of them where rates are not listed."""
    best = max((hca.speed_mbps or 0 for hca in hcas.values()), default=0)
    return {index: hca for index, hca in hcas.items() if (hca.speed_mbps or 0) == best}


def _used(job: Job) -> tuple[dict[str, set[int]], dict[str, int]]:
    """Devices in use by host for collectives, and how many ranks of the host one communicator has at most. A host of
    whose channels some have no line is left out: the log ends before its connections do."""
    conns = job.connections
    used: dict[str, set[int]] = defaultdict(set)
    carried: dict[str, int] = defaultdict(int)
    counted: dict[int, Counter[str]] = {}
    channels: dict[tuple[str, int], int] = defaultdict(int)
    by_rank = job.by_rank
    for batch in conns.batches():
        wanted = logs.between_nodes(batch) & batch.over(lambda via: logs.transport_kind(via) != "NET/Socket")
        at = np.flatnonzero(wanted & (batch.net_dev >= 0) & (batch.conn != 1))
        sets, own = np.unique(batch.channels[at], return_inverse=True)
        columns = (batch.comm[at], logs.nic_side(batch, at).host, batch.net_dev[at], own)
        first, _ = distinct(*columns)
        for number, place, dev, several in zip(*(column[first].tolist() for column in columns), strict=True):
            host = logs.host_name(conns, place)
            if not host:
                continue
            used[host].add(dev)
            channels[host, number] |= int(sets[several])
            if number not in counted and 0 <= number < len(job.communicators):
                known = job.communicators[number].known.tolist()
                counted[number] = Counter(by_rank[rank].host for rank in known if rank in by_rank)
            carried[host] = max(carried[host], counted[number][host] if number in counted else 0)
    whole = {host for (host, number), seen in channels.items() if seen.bit_count() >= _channels(job, number)}
    return {host: devices for host, devices in used.items() if host in whole}, carried


def _channels(job: Job, number: int) -> int:
    """Channels of a communicator for collectives, 1 where no line says how many."""
    return max(job.communicators[number].channels.coll if 0 <= number < len(job.communicators) else 1, 1)
