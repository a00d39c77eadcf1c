"""From the draft to the frozen node: entities first, then the graph, then what follows from both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from topodiag.evidence.assemble import entities
from topodiag.evidence.assemble.entities import facts, pick
from topodiag.evidence.assemble.graph import build_links, build_paths
from topodiag.evidence.assemble.roles import system_name, with_roles
from topodiag.evidence.draft import Entity, NodeDraft, PairOffer
from topodiag.model.events import Event
from topodiag.model.node import Node, Pair
from topodiag.model.provenance import Disagreement, Fact
from topodiag.model.system import Cpu, Os

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
        told=frozenset(draft.told),
        makers=frozenset(draft.makers),
    )
    if len(node.gpus) + len(node.nics) <= MAX_PATH_DEVICES:
        node = replace(node, links=build_links(node))
        node = replace(node, paths=build_paths(node))
    node = replace(node, nics=with_roles(node))
    chosen = pick(draft.single("node").offers.get("system", ()), str)
    return replace(node, system=system_name(node, chosen))


def time_of(time: str) -> Fact[str]:
    """When a node was captured, as its manifest says."""
    return Fact(time) if time else Fact(why="no manifest")


def distinct_events(events: Iterable[Event]) -> tuple[Event, ...]:
    """Messages of the kernel, each once: dmesg and the journal hold the same lines with the same times."""
    once: dict[tuple[object, ...], Event] = {}
    for number, event in enumerate(events):
        when = round(event.time_s, 3) if event.time_s is not None else (event.origin.source, number)
        once.setdefault((event.kind, event.text, when), event)
    return tuple(once.values())


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
