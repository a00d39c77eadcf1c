"""What NCCL's search made of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

from topodiag.checks.interface import JobCheck, hosts_word
from topodiag.checks.shared.job import logs
from topodiag.checks.shared.job.text import ask_for
from topodiag.hardware.catalog import pcie_nccl_gbs
from topodiag.lazy import dataclass
from topodiag.model.finding import Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Job
from topodiag.model.nccl_enums import Pattern
from topodiag.model.nccl_view import Graph, NcclSystem
from topodiag.words.own_data import own_data
from topodiag.words.units import in_gbs, spell_gbs

FAR_BELOW = 0.45
"""Part of the bound below which a search has collapsed. A sound search comes to 0.9 and more on NVSwitch machines;
GPUDirect RDMA off brings 0.5 between nodes, which is GDR001's."""

CAPTURED = "nodes with a capture"

NO_BANDWIDTH = 0.1
"""GB/s that NCCL writes when it found no path and took the simple order (src/graph/search.cc)."""


@dataclass(frozen=True, slots=True)
class Search:
    """A ring search and what it had to search in; `across` when its rings go to other nodes."""

    host: str
    system: NcclSystem
    ring: Graph
    across: bool


class SearchCollapsed(JobCheck, id="NET006"):
    """NET006: channels bring far less bandwidth than the machine that NCCL found, or than its capture shows

    What it finds
        Graphs that fall short of those that the same version with the same settings finds on the captures of all nodes:
        three quarters of the bandwidth or less, PCIe where predict has NVLink, PHB or SYS to NICs where it has less, or
        half the channels in a log without graphs. Without captures, a ring search that ends far below what the NVLinks,
        or between nodes the NICs, of the same print allow: few channels, a low bandwidth, a path over PCIe on a node
        with NVSwitches, or `falling back to simple order`. Of a topology file a tree that NCCL 2.25 to 2.28 do not find
        between nodes of A100 and older where every NIC is reached over PXN: its one channel bounds the rings too. And a
        topology file by which the PCIe links of H100 and later are Gen3: a sound search on a wrong machine.

    Why it matters
        Collectives run at channels x bandwidth. NCCL gives no warning when one odd device makes its search fall back;
        8 H100 then run at 24 to 40 GB/s instead of 360.

    Evidence it reads
        `Pattern 4, crossNic 0, nChannels 12, bw 30.0/30.0` beside `=== System : maxBw .. totalBw .. ===` of the world
        communicator (NCCL_DEBUG_SUBSYS=GRAPH); in a piece of a log without communicators, of each node printed. For a
        topology file, the result of NCCL's search on two of these nodes. Beside captures also `N coll channels`.

    When it stays silent
        Captures of some nodes only, of another time or of other GPUs; a version, plugin, setting or file that the model
        does not follow; a cut log; MIG; NICs in the log that are not those of the capture (NIC005).
        Limits set on purpose (NCCL_MAX_NCHANNELS, NCCL_P2P_DISABLE, NCCL_IB_HCA, ..): ENV001 says so. Machines without
        NVSwitch, where low is normal. Sockets (NET001) and GPUDirect RDMA that is off (GDR001) explain it by
        themselves. No graph lines: unknown.

    How to confirm
        export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH      then run here and on a healthy node of the type
        all_reduce_perf -b 1G -e 1G -g 8                         on this node alone

    How to fix
        The device that differs from its peers in the system print is the cause: see TOP004, NVL001, PCI001, NET003.
        For a lost tree: NCCL 2.29 or later (or 2.24), until then NCCL_PXN_DISABLE=1.

    References
        NCCL src/graph/search.cc (ncclTopoCompute, ncclTopoSearchRec) v2.30; the lost tree: v2.25 to v2.28 against
        v2.29.2, and github.com/NVIDIA/nccl/issues/1748.
    """

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        if job.library == "RCCL":
            return self.not_applicable(job, "RCCL has rings of its own tables: NCCL's bound does not hold for them")
        # NCCL says that it found no path and took the simple order.
        simple = [line for line in (*logs.said_by(job, "topo note"), *job.events) if "simple order" in line.text]
        searches = list(_searches(job))
        across = any(search.across for search in searches) or logs.multi_node(job)
        explained = explained_by(job, across)
        if not explained and (findings := list(self._beside_captures(job, across=across))):
            return self.with_findings(job, findings, Coverage(len(job.machines), len(job.hosts), CAPTURED))
        if not searches and not simple:
            return self.unknown(job, f"no graph of the world communicator in the log; {ask_for(job)}")
        if explained:
            return self.clean(job, explained)
        judged, findings = self._by_bounds(job, searches, across=across)
        if simple and not findings:
            advice = self.advice("no channels found", NO_BANDWIDTH=in_gbs(NO_BANDWIDTH))
            words = f"{hosts_word(job.hosts)}: NCCL found no path and fell back to the simple order"
            findings.append(self.of_events(simple, advice, words, self.where(job.hosts[:8])))
        coverage = Coverage(judged, len(job.hosts), "nodes")
        if findings:
            return self.with_findings(job, logs.fold(findings), coverage)
        if not judged:
            return self.not_applicable(job, "no NVSwitch: low figures are normal for such a machine")
        return self.clean(job, "", coverage)

    def _by_bounds(self, job: Job, searches: Sequence[Search], *, across: bool) -> tuple[int, list[Finding]]:
        """How many searches have a bound, and those that fall short of it, or of what their file could say."""
        bounds = [(search, bound, what) for search in searches for bound, what in [_bound(job, search)] if bound > 0]
        short = [self._short(job, search, bound, what) for search, bound, what in bounds]
        findings = [finding for finding in short if finding is not None]
        for search in searches if across and not findings else ():
            findings += judge_narrow(self, job, search.host, search.system, search.ring)
        return len(bounds), findings

    def _beside_captures(self, job: Job, *, across: bool) -> Iterator[Finding]:
        """Graphs far below those that NCCL would find on the machines as their captures show them."""
        if not job.machines:
            return
        from topodiag.checks.network import captured_search  # noqa: PLC0415 - NCCL's search, where captures are

        beside = captured_search.searched_on_captures(job, across=across)
        if isinstance(beside, str) or (gap := captured_search.gap_of(job, beside, across=across)) is None:
            return
        yield self.finding(
            self.where(gap.hosts, ranks=logs.ranks_on(job, gap.hosts)),
            self.advice("graphs unlike predict", hidden=gap.hidden, source=beside.source, predicted=gap.predicted),
            f"{hosts_word(gap.hosts)}: {gap.logged} in NCCL's log, {gap.predicted} by predict of the capture",
            severity=Severity.ERROR if gap.reached < FAR_BELOW / 2 else Severity.WARNING,
            observed=f"NCCL's log: {gap.logged}",
            cost=gap.cost,
            evidence=gap.evidence,
        )

    def _short(self, job: Job, search: Search, bound: float, what: str) -> Finding | None:
        host, system, ring = search.host, search.system, search.ring
        bw = min(ring.bw_intra, ring.bw_inter) if search.across else ring.bw_intra
        reached = ring.channels * bw
        if (reached >= FAR_BELOW * bound and ring.type_intra not in logs.OVER_PCI) or reached >= bound:
            return None
        collapsed = ring.bw_intra <= NO_BANDWIDTH
        return self.finding(
            self.where((host,), ranks=logs.ranks_on(job, [host])),
            self.advice("collapsed search", bound=in_gbs(bound)),
            f"{host}: NCCL found rings of {ring.channels} x {in_gbs(bw)} where {what}"
            f" {'have' if 's' in what else 'has'} {in_gbs(bound)}",
            severity=Severity.ERROR if collapsed or reached < FAR_BELOW * bound / 2 else Severity.WARNING,
            observed=f"nChannels {ring.channels}, bw {ring.bw_intra:g}/{ring.bw_inter:g}, type "
            f"{ring.type_intra}/{ring.type_inter}",
            cost=Cost(bound - reached, 1 - reached / bound, f"{spell_gbs(reached)} of {in_gbs(bound)}"),
            evidence=[ring, system],
        )


def explained_by(job: Job, across: bool) -> str:
    """What bounds the channels for a known reason, which another check judges, or ""."""
    limits = logs.settings_of(job, *own_data("checks/network/names")["limits"])
    if limits:
        return f"limited on purpose: {', '.join(sorted(limits))}"
    if across and any(process.network.lower() == "socket" for process in job.processes):
        return "sockets bound it: NET001"
    if across and any(hca.gdr is False for hcas in logs.hcas_by_host(job).values() for hca in hcas.values()):
        return "GPUDirect RDMA is off: GDR001"
    return ""


def _searches(job: Job) -> Iterator[Search]:
    """The ring searches of the world communicator; of a log that names no communicator, those of its processes."""
    for system_print in logs.prints(job):
        rings = [graph for graph in system_print.graphs if graph.pattern == Pattern.RING]
        if not rings:
            continue
        if system_print.communicator is not None and system_print.communicator is job.world:
            yield Search(system_print.host, system_print.system, rings[0], logs.multi_node(job))
        elif system_print.communicator is None and not job.communicators and rings[0].orders:
            over_net = any(vertex.startswith("NET/") for order in rings[0].orders for vertex in order)
            yield Search(system_print.host, system_print.system, rings[0], over_net)


def _bound(job: Job, search: Search) -> tuple[float, str]:
    """What one node can bring in GB/s, and by what; 0 where it is not a machine whose bound is known."""
    system, world = search.system, job.world
    totals = logs.nvlink_gbs(system)
    if not system.of_kind("NVS") or len(totals) < 2 or min(totals.values()) <= 0:
        return 0.0, ""
    if not search.across:
        return (min(totals.values()), "the NVLinks") if world is None or world.nodes in (-1, 1) else (0.0, "")
    nics = [net.speed_gbs or 0.0 for net in system.of_kind("NET")]
    lanes = logs.pcie_gbs(system)
    if not nics or not lanes:
        return 0.0, ""
    rate = min(*totals.values(), fsum(min(speed, max(lanes)) for speed in nics), fsum(lanes))
    if any(len(other.system.of_kind("NET")) < len(nics) for other in logs.prints(job)):
        return 0.0, ""  # the node with fewer NICs bounds all: NIC005 and NET003 tell that
    return rate, "the NICs"


# For NET006: a topology file that makes NCCL take modern GPUs' PCIe links for Gen3, so that its search stays low.


ASSUMED = (3, 16)
"""What NCCL takes for a link_speed that it does not know, and for a link_width of 0 (src/graph/topo.cc)."""

BUILT = (5, 16)
"""PCIe of every SXM product with as much NVLink as below: H100, H200, B200 (NVIDIA datasheets)."""

MODERN_GBS = 300.0
"""NVLink per GPU by NCCL's figures: 240 for A100, 370.8 for H100 and H200, 721.8 for B200."""

MUCH = 2.0
"""The NICs must offer this many times what the file leaves of PCIe: a slow network needs no more."""


def judge_narrow(check: JobCheck, job: Job, host: str, system: NcclSystem, ring: Graph) -> Iterator[Finding]:
    """The finding on one node of a job over several whose topology file slows it down, if there is one."""
    gbs, built = pcie_nccl_gbs(*ASSUMED) or 0.0, pcie_nccl_gbs(*BUILT) or 0.0
    lanes, totals = logs.pcie_gbs(system), logs.nvlink_gbs(system)
    file, where = logs.topology_file(job)
    nics = fsum(net.speed_gbs or 0.0 for net in system.of_kind("NET"))
    if not (lanes and totals and system.of_kind("NVS") and (file or where)):
        return
    if max(lanes) > gbs or min(totals.values()) < MODERN_GBS or nics < MUCH * fsum(lanes):
        return
    named, given = file or "the topology file", max(lanes)
    reached, share = ring.channels * ring.bw_inter, 1 - given / built
    yield check.finding(
        check.where((host,), ranks=logs.ranks_on(job, [host])),
        check.advice("narrow file", built_gbs=built, file=named),
        f"{host}: {named} gives NCCL {in_gbs(given)} for the GPUs' PCIe links, which are built for {built:g}",
        observed=f"PCI[{given:.1f}] at every GPU; rings of {ring.channels} x {in_gbs(ring.bw_inter)}",
        cost=Cost(reached / (1 - share) - reached, share, f"{in_gbs(reached)} between nodes, as the file has it"),
        evidence=[where, ring, system],
        settings=(("NCCL_TOPO_FILE", None),),
    )
