"""What the kernel of a node offers GPUDirect RDMA: a peer memory module, or DMA-BUF."""

from __future__ import annotations

import re

from topodiag.model.maker import makers_of
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.words.dialect import Maker

DMABUF_KERNEL = (5, 12)
"""First kernel whose RDMA core takes DMA-BUF memory (ibv_reg_dmabuf_mr)."""

DMABUF_DRIVER_MAJOR = 515
"""First driver of CUDA 11.7, which can export GPU memory as DMA-BUF, and the first with open kernel modules."""

DMABUF_CUDA = (11, 7)
DMABUF_NCCL = 13
"""First NCCL 2 that registers memory by DMA-BUF (ncclIbRegMrDmaBuf, src/transport/net_ib.cc)."""
AMD_CONFIG = "CONFIG_PCI_P2PDMA and CONFIG_DMABUF_MOVE_NOTIFY of the kernel"
"""What RCCL asks of a kernel before it takes DMA-BUF (src/misc/rocmwrap.cc)."""
PEERMEM_MODULES = frozenset({"nvidia_peermem", "nv_peer_mem"})


def peermem(node: Node) -> tuple[bool | None, list[Origin | None]]:
    """Whether a peer memory module is there, None when nobody looked, and what shows it."""
    fact, modules = node.os.peermem, node.os.modules
    shown = [fact.origin, modules.origin]
    if fact.value or (modules.value is not None and PEERMEM_MODULES & modules.value):
        return True, shown
    return (None if fact.value is None and modules.value is None else False), shown


def dmabuf(node: Node) -> tuple[bool | None, str]:
    """Whether DMA-BUF is possible (None: not known), and what is lacking or not known."""
    kernel = _version(node.os.kernel.value)
    driver = _version(node.os.driver_version.value)
    cuda = _version(node.os.cuda_version.value)
    by_cuda = cuda >= DMABUF_CUDA if cuda is not None else None
    new_enough = driver[0] >= DMABUF_DRIVER_MAJOR if driver is not None else by_cuda
    needs = {
        f"kernel {node.os.kernel.value or ''} (5.12 needed)": None if kernel is None else kernel >= DMABUF_KERNEL,
        "open kernel modules": node.os.driver_open.value,
        f"driver {node.os.driver_version.value or ''} (515 needed)": new_enough,
    }
    if makers_of(node) == {Maker.AMD}:  # amdgpu exports what the kernel was built for, which no file of sysfs tells
        needs = {name: ok for name, ok in needs.items() if name.startswith("kernel")} | {AMD_CONFIG: None}
    failed = [name for name, ok in needs.items() if ok is False]
    if failed:
        return False, "no " + ", no ".join(failed)
    unknown = [name for name, ok in needs.items() if ok is None]
    return (None, ", ".join(" ".join(name.split()) for name in unknown)) if unknown else (True, "")


def rdma_possible(node: Node) -> bool | None:
    """Whether NICs can reach GPU memory by either way; None when neither could be told."""
    ways = (peermem(node)[0], dmabuf(node)[0])
    return True if any(ways) else None if None in ways else False


def _version(text: str | None) -> tuple[int, int] | None:
    match = re.match(r"\s*([0-9]{1,6})\.([0-9]{1,6})", text or "")
    return (int(match[1]), int(match[2])) if match else None
