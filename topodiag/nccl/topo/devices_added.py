"""Topology files that leave GPUs and NICs to NCCL, as clouds ship them: what it would find in the places they name.

NCCL looks up the GPUs of its process and the devices of its net plugin on the machine, and finds their places in the
file by bus id (src/graph/xml.cc, ncclTopoFillGpu and ncclTopoFillNet). The machine is taken to be a known system.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from topodiag.hardware import catalog
from topodiag.hardware.specs import GpuSpec, SystemSpec
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.changes import bus_of
from topodiag.nccl.topo.detect import HIDDEN_SWITCH, SWITCH_CLASS, Detected, gpu_of, net_attributes
from topodiag.words.units import in_gbps

_NVIDIA = "0x10de"


class UnfitSystemError(ValueError):
    """A system has other GPUs than the file has places for; the message says how many."""


def bare_gpus(tree: Element) -> list[Element]:
    """The PCI functions in which NCCL looks up GPUs: of a display class, without a GPU of the file. Empty where the
    file describes a GPU."""
    if tree.holds("gpu"):
        return []
    return [element for element in tree.walk() if _is(element, "0x03") and element.get("vendor") in (None, _NVIDIA)]


def bare_nics(tree: Element) -> list[Element]:
    """The PCI functions of NICs without a NET of the file, in which NCCL looks up the devices of its network."""
    return [element for element in tree.walk() if _is(element, "0x02") and not element.having("nic")]


def with_devices(tree: Element, system: SystemSpec) -> Detected:
    """The tree with the GPUs of a system in the places for GPUs, and its NICs where there are as many places.

    Raises UnfitSystemError where the file has more or fewer places for GPUs, or the product is not known.
    """
    places = bare_gpus(tree)
    spec = catalog.gpu_by_name(system.gpu)
    if spec is None or len(places) != system.gpus:
        raise UnfitSystemError(f"{system.name} has {system.gpus} GPUs, and the file has places for {len(places)}")
    added = {id(place): _gpu(number, spec, system) for number, place in enumerate(sorted(places, key=bus_of))}
    assumed = [f"the {len(places)} GPUs that the file leaves to NCCL are those of {system.name}: {spec.name}"]
    nics = bare_nics(tree)
    if nics and len(nics) == system.compute_nics and system.compute_nic_gbps:
        added |= {id(nic): _nic(number, system) for number, nic in enumerate(sorted(nics, key=bus_of))}
        assumed.append(f"so are its {len(nics)} NICs: {in_gbps(system.compute_nic_gbps)}")
    return Detected(_filled(tree, added), tuple(assumed))


def _is(element: Element, kind: str) -> bool:
    return element.tag == "pci" and (element.get("class") or "").startswith(kind)


def _gpu(number: int, spec: GpuSpec, system: SystemSpec) -> Element:
    links = spec.nvlinks if system.nvlinks_per_gpu is None else system.nvlinks_per_gpu
    switched = [(HIDDEN_SWITCH, links, SWITCH_CLASS)] if system.nvlink == "nvswitch" else []
    return gpu_of(number, spec.sm, switched, spec.c2c_gbs, gdr=system.gdr)


def _nic(number: int, system: SystemSpec) -> Element:
    attributes = net_attributes(f"NIC{number}", number, system.compute_nic_gbps * 1000, gdr=system.gdr)
    return Element("nic", (), (Element("net", tuple(attributes.items())),))


def _filled(element: Element, added: Mapping[int, Element]) -> Element:
    children = tuple(_filled(child, added) for child in element.children)
    if id(element) in added:
        children = (*children, added[id(element)])
    return replace(element, children=children)
