"""GPUs that no longer answer, or that are not there although the machine has places for them."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from typing import Literal

from topodiag.checks.interface import NodeCheck
from topodiag.checks.peers import of_everyone
from topodiag.checks.shared.comparisons import majority, tallied
from topodiag.checks.shared.devices import amd_mesh
from topodiag.checks.shared.node import kernel
from topodiag.hardware.catalog import system_by_product
from topodiag.model.devices import NVIDIA, Gpu, PciDevice, PciKind
from topodiag.model.events import Event
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity
from topodiag.model.maker import dialect_of
from topodiag.model.node import Node
from topodiag.model.provenance import Origin, Topic
from topodiag.words.dialect import AMD
from topodiag.words.units import grouped, plural

LOST_WORDS = "requires reset"
"""In the driver's words of a GPU that answers and waits for its reset: GPU005 speaks of it."""

MIN_SIBLINGS = 2
"""Nodes of the same kind that must agree on a number of GPUs before one with fewer is called short."""

Source = Literal["log", "driver", "bus"]
Sign = tuple[Source, str, Origin | None]
"""What shows that a GPU is lost, how, in words, and where that stands."""


_OTHER_REASON = frozenset({"kernel.api_mismatch", "kernel.gpu_unsupported"})
_NOT_THERE = ("gpu-lost", "gpu-init")


class GpuLost(NodeCheck, id="GPU001", unless=kernel.no_gpu):
    """GPU001: a GPU is lost, or the node has fewer GPUs than it should have

    What it finds
        A GPU that has fallen off the bus (Xid 79), that the driver calls lost, that the driver could not start, or
        whose config space reads all ones; and a node with fewer GPUs than its product or its peers.

    Why it matters
        The rank on that GPU dies with a CUDA error, and every other rank of the job waits for it until a timeout: the
        error that the job prints comes from the survivors and names the network. After a reboot without the GPU, the
        GPUs above it move down by one index: GPU5 of today is GPU6 of yesterday. Match GPUs by bus id or UUID.

    Evidence it reads
        The kernel log (Xid 79 and 143, "has fallen off the bus", "RmInitAdapter failed"), NVML and nvidia-smi ("GPU is
        lost", "Unable to determine the device handle", readings of ERR!), the PCI tree (`rev ff` of lspci, a link
        width of 63, config space of ones), the number of GPUs of the product and of other nodes.

    When it stays silent
        The GPU count of containers, virtual machines and nodes with MIG is not judged: there GPUs are hidden on
        purpose. GPUs that the bus holds are there: Slurm or vfio-pci keeps them from this user. A GPU that
        answers again since an Xid 79, or that a later start of the driver found again, is a warning. Without a word on
        GPUs in the evidence: unknown. Tables that only number GPUs, and a few lines of a kernel log: unknown.

    How to confirm
        nvidia-smi -L                                       the GPUs that answer
        lspci -d 10de: | grep -iE '3D|VGA|rev ff'           the GPUs on the bus; rev ff does not answer
        sudo dmesg | grep -E 'Xid|fallen off|RmInitAdapter'

    How to fix
        Drain the node and power-cycle it. Where the same GPU is lost again, swap it with a neighbour: the fault moves
        with the GPU, or it stays with slot or power. A fatal AER error of the port above at the same second
        says that the link died, not the GPU's memory.

    References
        NVIDIA, Xid Errors, Xid 79 and Xid catalog; NVML, NVML_ERROR_GPU_IS_LOST; PCI Express Base Specification:
        reads that nobody completes return ones.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        lost = losses(judged)
        short = self._short(judged, peers, set(lost))
        total = len(judged.gpus)
        seen = sum(kernel.answers(gpu) or _is_named(judged, gpu) for gpu in judged.gpus)
        coverage = Coverage(seen, total, "GPUs that answer") if total else None
        findings = [*(self._lost(judged, *loss) for loss in lost.items()), *([short] if short is not None else [])]
        if findings or (seen == total and (seen or Topic.GPUS in judged.topics)):
            return self.any_of(judged, findings, coverage, "" if judged.gpus else "no GPU is in this node")
        if kernel.gpus_were_logged(judged):
            return self.clean(judged, "the kernel log shows no GPU lost")
        return self.unknown(judged, _unasked(judged, seen, total))

    def _lost(self, node: Node, label: str, signs: Sequence[Sign]) -> Finding:
        again, words = came_back(node, label, signs), dict.fromkeys(words for _, words, _ in signs)
        return self.finding(
            self.where(node, gpus=kernel.where_gpus([label])),
            "lost and back" if again else "lost",
            f"{kernel.named(node, label)} {f'was lost and {again}' if again else 'is lost'}: {signs[0][1]}",
            severity=Severity.WARNING if again else Severity.ERROR,
            observed="; ".join(words),
            evidence=[origin for *_, origin in signs],
            confidence=Confidence.HIGH if any(source != "bus" for source, *_ in signs) else Confidence.MEDIUM,
        )

    def _missing(self, node: Node, seen: int, expected: int, why: str, sure: Confidence = Confidence.MEDIUM) -> Finding:
        missing = expected - seen
        return self.finding(
            self.where(node),
            self.advice("fewer gpus", expected=plural(expected, "GPU"), why=why),
            f"{plural(missing, 'GPU')} of {expected} {'is' if missing == 1 else 'are'} missing",
            observed=plural(seen, "GPU"),
            evidence=(node.system, node.gpus[0].name),
            confidence=sure,
        )

    def _short(self, node: Node, peers: Sequence[Node], lost: set[str]) -> Finding | None:
        """GPUs that are missing and that nothing else shows as lost. What the bus holds is there, even where the driver
        does not list it: Slurm, a container or vfio-pci keeps it from this user."""
        if Topic.PCI not in node.topics or node.is_vm or node.os.container.get("none") != "none":
            return None
        if any(gpu.mig.value for gpu in node.gpus) or len(node.gpus) < 2:
            return None
        here = _on_bus(node) + len(lost - {gpu.label for gpu in node.gpus} - node.pci.keys())
        spec = system_by_product(node.system.value) if node.system.value else None
        if spec is not None and spec.gpus > here and _says_product(node):
            return self._missing(node, here, spec.gpus, f"as a {spec.name} has", Confidence.HIGH)
        if (product := amd_mesh(node.gpus)) is not None and here <= product.links:
            why = f"as the board of {product.name} has, on which each has {product.links} xGMI links"
            return self._missing(node, here, product.links + 1, why)
        alike = of_everyone(node, peers, _gpus_by_kind)[_kind(node)] - Tally((_on_bus(node),))
        usual = majority(alike)
        if usual is not None and alike.total() >= MIN_SIBLINGS and usual > here:
            why = f"as {plural(alike[usual], 'other node')} of the same kind have"
            return self._missing(node, here, usual, why)
        return None


def _is_named(node: Node, gpu: Gpu) -> bool:
    """Whether a list of the driver's has this GPU by its UUID, which it asks the GPU for. Tables of ways between GPUs
    only number them; AMD's tools print counters of those alone that answer."""
    asked = gpu.uuid.known or (bool(gpu.counters) and dialect_of(node) is AMD)
    return Topic.GPUS in node.topics and asked and not gpu.lost.known


def _unasked(node: Node, seen: int, total: int) -> str:
    if total:
        return f"what only a GPU that answers gives was read of {seen} of {plural(total, 'GPU')}"
    return f"no source in the evidence shows whether the GPUs answer, and {kernel.no_log(node)}"


def losses(node: Node) -> dict[str, list[Sign]]:
    """The GPUs that are lost, or were and answer again, with what shows it: the log, the driver, the bus."""
    return grouped((*_logged(node), *_said_by_driver(node), *_seen_on_bus(node)))


def came_back(node: Node, label: str, signs: Sequence[Sign]) -> str:
    """How a GPU that was lost came back since, "" where it did not: what the log alone says is past then, what stands
    now is not."""
    if any(source != "log" for source, *_ in signs):
        return ""
    if any(gpu.label == label and kernel.answers(gpu) for gpu in node.gpus):
        return "answers again"
    return "the driver found it again at a later start" if _was_found_again(node, label) else ""


def _was_found_again(node: Node, label: str) -> bool:
    """Whether the driver took a GPU after the last of its messages that the GPU is not there."""
    own = [event for event in node.events if event.bus_id is not None and kernel.label_at(node, event.bus_id) == label]
    lost = {id(event) for group in kernel.xid_groups(node, {"lost"}) for event in group.events}
    last = max((at for at, event in enumerate(own) if event.kind in _NOT_THERE or id(event) in lost), default=-1)
    return last >= 0 and any(kernel.is_start_after(event, own[last]) for event in own[last:])


def _said_by_driver(node: Node) -> Iterator[tuple[str, Sign]]:
    for gpu in node.gpus:
        if gpu.lost.value and LOST_WORDS not in gpu.lost.value.lower():
            yield gpu.label, ("driver", f"the driver says {gpu.lost.value!r}", gpu.lost.origin)


def _logged(node: Node) -> list[tuple[str, Sign]]:
    """What the kernel log holds of lost GPUs: Xids, and the driver's own sentences. A sentence without a bus id counts
    where the log says nothing else."""
    signs: list[tuple[str, Sign]] = []
    for group in kernel.xid_groups(node, {"lost"}):
        means = group.entry.name if group.entry is not None else ""
        sign = f"Xid {group.code} ({means}){kernel.times(group.events)}"
        signs.append((group.label, ("log", sign, group.events[0].origin)))
    for kind, words in (("gpu-lost", "has fallen off the bus"), ("gpu-init", "could not be started by the driver")):
        own = [event for event in node.events if event.kind == kind]
        by_place = grouped((event.bus_id, event) for event in own if event.bus_id is not None)
        for bus_id, events in by_place.items():
            sign = f"it {words}{kernel.times(events)}"
            signs.append((kernel.label_at(node, bus_id), ("log", sign, events[0].origin)))
    nameless = next((event for event in node.events if event.kind == "gpu-lost" and event.bus_id is None), None)
    if nameless is not None and not signs:
        signs.append((kernel.label_at(node, None), ("log", "it has fallen off the bus", nameless.origin)))
    if not signs and (failed := _not_started(node)):
        sign = f"it could not be started by the driver{kernel.times(failed)}"
        signs.append((kernel.label_at(node, None), ("log", sign, failed[0].origin)))
    return signs


def _not_started(node: Node) -> list[Event]:
    """Lines of older drivers on a GPU that they cannot start, which name no bus: not where the log says that firmware
    or another version of the driver is why, nor where the GPU of that minor number answers."""
    if any(event.kind == "gsp" or event.signature in _OTHER_REASON for event in node.events):
        return []
    failed = [event for event in node.events if event.signature == "kernel.gpu_init"]
    minors = [event.fields["gpu"] for event in failed if "gpu" in event.fields]
    up = {gpu.minor.value for gpu in node.gpus if kernel.answers(gpu)}
    return failed if any(minor not in up for minor in minors) or not (minors or up) else []


def _seen_on_bus(node: Node) -> Iterator[tuple[str, Sign]]:
    """GPUs whose config space the PCI tree shows as lost."""
    for pci in node.pci.values():
        if pci.lost.value is not None and _is_gpu(node, pci):
            yield kernel.label_at(node, pci.bus_id), ("bus", pci.lost.value, pci.lost.origin)


def _is_gpu(node: Node, function: PciDevice) -> bool:
    """A function that does not answer has lost its ids in lspci, and keeps its text: the kernel remembers them."""
    if kernel.gpu_at(node, function.bus_id) is not None:
        return True
    nvidia = function.vendor.get(NVIDIA) == NVIDIA or "nvidia" in function.description.get("").lower()
    return function.is_accelerator or (nvidia and function.kind is PciKind.GPU)


def _gpus_by_kind(nodes: Sequence[Node]) -> dict[tuple[str, str], Tally[int]]:
    """How many nodes of each kind have how many GPUs."""
    return tallied((_kind(node), _on_bus(node)) for node in nodes if Topic.PCI in node.topics and node.gpus)


def _on_bus(node: Node) -> int:
    """GPUs by the driver or by the bus, whichever shows more."""
    return max(sum(function.is_accelerator for function in node.pci.values()), len(node.gpus))


def _says_product(node: Node) -> bool:
    """Whether the machine itself says what it is: a product that was matched by its parts has the GPUs it has."""
    return node.system.origin is not None and all(node.system.origin != gpu.name.origin for gpu in node.gpus)


def _kind(node: Node) -> tuple[str, str]:
    return node.system.get(""), node.gpus[0].name.get("") if node.gpus else ""
