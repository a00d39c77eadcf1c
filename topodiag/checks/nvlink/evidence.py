"""How many NVLinks each GPU has up, from whatever evidence there is, and how many it should have. Judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from topodiag.checks.shared.comparisons import majority
from topodiag.checks.shared.devices import amd_mesh, by_xgmi, gpu_spec, just_booted, nvlink_count, word
from topodiag.hardware.amd import AmdGpu
from topodiag.hardware.catalog import nvlink_nccl_gbs
from topodiag.hardware.specs import GpuSpec
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu, NvLink
from topodiag.model.finding import Confidence
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.states import GOOD

BOARD_WITHOUT_SWITCH = 4
"""GPUs of the boards that join SXM GPUs directly, a third of each GPU's links to every peer (HGX A100, H100 4-GPU)."""

MESH_GPUS = 8
"""GPUs of the hybrid cube-mesh (DGX-1 and its cloud forms); fewer visible means that part of the mesh is elsewhere."""


@dataclass(frozen=True, slots=True)
class LinkCount:
    """One GPU's links. `active` is None when the evidence does not say, and `why` tells why."""

    gpu: Gpu
    spec: GpuSpec | None
    active: int | None = None
    why: str = ""
    skipped: bool = False
    """NVLink is no question for this GPU (no links in this form, MIG): neither healthy nor unknown."""
    confidence: Confidence = Confidence.HIGH
    evidence: tuple[Fact[str], ...] = ()
    down: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Expectation:
    """How many links a GPU should have up, and where the number comes from."""

    links: int
    derivation: str
    confidence: Confidence = Confidence.HIGH


def is_up(link: NvLink) -> bool | None:
    """Whether a link carries traffic; None when neither its state nor a rate was read."""
    if link.state.value is not None:
        return link.state.value.strip().lower() in GOOD
    return True if link.line_gbs.value else None


def no_question(gpu: Gpu) -> str:
    """Why NVLink is not to be judged on this GPU, or nothing when it is."""
    spec = gpu_spec(gpu)
    if gpu.mig.value:
        return "MIG is on: the driver reads its links as down"
    if spec is not None and spec.nvlinks == 0:
        return f"{spec.name} has no NVLink"
    return ""


def maybe_mig(node: Node) -> bool:
    """Whether MIG may be what makes all links look down: no GPU says that it is off, and the products can do it.

    With MIG on the driver reports every link as inactive. MIG came with A100 (8.0); the cards and workstation chips of
    that time (8.6, 8.9) lack it (NVIDIA MIG user guide, supported GPUs).
    """
    specs = [gpu_spec(gpu) for gpu in node.gpus]
    capable = any(spec is None or (spec.sm >= 80 and spec.sm not in (86, 89)) for spec in specs)
    return capable and not any(gpu.mig.known for gpu in node.gpus)


def training(node: Node, gpu: Gpu) -> bool:
    """Whether the links of a GPU may simply not have trained yet, whatever its fabric registration says."""
    waits = gpu.fabric.state.value in ("not_started", "in_progress")
    return (just_booted(node) or (waits and node.os.uptime_s.value is None)) and not gpu.mig.value


def count_links(node: Node) -> list[LinkCount]:
    """One count per GPU: from the links themselves, else from nvidia-smi's sentence, else from the matrix."""
    return [_count(node, gpu) for gpu in node.gpus]


def whole_mesh(gpus: Sequence[Gpu]) -> AmdGpu | None:
    """The product of AMD's that has one link to each of the GPUs that are there."""
    spec = amd_mesh(gpus)
    return spec if spec is not None and spec.links == len(gpus) - 1 else None


def all_joined_by_xgmi(node: Node) -> bool | None:
    """Whether xGMI joins each pair of GPUs of a product that is built so; None of others, and where a pair was not
    seen."""
    if whole_mesh(node.gpus) is None:
        return None
    pairs = [by_xgmi(word(node, a.label, b.label).value) for a, b in combinations(node.gpus, 2)]
    return None if None in pairs else all(pairs)


def _count(node: Node, gpu: Gpu) -> LinkCount:
    spec = gpu_spec(gpu)
    if why := no_question(gpu):
        return LinkCount(gpu, spec, why=why, skipped=True)
    if gpu.lost.value:
        return LinkCount(gpu, spec, why=f"the GPU does not answer ({gpu.lost.value})")
    if gpu.nvlinks:
        return _from_links(node, gpu, spec)
    note = (gpu.nvlink_note.value or "").lower()
    if "inactive" in note:
        return LinkCount(gpu, spec, 0, evidence=(gpu.nvlink_note,))
    counted = _from_matrix(node, gpu, spec)
    if counted is not None:
        return counted
    if note:
        return LinkCount(gpu, spec, why=f"the driver says of its NVLinks: {note}")
    return LinkCount(gpu, spec, why="neither its links nor an NVLink count in `topo -m` were seen")


def _from_links(node: Node, gpu: Gpu, spec: GpuSpec | None) -> LinkCount:
    states = [(link, is_up(link)) for link in gpu.nvlinks]
    active = sum(up is True for _, up in states)
    if why := _unseen_links(gpu, spec, active, unread=sum(up is None for _, up in states)):
        return LinkCount(gpu, spec, why=why)
    inactive = [link for link, up in states if up is False]
    down = tuple(link.index for link in inactive)
    evidence = tuple([link.state for link in inactive] or [gpu.nvlinks[-1].state])
    unlisted = spec.nvlinks - len(gpu.nvlinks) if spec is not None and spec.nvswitch and _may_be_cut(node, gpu) else 0
    if unlisted > 0 and not down:
        return LinkCount(gpu, spec, why=f"{len(gpu.nvlinks)} of its links are in the evidence, all up: the rest is not")
    if unlisted > 0:
        return LinkCount(gpu, spec, active + unlisted, confidence=Confidence.MEDIUM, evidence=evidence, down=down)
    return LinkCount(gpu, spec, active, evidence=evidence, down=down)


def _unseen_links(gpu: Gpu, spec: GpuSpec | None, active: int, unread: int) -> str:
    """Why links that the evidence does not show may change the count; empty where as many are up as the product has."""
    complete = spec is not None and active >= spec.nvlinks
    if unread and not (spec is not None and complete and not spec.bridged):
        return f"the state of {unread} of its links could not be read"
    gaps = max(link.index for link in gpu.nvlinks) + 1 - len(gpu.nvlinks)
    return f"{gaps} of its links are left out of the evidence" if gaps > 0 and not complete else ""


def _may_be_cut(node: Node, gpu: Gpu) -> bool:
    """Whether links may have been cut off: of the last GPU of a text, or of all alike. The driver lists a link that is
    down as inactive, so a list that is only short says nothing of the rest. NCCL's trees hold links
    that are up, without rates; their reader refuses one that was cut."""
    if not any(link.line_gbs.known or is_up(link) is False for link in gpu.nvlinks):
        return False
    listed = [gpu for gpu in node.gpus if gpu.nvlinks]
    return gpu is listed[-1] or len({len(gpu.nvlinks) for gpu in listed}) == 1


def _from_matrix(node: Node, gpu: Gpu, spec: GpuSpec | None) -> LinkCount | None:
    """The count that `topo -m` implies. Through NVSwitches every pair shows the lesser of both ends' links; where GPUs
    are joined directly, the words of a row add up."""
    row = [(word(node, gpu.label, peer.label), peer) for peer in node.gpus if peer.index != gpu.index]
    counts = [(count, fact) for fact, _ in row if (count := nvlink_count(fact.value)) is not None]
    if not counts:
        return None
    links = [count for count, _ in counts]
    evidence = tuple(fact for _, fact in counts)
    total, most = sum(links), max(links)
    if spec is not None and not spec.nvswitch:
        if spec.bridged or len(node.gpus) != MESH_GPUS:
            why = "the matrix alone cannot tell how many links its bridges or mesh should use"
            return LinkCount(gpu, spec, why=why)
        return LinkCount(gpu, spec, total, confidence=Confidence.MEDIUM, evidence=evidence)
    built = spec.nvlinks if spec is not None else None
    per_peer = built / (BOARD_WITHOUT_SWITCH - 1) if built else None
    if len(node.gpus) < BOARD_WITHOUT_SWITCH and most == per_peer:
        why = "part of a board that joins its GPUs directly: the links to the others are unseen"
        return LinkCount(gpu, spec, why=why)
    direct = built is not None and len(node.gpus) == BOARD_WITHOUT_SWITCH and total <= built
    return LinkCount(gpu, spec, total if direct else most, confidence=Confidence.MEDIUM, evidence=evidence)


def expect(node: Node, count: LinkCount, counts: list[LinkCount]) -> Expectation | None:
    """How many links this GPU should have up: its product's, where its board uses them all; else its peers'.

    None where the evidence allows no expectation.
    """
    alike = [other.active for other in counts if other.gpu.name.value == count.gpu.name.value]
    siblings = [active for active in alike if active is not None]
    lone = len(siblings) < 2
    common = None if lone else majority(siblings)
    spec = count.spec
    if spec is None:
        return _expect_of_siblings(siblings, common) or _expect_of_whole(count, counts)
    if spec.nvswitch:
        return _expect_of_switches(node, count, spec, common)
    if spec.bridged:
        return _expect_of_pair(count, siblings) if count.active == 0 else _expect_of_siblings(siblings, common)
    if common in (None, spec.nvlinks):
        whole = spec.nvlinks in siblings and not node.is_vm
        return _expect_of_mesh(node, count, spec, lone, common is not None or (whole and bool(count.down)))
    return _expect_of_siblings(siblings, common)


def _expect_of_siblings(siblings: list[int], common: int | None) -> Expectation | None:
    """What most of at least three GPUs of one product have up, where the product itself does not settle it."""
    if not common or len(siblings) < 3:
        return None
    return Expectation(common, f"{common} on {siblings.count(common)} of {len(siblings)} peers", Confidence.MEDIUM)


def _expect_of_whole(count: LinkCount, counts: list[LinkCount]) -> Expectation | None:
    """What a GPU of unknown product should have, some of whose links are down: all that it shows, where a GPU that
    shows as many has them all up. Without any link up it may have no bridge."""
    shown = (count.active or 0) + len(count.down)
    whole = any(other.active == shown and not other.down for other in counts)
    return Expectation(shown, f"{shown} on a peer with as many", Confidence.MEDIUM) if count.active and whole else None


def _expect_of_switches(node: Node, count: LinkCount, spec: GpuSpec, common: int | None) -> Expectation:
    """What a GPU behind NVSwitches should have: all links of its product, but in a guest that holds part of the board
    as many as its peers there."""
    part = node.is_vm and len(node.gpus) < MESH_GPUS
    if part and common is not None and 0 < common < spec.nvlinks:
        return Expectation(common, f"{common} on its peers in this part of the board", Confidence.MEDIUM)
    return Expectation(spec.nvlinks, f"{spec.nvlinks} on {spec.name} ({spec.source})", count.confidence)


def _expect_of_mesh(node: Node, count: LinkCount, spec: GpuSpec, lone: bool, agreed: bool) -> Expectation | None:
    """What a GPU should have whose board joins GPUs directly: its product's links, unless its peers do not agree, or
    it stands alone in a guest or without any link. On bare metal a peer with all links shows that the board uses
    them, and settles it for a GPU some of whose links are listed as down."""
    unsure = not agreed and not lone
    if unsure or (lone and (node.is_vm or count.active == 0)):
        return None
    confidence = Confidence.MEDIUM if lone else count.confidence
    return Expectation(spec.nvlinks, f"{spec.nvlinks} on {spec.name} ({spec.source})", confidence)


def _expect_of_pair(count: LinkCount, siblings: list[int]) -> Expectation | None:
    """What a card without any link should have where bridges join its peers.

    Cards sold as NVL are made to stand in bridged groups: at least half of the node's are joined, and as many are left
    as one bridge joins. Of other cards it is usual to bridge some and not the rest.
    """
    linked = [links for links in siblings if links]
    left = len(siblings) - len(linked)
    common = majority(linked)
    bridged = "NVL" in count.gpu.name.get("").upper().split()
    if not bridged or not common or len(linked) < 2 or len(linked) < left or left % 2:
        return None
    of = f"{common} on {linked.count(common)} of {len(siblings)} peers, joined by bridges"
    return Expectation(common, f"{of} (MIG would hide them, too)", Confidence.MEDIUM)


def gbs_per_link(count: LinkCount) -> float | None:
    """What NCCL assumes of one link of this GPU, GB/s in one direction."""
    if count.spec is not None and count.spec.nvlink_nccl_gbs > 0:
        return count.spec.nvlink_nccl_gbs
    return nvlink_nccl_gbs(count.gpu.sm.value) if count.gpu.sm.value else None
