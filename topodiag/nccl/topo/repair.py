"""What a sick topology would be if it were like its own healthy parts: the repairs that its siblings ask for.

NCCL believes the tree. A GPU whose NVLinks did not come up, a slot that trained to few lanes, a NIC that the firmware
shows at another place make it search on a machine that is not the one that was bought; often a topology file is
enough to get most of it back until the hardware is mended. Only a clear majority of siblings speaks; where they do not
agree nothing is repaired.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from topodiag.lazy import dataclass
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.changes import bus_of, edited, nvlinks_of, pruned, with_nvlinks, with_pcie

T = TypeVar("T")

LEAST_SIBLINGS = 2
"""Healthy siblings that must agree before another one is made like them."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair: what is repaired in words, and what still wants attention."""

    words: str
    attention: str


@dataclass(frozen=True, slots=True)
class Repaired:
    tree: Element
    repairs: tuple[Repair, ...] = ()


def repair(tree: Element) -> Repaired:
    """The tree with every repair that its siblings ask for, in the order NVLinks, lanes and speeds, places of NICs."""
    repairs: list[Repair] = []
    for step in (_nvlinks, _reverse_links, _pcie, _places):
        tree, steps = step(tree)
        repairs.extend(steps)
    return Repaired(tree, tuple(repairs))


def _gpu_functions(tree: Element) -> list[Element]:
    return [element for element in tree.walk() if element.tag == "pci" and element.having("gpu")]


def _label(pci: Element) -> str:
    gpu = next(iter(pci.having("gpu")), None)
    if gpu is not None:
        return f"GPU{gpu.get('dev')}" if gpu.get("dev") else f"the GPU at {bus_of(pci)}"
    return ", ".join(net.get("name") or "?" for net in pci.nets) or f"the switch {bus_of(pci)}"


def _is_switched(link: Element) -> bool:
    tclass = link.get("tclass") or "0x068000"
    return not tclass.startswith(("0x03", "0x068001"))


def clear_majority(values: Iterable[T], of: int | None = None) -> T | None:
    """What most siblings have: more than half of them (of so many, where not all say what they have), and at least
    LEAST_SIBLINGS."""
    tally = Counter(values)
    if not tally:
        return None
    value, count = tally.most_common(1)[0]
    return value if count >= LEAST_SIBLINGS and count * 2 > (tally.total() if of is None else of) else None


def nvlink_totals(tree: Element) -> dict[str, int]:
    """NVLinks to NVSwitches of each GPU by its bus id; empty where GPUs are joined directly, too."""
    gpus = _gpu_functions(tree)
    if any(link.number("count") and not _is_switched(link) for pci in gpus for link in nvlinks_of(pci)):
        return {}
    return {bus_of(pci): sum(link.number("count") for link in nvlinks_of(pci) if _is_switched(link)) for pci in gpus}


def _nvlinks(tree: Element) -> tuple[Element, list[Repair]]:
    """GPUs of an NVSwitch machine with fewer links than their siblings get those of a sibling."""
    gpus = _gpu_functions(tree)
    totals = nvlink_totals(tree)
    usual = clear_majority(totals.values())
    if not usual:
        return tree, []
    model = next(pci for pci in gpus if totals[bus_of(pci)] == usual)
    fewer = {bus: nvlinks_of(model) for bus, have in totals.items() if have < usual}
    repairs = []
    for pci in gpus:
        have = totals[bus_of(pci)]
        if have < usual:
            words = f"{_label(pci)}: {have} NVLinks to NVSwitches restored to {usual}, as its peers have"
            repairs.append(Repair(words, f"NVLinks of {_label(pci)} are down (nvidia-smi nvlink -s)"))
    return with_nvlinks(tree, fewer), repairs


def _reverse_links(tree: Element) -> tuple[Element, list[Repair]]:
    """A direct link that only one end names, or that the ends count differently: both ends get the greater count.
    NCCL refuses a link without its reverse (`Failed to find reverse path`)."""
    gpus = {bus_of(pci): pci for pci in _gpu_functions(tree)}
    counts: Counter[tuple[str, str]] = Counter()
    for bus, pci in gpus.items():
        for link in nvlinks_of(pci):
            target = bus_of(link, "target")
            if not _is_switched(link) and target in gpus and target != bus:
                counts[bus, target] += link.number("count")
    links: dict[str, tuple[Element, ...]] = {}
    repairs = []
    for (bus, target), count in sorted(counts.items()):
        back = counts.get((target, bus), 0)
        if back < count:
            there = links.get(target, nvlinks_of(gpus[target]))
            kept = (link for link in there if bus_of(link, "target") != bus)
            new = Element("nvlink", (("target", bus), ("count", str(count)), ("tclass", "0x030200")))
            links[target] = (*kept, new)
            pair = f"{_label(gpus[target])} to {_label(gpus[bus])}"
            repairs.append(Repair(f"{pair}: {back} NVLinks made {count}, as the other end counts", f"NVLinks {pair}"))
    return with_nvlinks(tree, links), repairs


def _pcie(tree: Element) -> tuple[Element, list[Repair]]:
    """Functions with fewer lanes or a lower speed than most of their kind: GPUs, switches above GPUs, equal NICs."""
    values: dict[str, dict[str, str]] = {}
    repairs = []
    for kind in _kinds(tree).values():
        for name, words in (("link_width", "lanes"), ("link_speed", "speed")):
            usual = clear_majority(pci.get(name) or "" for pci in kind) or ""
            for pci in kind if usual else ():
                value = pci.get(name) or ""
                if value == usual or _rank(value) >= _rank(usual):
                    continue
                values.setdefault(bus_of(pci), {})[name] = usual
                was = f"{value or 'no'} {words}" if name == "link_width" else f"{value or 'no speed'}"
                attention = f"the PCIe link of {_label(pci)} trained low: reseat, or look at the slot"
                repairs.append(Repair(f"{_label(pci)}: {was} made {usual}, as its peers have", attention))
    return with_pcie(tree, values), repairs


@dataclass(frozen=True, slots=True)
class NarrowFunction:
    """A function of a tree with `lanes` of PCIe where most of its kind have `usual`. `label` names the device."""

    pci: Element
    label: str
    lanes: int
    usual: int
    siblings: int

    @property
    def is_gpu(self) -> bool:
        return bool(self.pci.having("gpu"))


def narrow_functions(tree: Element) -> tuple[tuple[NarrowFunction, ...], int]:
    """GPUs, NICs and switches above GPUs with fewer lanes than a clear majority of their kind, and how many functions
    have a width at all."""
    narrow, seen = [], 0
    for kind in _kinds(tree).values():
        lanes = [pci.number("link_width") for pci in kind]
        seen += sum(width > 0 for width in lanes)
        usual = clear_majority(lanes)
        for pci, count in zip(kind, lanes, strict=True):
            if usual and 0 < count < usual:
                narrow.append(NarrowFunction(pci, _label(pci), count, usual, len(kind) - 1))
    return tuple(narrow), seen


def _rank(text: str) -> float:
    match = re.match(r"[0-9]{1,4}(?:\.[0-9])?", text)
    return float(match[0]) if match else 0.0


def _kinds(tree: Element) -> dict[tuple[str, ...], list[Element]]:
    """Functions that should be alike: GPUs of one sm, NICs of one speed, switches above GPUs by their height."""
    kinds: dict[tuple[str, ...], list[Element]] = defaultdict(list)

    def walk(element: Element) -> int:
        """Fill `kinds`; the height of the nearest GPU below, 0 for a GPU itself, -1 without."""
        below = [walk(child) for child in element.children]
        if element.tag != "pci":
            return max(below, default=-1)
        gpu = next(iter(element.having("gpu")), None)
        if gpu is not None:
            kinds["gpu", gpu.get("sm") or ""].append(element)
            return 0
        if element.nets:
            kinds["nic", element.nets[0].get("speed") or "", element.get("device") or ""].append(element)
            return -1
        height = max((element for element in below if element >= 0), default=-1)
        if height < 0:
            return -1
        kinds["switch", str(height), element.get("device") or ""].append(element)
        return height + 1

    walk(tree)
    return kinds


@dataclass(frozen=True, slots=True)
class _Branch:
    """What hangs below a processor by one root: its GPUs and NICs."""

    root: Element
    gpus: int
    nics: tuple[Element, ...]


def _branches(tree: Element) -> Iterator[_Branch]:
    for cpu in tree.having("cpu"):
        for root in cpu.having("pci"):
            gpus = sum(element.tag == "gpu" for element in root.walk())
            nics = tuple(element for element in root.walk() if element.tag == "pci" and element.having("nic"))
            yield _Branch(root, gpus, nics)


def _speed(nic: Element) -> str:
    return next((net.get("speed") or "" for net in nic.nets), "")


def _places(tree: Element) -> tuple[Element, list[Repair]]:
    """A NIC away from the GPUs, where one branch of GPUs lacks the NIC that all the others have: it goes there."""
    branches = list(_branches(tree))
    with_gpus = [branch for branch in branches if branch.gpus]
    usual_gpus = clear_majority(branch.gpus for branch in with_gpus)
    alike = [branch for branch in with_gpus if branch.gpus == usual_gpus]
    if len(alike) <= LEAST_SIBLINGS:
        return tree, []
    for speed in Counter(_speed(nic) for branch in alike for nic in branch.nics):
        counts = [sum(_speed(nic) == speed for nic in branch.nics) for branch in alike]
        stray = [nic for branch in branches if not branch.gpus for nic in branch.nics if _speed(nic) == speed]
        placed = _placed(tree, list(zip(alike, counts, strict=True)), stray, speed)
        if placed is not None:
            return placed[0], [placed[1]]
    return tree, []


def _placed(
    tree: Element, counted: Sequence[tuple[_Branch, int]], stray: Sequence[Element], speed: str
) -> tuple[Element, Repair] | None:
    """The one stray NIC of a speed put where the one branch lacks it; `counted` are branches with how many they have.
    None where it cannot be told which NIC belongs where."""
    usual = clear_majority(count for _, count in counted)
    if not usual:
        return None
    poor = [branch for branch, count in counted if count == usual - 1]
    if len(poor) != 1 or len(stray) != 1:
        return None
    model = next(branch for branch, count in counted if count == usual)
    moved = _moved(tree, stray[0], poor[0], model, speed)
    if moved is None:
        return None
    near = next(pci for pci in poor[0].root.walk() if pci.tag == "pci" and pci.having("gpu"))
    words = f"{_label(stray[0])}: put beside {_label(near)}, where the other GPUs have theirs"
    what = f"{_label(stray[0])} sits in another slot than its peers, or the firmware shows it there"
    return moved, Repair(words, what)


def _moved(tree: Element, nic: Element, to: _Branch, model: _Branch, speed: str) -> Element | None:
    """The tree with a NIC at the height below the root at which the model's NIC of that speed hangs."""
    depth = _depth(model.root, next(nic for nic in model.nics if _speed(nic) == speed))
    parent = to.root
    for _ in range(depth - 1):
        parent = next(
            (child for child in parent.having("pci") if not child.having("gpu") and not child.having("nic")), parent
        )
    if parent.having("gpu") or parent.having("nic"):
        return None
    bus = bus_of(nic)

    def edit(element: Element) -> Element:
        here = element.tag == "pci" and bus_of(element) == bus_of(parent)
        return replace(element, children=(*element.children, nic)) if here else element

    bare = pruned(tree, lambda element: element.tag == "pci" and bus_of(element) == bus)
    return edited(bare, edit) if bare else None


def _depth(root: Element, wanted: Element) -> int:
    """Steps from a root down to an element, 0 for the root itself."""
    if root is wanted:
        return 0
    return min(
        (1 + _depth(child, wanted) for child in root.having("pci") if any(e is wanted for e in child.walk())), default=0
    )
