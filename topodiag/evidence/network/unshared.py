"""RDMA devices that Kubernetes' shared device plug-in leaves out though the adapter is there, so that no pod gets them.

    device found: 0000:07:00.0  02   Mellanox Technolo...  MT27800 Family [ConnectX-5]
    error creating new device: "missing RDMA device spec for device 0000:07:00.0, RDMA device \\"issm\\" not found"
    Warning: no devices in device pool, creating empty resource server for rdma_shared_device_a

The plug-in says the same of plain Ethernet cards, which have no device node for RDMA and need none: such a line counts
where the text says that a resource is left empty, names the adapter, or lists the nodes that are there.

SOURCE: Mellanox/k8s-rdma-shared-dev-plugin, pkg/resources/{rdma_dev_spec,server,resources_manager}.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topodiag.evidence.sentences import Together

MAX_LINE = 1000
_BUS = r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_LEFT_OUT = re.compile(rf"missing RDMA device spec for device ({_BUS}), RDMA device \\?\"(\w{{2,20}})\\?\" not found")
_EMPTY = re.compile(
    r"\bno devices in device pool, creating empty resource server\b|\bno Rdma Devices were found for resource\b"
    r"|\bexposing \\?\"0\\?\" devices\b"
)
_FOUND = re.compile(rf"\bdevice found: ({_BUS})\s.{{0,60}}(?:Mellanox|ConnectX|BlueField|\bMT\d{{4,5}}\b)")
_NODE = re.compile(r"(?<!\S)(?:uverbs|umad)\d{1,4}\s*\Z|(?<!\S)(?:uverbs|umad)\d{1,4}(?= )")
OF_PLUGIN = "K8s RDMA Shared Device Plugin"
"""How its log begins."""


def unshared(lines: Sequence[str]) -> Iterator[Together]:
    """Of lines numbered from 1: the first device that is left out and should not be."""
    left = [
        (number, found[1], found[2])
        for number, line in enumerate(lines, 1)
        if "RDMA device spec" in line and (found := _LEFT_OUT.search(line[:MAX_LINE])) is not None
    ]
    if not left:
        return
    short = [line[:MAX_LINE] for line in lines]
    adapters = {found[1] for line in short if (found := _FOUND.search(line)) is not None}
    own = [each for each in left if each[1] in adapters]
    empty = any(_EMPTY.search(line) is not None for line in short)
    verbs = any(_NODE.search(line) is not None for line in short)
    without_node = verbs and not any(re.search(rf"(?<!\S){left[0][2]}\d", line) for line in short)
    if not own and not empty and not without_node:
        return
    number, bus_id, node = (own or left)[0]
    why = f"the plug-in leaves out {bus_id}, which has no device node {node} below /dev/infiniband"
    yield Together("rdma-count", number, f"{why}: pods get no RDMA device of it")


__all__ = ["OF_PLUGIN", "unshared"]
