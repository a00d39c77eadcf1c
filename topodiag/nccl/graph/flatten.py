"""Broadcom PCIe switches that show themselves as two levels are one: their sub-switches are taken out of the graph.

After ncclTopoFlattenBcmSwitches (src/graph/topo.cc); else each extra level would look like a hop and a bottleneck.
"""

from __future__ import annotations

from topodiag.model.nccl_versions import Feature, has
from topodiag.nccl.graph.graph import RejectedError, System, Vertex

_GEN4 = 0x1000C0101000A000
_GEN5 = 0x1000C03010000000
_FLAT_BEFORE_GEN5 = 0x1000C01010000000
_LOW = 0xFFF


def generation(device: int, level: int, minor: int) -> int:
    """4 or 5 for a Broadcom switch of that generation at that level (0 upper, 1 lower), else 0.

    Gen5 switches tell their level in the subsystem device; Gen4 ones do not.
    """
    if device & ~_LOW == _GEN4:
        return 4
    if has(minor, Feature.GEN5_SWITCHES) and device & ~_LOW == _GEN5 | level << 12:
        return 5
    return 0


def flatten(system: System) -> None:
    """Takes the sub-switches out and gives their links to the upper switch, at the end of its links."""
    minor, by_level = system.minor, system.has(Feature.GEN5_SWITCHES)
    switches = system.nodes["PCI"]
    position = 0
    while position < len(switches):
        switch = switches[position]
        kind = generation(switch.device, 0, minor)
        if not kind:
            position += 1
            continue
        subs = [link.remote for link in switch.links if _is_sub(link.remote, switch, kind, minor)]
        switch.links = [link for link in switch.links if link.remote not in subs]
        for sub in subs:
            # NCCL looks the sub-switch up by id: with two of one id it takes the first
            same_switch = next((vertex for vertex in switches if vertex.id == sub.id), switch)
            if same_switch is switch:
                raise RejectedError(f"two PCI switches {sub.label} below each other")
            _take_out(system, switch, same_switch)
        # marked, so that it is not found again
        switch.device = switch.device | 0xFFFF if by_level else _FLAT_BEFORE_GEN5
        # else the next look is at the second switch: s = 0, then s++
        position = 0 if system.has(Feature.FLATTEN_FROM_FIRST) else 1
    for index, switch in enumerate(switches):
        switch.index = index


def _is_sub(vertex: Vertex, switch: Vertex, kind: int, minor: int) -> bool:
    if vertex.kind != "PCI":
        return False
    if has(minor, Feature.GEN5_SWITCHES):
        return generation(vertex.device, 1, minor) == kind
    return vertex.device == switch.device


def _take_out(system: System, switch: Vertex, sub: Vertex) -> None:
    for link in sub.links:
        if link.remote is switch:
            continue
        switch.links.append(link)
        for back in link.remote.links:
            if back.remote is sub:
                back.remote = switch
                break
    system.nodes["PCI"].remove(sub)
    for vertex in system:
        if any(link.remote is sub for link in vertex.links):
            vertex.links = [link for link in vertex.links if link.remote is not sub]
