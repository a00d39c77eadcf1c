"""Which NIC traffic leaves by: the nearest of its GPU, and the same on both sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.job import logs
from topodiag.checks.shared.job.nic_uses import NicUse, nic_uses, nics_by_host, where_used
from topodiag.checks.shared.job.text import ask_for
from topodiag.lazy import dataclass
from topodiag.model.connections import Connections, Ints, Mask, packed
from topodiag.model.finding import Coverage, Finding, Outcome
from topodiag.model.job import Hca, Job
from topodiag.words.units import fold_runs, plural


@dataclass(frozen=True, slots=True)
class _Far:
    """The first use of a far NIC by a GPU, the path between them, a nearer NIC."""

    use: NicUse
    kind: str
    near: str


class FarNic(JobCheck, id="NET004"):
    """NET004: traffic leaves by a NIC that is not the GPU's closest, or crosses rails

    What it finds
        A connection for collectives over a NIC across a host bridge or the sockets' link, without PXN, while the GPU
        has a NIC behind its own PCIe switch. Connections that leave by one NIC and arrive by another, on nodes that
        list the same NICs: they cross rails.

    Why it matters
        Across the host bridge NCCL uses no GPUDirect RDMA. Between sockets it reaches 22 GB/s or less on many
        processors. The near NIC would give 48 GB/s. On a rail-optimised network the switches of two rails meet at the
        spine only, where other jobs' traffic is.

    Evidence it reads
        `via NET/IB/3` of both ends, the paths of the system print (NCCL_DEBUG_SUBSYS=GRAPH), the listed devices.

    When it stays silent
        PXN hands the data to the GPU beside the NIC. The GPU has no near NIC (GDR002). Rails: the nodes list other
        devices, or NCCL_CROSS_NIC=1 allows it; no log shows whether the network has rails, so the finding is info
        unless NCCL_CROSS_NIC=0 asks for rails. No paths printed: unknown.

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

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        if not logs.multi_node(job):
            return self.not_applicable(job, "no traffic between nodes")
        judged = 0
        far: dict[str, dict[str, _Far]] = defaultdict(dict)
        for use in nic_uses(job, send_recv=False):
            system, gpu, net = use.system, use.gpu, use.net
            taken = logs.path_between(system, gpu.name, net.name)
            if taken is None:
                continue
            judged += use.entries
            near = [device.name for device in system.of_kind("NET")
                    if (logs.path_between(system, gpu.name, device.name) or taken or 99) <= logs.NEAR]  # fmt: skip
            if taken > logs.NEAR and near and net.name not in near:
                distance = _Far(use, taken.name, use.names.get(near[0], near[0]))
                far[use.host].setdefault(f"{gpu.name} {net.name}", distance)
        coverage = Coverage(judged, sum(use.entries for use in logs.net_uses(job.connections)), "connections")
        reports = [self._report(job, host, list(entries.values())) for host, entries in sorted(far.items())]
        reports = [*logs.fold(reports), *self._rails(job)]
        unseen = "" if judged else f"no path from a GPU to the NIC it uses was printed; {ask_for(job)}"
        return self.any_of(job, reports, coverage, unknown=unseen)

    def _rails(self, job: Job) -> Iterator[Finding]:
        """Connections that leave by another NIC than they arrive by."""
        conns = job.connections
        wanted = logs.settings_of(job, "NCCL_CROSS_NIC").get("NCCL_CROSS_NIC", [])
        values = {given.value.strip() for _, given in wanted}
        listed = nics_by_host(job)
        ends = None if "1" in values else both_ends(job, listed)
        if ends is None or not ends.crossed:
            return
        first = ends.first[0]
        hosts = sorted({conns.hosts[host] for host in ends.hosts})
        names = listed.get(logs.host_name(conns, int(conns.host[first.sender])), {})
        out, into = (names[device].name if device in names else f"NIC {device}" for device in (first.out, first.into))
        count, total = ends.crossed, ends.channels
        asked = "0" in values
        yield self.finding(
            self.where(hosts, ranks=sorted(ends.ranks), nics=[out, into]),
            "crossed rails",
            f"{count} of {total} channels between nodes cross rails, for example from {out} to {into}"
            + (", although NCCL_CROSS_NIC=0" if asked else ""),
            sure=asked,
            observed=f"sent via {conns.label(first.sender)}, received via {conns.label(first.receiver)}",
            evidence=[conns.origin(entry) for end in ends.first for entry in (end.sender, end.receiver)],
            coverage=Coverage(count, total, "channels seen from both ends"),
        )

    def _report(self, job: Job, host: str, entries: list[_Far]) -> Finding:
        conns = job.connections
        first, where = entries[0], where_used([entry.use for entry in entries])
        nic = "+".join(first.use.ports) or conns.label(first.use.entry)
        return self.finding(
            where,
            self.advice("far nic", near=first.near),
            f"{host}: {fold_runs(where.gpus)} send by a far NIC ({first.use.label} over {nic} at {first.kind})",
            observed=f"{plural(len(entries), 'pair')} of GPU and NIC at {first.kind}, without PXN",
            evidence=[conns.origin(entry.use.entry) for entry in entries],
        )


# Connections between nodes as both their ends print them: by which NIC they leave and by which they arrive.


JOIN_ROWS = 1 << 20
"""Ends that are brought together at once, in some 150 MB; of more, those of some communicators after the others."""
EXAMPLES = 4

_BITS = np.array([byte.bit_count() for byte in range(256)], np.uint8)
_Table = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Ends:
    """A connection as both its ends print it: entries of the connections, and the devices."""

    sender: int
    receiver: int
    out: int
    into: int


@dataclass(slots=True)
class BothEnds:
    """`channels` of all connections that both ends print, those of them that cross rails, with the first of these, and
    the world ranks and hosts (indexes) at their ends."""

    channels: int = 0
    crossed: int = 0
    first: list[Ends] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)
    hosts: set[int] = field(default_factory=set)


def both_ends(job: Job, listed: Mapping[str, Mapping[int, Hca]]) -> BothEnds:
    """Connections for collectives between hosts that list the same devices, several of them, and without PXN."""
    conns = job.connections
    ends = BothEnds()
    same = _same_devices(conns, listed)
    if not (same >= 0).any() or not len(conns):
        return ends
    counts = np.zeros(0, np.int64)
    for batch in conns.batches():
        more = np.bincount(batch.comm[_judged(batch, same)], minlength=len(counts))
        more[: len(counts)] += counts
        counts = more
    for low, high in _shares(counts):
        parts = [_ends_of(batch, same, low, high) for batch in conns.batches()]
        _join({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, same, ends)
    return ends


def _same_devices(conns: Connections, listed: Mapping[str, Mapping[int, Hca]]) -> Ints:
    """By host, with -1 behind the last: a number that hosts with the same devices share; -1 for one with fewer than
    two devices."""
    lists: dict[tuple[tuple[int, str], ...], int] = {}
    by_host = np.full(len(conns.hosts) + 1, -1, np.int64)
    for number, host in enumerate(conns.hosts):
        own = tuple((at, hca.name) for at, hca in sorted(listed.get(host, {}).items()))
        if len(own) > 1:
            by_host[number] = lists.setdefault(own, len(lists))
    return by_host


def _judged(batch: Connections, same: Ints) -> Mask:
    side = np.where(batch.direction == 2, batch.peer_host, batch.host)
    wanted: Mask = logs.between_nodes(batch) & (batch.comm >= 0) & (batch.net_dev >= 0) & (batch.proxy < 0)
    wanted &= (batch.conn != 1) & (batch.direction > 0) & (same[side] >= 0)
    return wanted


def _shares(counts: Ints) -> Iterator[tuple[int, int]]:
    """Communicators from the first to before the second number, few enough to be joined at once."""
    low = 0
    while low < len(counts):
        sums = np.cumsum(counts[low:])
        high = low + max(int(np.searchsorted(sums, JOIN_ROWS, side="right")), 1)
        if sums[high - low - 1]:
            yield low, high
        low = high


def _ends_of(batch: Connections, same: Ints, low: int, high: int) -> _Table:
    at = np.flatnonzero((batch.comm >= low) & (batch.comm < high) & _judged(batch, same))
    side = logs.nic_side(batch, at)
    printed = ("comm", "rank", "peer", "conn", "direction", "channels", "net_dev")
    return {
        **{name: getattr(batch, name)[at] for name in printed},
        "host": side.host, "world": side.world, "entry": at + batch.first,
    }  # fmt: skip


def _join(ends: _Table, same: Ints, joined: BothEnds) -> None:
    """Every sender with every receiver of its connection that has channels in common with it."""
    if not len(ends["entry"]):
        return
    key, _ = packed([ends[name] for name in ("comm", "rank", "peer", "conn")])
    order = np.argsort(key, kind="stable")
    sent, received = order[ends["direction"][order] == 1], order[ends["direction"][order] == 2]
    low, high = (np.searchsorted(key[received], key[sent], side) for side in ("left", "right"))
    counts = high - low
    a = np.repeat(sent, counts)
    b = received[np.arange(len(a)) + np.repeat(low - (np.cumsum(counts) - counts), counts)]
    channels = _bits(ends["channels"][a] & ends["channels"][b])
    both = (channels > 0) & (same[ends["host"][a]] == same[ends["host"][b]])
    joined.channels += int(channels[both].sum())
    crossed = np.flatnonzero(both & (ends["net_dev"][a] != ends["net_dev"][b]))
    joined.crossed += int(channels[crossed].sum())
    for side in (a[crossed], b[crossed]):
        # With counts: to give the values alone numpy loads numpy.ma, in 10 ms.
        joined.hosts.update(np.unique(ends["host"][side], return_counts=True)[0].tolist())
        joined.ranks.update(np.unique(ends["world"][side], return_counts=True)[0].tolist())
    joined.ranks.discard(-1)
    first = crossed[: EXAMPLES - len(joined.first)]
    columns = [ends[name][side[first]].tolist() for name in ("entry", "net_dev") for side in (a, b)]
    joined.first += [Ends(*row) for row in zip(*columns, strict=True)]


def _bits(masks: npt.NDArray[np.uint64]) -> Ints:
    """How many bits are set in each."""
    bits: Ints = _BITS[np.ascontiguousarray(masks).view(np.uint8)].reshape(-1, 8).sum(axis=1, dtype=np.int64)
    return bits
