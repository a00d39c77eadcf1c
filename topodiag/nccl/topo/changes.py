"""What if: a topology tree with a fault or a repair in it, and NCCL settings that stand for a feature switched off.

A change is a function from tree to tree; nothing is changed in place. Devices are named as everywhere: `GPU3` (NVML
index, the `dev` of the file), a NIC's name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import lru_cache, reduce

from topodiag.lazy import dataclass, regex
from topodiag.model.devices import ports_of
from topodiag.model.nccl_tree import Element
from topodiag.nccl.numbers import c_int
from topodiag.nccl.topo.detect import GT_PER_S, link_speed
from topodiag.nccl.topo.hca_list import HcaFilter
from topodiag.words.own_data import own_data
from topodiag.words.units import in_gbps, plural

OFF: Mapping[str, tuple[str, str]] = {
    name: (variable, value) for name, (variable, value) in own_data("nccl/settings")["off"].items()
}
"""Features by the setting that switches them off."""

WIDTHS = (1, 2, 4, 8, 12, 16, 32)
_MOST_LINKS = 10_000
"""NVLinks to one target that are taken away one by one: any real machine has fewer than a hundred."""
_GPU = regex(r"(?:gpu:)?GPU([0-9]{1,4})", re.IGNORECASE)
_NVLINK = regex(r"nvlink:GPU([0-9]{1,4})(?:-GPU([0-9]{1,4}))?(?::([0-9]{1,3}|all))?", re.IGNORECASE)


class ChangeError(ValueError):
    """A change that cannot be read, or that names what is not there. The message is for the user."""


Edit = Callable[[Element], Element]


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what it is in words, the edit of the tree, and the settings that come with it."""

    words: str
    edit: Edit = field(default=lambda tree: tree, compare=False)
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ChangedTree:
    tree: Element
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EditedTree:
    """The tree, and what was done to it, one sentence each."""

    tree: Element
    done: tuple[str, ...] = ()


def apply(tree: Element, changes: Sequence[Change], env: Mapping[str, str] | None = None) -> ChangedTree:
    """The tree and the settings after all changes, in their order. Raises ChangeError."""
    settings = dict(env or {})
    for change in changes:
        tree = _after(tree, change)
        settings.update(change.env)
    return ChangedTree(tree, settings)


@lru_cache(maxsize=1024)
def _after(tree: Element, change: Change) -> Element:
    """The tree after one change. Kept, as every guess at a cause of many runs changes the same machine; the words of a
    change say all of it."""
    return change.edit(tree)


def down(text: str) -> Change:
    """`nvlink:GPU3:6` (6 links of GPU3), `nvlink:GPU3` (all of them), `nvlink:GPU3-GPU5:2` (2 between two GPUs)."""
    match = _NVLINK.fullmatch(text.strip())
    if match is None or (match[3] or "all").strip("0") == "":
        raise ChangeError(f"{text!r}: write nvlink:GPU3:6, nvlink:GPU3 or nvlink:GPU3-GPU5:2")
    gpu, peer = int(match[1]), int(match[2]) if match[2] else None
    count = None if match[3] in (None, "all") else int(match[3])
    between = f" to GPU{peer}" if peer is not None else ""
    words = f"{'all NVLinks' if count is None else plural(count, 'NVLink')} of GPU{gpu}{between} down"
    return Change(words, lambda tree: _lower(tree, gpu, peer, count))


def remove(text: str) -> Change:
    """`nic:mlx5_4`, `mlx5_4`, `nic:mlx5_*`, `mlx5_0+mlx5_1` (all ports of a virtual NIC), `GPU3`."""
    match = _GPU.fullmatch(text.strip())
    if match is not None:
        number = int(match[1])
        return Change(f"GPU{number} removed", lambda tree: _without_gpu(tree, number))
    name = text.strip().removeprefix("nic:")
    if not name:
        raise ChangeError(f"{text!r}: write nic:mlx5_4 or GPU3")
    return Change(f"{name} removed", lambda tree: reduce(_without_nic, ports_of(name), tree))


def width(text: str) -> Change:
    """`GPU5=4`, `mlx5_0=8`: the PCIe lanes of a device."""
    device, lanes = _pair(text, "GPU5=4")
    if lanes not in map(str, WIDTHS):
        raise ChangeError(f"{text!r}: PCIe links have {', '.join(map(str, WIDTHS))} lanes")
    return Change(f"{device} at x{lanes}", lambda tree: _on_each(tree, device, {"link_width": lanes}))


def speed(text: str) -> Change:
    """`GPU5=gen3`: the PCIe generation of a device."""
    device, gen = _pair(text, "GPU5=gen3")
    number = gen.lower().removeprefix("gen")
    if number not in map(str, GT_PER_S):
        raise ChangeError(f"{text!r}: PCIe generations are gen1 to gen{max(GT_PER_S)}")
    speed_text = link_speed(int(number))
    return Change(f"{device} at Gen{number}", lambda tree: _on_each(tree, device, {"link_speed": speed_text}))


def rate(text: str) -> Change:
    """`mlx5_0=200`: the rate of a NIC's port in Gb/s; of each port for a virtual NIC, `mlx5_0+mlx5_1=200`."""
    name, gbps = _pair(text, "mlx5_0=200")
    if not re.fullmatch(r"[0-9]{1,5}", gbps) or int(gbps) == 0:
        raise ChangeError(f"{text!r}: the rate is in whole Gb/s, such as 200")
    mbps, ports = int(gbps) * 1000, ports_of(name)
    return Change(
        f"{name} at {in_gbps(int(gbps))}{' each' if len(ports) > 1 else ''}",
        lambda tree: reduce(lambda element, port: _rate(element, port, mbps), ports, tree),
    )


def off(text: str) -> Change:
    """A feature switched off, by its setting: one of OFF."""
    pair = OFF.get(text.strip().lower())
    if pair is None:
        raise ChangeError(f"{text!r}: can be off: {', '.join(OFF)}")
    return Change(f"{text.strip().lower()} off ({'='.join(pair)})", env=(pair,))


def setting(text: str) -> Change:
    """`NCCL_P2P_LEVEL=PHB`."""
    name, value = _pair(text, "NCCL_P2P_LEVEL=PHB")
    return Change(f"{name}={value}", env=((name, value),))


def _pair(text: str, example: str) -> tuple[str, str]:
    left, equals, right = text.strip().partition("=")
    if not (equals and left.strip() and right.strip()):
        raise ChangeError(f"{text!r}: write it like {example}")
    return left.strip(), right.strip()


def edited(tree: Element, edit: Callable[[Element], Element | None]) -> Element:
    """The tree with `edit` applied to all below it and then to itself; None drops an element below."""
    return _edited(tree, edit) or tree


def _edited(element: Element, edit: Callable[[Element], Element | None]) -> Element | None:
    """The same of any element; None drops it. NCCL's trees are shallow: the reader bounds their depth."""
    kept = tuple(edited for child in element.children if (edited := _edited(child, edit)) is not None)
    return edit(element if kept == element.children else replace(element, children=kept))


def pruned(element: Element, is_lost: Callable[[Element], bool]) -> Element | None:
    """A branch without some elements, and without bridges that then lead nowhere."""
    if is_lost(element):
        return None
    children = tuple(kept for child in element.children if (kept := pruned(child, is_lost)) is not None)
    if element.tag == "pci" and element.children and not children:
        return None
    return element if children == element.children else replace(element, children=children)


def with_values(element: Element, values: Mapping[str, str]) -> Element:
    """The element with attributes set: in their place where they are, behind where they are new."""
    there = {name for name, _ in element.attributes}
    kept = tuple((name, values.get(name, value)) for name, value in element.attributes)
    return replace(element, attributes=kept + tuple((n, v) for n, v in values.items() if n not in there))


def gpus_of(tree: Element) -> dict[int, Element]:
    """The `<pci>` of every GPU by its number: `dev`, or the order of the file where that lacks."""
    elements: dict[int, Element] = {}
    for element in tree.walk():
        for gpu in element.having("gpu") if element.tag == "pci" else ():
            text = gpu.get("dev") or ""
            elements.setdefault(int(text) if re.fullmatch(r"[0-9]{1,4}", text) else len(elements), element)
    return elements


def ways_down(tree: Element) -> Iterator[tuple[Element, ...]]:
    """From each processor down to itself and to each element below it, in the order of the tree."""

    def walk(way: tuple[Element, ...]) -> Iterator[tuple[Element, ...]]:
        yield way
        for child in way[-1].children:
            yield from walk((*way, child))

    for cpu in tree.having("cpu"):
        yield from walk((cpu,))


def nets_of(tree: Element) -> list[str]:
    return [element.get("name") or "" for element in tree.walk() if element.tag == "net"]


def _gpu(tree: Element, number: int) -> Element:
    gpus = gpus_of(tree)
    if number not in gpus:
        there = ", ".join(f"GPU{gpu}" for gpu in sorted(gpus)) or "no GPU"
        raise ChangeError(f"no GPU{number} in this topology; there is {there}")
    return gpus[number]


def bus_of(element: Element, name: str = "busid") -> str:
    """Its bus id (with "target" the far end of a link) as trees are compared by it, "" without one."""
    return (element.get(name) or "").lower()


def nvlinks_of(pci: Element) -> tuple[Element, ...]:
    """The NVLinks of the GPU on a function."""
    return tuple(link for gpu in pci.having("gpu") for link in gpu.having("nvlink"))


def with_nvlinks(tree: Element, links: Mapping[str, tuple[Element, ...]]) -> Element:
    """The tree with these NVLinks at the GPUs of these bus ids."""

    def edit(pci: Element) -> Element:
        mine = links.get(bus_of(pci)) if pci.tag == "pci" else None
        return replace(pci, children=tuple(linked(child, mine) for child in pci.children)) if mine is not None else pci

    def linked(gpu: Element, mine: tuple[Element, ...]) -> Element:
        rest = (child for child in gpu.children if child.tag != "nvlink")
        return replace(gpu, children=(*mine, *rest)) if gpu.tag == "gpu" else gpu

    return edited(tree, edit)


def with_pcie(tree: Element, values: Mapping[str, Mapping[str, str]]) -> Element:
    """The tree with these attributes, speeds and lanes for one, at the functions of these bus ids."""

    def edit(element: Element) -> Element:
        mine = values.get(bus_of(element)) if element.tag == "pci" else None
        return with_values(element, mine) if mine is not None else element

    return edited(tree, edit)


def with_nets(tree: Element, change: Callable[[Element], Element | None]) -> Element:
    """The tree with every `<net>` changed, None takes it out; functions that are left empty go, too."""

    def edit(element: Element) -> Element | None:
        if element.tag == "net":
            return change(element)
        return None if element.tag in ("nic", "pci") and not element.children else element

    return edited(tree, edit)


def _lower(tree: Element, number: int, peer: int | None, count: int | None) -> Element:
    """NVLinks taken away at both ends, from the target with most of them first."""
    pci = _gpu(tree, number)
    far = bus_of(_gpu(tree, peer)) if peer is not None else None
    counts: Counter[str] = Counter()
    for link in nvlinks_of(pci):
        target = bus_of(link, "target")
        if far in (None, target):
            counts[target] += min(link.number("count"), _MOST_LINKS)
    there = sum(counts.values())
    if not there:
        raise ChangeError(f"GPU{number} has no NVLink{'' if peer is None else f' to GPU{peer}'} in this topology")
    if count is not None and count > there:
        raise ChangeError(f"GPU{number} has {there} NVLinks{'' if peer is None else f' to GPU{peer}'}, not {count}")
    left = dict(counts)
    for _ in range(there if count is None else count):
        left[max(left, key=lambda target: left[target])] -= 1
    mine = bus_of(pci)

    def edit(element: Element) -> Element:
        if element.tag != "pci" or not element.having("gpu"):
            return element
        here = bus_of(element)
        if here == mine:
            return _links(element, left)
        lost = counts.get(here, 0) - left.get(here, 0)
        if not lost:
            return element
        back = sum(link.number("count") for link in nvlinks_of(element) if bus_of(link, "target") == mine)
        return _links(element, {mine: max(back - lost, 0)})

    return edited(tree, edit)


def _links(pci: Element, left: Mapping[str, int]) -> Element:
    """The GPU with these many links per target; targets without any are left out, as NVML leaves out what is down."""
    open_counts = dict(left)

    def edit(element: Element) -> Element | None:
        target = bus_of(element, "target")
        if element.tag != "nvlink" or target not in open_counts:
            return element
        count = min(element.number("count"), open_counts[target])
        open_counts[target] -= count
        return with_values(element, {"count": str(count)}) if count else None

    return edited(pci, edit)


def _without_gpu(tree: Element, number: int) -> Element:
    bus = bus_of(_gpu(tree, number))

    def edit(element: Element) -> Element | None:
        if element.tag == "nvlink":
            return element if bus_of(element, "target") != bus else None
        return None if element.tag == "pci" and element.having("gpu") and bus_of(element) == bus else element

    return edited(tree, edit)


def _without_nic(tree: Element, pattern: str) -> Element:
    if not any(fnmatchcase(name, pattern) for name in nets_of(tree)):
        raise ChangeError(f"no NIC {pattern} in this topology; there is {', '.join(nets_of(tree)) or 'none'}")
    return with_nets(tree, lambda net: None if fnmatchcase(net.get("name") or "", pattern) else net)


def _on_each(tree: Element, device: str, values: Mapping[str, str]) -> Element:
    """The same of all functions behind the name of a virtual NIC."""
    return reduce(lambda element, port: _on_pci(element, port, values), ports_of(device), tree)


def _on_pci(tree: Element, device: str, values: Mapping[str, str]) -> Element:
    """Attributes of the PCI function of a GPU or a NIC."""
    match = _GPU.fullmatch(device)
    bus = bus_of(_gpu(tree, int(match[1]))) if match else None
    done = 0

    def edit(element: Element) -> Element:
        nonlocal done
        if element.tag != "pci":
            return element
        nets = [net.get("name") for net in element.nets]
        if bus_of(element) == bus if bus is not None else device in nets:
            done += 1
            return with_values(element, values)
        return element

    result = edited(tree, edit)
    if not done:
        raise ChangeError(f"no device {device} in this topology; NICs: {', '.join(nets_of(tree)) or 'none'}")
    return result


def _rate(tree: Element, name: str, mbps: int) -> Element:
    if name not in nets_of(tree):
        raise ChangeError(f"no NIC {name} in this topology; there is {', '.join(nets_of(tree)) or 'none'}")

    def edit(element: Element) -> Element:
        named = element.tag == "net" and element.get("name") == name
        return with_values(element, {"speed": str(mbps)}) if named else element

    return edited(tree, edit)


def by_hca_list(tree: Element, text: str, *, rails: bool) -> Element | None:
    """The tree with the ports that an NCCL_IB_HCA leaves; `rails`: on the rails and planes that it names, where the
    tree has none. None where it leaves none of its ports: it is of another machine, or NCCL finds no RDMA device."""
    wanted = HcaFilter(text)
    seen = taken = 0

    def edit(net: Element) -> Element | None:
        nonlocal seen, taken
        port = c_int(net.get("port") or "1")
        if port <= 0:  # sockets have none, and no such list
            return net
        names = [name for name in ports_of(net.get("name") or "") if wanted.takes(name, port)]
        seen, taken = seen + 1, taken + len(names)
        if not names:
            return None
        place = wanted.place(names[0], port) if rails else {}
        return with_values(net, {key: value for key, value in place.items() if net.get(key) is None})

    result = with_nets(tree, edit)
    return result if taken or not seen else None
