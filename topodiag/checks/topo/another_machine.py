"""Topology files beside a machine: devices that differ, and rings that are slower than without the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topodiag.checks.shared import topo_evidence
from topodiag.checks.shared.topo_file import FileCheck
from topodiag.model.devices import Gpu, NicRole
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.nccl_tree import NcclFile
from topodiag.model.nccl_versions import spell_version
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.nccl.topo.detect import LackingError, tree_of
from topodiag.nccl.topo.merge import loaded
from topodiag.words.places import base_name
from topodiag.words.units import few, in_gbs, plural

SLOWER = 0.05
"""A file that costs more than this share of the ring's bandwidth is worse than none; less is a step of the ladder."""

SHOWN = 6
"""Differences that are told one by one."""


class FileOfAnotherMachine(FileCheck, id="TOP002"):
    """TOP002: the topology file is not of this machine, or makes it slower than no file would

    What it finds
        A topology file whose GPUs or NICs are not those of the node or log it is compared with: stale bus ids, a GPU or
        NIC that is missing from the file, one that is only in the file, another compute capability. And a file that
        fits, but on which NCCL finds less bandwidth than on what it would detect by itself.

    Why it matters
        NCCL trusts the file: what it says of a device that is there wins over the hardware, and the device stays where
        the file puts it. A device of a wrong bus id is trimmed, and the real one is placed as a guest without a file
        would see it. One H200 node was slower with a topology file than with none.

    Evidence it reads
        The file, beside a bundle, a log or another file (--against), or the node that it was captured on. NCCL's search
        on what it would detect there, and on what it would make of the file there.

    When it stays silent
        Nothing to compare with. Differences that are so by nature: host hash, GUIDs, numbering. NICs that settings
        leave out (NCCL_IB_HCA), and those of storage. A log that shows some devices only lets these be judged.

    How to confirm
        nvidia-smi --query-gpu=index,pci.bus_id --format=csv     beside the busid of each <gpu>
        topodiag topo diff FILE BUNDLE

    How to fix
        topodiag emit nccl-topo BUNDLE -o topo.xml writes the file of this machine. A file that is slower than none:
        unset NCCL_TOPO_FILE.

    References
        NCCL src/graph/xml.cc (ncclTopoFillGpu, ncclTopoFillNet), src/graph/topo.cc (ncclTopoGetSystem) v2.28.
    """

    def observe_file(self, node: Node, file: NcclFile) -> Outcome:
        other = topo_evidence.machine_of(node)
        if other is None:
            return self.not_applicable(node, "nothing to compare the file with: --against a bundle, a log or a file")
        if not other.gpus and not other.nics:
            return self.unknown(node, f"{other.host} names neither GPU nor NIC")
        findings = [self._devices(node, file, other), self._slower(node, file, other)]
        return self.any_of(node, findings, clean=f"its devices are those of {other.host}")

    def _devices(self, node: Node, file: NcclFile, other: Node) -> Finding | None:
        """How the devices of a file differ from those of a machine."""
        gpus_of_file, nics = topo_evidence.devices_of(file.tree)
        theirs = {gpu.bus_id.lower(): gpu for gpu in other.gpus if gpu.bus_id}
        comparable = bool(gpus_of_file and theirs)
        gpus = list(_gpu_differences(gpus_of_file, theirs, other.host)) if comparable else []
        words = [*gpus, *_nic_differences(nics, other)]
        if not words:
            return None
        headline = words[0] + (f", and {plural(len(words) - 1, 'more difference')}" if len(words) > 1 else "")
        if comparable and theirs.keys().isdisjoint(gpus_of_file):
            headline = f"none of its GPUs is on {other.host}"
        return self.finding(
            self.where(node),
            self.advice("devices of another machine", host=other.host),
            f"{base_name(file.name)} is not of {other.host}: {headline}",
            severity=Severity.ERROR if gpus else Severity.WARNING,
            observed=few(words, SHOWN, "; "),
            evidence=[Origin(file.name), *(gpu.sm.origin for gpu in theirs.values())][:4],
        )

    def _slower(self, node: Node, file: NcclFile, other: Node) -> Finding | None:
        """NCCL's rings on a machine with a file, where they are slower than without it."""
        try:
            tree = tree_of(other).tree
        except LackingError:
            return None
        minor = file.asked[0] if file.asked else topo_evidence.ASKED
        nodes = 2 if tree.holds("net") else 1
        ours, plain = topo_evidence.ask(loaded(file.tree, tree), minor, nodes), topo_evidence.ask(tree, minor, nodes)
        if ours is None or plain is None or not (ours.accepted and plain.accepted) or ours.ranks != plain.ranks:
            return None
        with_file, without = (topo_evidence.ring_gbs(answer.graph(0), across=True) for answer in (ours, plain))
        if with_file >= without * (1 - SLOWER):
            return None
        lost = without - with_file
        return self.finding(
            self.where(node),
            "slower than the machine",
            f"{base_name(file.name)} makes NCCL slower than no file would: rings of {in_gbs(with_file)}"
            f" instead of {without:g}",
            observed=topo_evidence.spell_ring(ours.graph(0), across=True),
            expected=f"{topo_evidence.spell_ring(plain.graph(0), across=True)}, which NCCL {spell_version(minor)}"
            f" finds on {other.host} by itself",
            cost=Cost(lost, 1 - with_file / without, f"by NCCL's own search over {plural(nodes, 'node')}"),
            evidence=[Origin(file.name)],
            confidence=Confidence.HIGH if other.nccl_file is not None else Confidence.MEDIUM,
            settings=topo_evidence.unset_file(node),
        )


def _gpu_differences(mine: Mapping[str, str], theirs: Mapping[str, Gpu], host: str) -> Iterator[str]:
    """GPUs that only one side has, then those with another compute capability."""
    yield from (f"GPU {bus} is not on {host}" for bus in mine if bus not in theirs)
    yield from (f"GPU {bus} of {host} is not in the file" for bus in theirs if bus not in mine)
    for bus, sm in mine.items():
        seen = theirs[bus].sm.value if bus in theirs else None
        if sm and seen and sm != str(seen):
            yield f"GPU {bus} has sm {sm} in the file and {seen} on {host}"


def _nic_differences(mine: Sequence[str], other: Node) -> Iterator[str]:
    there = {nic.rdma_name or nic.name for nic in other.nics if nic.rdma_name or other.nccl_file}
    if mine and there:
        yield from (f"NIC {name} is not on {other.host}" for name in mine if name not in there)
        # Whoever wrote the file may well have left these out (NCCL_IB_HCA).
        aside = {nic.rdma_name or nic.name for nic in other.nics if nic.role in (NicRole.STORAGE, NicRole.MANAGEMENT)}
        missing = sorted((there & _in_use(other)) - set(mine) - aside)
        yield from (f"NIC {name} of {other.host} is not in the file" for name in missing)


def _in_use(node: Node) -> set[str]:
    """The NICs that NCCL would take there."""
    try:
        tree = tree_of(node).tree
    except LackingError:
        return {nic.rdma_name or nic.name for nic in node.nics}
    return {element.get("name") or "" for element in tree.walk() if element.tag == "net"}
