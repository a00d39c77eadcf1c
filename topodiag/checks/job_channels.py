"""What NCCL's search made of the machine, and whether all nodes of a job brought the same."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topodiag.checks.common import majority, plural
from topodiag.checks.interface import JobCheck
from topodiag.checks.job_evidence import (
    by_host,
    fold,
    hcas_by_host,
    multi_node,
    nvlink_gbs,
    pcie_gbs,
    prints,
    ranks_on,
    said_by,
    settings_of,
)
from topodiag.checks.job_narrow_file import judge_narrow
from topodiag.checks.job_text import NET, ask_for, hosts_word
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.model.nccl_view import Graph, NcclSystem
from topodiag.model.provenance import Origin

RING = 4

UNOPENED = re.compile(r"NET/IB ?: Unable to open device ([\w.\-]{1,64})")
"""ncclIbInitDevices, src/transport/net_ib.cc v2.4 to v2.28 (net_ib/init.cc from v2.29 on)."""

FAR_BELOW = 0.45
"""Part of the bound below which a search has collapsed. A sound search comes to 0.9 and more on NVSwitch machines;
GPUDirect RDMA off brings 0.5 between nodes, which is GDR001's."""

NO_BANDWIDTH = 0.1
"""GB/s that NCCL writes when it found no path and took the simple order (src/graph/search.cc)."""

LIMITS = (
    "NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS", "NCCL_MAX_CTAS", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_IB_HCA",
    "NCCL_GRAPH_FILE", "NCCL_NET_GDR_LEVEL", "NCCL_IB_DISABLE",
)  # fmt: skip

SLOW_TYPES = frozenset({"PIX", "PXB", "PHB", "SYS", "P2C"})


@dataclass(frozen=True, slots=True)
class Search:
    """A ring search and what it had to search in; `across` when its rings go to other nodes."""

    host: str
    system: NcclSystem
    ring: Graph
    across: bool


class SearchCollapsed(JobCheck):
    """NET006: channels bring far less bandwidth than the machine that NCCL found

    What it finds
        A ring search that ends far below what the NVLinks, or between nodes the NICs, of the same print allow: few
        channels, a low bandwidth, a path over PCIe on a node with NVSwitches, or `falling back to simple order`. And a
        topology file by which the PCIe links of H100 and later are Gen3: a sound search on a wrong machine.

    Why it matters
        Collectives run at channels x bandwidth. NCCL gives no warning when one odd device makes its search fall back;
        8 H100 then run at 24 to 40 GB/s instead of 360.

    Evidence it reads
        `Pattern 4, crossNic 0, nChannels 12, bw 30.0/30.0` beside `=== System : maxBw .. totalBw .. ===` of the
        world communicator (NCCL_DEBUG_SUBSYS=GRAPH); in a piece of a log without communicators, of each node printed.

    When it stays silent
        Limits set on purpose (NCCL_MAX_NCHANNELS, NCCL_P2P_DISABLE, NCCL_IB_HCA, ..): ENV001 says so. Machines without
        NVSwitch, where low is normal. Sockets (NET001) and GPUDirect RDMA that is off (GDR001) explain it by
        themselves. No graph lines: unknown.

    How to confirm
        NCCL_DEBUG_SUBSYS=GRAPH; compare with a healthy node of the same type
        all_reduce_perf -b 1G -e 1G -g 8 on the one node

    How to fix
        The device that differs from its siblings in the system print is the cause: see TOP004, NVL001, PCI001, NET003.

    References
        NCCL src/graph/search.cc (ncclTopoCompute, ncclTopoSearchRec) v2.30.
    """

    id = "NET006"
    title = "channels bring far less bandwidth than the machine that NCCL found"

    def judge(self, job: Job) -> Outcome:
        simple = [(text, where) for _, text, where in said_by(job, "topo note") if "simple order" in text]
        searches = list(_searches(job))
        if not searches and not simple:
            return self.unknown(job, f"no graph of the world communicator in the log; {ask_for(job, *NET)}")
        across = any(each.across for each in searches) or multi_node(job)
        limits = settings_of(job, *LIMITS)
        if limits:
            return self.clean(job, f"limited on purpose: {', '.join(sorted(limits))}")
        networks = {process.network.lower() for process in job.processes}
        if across and "socket" in networks:
            return self.clean(job, "sockets bound it: NET001")
        if across and any(hca.gdr is False for hcas in hcas_by_host(job).values() for hca in hcas.values()):
            return self.clean(job, "GPUDirect RDMA is off: GDR001")
        found, judged = [], 0
        for search in searches:
            bound, what = _bound(job, search)
            if bound <= 0:
                continue
            judged += 1
            finding = self._look(job, search, bound, what)
            found += [finding] if finding else []
        for search in searches if across and not found else ():
            found += judge_narrow(self, job, search.host, search.system, search.ring)
        if simple and not found:
            found.append(self._simple(job, simple[0][0], [where for _, where in simple]))
        coverage = Coverage(judged, len(job.hosts), "nodes")
        if found:
            return self.found(job, fold(found), coverage)
        if not judged:
            return self.not_applicable(job, "no NVSwitch: low figures are normal for such a machine")
        return self.clean(job, "", coverage)

    def _look(self, job: Job, search: Search, bound: float, what: str) -> Finding | None:
        host, system, ring = search.host, search.system, search.ring
        bw = min(ring.bw_intra, ring.bw_inter) if search.across else ring.bw_intra
        reached = ring.channels * bw
        over_pci = ring.type_intra in SLOW_TYPES
        if (reached >= FAR_BELOW * bound and not over_pci) or reached >= bound:
            return None
        collapsed = ring.bw_intra <= NO_BANDWIDTH
        return self.finding(
            Severity.ERROR if collapsed or reached < FAR_BELOW * bound / 2 else Severity.WARNING,
            f"{host}: NCCL found rings of {ring.channels} x {bw:g} GB/s where {what} {'have' if 's' in what else 'has'}"
            f" {bound:g} GB/s",
            observed=f"nChannels {ring.channels}, bw {ring.bw_intra:g}/{ring.bw_inter:g}, type "
            f"{ring.type_intra}/{ring.type_inter}",
            expected=f"channels that come near {bound:g} GB/s together",
            fix=(
                "look in the system print for the device unlike its siblings: TOP004, NVL001, PCI001, NET003",
                "compare with the print of a healthy node of the same type",
            ),
            nodes=(host,),
            ranks=ranks_on(job, [host]),
            cost=Cost(bound - reached, 1 - reached / bound, f"{reached:g} of {bound:g} GB/s"),
            evidence=[ring.origin, system.origin],
            confidence=Confidence.MEDIUM,
        )

    def _simple(self, job: Job, text: str, places: Sequence[Origin | None]) -> Finding:
        return self.finding(
            Severity.WARNING,
            f"{hosts_word(job.hosts)}: NCCL found no path and fell back to the simple order",
            observed=text.strip(),
            expected="a search that finds channels",
            fix=("print the system with NCCL_DEBUG_SUBSYS=GRAPH: a device has no path to the others",),
            nodes=job.hosts[:8],
            cost=Cost(text=f"NCCL reckons {NO_BANDWIDTH:g} GB/s for such a channel"),
            evidence=places,
        )


def _searches(job: Job) -> Iterator[Search]:
    """The ring searches of the world communicator; of a log that names no communicator, those of its processes."""
    for each in prints(job):
        rings = [graph for graph in each.graphs if graph.pattern == RING]
        if not rings:
            continue
        if each.communicator is not None and each.communicator is job.world:
            yield Search(each.host, each.system, rings[0], multi_node(job))
        elif each.communicator is None and not job.communicators and rings[0].orders:
            over_net = any(vertex.startswith("NET/") for order in rings[0].orders for vertex in order)
            yield Search(each.host, each.system, rings[0], over_net)


def _bound(job: Job, search: Search) -> tuple[float, str]:
    """What one node can bring in GB/s, and by what; 0 where it is not a machine whose bound is known."""
    system, world = search.system, job.world
    totals = nvlink_gbs(system)
    if not system.of_kind("NVS") or len(totals) < 2 or min(totals.values()) <= 0:
        return 0.0, ""
    if not search.across:
        return (min(totals.values()), "the NVLinks") if world is None or world.nodes in (-1, 1) else (0.0, "")
    nics = [net.speed_gbs or 0.0 for net in system.of_kind("NET")]
    lanes = pcie_gbs(system)
    if not nics or not lanes:
        return 0.0, ""
    rate = min(*totals.values(), sum(min(speed, max(lanes)) for speed in nics), sum(lanes))
    if any(len(other.system.of_kind("NET")) < len(nics) for other in prints(job)):
        return 0.0, ""  # the node with fewer NICs bounds all: NIC005 and NET003 tell that
    return rate, "the NICs"


class NodesDiffer(JobCheck):
    """NET007: nodes of one job bring different networks, NICs or channel counts

    What it finds
        Nodes whose network (IB, Socket, plugin), rates of RDMA devices, link layer, GPUDirect state or number of
        channels is not that of the others, or that cannot open an RDMA device.

    Why it matters
        Collectives wait for the slowest member: one node at 100 Gb/s, or on sockets, makes the whole job run at its
        speed. Different networks do not connect at all.

    Evidence it reads
        `Using network`, `NET/IB: [0] .. speed=`, `GPU Direct RDMA Enabled for HCA`, `16 coll channels`.

    When it stays silent
        One node. Names that differ while rates are equal: they depend on the order of discovery. The count of devices
        alone: NIC005. A node that printed none of it is not compared.

    How to confirm
        grep -h 'Using network' LOGS | sort | uniq -c
        ibstat -s; ethtool INTERFACE | grep Speed           on the node that differs

    How to fix
        Bring the node to the state of the others, or take it out of the job: cable, transceiver, switch port speed, the
        container's devices, the settings of one node.

    References
        NCCL src/init.cc (initTransportsRank) v2.30: graphs are cut down to the least of all ranks.
    """

    id = "NET007"
    title = "nodes of one job bring different networks, NICs or channel counts"

    def judge(self, job: Job) -> Outcome:
        if len(job.hosts) < 2:
            return self.not_applicable(job, "one node: nothing to compare with")
        networks = {
            host: value
            for host, group in by_host(job).items()
            if (value := "/".join(sorted({process.network for _, process in group if process.network})))
        }
        listed = {host: hcas for host, hcas in hcas_by_host(job).items() if hcas}
        speeds = {
            host: max(rates)
            for host, hcas in listed.items()
            if (rates := [hca.speed_mbps for hca in hcas.values() if hca.speed_mbps])
        }
        slowest = {
            host: min(rates)
            for host, hcas in listed.items()
            if (rates := [hca.speed_mbps for hca in hcas.values() if hca.speed_mbps])
        }
        layers = {
            host: "/".join(sorted({hca.link_layer for hca in hcas.values() if hca.link_layer}))
            for host, hcas in listed.items()
        }
        gdr = {
            host: all(states)
            for host, hcas in listed.items()
            if (states := [hca.gdr for hca in hcas.values() if hca.gdr is not None])
        }
        found = [
            *self._compare(job, "network", networks, Severity.ERROR, str),
            *self._compare(job, "fastest RDMA device", speeds, Severity.WARNING, _rate),
            *self._compare(job, "link layer", {h: v for h, v in layers.items() if v}, Severity.WARNING, str),
            *self._compare(job, "GPUDirect RDMA", gdr, Severity.WARNING, lambda on: "on" if on else "off"),
        ]
        if not any("fastest" in finding.message for finding in found):
            found += self._compare(job, "slowest RDMA device", slowest, Severity.WARNING, _rate)
        found += self._channels(job)
        found += self._unopened(job)
        seen = set(networks) | set(listed)
        if found:
            return self.found(job, found, Coverage(len(seen), len(job.hosts), "nodes"))
        if len(seen) < 2:
            return self.unknown(job, f"fewer than two nodes say what they use; {ask_for(job, *NET)}")
        return self.clean(job, "", Coverage(len(seen), len(job.hosts), "nodes"))

    def _compare(
        self, job: Job, what: str, values: Mapping[str, Hashable], severity: Severity, word: Callable[[Any], str]
    ) -> list[Finding]:
        if len(set(values.values())) < 2:
            return []
        usual = majority(values.values())
        if usual is None:
            usual = _better(values)
        odd = [host for host, value in values.items() if value != usual]
        shown: dict[Hashable, list[str]] = defaultdict(list)
        for host, value in values.items():
            shown[value].append(host)
        listed = hcas_by_host(job)
        cost = Cost(text="every collective waits for the slowest node")
        mine = [value for host, value in values.items() if host in odd]
        if isinstance(usual, int) and not isinstance(usual, bool) and all(isinstance(value, int) for value in mine):
            low = min(value for value in mine if isinstance(value, int))
            if low < usual:
                cost = Cost((usual - low) / 8000, 1 - low / usual, "for each NIC; every collective waits for it")
        return [
            self.finding(
                severity,
                f"{what} differs between nodes: {hosts_word(odd)} {word(values[odd[0]])}, elsewhere {word(usual)}",
                observed="; ".join(f"{word(value)} on {hosts_word(hosts)}" for value, hosts in shown.items()),
                expected="the same on every node",
                fix=("bring the node to the state of the others, or take it out of the job",),
                nodes=odd,
                ranks=ranks_on(job, odd),
                nics=sorted({hca.name for hca in listed.get(odd[0], {}).values()})[:16] if what != "network" else (),
                cost=cost,
                evidence=[
                    *(hca.origin for host in odd[:2] for hca in list(listed.get(host, {}).values())[:2]),
                    *(process.origin for host in odd[:2] for _, process in by_host(job).get(host, [])[:1]),
                ],
                coverage=Coverage(len(odd), len(values), "nodes"),
            )
        ]

    def _unopened(self, job: Job) -> list[Finding]:
        """RDMA devices that some nodes cannot open: NCCL goes on without them, on those nodes alone."""
        events: dict[str, list[Event]] = defaultdict(list)
        for event in job.events:
            if event.host and (match := UNOPENED.search(event.text)):
                events[match[1]].append(event)
        made = []
        for device, told in events.items():
            hosts = list(dict.fromkeys(event.host for event in told))
            if set(hosts) == set(job.hosts):
                continue  # as it may be meant for a device that no job is to use
            made.append(
                self.finding(
                    Severity.WARNING,
                    f"{hosts_word(hosts)}: RDMA device {device} cannot be opened there, and NCCL goes without it",
                    observed=told[0].text.strip()[:160],
                    expected="the same devices on every node, each of which the job may open",
                    fix=(
                        "in the job's container or cgroup: is its /dev/infiniband/uverbs device there, and allowed?",
                        "leave the device out on all nodes (NCCL_IB_HCA) until it can be opened on all",
                    ),
                    nodes=hosts,
                    ranks=ranks_on(job, hosts),
                    nics=[device],
                    cost=Cost(text="other nodes use a NIC that has no peer here: less bandwidth, or a hang"),
                    evidence=[event.origin for event in told],
                    coverage=Coverage(len(hosts), len(job.hosts), "nodes"),
                )
            )
        return made

    def _channels(self, job: Job) -> list[Finding]:
        world = job.world
        if world is None or not world.channels_by_rank or world.channels.coll < 0:
            return []
        odd = {
            rank: channels
            for rank, channels in world.channels_by_rank.items()
            if channels.coll >= 0 and channels.coll != world.channels.coll
        }
        if not odd:
            return []
        counts = Counter(channels.coll for channels in odd.values())
        ranks = sorted(int(world.ranks[rank]) for rank in odd if 0 <= rank < len(world.ranks))
        return [
            self.finding(
                Severity.ERROR,
                f"{plural(len(odd), 'rank')} use {', '.join(map(str, sorted(counts)))} channels, the others"
                f" {world.channels.coll}",
                observed=f"{world.channels.coll} coll channels, and {dict(counts)}",
                expected="one number on all ranks of a communicator",
                fix=("compare NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS and NCCL's version of the ranks: JOB002, JOB003",),
                ranks=[rank for rank in ranks if rank >= 0],
                cost=Cost(text="ranks that expect different channels hang in the first collective"),
                evidence=[world.origin],
                coverage=Coverage(len(odd), world.nranks, "ranks"),
            )
        ]


def _rate(mbps: int) -> str:
    return f"{mbps / 1000:g} Gb/s"


def _better(values: Mapping[str, Hashable]) -> Hashable:
    """Of values that tie: the faster rate, the state that is on, the network that is not sockets."""
    return max(
        set(values.values()),
        key=_merit,
    )


def _merit(value: Hashable) -> tuple[int, bool, str]:
    return (value if isinstance(value, int) else 0, "socket" not in str(value).lower(), str(value))
