"""From a topology file to the tree that NCCL builds its graph from: ranks on GPUs, the unused cut off, hosts joined.

Every rank keeps its own GPU and all NICs, and the trees of the ranks are joined in rank order (FUSED_TREES:
ncclTopoFuseXml, src/graph/xml.cc), so that GPUs without a NIC beside them come in the order of ranks. Before, every
rank finds all GPUs of its host in one tree; so does a file of which nobody said who runs on it, as a dump is of a
joined tree. What detection on a running machine would fill in gets the values that NCCL falls back to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topodiag.hardware.catalog import gpu_by_pci_device
from topodiag.lazy import dataclass
from topodiag.model import nccl_versions
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import Feature, has
from topodiag.nccl.graph.graph import Branch, RejectedError
from topodiag.nccl.graph.vnics import merge_ports
from topodiag.nccl.numbers import c_int
from topodiag.words.own_data import own_data

MAX_DEPTH = 256
"""NCCL_TOPO_XML_MAX_NODES (src/graph/topo.h): no chain of elements can be longer than all elements of a file."""
MAX_ELEMENTS = max(nccl_versions.MAX_ELEMENTS[minor] for minor in nccl_versions.KNOWN)
"""Elements of a file that any version reads."""
_NVIDIA = 0x10DE

NESTING = {above: frozenset(below) for above, below in own_data("nccl/elements")["nesting"].items()}
"""Which elements NCCL's reader knows below which."""


@dataclass(frozen=True, slots=True)
class HostTree:
    """A host's tree, and the communicator's ranks on it by bus id as in the file.

    `ranks` None: every GPU of the file takes part, with ranks 0, 1, ... in the order of the file (after those of
    the hosts before), and the file is read in one piece, as it stands: NCCL's own tests do so, no communicator does.
    `host` tells hosts apart where several form one NVLink domain.
    """

    tree: Element
    ranks: Mapping[str, int] | None = None
    host: int = 0


def joined_tree(hosts: Sequence[HostTree], minor: int, env: Mapping[str, str] | None = None) -> Branch:
    """The system element that NCCL 2.`minor` builds its graph from, for ranks with the NCCL_ variables of `env`.

    Raises RejectedError where the tree has no GPU that takes part, or is deeper than NCCL's reader allows.
    """
    system: Branch | None = None
    first_rank = 0
    views: list[tuple[int, Branch]] = []
    for host in hosts:
        root = _readable(host.tree, host.host, minor)
        ranks = _ranks(root, host.ranks, first_rank, minor)
        first_rank = max([first_rank, *(rank + 1 for rank in ranks.values())])
        if host.ranks is None:
            first_rank = max(first_rank, sum(1 for _ in _gpus(root)))
        _number_nets(root)
        if host.ranks is not None:
            merge_ports(root, minor, env or {})
        views += _views(root, ranks, host.ranks is None or not has(minor, Feature.FUSED_TREES), minor)
    for _, view in sorted(views, key=lambda pair: pair[0]):
        system = view if system is None else _fuse(system, view)
    if system is None:
        raise RejectedError("no GPU of the communicator in the topology")
    return system


def count_gpus(tree: Element) -> int:
    """GPUs of a file, which all take part where no ranks are named; two with one bus id count as two."""
    stack = [element for element in tree.walk() if element.tag == "system"][:1]
    count = 0
    while stack:
        element = stack.pop()
        known = NESTING.get(element.tag, frozenset())
        stack += (child for child in element.children if child.tag in known)
        count += element.tag == "gpu"
    return count


def ranks_by_number(tree: Element) -> tuple[tuple[str, int], ...] | None:
    """Rank i on the i-th GPU of a file by NVML's number, where nobody says who runs on it: the bus ids with their
    ranks. None where bus ids do not tell the GPUs apart."""
    pairs: list[tuple[int, str]] = []
    for pci in tree.walk():
        if pci.tag != "pci":
            continue
        for gpu in pci.having("gpu"):
            pairs.append((c_int(gpu.get("dev") or str(len(pairs))), pci.get("busid") or ""))
    ids = {bus_id.lower() for _, bus_id in pairs}
    if len(ids) < len(pairs) or "" in ids or len(pairs) != count_gpus(tree) or any(dev < 0 for dev, _ in pairs):
        return None
    return tuple((bus_id, rank) for rank, (_, bus_id) in enumerate(sorted(pairs, key=lambda pair: pair[0])))


def _readable(tree: Element, host: int, minor: int) -> Branch:
    """A copy without what NCCL's reader ignores. The tree may start above `system`."""
    top = next((element for element in tree.walk() if element.tag == "system"), None)
    if top is None:
        raise RejectedError("no system element in the topology")
    nesting = dict(NESTING)
    if not has(minor, Feature.PCI_LINKS):
        nesting["pci"] -= {"pcilink"}
    if not has(minor, Feature.C2C_LINKS):
        nesting["gpu"] -= {"c2c"}
    root = Branch("system", dict(reversed(top.attributes)), line=top.line)
    stack = [(top, root, 1)]
    count = 0
    while stack:
        element, branch, depth = stack.pop()
        known = nesting.get(element.tag, frozenset())
        for child in element.children:
            if child.tag not in known:
                continue
            count += 1
            if depth >= MAX_DEPTH or count > MAX_ELEMENTS:
                raise RejectedError(
                    f"Error : XML parser is limited to {MAX_ELEMENTS if depth < MAX_DEPTH else MAX_DEPTH} nodes",
                    child.line,
                )
            copy = branch.add(child.tag, dict(reversed(child.attributes)), child.line)
            copy.attributes.pop("keep", None)
            if child.tag == "cpu" and has(minor, Feature.MNNVL):
                # later versions overwrite what the file says; all CPUs of a file are taken for one host
                copy.attributes["host_hash"] = f"{host + 1:#x}"
            stack.append((child, copy, depth + 1))
    return root


def _gpus(root: Branch) -> Iterator[tuple[str | None, Branch]]:
    """GPUs with the bus id of their PCI function, in the order of the file."""
    for branch in root.walk():
        if branch.tag == "pci":
            for child in branch.children:
                if child.tag == "gpu":
                    yield branch.attributes.get("busid"), child


def _ranks(root: Branch, given: Mapping[str, int] | None, first_rank: int, minor: int) -> dict[Branch, int]:
    """Ranks by gpu element. NCCL looks a GPU up by its bus id and finds the first of that id: a second one is lost,
    unless it is another partition of the GPU (MLOPART)."""
    seen: set[tuple[str, int]] = set()
    partitions = has(minor, Feature.MLOPART)
    ranks: dict[Branch, int] = {}
    wanted = None if given is None else {busid.lower(): rank for busid, rank in given.items()}
    for position, (busid, gpu) in enumerate(_gpus(root)):
        gpu.attributes.pop("rank", None)
        if busid is not None:
            key = (busid.lower(), gpu.number_or("mlopart", -1) if partitions else -1)
            if key in seen:
                continue
            seen.add(key)
        # the driver numbers the GPUs of a host in the order of their bus ids, as files list them
        gpu.attributes.setdefault("dev", str(position))
        rank = first_rank + position if wanted is None else wanted.get((busid or "").lower())
        if rank is not None and gpu.number("dev") != -1:
            ranks[gpu] = rank
    return ranks


def _number_nets(root: Branch) -> None:
    """The net plugin numbers its devices; a file without numbers lists them in that order."""
    position = 0
    for branch in root.walk():
        if branch.tag == "net":
            branch.attributes.setdefault("dev", str(position))
            position += 1


def _views(root: Branch, ranks: Mapping[Branch, int], whole: bool, minor: int) -> list[tuple[int, Branch]]:
    """What each rank sees: its own GPU filled in and all NICs; `whole`: one view with all GPUs of the host."""
    groups = [list(ranks)] if whole and ranks else [[gpu] for gpu in ranks]
    views = []
    for group in groups:
        view, _ = _trimmed(root, {gpu: ranks[gpu] for gpu in group}, minor)
        if view is not None:
            views.append((min(ranks[gpu] for gpu in group), view))
    return views


# Complexity 22: what NCCL keeps of each kind of element.
def _trimmed(branch: Branch, ranks: Mapping[Branch, int], minor: int) -> tuple[Branch | None, bool]:
    """A copy of what is kept, and whether one of the ranks' GPUs is in it (ncclTopoTrimXml, src/graph/xml.cc).

    Before FUSED_TREES everything goes that nothing kept is below; then only pci and cpu, and later nic too.
    """
    tag = branch.tag
    if tag == "net":
        return branch, False
    if tag == "gpu":
        if branch in ranks:
            return _filled_gpu(branch, ranks[branch]), True
        return (branch if has(minor, Feature.FUSED_TREES) else None), False
    children = []
    mine = keep = False
    for child in branch.children:
        if child.tag == "pcilink":
            children.append(child)
            continue
        copy, has_gpu = _trimmed(child, ranks, minor)
        if copy is None:
            continue
        children.append(copy)
        mine = mine or has_gpu
        keep = keep or has_gpu or copy.nics or copy.tag == "net"
    if not keep and (tag in ("pci", "cpu") or (tag == "nic" and not has(minor, Feature.EMPTY_NICS_KEPT))):
        return None, False
    of_gpus = mine or (tag == "cpu" and any(below.tag == "gpu" for below in branch.walk()))
    attributes = _filled(branch, children, ranks) if of_gpus else branch.attributes
    nics = any(child.nics or child.tag == "net" for child in children)
    return Branch(tag, attributes, children, branch.line, nics), mine


def _filled(branch: Branch, children: Sequence[Branch], ranks: Mapping[Branch, int]) -> dict[str, str]:
    """The attributes of a processor or of an element above a rank's GPU, with what detection would fill in: a processor
    above the GPUs of other ranks has what these ranks find."""
    if branch.tag == "cpu":
        return _filled_cpu(branch.attributes, children)
    if branch.tag != "pci":
        return branch.attributes
    attributes = {**branch.attributes}
    for name in ("link_speed", "link_width"):
        attributes.setdefault(name, "")
    if any(child in ranks for child in branch.children):
        attributes.setdefault("class", "0x03")
        _fill_sm(attributes, children)
    return attributes


def _filled_gpu(gpu: Branch, rank: int) -> Branch:
    attributes = {**gpu.attributes, "rank": str(rank)}
    attributes.setdefault("gdr", "1")
    children = []
    for child in gpu.children:
        if child.tag == "nvlink" and "tclass" not in child.attributes:
            child = Branch(child.tag, {**child.attributes, "tclass": "0x068000"}, [], child.line)
        children.append(child)
    return Branch("gpu", attributes, children, gpu.line)


def _fill_sm(pci: Mapping[str, str], children: Sequence[Branch]) -> None:
    """A running NCCL asks the driver for a GPU's compute capability; from a file its PCI ids tell it, if known."""
    for gpu in children:
        if gpu.tag == "gpu" and "rank" in gpu.attributes and "sm" not in gpu.attributes:
            spec = gpu_by_pci_device(c_int(pci.get("device", ""))) if c_int(pci.get("vendor", "")) == _NVIDIA else None
            if spec is not None:
                gpu.attributes["sm"] = str(spec.sm)


def _filled_cpu(attributes: Mapping[str, str], children: Sequence[Branch]) -> dict[str, str]:
    """A running NCCL asks the CPU; here C2C means Arm, anything else is taken for x86 of AMD, Intel for today's."""
    filled = dict(attributes)
    superchip = any(branch.tag == "c2c" for child in children for branch in child.walk())
    filled.setdefault("arch", "arm64" if superchip else "x86_64")
    if filled["arch"].startswith("x86_64"):
        filled.setdefault("vendor", "AuthenticAMD")
        filled.setdefault("familyid", "6")
        filled.setdefault("modelid", "143")
    return filled


def _fuse(into: Branch, other: Branch) -> Branch:
    """Children with the same tag and attributes are one, others are added at the end."""
    known: dict[tuple[str, frozenset[tuple[str, str]]], Branch] = {}
    for child in into.children:
        known.setdefault((child.tag, frozenset(child.attributes.items())), child)
    for child in other.children:
        key = (child.tag, frozenset(child.attributes.items()))
        twin = known.get(key)
        if twin is None:
            into.children.append(child)
            known[key] = child
        elif child.children:
            _fuse(twin, child)
    return into
