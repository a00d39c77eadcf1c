"""A node as facts in long form: the one place that does so, for the comparison of siblings and for the history.

A fact that the evidence does not hold gives no row: nothing is known of it. In a family of CLOSED everything is listed
wherever one row is, so that a key without a row is one that the node does not have.
"""

from __future__ import annotations

from collections import Counter as Tally

from topodiag.fleet.device_facts import gpu_facts, nic_facts, pci_facts
from topodiag.fleet.rows import CATEGORY, COUNTER, IDENTITY, MOMENT, Rows, row, rows_of, source_of, text_of
from topodiag.lazy import regex
from topodiag.model.fleet import NodeFact
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.own_data import own_data
from topodiag.words.units import grouped
from topodiag_probes.secrets import without_secrets

_MODULE = regex(
    r"(?:nvidia|nouveau|gdrdrv|nv_peer|ib_|rdma|iw_|mlx|bnxt|irdma|efa|hfi|qed|ena|amdgpu|amdkfd|vfio|xpmem|knem)"
)
"""Modules that the communication of GPUs depends on; others come and go with a keyboard."""
_PLACE = regex(r"(?i)(?:[0-9a-f]{8}-[0-9a-f-]{27}|(?:[0-9a-f]{2}:){5}[0-9a-f]{2}|[0-9]{1,3}(?:\.[0-9]{1,3}){3})")
_OWN_PARAMETERS = frozenset(own_data("fleet/families")["own_parameters"])
"""Parameters of the kernel that rightly name a disk, an address or a host (kernel-parameters.txt, dracut.cmdline)."""
_LABELS = ("SLURM_TOPOLOGY_ADDR", "SLURM_JOB_PARTITION", "SLURM_CLUSTER_NAME")
"""What a scheduler says of a node's place."""


def facts_of(node: Node) -> tuple[NodeFact, ...]:
    """The facts of a node in a stable order."""
    families = (_system, _os, _settings, _kernel_log, gpu_facts, nic_facts, pci_facts)
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
