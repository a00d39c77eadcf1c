"""From the draft to the frozen node: entities first, then the graph, then what follows from both: roles and a name.

Roles tell compute NICs from storage and management ones: only compute NICs carry the job's collectives. No single sign
is enough (a storage ConnectX-7 looks like a compute one), so the signs are taken together: the default route, RDMA,
nearness to a GPU, link layer and product. Every role keeps its reason. The machine is named by what DMI says, else by
the known system that its parts match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf, isfinite

from topodiag.evidence.assemble import entities
from topodiag.evidence.assemble.entities import facts, pick
from topodiag.evidence.assemble.graph import build_links, build_paths, chain
from topodiag.evidence.draft import Entity, NodeDraft, PairOffer
from topodiag.hardware import catalog
from topodiag.model.clock_text import EPOCH_S, seconds, stamp
from topodiag.model.devices import Nic, NicRole
from topodiag.model.events import Event
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Cpu, Node, Os, Pair
from topodiag.model.provenance import Disagreement, Fact, Topic
from topodiag.words.copies import copies

_P2P = "p2p:"
COPIES = "copies"
"""The table of pairs that holds measured GB/s."""
MAX_PATH_DEVICES = 256
"""Paths are built for at most this many GPUs and NICs: a rack-scale node has 72 and 76."""


def assemble(draft: NodeDraft, host: str, time: str = "") -> Node:
    """The node that the draft describes. Never raises: what cannot be made out is left unknown."""
    disagreements: list[Disagreement] = []
    entities.join_gpu_orders(draft)
    entities.place_links(draft)
    assembler = entities.Assembler(draft, disagreements)
    pci = assembler.pci_devices()
    interfaces = assembler.netdevs()
    gpus, gpu_labels = assembler.gpus()
    nics, nic_labels = assembler.nics(pci, interfaces)
    tables = _tables(draft.pairs, gpu_labels | nic_labels)
    services = draft.single("services")
    node = Node(
        host=host,
        time=time_of(time),
        cpu=Cpu(**facts(Cpu, draft.single("cpu"), "cpu", disagreements)),
        os=Os(
            **facts(Os, draft.single("os"), "os", disagreements),
            services=_picked(services),
            registry=_picked(draft.single("registry")),
        ),
        numa=assembler.numa_nodes(),
        pci=pci,
        gpus=tuple(entities.named_by_pci(gpu, pci) for gpu in gpus),
        nics=nics,
        netdevs=interfaces,
        fabric_ports=assembler.fabric_ports(),
        smi_matrix=tables.get("smi", {}),
        pcie_matrix=tables.get("pcie", {}),
        p2p={name.removeprefix(_P2P): tables[name] for name in sorted(tables) if name.startswith(_P2P)},
        copies={pair: Fact(float(fact.get("0")), fact.origin) for pair, fact in tables.get(COPIES, {}).items()},
        passed_tests=pick(draft.single("node").offers.get("passed_tests", ()), tuple),
        failed_tests=pick(draft.single("node").offers.get("failed_tests", ()), tuple),
        events=distinct_events(draft.events),
        reports=tuple(draft.reports),
        tables=tuple(draft.tables),
        processes=tuple(sorted(draft.processes, key=lambda process: process.pid)),
        settings=tuple(draft.settings),
        conf_lines=tuple(draft.conf_lines),
        acs_lines=tuple(draft.acs_lines),
        scheduler=_picked(draft.single("scheduler")),
        nccl_file=draft.nccl_file,
        disagreements=tuple(disagreements),
        not_observed=tuple(draft.missing),
        topics=frozenset(draft.topics),
        makers=frozenset(draft.makers),
        driver_only_loaded=draft.only_loads == {True},
    )
    if len(node.gpus) + len(node.nics) <= MAX_PATH_DEVICES:
        node = replace(node, links=build_links(node))
        node = replace(node, paths=build_paths(node))
    node = replace(node, nics=with_roles(node))
    return replace(node, system=system_name(node, pick(draft.single("node").offers.get("system", ()), str)))


def time_of(time: str) -> Fact[str]:
    """When a node was captured, as its manifest says."""
    return Fact(time) if time else Fact(why="no manifest")


def distinct_events(events: Iterable[Event]) -> tuple[Event, ...]:
    """Messages of the kernel, each once: dmesg, syslog and the journal hold the same lines with the same times. Lines
    of one form that share a second are several. In the order of their dates: the last boot of a journal may stand
    first."""
    once: dict[tuple[object, ...], Event] = {}
    forms: dict[tuple[str, str, str], tuple[str, bool]] = {}
    for number, event in enumerate(_by_date(tuple(events))):
        when = round(event.time_s, 3) if event.time_s is not None else (event.origin.source, number)
        month, _, moment = event.date.partition(" ")
        form = (month, event.time_s is None)
        if not moment or forms.setdefault((event.kind, event.text, moment.lstrip("0")), form) == form:
            once.setdefault((event.kind, event.text, when), event)
    return tuple(once.values())


_BOOT_WITHIN_S = 30.0
"""What the wall's clock and that of the boot may differ by in two copies of a line: NTP sets the one."""
_ANY_YEAR_S = 962_409_600.0
"""July 2000: where no message names a year, any does, and this one has a 29 February."""


def _by_date(events: Sequence[Event]) -> Sequence[Event]:
    """The messages by date, without the copies that tell seconds since boot alone. Such lines without a copy are of the
    boot that runs, and come last; one without a time stays below the one above it."""
    dates: list[float] = []
    near = next((event.time_s for event in events if (event.time_s or 0.0) >= EPOCH_S), None) or _ANY_YEAR_S
    for event in events:
        date = _date(event, near)
        near = near if date is None else date
        dates.append(date if date is not None else inf if event.time_s is not None else dates[-1] if dates else -inf)
    repeated = _copies(events, dates)
    return [events[at] for at in sorted(range(len(events)), key=dates.__getitem__) if at not in repeated]


def _date(event: Event, near: float) -> float | None:
    """Seconds of the epoch of a message, in the year that brings it nearest to the one above where it names none; None
    where it has no date."""
    if event.time_s is not None and event.time_s >= EPOCH_S:
        return event.time_s
    day, _, clock = event.date.rpartition(" ")
    year = int(stamp(near)[:4])
    dates = (seconds(f"Sat {day} {clock} {number}") for number in (year - 1, year, year + 1) if day)
    return min((date for date in dates if date is not None), key=lambda date: abs(date - near), default=None)


def _copies(events: Sequence[Event], dates: Sequence[float]) -> set[int]:
    """Places of messages with seconds since boot that stand with a date as well: of one boot all of both differ alike,
    and most have their copy."""
    dated = [(event.text, date) for event, date in zip(events, dates, strict=True) if isfinite(date)]
    ups = [at for at, date in enumerate(dates) if date == inf]
    shared = copies(dated, [(events[at].text, events[at].time_s) for at in ups], _BOOT_WITHIN_S)
    return {ups[at] for at in shared} if 2 * len(shared) >= len(ups) else set()


def _picked(entity: Entity) -> dict[str, Fact[str]]:
    return {name: pick(offers, str) for name, offers in sorted(entity.offers.items())}


def _tables(pairs: Iterable[PairOffer], labels: dict[int, str]) -> dict[str, dict[Pair, Fact[str]]]:
    """The tables of pairs by name, with both triangles."""
    best: dict[str, dict[Pair, PairOffer]] = {}
    for pair in pairs:
        a, b = labels.get(id(pair.a.root)), labels.get(id(pair.b.root))
        mine = best.setdefault(pair.table, {})
        if a is not None and b is not None and ((a, b) not in mine or pair.offer.trust > mine[a, b].offer.trust):
            mine[a, b] = pair
    tables = {}
    for name, mine in best.items():
        tables[name] = table = {place: Fact(str(pair.offer.value), pair.offer.origin) for place, pair in mine.items()}
        for (a, b), fact in list(table.items()):
            table.setdefault((b, a), fact)
    return tables


def system_name(node: Node, fact: Fact[str]) -> Fact[str]:
    """The product or instance type. A hypervisor's own product name yields to a match by parts."""
    if fact.value is not None:
        spec = catalog.system_by_product(fact.value)
        if spec is not None:
            return Fact(spec.name, fact.origin)
    names = Counter(gpu.name.value for gpu in node.gpus if gpu.name.value)
    if len(names) == 1:
        gpu = catalog.gpu_by_name(next(iter(names)))
        compute = sum(nic.role is NicRole.COMPUTE for nic in node.nics)
        if gpu is not None:
            switches = len(node.nvswitches) or None
            matches = catalog.match_system(gpu.name, len(node.gpus), compute or None, switches, node.is_vm)
            # The board that integrators build around is the honest name where a maker's own machine fits as well.
            named = [match for match in matches if match.name.startswith("HGX")] or list(matches)
            if len(named) == 1:
                return Fact(named[0].name, node.gpus[0].name.origin)
    return fact


Family = tuple[str, str]
"""Product and link layer: NICs of one family were bought for one purpose."""


def with_roles(node: Node) -> tuple[Nic, ...]:
    """The node's NICs, each with its role and why."""
    routed = {device.name for device in node.netdevs if device.default_route.get(False)}
    routed |= {device.master.value for device in node.netdevs if device.name in routed and device.master.value}
    enslaved = {device.name for device in node.netdevs if device.master.value in routed}
    candidates = [nic for nic in node.nics if _is_candidate(nic, routed | enslaved)]
    near = {nic.name for nic in candidates if _near_gpu(node, nic)}
    chosen = _chosen_families(candidates, near)
    nics = []
    for nic in node.nics:
        role, why = _judge(nic, node, routed | enslaved, near, chosen)
        nics.append(replace(nic, role=role, role_why=why))
    return tuple(nics)


def _judge(nic: Nic, node: Node, routed: set[str], near: set[str], chosen: set[Family]) -> tuple[NicRole, str]:
    through = sorted(set(nic.netdevs) & routed)
    if through and not nic.name.startswith("rdmap"):
        return NicRole.MANAGEMENT, f"carries the default route ({through[0]})"
    if nic.rdma_name is None and nic.smi_label is None:
        if not nic.ports:
            return NicRole.UNKNOWN, "no driver runs it"
        return NicRole.MANAGEMENT, "Ethernet without RDMA"
    if not node.gpus and Topic.GPUS in node.topics:
        return NicRole.UNKNOWN, "no GPU to serve"
    family = _family(nic)
    if nic.name in near:
        return NicRole.COMPUTE, "under one PCIe switch with a GPU"
    if family not in chosen:
        return NicRole.STORAGE, "another product or link layer than the NICs that serve the GPUs"
    if near:
        return NicRole.STORAGE, "no GPU within PXB, while NICs of the same kind have one"
    return NicRole.COMPUTE, "the largest group of RDMA NICs of one kind"


def _is_candidate(nic: Nic, routed: set[str]) -> bool:
    return (nic.rdma_name is not None or nic.smi_label is not None) and not set(nic.netdevs) & routed


def _family(nic: Nic) -> Family:
    layer = next((port.link_layer.value for port in nic.ports if port.link_layer.value), "")
    return nic.part.value or nic.hca_type.value or "", layer


def _near_gpu(node: Node, nic: Nic) -> bool:
    """Whether a GPU is below the same PCIe switch: any on the bus, for a job or a guest may hold a part of them."""
    mine = set(chain(node, nic.bus_id)) if nic.bus_id else set()
    if mine and any(mine & set(chain(node, bus_id)) for bus_id in _gpu_functions(node)):
        return True
    paths = (node.paths.get((gpu.label, nic.name)) for gpu in node.gpus)
    return any(path is not None and PathType.PIX <= path.type <= PathType.PXB for path in paths)


def _gpu_functions(node: Node) -> set[str]:
    seen = {gpu.bus_id for gpu in node.gpus if gpu.bus_id}
    return seen | {bus_id for bus_id, fn in node.pci.items() if fn.is_accelerator}


def _chosen_families(candidates: list[Nic], near: set[str]) -> set[Family]:
    """The families that serve the GPUs: those with a near NIC; without any, InfiniBand first, then the largest group,
    then the faster product. DPUs yield to plain NICs."""
    if near:
        return {_family(nic) for nic in candidates if nic.name in near}
    sizes = Counter(_family(nic) for nic in candidates)
    if not sizes:
        return set()

    def merit(family: Family) -> tuple[bool, bool, int, float]:
        member = next(nic for nic in candidates if _family(nic) == family)
        spec = catalog.nic_by_hca_type(member.hca_type.value) if member.hca_type.value else None
        rate = spec.rate_gbps if spec else 0.0
        return not (spec is not None and spec.dpu), family[1] == "InfiniBand", sizes[family], rate

    return {max(sizes, key=merit)}
