"""A node as facts in long form: the one place that does so, for the comparison of siblings and for the history.

A fact that the evidence does not hold gives no row: nothing is known of it. In a family of CLOSED everything is listed
wherever one row is, so that a key without a row is one that the node does not have.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

from topodiag.hardware.catalog import gpu_by_name
from topodiag.lazy import regex
from topodiag.model.devices import Gpu, NetDev, Nic, NicPort, NicRole, NvLink, PciDevice
from topodiag.model.fleet import FactKind, NodeFact
from topodiag.model.node import Node
from topodiag.model.provenance import Counter, Fact
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_labels, grouped
from topodiag_probes.secrets import without_secrets

CATEGORY, NUMBER, COUNTER = FactKind.CATEGORY, FactKind.NUMBER, FactKind.COUNTER
IDENTITY, MOMENT = FactKind.IDENTITY, FactKind.MOMENT

MAX_VALUE = 400
"""Characters of a value that are kept: a hostile one is of any length."""
_PARTS_OF_A_TOTAL = ("aer_correctable_", "aer_nonfatal_", "aer_fatal_")
_MODULE = regex(
    r"(?:nvidia|nouveau|gdrdrv|nv_peer|ib_|rdma|iw_|mlx|bnxt|irdma|efa|hfi|qed|ena|amdgpu|amdkfd|vfio|xpmem|knem)"
)
"""Modules that the communication of GPUs depends on; others come and go with a keyboard."""
_PLACE = regex(r"(?i)(?:[0-9a-f]{8}-[0-9a-f-]{27}|(?:[0-9a-f]{2}:){5}[0-9a-f]{2}|[0-9]{1,3}(?:\.[0-9]{1,3}){3})")
_OWN_PARAMETERS = frozenset(own_data("fleet/families")["own_parameters"])
"""Parameters of the kernel that rightly name a disk, an address or a host (kernel-parameters.txt, dracut.cmdline)."""
_LABELS = ("SLURM_TOPOLOGY_ADDR", "SLURM_JOB_PARTITION", "SLURM_CLUSTER_NAME")
"""What a scheduler says of a node's place."""
BANDWIDTH = "widest path to a network card"
_REDIRECT = 0b0001_1100
"""ACS bits that send peer-to-peer traffic up to the root: ReqRedir, CmpltRedir, UpstreamFwd (PCIe 6.0, 7.7.11)."""
Rows = Iterator[NodeFact]


def facts_of(node: Node) -> tuple[NodeFact, ...]:
    """The facts of a node in a stable order."""
    families = (_system, _os, _settings, _kernel_log, _gpus, _nics, _pci)
    return tuple(fact for family in families for fact in family(node))


def _system(node: Node) -> Rows:
    yield from row("system", "", "product", node.system)
    yield from row("system", "", "captured", node.time, kind=MOMENT)
    yield from rows_of("cpu", "", node.cpu)
    if node.numa:
        yield NodeFact("system", "", "NUMA nodes", str(len(node.numa)))
        for numa_node in node.numa:
            yield from row("system", f"numa{numa_node.id}", "CPUs", numa_node.cpus)
    for name in _LABELS:
        yield from row("place", "", name, node.scheduler.get(name, Fact()), kind=IDENTITY)


def _os(node: Node) -> Rows:
    system = node.os
    yield from rows_of("os", "", system)
    locked = system.memlock_bytes
    unlimited = locked.value is not None and locked.value < 0
    fact = Fact("unlimited", locked.origin) if unlimited else locked
    yield from row("limits", "", "locked memory", fact, unit="bytes")
    yield from rows_of("moments of the os", "", system)
    yield from _command_line(system.cmdline)
    if system.modules.value is not None:
        source = source_of(system.modules)
        for name in sorted(system.modules.value):
            if _MODULE.match(name):
                yield NodeFact("kernel modules", "", name, "loaded", source=source)
    for name, fact in sorted(system.registry.items()):
        yield from row("driver parameters", "", name, fact)
    for name, fact in sorted(system.services.items()):
        yield from row("services", "", name, fact)


def _command_line(line: Fact[str]) -> Rows:
    """The parameters by name; several values of one are one value. A secret is known by the name before it, and hidden
    while both stand together."""
    words = (word.partition("=") for word in without_secrets(line.value or "").split())
    values = grouped((name, value if equals else "set") for name, equals, value in words)
    source = source_of(line)
    for name, given in values.items():
        value = ",".join(given)
        own = name.lower() in _OWN_PARAMETERS or _PLACE.search(value) is not None
        kind = IDENTITY if own else CATEGORY
        yield NodeFact("kernel command line", "", name, text_of(value), kind, source=source)


def _settings(node: Node) -> Rows:
    """What nccl.conf gives every job of the node; the environment is that of whoever captured it."""
    for setting in node.settings:
        if setting.scope == "environment" or setting.scope.startswith("process "):
            continue
        yield NodeFact("nccl.conf", "", setting.name, text_of(setting.value), source=str(setting.origin))


def _kernel_log(node: Node) -> Rows:
    """How often the kernel's log speaks of each kind of trouble, by part. Its length is no fact of the node."""
    gpu_at = {gpu.bus_id: f"gpu{gpu.index}" for gpu in node.gpus if gpu.bus_id}
    first: dict[tuple[str, str], str] = {}
    counts: Tally[tuple[str, str]] = Tally()
    for event in node.events:
        kind = event.kind if event.code is None else f"{event.kind} {event.code}"
        key = (gpu_at.get(event.bus_id or "", event.bus_id or ""), kind)
        counts[key] += 1
        first.setdefault(key, str(event.origin))
    for (part, kind), count in sorted(counts.items()):
        yield NodeFact("kernel log", part, kind, count, COUNTER, "lines", first[part, kind])


# --- its parts: GPUs and NVLinks, network cards and ports, PCIe links, and which of them are near each other ---------


def _gpus(node: Node) -> Rows:
    """Counts first: which part is missing is seen there."""
    if node.gpus:
        yield NodeFact("gpu", "", "GPUs", str(len(node.gpus)))
    compute = [nic for nic in node.nics if nic.role is NicRole.COMPUTE]
    for gpu in node.gpus:
        part = f"gpu{gpu.index}"
        yield from _gpu(node, gpu, part)
        yield from _fabric(gpu, part)
        yield from _nvlinks(gpu, part)
        yield from _neighbours(node, gpu, part, compute)
        yield from _peer_access(node, gpu, part)
        yield from counters("gpu", part, gpu.counters)


def _gpu(node: Node, gpu: Gpu, part: str) -> Rows:
    if gpu.bus_id:
        yield NodeFact("gpu", part, "bus id", gpu.bus_id)
    yield from rows_of("gpu", part, gpu)
    device = node.pci_of(gpu)
    if device is not None:
        # An idle GPU trains its link down to save power: only the width is of the node.
        yield from row("pci", part, "generation", device.gen, kind=MOMENT)
        yield from _pci_link(node, device, part)


def _pci_link(node: Node, device: PciDevice, part: str) -> Rows:
    above = next(iter(node.ancestors(device.bus_id)), PciDevice(device.bus_id))
    for key, fact in (
        ("width", device.width),
        ("highest generation", device.max_gen),
        ("highest width", device.max_width),
        ("slot's highest generation", device.slot_max_gen if device.slot_max_gen.known else above.max_gen),
        ("slot's highest width", device.slot_max_width if device.slot_max_width.known else above.max_width),
        ("driver", device.driver),
        ("IOMMU domain", device.iommu_type),
    ):
        yield from row("pci", part, key, fact)
    yield from counters("pci", part, device.counters)


def _fabric(gpu: Gpu, part: str) -> Rows:
    yield from rows_of("fabric", part, gpu.fabric)
    problems = gpu.fabric.problems
    if problems.value is not None:
        yield NodeFact("nvlink", part, "fabric problems", problems.value or "none", source=source_of(problems))
    yield from rows_of("place in a fabric", part, gpu.fabric)


def _nvlinks(gpu: Gpu, part: str) -> Rows:
    yield from row("nvlink", part, "links", gpu.nvlink_note)
    if not gpu.nvlinks:
        return
    states: Tally[str] = Tally(link.state.value for link in gpu.nvlinks if link.state.value)
    source = next((source_of(link.state) for link in gpu.nvlinks if link.state.value), "")
    if states:
        words = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        yield NodeFact("nvlink", part, "links", words, source=source)
    rates = sorted(
        {link.line_gbs.value for link in gpu.nvlinks if link.line_gbs.value and link.state.value != "inactive"}
    )
    if rates:
        yield NodeFact("nvlink", part, "line rate", text_of(rates), unit="GB/s", source=source)
    far: Tally[str] = Tally(link.remote_type.value for link in gpu.nvlinks if link.remote_type.value)
    if far:
        yield NodeFact("nvlink", part, "other ends", ", ".join(f"{n} {end}" for end, n in sorted(far.items())))
    for link in gpu.nvlinks:
        yield from _nvlink(link, f"{part}/link{link.index}")


def _nvlink(link: NvLink, part: str) -> Rows:
    yield from row("nvlink", part, "state", link.state, kind=MOMENT)
    yield from counters("nvlink", part, link.counters)


def _neighbours(node: Node, gpu: Gpu, part: str, compute: Sequence[Nic]) -> Rows:
    """Which GPUs and network cards are how far away, as one value for each GPU: GPU i stands beside GPU i of others."""
    by_path = [
        ("GPUs by path", [one.label for one in node.gpus if one is not gpu]),
        ("network cards by path", [nic.name for nic in compute]),
    ]
    for key, labels in by_path if _nvlinks_told(node, gpu) else ():
        paths = ((label, node.paths.get((gpu.label, label))) for label in labels)
        by_type = grouped((path.type.name, label) for label, path in paths if path is not None)
        if by_type:
            words = "; ".join(f"{name} {fold_labels(texts, 99)}" for name, texts in by_type.items())
            yield NodeFact("pairing", part, key, text_of(words))
    near = [(path.type, nic.name) for nic in compute if (path := node.paths.get((gpu.label, nic.name))) is not None]
    if near:
        least = min(kind for kind, _ in near)
        names = ",".join(name for kind, name in near if kind == least)
        yield NodeFact("pairing", part, "nearest network cards", f"{names} over {least.name}")
        wide = [gbs for _, name in near if (gbs := node.paths[gpu.label, name].intended_gbs) is not None]
        if wide:
            yield NodeFact("pairing", part, BANDWIDTH, text_of(max(wide)), unit="GB/s")


def _nvlinks_told(node: Node, gpu: Gpu) -> bool:
    """Whether the evidence says which NVLinks there are, or that there are none. Without it the paths are those of PCIe
    alone, and a node whose nvidia-smi hangs would stand apart for what was not read."""
    spec = gpu_by_name(gpu.name.get(""))
    without = spec is not None and not spec.nvlinks
    return bool(node.smi_matrix or gpu.nvlinks or gpu.nvlink_note.known or without)


def _peer_access(node: Node, gpu: Gpu, part: str) -> Rows:
    """Which GPUs the driver lets this one reach, by what it says of each."""
    for capability in ("read", "write", "nvlink"):
        table = node.p2p.get(capability, {})
        reported = ((other.label, table.get((gpu.label, other.label))) for other in node.gpus if other is not gpu)
        by_word = grouped((fact.value, label) for label, fact in reported if fact is not None and fact.value)
        if by_word:
            words = "; ".join(f"{word} {fold_labels(texts, 99)}" for word, texts in sorted(by_word.items()))
            yield NodeFact("peer access", part, capability, text_of(words))


def _nics(node: Node) -> Rows:
    """Cards in the order of their names, their ports, and the kernel's interfaces on them. Those that carry no traffic
    of jobs are families of their own."""
    if node.nics:
        roles: Tally[str] = Tally(nic.role.value for nic in node.nics)
        for role, count in sorted(roles.items()):
            yield NodeFact("nic", "", f"{role} network cards", str(count))
    for nic in node.nics:
        yield from _nic(node, nic)
        for port in nic.ports:
            yield from _port(nic, port)
    owner = {nic.bus_id: nic for nic in node.nics if nic.bus_id}
    for device in node.netdevs:
        if device.bus_id is not None:
            yield from _netdev(device, owner.get(device.bus_id))


def _family(nic: Nic | None, usual: str) -> str:
    """The family of a card's facts: the usual one where it may carry the traffic of jobs."""
    aside = nic is not None and nic.role in (NicRole.STORAGE, NicRole.MANAGEMENT)
    return f"{nic.role.value} network" if nic is not None and aside else usual


def _nic(node: Node, nic: Nic) -> Rows:
    own = _family(nic, "nic")
    if nic.bus_id:
        yield NodeFact(own, nic.name, "bus id", nic.bus_id)
    yield NodeFact("nic", nic.name, "role", nic.role.value)
    yield from rows_of("nic", nic.name, nic, partial(_family, nic))
    device = node.pci_of(nic)
    if device is not None:
        yield from row("pci", nic.name, "generation", device.gen)
        yield from _pci_link(node, device, nic.name)
    yield from counters(own, nic.name, nic.counters)


def _port(nic: Nic, port: NicPort) -> Rows:
    part, own = f"{nic.name}/{port.number}", _family(nic, "nic")
    yield from rows_of("port", part, port, partial(_family, nic))
    if port.state.value != "DOWN":  # what a port that is down tells of its rate is the driver's default
        yield from rows_of("port that is up", part, port, partial(_family, nic))
    yield from rows_of("place of a port", part, port, partial(_family, nic))
    yield from counters(own, part, port.counters)


def _netdev(device: NetDev, nic: Nic | None) -> Rows:
    own = _family(nic, "interface")
    yield from rows_of("interface", device.name, device, partial(_family, nic))
    yield from counters(own, device.name, device.counters)


def _pci(node: Node) -> Rows:
    """The links of the bridges above GPUs and network cards, and where ACS redirects traffic between peers."""
    above: dict[str, PciDevice] = {}
    ends = [gpu.bus_id for gpu in node.gpus] + [nic.bus_id for nic in node.nics if nic.role is NicRole.COMPUTE]
    for end in ends:
        if end:
            above.update((bridge.bus_id, bridge) for bridge in node.ancestors(end))
    for bus_id, bridge in sorted(above.items()):
        yield from row("pci", bus_id, "generation", bridge.gen, kind=MOMENT)
        yield from row("pci", bus_id, "width", bridge.width)
        if bridge.acs.value is not None:
            yield NodeFact("acs", bus_id, "redirects peers", text_of(bool(bridge.acs.value & _REDIRECT)),
                           source=source_of(bridge.acs))  # fmt: skip
        yield from counters("pci", bus_id, bridge.counters)
    if node.nvswitches:
        yield NodeFact("nvlink", "", "NVSwitches", str(len(node.nvswitches)))


# --- how a fact of the model becomes a row, and how its value is written -------------------------------------------


def row(family: str, part: str, key: str, fact: Fact[Any], *, kind: FactKind = CATEGORY, unit: str = "") -> Rows:
    """The fact as a row; none comes of it where it is not known."""
    value = fact.value
    if value is not None:
        plain = kind is NUMBER or kind is COUNTER or (kind is MOMENT and type(value) in (int, float))
        yield NodeFact(family, part, key, value if plain else text_of(value), kind, unit, source_of(fact))


def rows_of(table: str, part: str, thing: object, family_of: Callable[[str], str] = str) -> Rows:
    """The rows that families.toml lists in this table, of a part of a node; `family_of` may put them into families of
    its own."""
    for family, key, attribute, kind, unit in _listed(table):
        yield from row(family_of(family), part, key, getattr(thing, attribute), kind=kind, unit=unit)


def counters(family: str, part: str, counted: dict[str, Counter]) -> Rows:
    """The latest reading of each counter. Of errors that a total counts, the total."""
    for name, counter in counted.items():
        if not name.startswith(_PARTS_OF_A_TOTAL) or name.endswith("_total"):
            yield from row(family, part, name, counter.latest, kind=COUNTER, unit=unit_of(name))


@cache
def _listed(table: str) -> tuple[tuple[str, str, str, FactKind, str], ...]:
    rows = []
    for line in own_data("fleet/families")["rows"][table]:
        head, attribute, *more = map(str.strip, line.split("|"))
        family, _, key = head.partition(": ")
        kind, unit = more if more else ("category", "")
        rows.append((family, key, attribute, FactKind(kind), unit))
    return tuple(rows)


@cache
def unit_of(counter: str) -> str:
    """What a counter counts."""
    units = own_data("fleet/families")["units"]
    return next((unit for words, unit in units.items() if words in counter), "errors")


def source_of(fact: Fact[Any]) -> str:
    """File and line of a fact, "" where it was derived."""
    return str(fact.origin) if fact.origin is not None else ""


def text_of(value: Any) -> str:
    """A value as text: yes and no, whole numbers without a point, several values with commas."""
    if value is True or value is False:
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, frozenset):
        value = sorted(value)
    text = ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
    return text[:MAX_VALUE]
