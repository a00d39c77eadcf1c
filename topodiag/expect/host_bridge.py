"""GPUDirect RDMA that a setting lets through the host bridge: a cause of a low bandwidth with a price of its own."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.expect.cause import Cause
from topodiag.expect.setup import Setup
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import nearest_minor, path_types
from topodiag.nccl.settings import level

LEAVES = (0.3, 0.85)
"""What peer-to-peer traffic through a host bridge leaves of the rate in both directions at once: root complexes split
and reorder it, and how well depends on the processor. NCCL's own choice stops before it (NCCL user guide,
NCCL_NET_GDR_LEVEL)."""
GDR_LEVEL = "NCCL_NET_GDR_LEVEL"


def host_bridge(setup: Setup, expected: float) -> Iterator[Cause]:
    """The cause where no GPU has a NIC below its own root port and a setting lets GPUDirect RDMA go farther. `expected`
    is the bus bandwidth without it, GB/s."""
    if not _beyond(setup.tree) or not _reaches(setup):
        return
    yield Cause(
        f"GPUDirect RDMA through the host bridge ({GDR_LEVEL}={setup.env[GDR_LEVEL]}): it does not carry both"
        " directions at full rate",
        prior=1.2,
        checks=("GDR002",),
        confirm=(
            f"unset {GDR_LEVEL}, measure again: NCCL then goes through host memory at this distance",
            "ib_write_bw --use_cuda=0 -b against one way; nvidia-smi topo -m: PHB or SYS",
        ),
        gbs=expected,
        span=(LEAVES[0] * expected, LEAVES[1] * expected),
        both_ways=True,
    )


def _reaches(setup: Setup) -> bool:
    minor = nearest_minor(setup.version)
    farthest = level(setup.env.get(GDR_LEVEL), minor)
    return farthest is not None and farthest >= path_types(minor).numbers["PHB"]


def _beyond(tree: Element) -> bool:
    below = [{each.tag for each in port.walk()} for cpu in tree.having("cpu") for port in cpu.having("pci")]
    return bool(below) and not any({"gpu", "net"} <= tags for tags in below)
