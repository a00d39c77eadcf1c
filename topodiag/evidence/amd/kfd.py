"""`/sys/class/kfd/kfd/topology`: AMD's GPUs and the links between them as the driver knows them, without any tool.

    sys/class/kfd/kfd/topology/nodes/3/properties                  simd_count 1216, location_id 9728, domain 0
    sys/class/kfd/kfd/topology/nodes/3/io_links/1/properties       type 11, node_from 3, node_to 4, weight 15

Nodes are CPUs first, then GPUs (simd_count above 0). Type 11 is xGMI, 2 PCIe; a weight of 15 is one hop. Where a pair
has no direct link its bandwidth is 0 and its weight 30: weight and bandwidth count, not the type alone. PCIe peers
stand in `p2p_links` or nowhere: two GPUs with xGMI links and none between them have PCIe. Source: Linux
drivers/gpu/drm/amd/amdkfd (kfd_topology.c, kfd_crat.c), amdgpu_xgmi.c.
"""

from __future__ import annotations

from itertools import combinations

from topodiag.evidence.amd.links import HOP, PCIE
from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import to_int
from topodiag.evidence.readings import Notes, OfTree, quote
from topodiag.evidence.tree import TreeFile
from topodiag.lazy import regex
from topodiag.model.devices import AMD as AMD_ID
from topodiag.model.maker import XGMI

NODES = "sys/class/kfd/kfd/topology/nodes"
MAX_NODES = 512
_XGMI, _PCIE = 11, 2
_LINK = regex(rf"{NODES}/(\d{{1,4}})/(io_links|p2p_links)/\d{{1,4}}/properties")


class Kfd(OfTree):
    """GPUs with bus ids, and what joins them."""

    def read_notes(self, notes: Notes) -> None:
        draft, gpus = notes.draft, _gpus(notes)
        entities: dict[int, Entity] = {}
        for index, (number, file) in enumerate(gpus.items()):
            bus_id = _bus_id(_properties(file))
            entities[number] = draft.gpu(index=index, bus_id=bus_id)
            if bus_id is not None:
                draft.pci(bus_id).offer("vendor", AMD_ID, notes.blob.origin(file.at, quote(file)))
            notes.parsed.records.append(file.at)
        pairs: set[tuple[int, int]] = set()
        linked: set[int] = set()
        for path, file in notes.files.items():
            match = _LINK.fullmatch(path)
            properties = _properties(file) if match is not None else {}
            start = properties.get("node_from", int(match[1]) if match is not None else -1)
            end = properties.get("node_to", -1)
            if start in gpus and end in gpus:
                if (word := _word(properties)) is not None:
                    draft.pair("smi", entities[start], entities[end], word, notes.blob.origin(file.at, quote(file)))
                pairs |= {(start, end), (end, start)}
                linked |= {start} if properties.get("type") == _XGMI else set()
        for start, end in combinations(sorted(linked), 2):
            if (start, end) not in pairs:
                origin = notes.blob.origin(gpus[start].at, quote(gpus[start]))
                draft.pair("smi", entities[start], entities[end], PCIE, origin)


def _gpus(notes: Notes) -> dict[int, TreeFile]:
    """The properties of the nodes that are GPUs, by number."""
    nodes = sorted(notes.below(NODES).items())[:MAX_NODES]
    files = {int(name): held["properties"] for name, held in nodes if name.isdecimal() and "properties" in held}
    return {number: file for number, file in sorted(files.items()) if _properties(file).get("simd_count", 0) > 0}


def _properties(file: TreeFile) -> dict[str, int]:
    """The numbers of a file by their names."""
    pairs = (text.strip().partition(" ") for _, text in file.lines)
    return {name: number for name, _, value in pairs if (number := to_int(value, low=0)) is not None}


def _bus_id(properties: dict[str, int]) -> str | None:
    """The place of a GPU: location_id is bus, device and function in one number."""
    place = properties.get("location_id")
    if place is None or place > 0xFFFF:
        return None
    return f"{properties.get('domain', 0) & 0xFFFF:04x}:{place >> 8:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"


def _word(properties: dict[str, int]) -> str | None:
    kind, weight = properties.get("type"), properties.get("weight", HOP)
    if kind == _XGMI:
        hops = max(1, weight // HOP)
        direct = hops == 1 and properties.get("max_bandwidth", 1) > 0
        return XGMI if direct else f"{XGMI} over {max(hops, 2)} hops"
    return PCIE if kind == _PCIE else None
