"""A topology tree made fit to be given to NCCL as NCCL_TOPO_FILE: of one node, without what belongs to one run only.

A dump is written after ranks were merged: it carries ranks, and the hash of the host and boot, and in a multi-node
NVLink domain (MNNVL) the trees of all its hosts. Used as it is, the ranks are overwritten or trimmed, and foreign hosts
stay in the way (src/graph/xml.cc and topo.cc, v2.28). Limits are those of src/graph/xml.h by version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from topodiag.model.nccl_tree import Element, of_rccl
from topodiag.model.nccl_versions import MAX_CHILDREN, MAX_ELEMENTS, Feature, has, spell_version
from topodiag.nccl.graph.attach import NESTING
from topodiag.nccl.topo.changes import EditedTree, edited, with_values
from topodiag.words.own_data import own_data
from topodiag.words.units import few

_ELEMENTS = own_data("nccl/elements")
SINCE = {name: Feature[feature] for name, feature in _ELEMENTS["since"].items()}
RUN_ONLY: Mapping[str, str] = _ELEMENTS["run_only"]
KNOWN: Mapping[str, str] = _ELEMENTS["known"]
RCCL_KNOWN = {**KNOWN, **_ELEMENTS["rccl"]}
"""Attributes by element, as elements.toml describes them."""

MAX_ATTRIBUTES = 16
NVSWITCH_CLASS = "0x068000"


class UnfitError(ValueError):
    """A tree that cannot be made fit for a version; the message is for the user."""


def hosts_of(tree: Element) -> list[str]:
    """The distinct hosts of a tree by their hash, in the order of the file; one "" when it names none."""
    return list(dict.fromkeys(cpu.get("host_hash") or "" for cpu in tree.having("cpu"))) or [""]


def one_host(tree: Element, host: str | None = None) -> EditedTree:
    """The part of one host; `host` is a host_hash, None takes the first. Raises UnfitError where it is not there."""
    hosts = hosts_of(tree)
    if host is not None and host not in hosts:
        raise UnfitError(f"no host {host} in this file; there are {', '.join(host or '(no hash)' for host in hosts)}")
    if len(hosts) == 1:
        return EditedTree(tree)
    wanted = host if host is not None else hosts[0]
    part = replace(tree, children=tuple(c for c in tree.children if (c.get("host_hash") or "") == wanted))
    return EditedTree(part, (f"cut host {wanted or 'without hash'} out of a dump of {len(hosts)} hosts",))


def bare(tree: Element, minor: int, host: str | None = None) -> EditedTree:
    """The tree of one node without what belongs to one run; a further step may still bring it within the limits: the
    flat tree of a guest has all devices below one processor. Raises UnfitError without a GPU."""
    single = one_host(tree, host)
    tree, done = single.tree, list(single.done)
    root = _bare(tree, minor, RCCL_KNOWN if of_rccl(tree) else KNOWN)
    if not root.holds("gpu"):
        raise UnfitError("there is no GPU in it")
    lost = sorted(_dropped(tree, root))
    if lost:
        done.append(f"left out attributes that NCCL does not read from a file: {few(lost, 8)}")
    root = _numbered(root, done)
    return EditedTree(root, tuple(done))


def undescribed(tree: Element) -> Element:
    """Processors and PCI functions alone, as clouds ship their files: NCCL looks up GPUs, NVLinks and NICs by itself,
    and finds their places here by bus id (src/graph/xml.cc, ncclTopoFillGpu and ncclTopoFillNet, v2.28)."""
    below = tuple(undescribed(child) for child in tree.children if child.tag in ("cpu", "pci", "pcilink"))
    return replace(tree, children=below)


def fitted(tree: Element, minor: int) -> EditedTree:
    """The tree within the limits of NCCL 2.`minor`, the links to NVSwitches joined where that helps. Raises UnfitError
    where it stays beyond them."""
    done: list[str] = []
    element = tree
    if _count(element) > MAX_ELEMENTS[minor]:
        element = _merged_switches(element, done)
    if (count := _count(element)) > MAX_ELEMENTS[minor]:
        raise UnfitError(f"it has {count} elements, and NCCL {spell_version(minor)} takes {MAX_ELEMENTS[minor]}")
    crowded = next((e for e in element.walk() if len(e.children) > MAX_CHILDREN[minor]), None)
    if crowded is not None:
        where = crowded.get("busid") or crowded.get("numaid") or ""
        limit = MAX_CHILDREN[minor]
        raise UnfitError(f"<{crowded.tag}> {where} has {len(crowded.children)} children, and NCCL takes {limit}")
    return EditedTree(element, tuple(done))


def _bare(element: Element, minor: int, names: Mapping[str, str], tag: str = "system") -> Element:
    """Only what NCCL knows, without what belongs to one run, and without branches that lead to no GPU and no NIC."""
    known = set(names.get(tag, "").split()) - set(RUN_ONLY.get(tag, "").split())
    kept: dict[str, str] = {}
    for name, value in element.attributes:
        if name in known and (name not in SINCE or has(minor, SINCE[name])):
            kept.setdefault(name, value)
    if tag == "pci" and not kept.get("class"):
        kept["class"] = _class_of(element)
    attributes = list(kept.items())[:MAX_ATTRIBUTES]
    if tag == "system" and element.get("version") != "1" and not of_rccl(element):
        attributes = [("version", "1"), *((n, v) for n, v in attributes if n != "version")]
    children = tuple(
        _bare(child, minor, names, child.tag) for child in element.children if child.tag in NESTING.get(tag, ())
    )
    return Element(tag, tuple(attributes), tuple(child for child in children if _leads(child)))


def _class_of(pci: Element) -> str:
    """The PCI class of a function that does not say it, by what is on it: NCCL refuses one without."""
    return "0x030200" if pci.having("gpu") else "0x020000" if pci.having("nic") else "0x060400"


def _leads(element: Element) -> bool:
    """Whether a branch holds a GPU or a NIC: NCCL trims the others anyway."""
    if element.tag in ("cpu", "pci", "nic"):
        return any(below.tag in ("gpu", "net") for below in element.walk())
    return True


def _dropped(before: Element, after: Element) -> set[str]:
    def names(tree: Element) -> set[str]:
        return {name for element in tree.walk() for name, _ in element.attributes if name}

    return names(before) - names(after)


def _numbered(tree: Element, done: list[str]) -> Element:
    """Numbers of GPUs and NETs are those of one node: 0, 1, 2, ... Hosts cut out of a larger dump carry others."""
    nets = [net for net in tree.walk() if net.tag == "net"]
    given = [net.get("dev") for net in nets]
    wanted = [str(number) for number in range(len(nets))]
    if sorted(map(str, given)) == sorted(wanted) or not all(dev and re.fullmatch(r"[0-9]{1,6}", dev) for dev in given):
        return tree
    order = sorted(range(len(nets)), key=lambda place: int(given[place] or 0))
    numbers = {id(nets[place]): str(rank) for rank, place in enumerate(order)}
    done.append("numbered the NICs from 0")

    def renumbered(element: Element) -> Element:
        return with_values(element, {"dev": numbers[id(element)]}) if id(element) in numbers else element

    return edited(tree, renumbered)


def _count(tree: Element) -> int:
    return sum(1 for _ in tree.walk())


def _merged_switches(tree: Element, done: list[str]) -> Element:
    """One <nvlink> per GPU to all NVSwitches: to NCCL they are one switch anyway."""
    done.append("joined each GPU's NVLinks to NVSwitches in one element, to stay within the limit of elements")

    def joined(element: Element) -> Element:
        gpu = element.tag == "gpu"
        return replace(element, children=tuple(_joined_links(element.children))) if gpu else element

    return edited(tree, joined)


def _joined_links(children: Iterable[Element]) -> Iterable[Element]:
    switched: list[Element] = []
    for child in children:
        if child.tag == "nvlink" and (child.get("tclass") or NVSWITCH_CLASS) == NVSWITCH_CLASS:
            switched.append(child)
        else:
            yield child
    total = sum(link.number("count") for link in switched)
    if switched:
        target = switched[0].get("target") or ""
        yield Element("nvlink", (("target", target), ("count", str(total)), ("tclass", NVSWITCH_CLASS)))
