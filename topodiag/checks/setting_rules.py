"""What costly settings cost: one rule per variable. settings.py applies them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from topodiag.checks.common import compute_nics, gpu_spec
from topodiag.model.finding import Severity
from topodiag.model.links import PathType
from topodiag.model.node import Node

FEW_CHANNELS = 8
"""Fewer channels than this cannot carry one NVSwitch GPU's links: NCCL opens 16 to 32 there (src/graph/search.cc)."""

DEFAULT_BUFFSIZE = 4 << 20
"""NCCL_BUFFSIZE of the Simple protocol, bytes (DEFAULT_BUFFSIZE, src/init.cc v2.30)."""

NVLS_SM = 90
"""First compute capability with NVLink SHARP."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When a value costs something on a node, and what. `applies` sees the value and the node."""

    name: str
    applies: Callable[[str, Node], bool]
    what: str
    severity: Severity
    fix: str


def number(value: str) -> int | None:
    """A setting as NCCL's parameters read it: strtoll base 0, the whole text or nothing (src/misc/param.cc)."""
    text = value.strip()
    try:
        return int(text, 0) if 0 < len(text) <= 20 else None
    except ValueError:
        return int(text) if text.isascii() and text.isdigit() else None


def on(value: str) -> bool:
    made = number(value)
    return made is not None and made != 0


def off(value: str) -> bool:
    return number(value) == 0


def several_gpus(node: Node) -> bool:
    return len(node.gpus) > 1


def has_nvlink(node: Node) -> bool:
    return any(path.type in (PathType.NVL, PathType.NVB) for path in node.paths.values())


def has_rdma(node: Node) -> bool:
    return bool(compute_nics(node))


def has_nvls(node: Node) -> bool:
    """Whether NVLink SHARP is there to be lost: Hopper or later behind NVSwitches, more than two GPUs."""
    specs = [gpu_spec(gpu) for gpu in node.gpus]
    return len(specs) > 2 and all(spec is not None and spec.nvswitch and spec.sm >= NVLS_SM for spec in specs)


def _level_below(value: str, *, floor: PathType) -> bool:
    text = value.strip().upper()
    words = {"LOC": PathType.LOC, "NVL": PathType.NVL, "PIX": PathType.PIX, "PXB": PathType.PXB}
    # Old numbers: 0 LOC, 1 PIX, 2 PXB, 3 PHB, 4 and up SYS (src/graph/paths.cc).
    numbers = {0: PathType.LOC, 1: PathType.PIX, 2: PathType.PXB}
    made = number(text)
    level = words.get(text) if made is None else numbers.get(made)
    return level is not None and level < floor


def _few(value: str) -> bool:
    made = number(value)
    return made is not None and 0 < made < FEW_CHANNELS


def _small_buffer(value: str) -> bool:
    made = number(value)
    return made is not None and 0 < made < DEFAULT_BUFFSIZE


E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741

RULES = (
    Rule("NCCL_P2P_DISABLE", lambda v, n: on(v) and several_gpus(n) and has_nvlink(n),
         "GPUs of this node talk through host memory instead of NVLink", E, "unset NCCL_P2P_DISABLE"),
    Rule("NCCL_P2P_DISABLE", lambda v, n: on(v) and several_gpus(n) and not has_nvlink(n),
         "GPUs of this node talk through host memory instead of PCIe peer-to-peer", W,
         "unset NCCL_P2P_DISABLE, unless P2P is broken on this machine (then mend that: ACS, IOMMU)"),
    Rule("NCCL_P2P_LEVEL", lambda v, n: _level_below(v, floor=PathType.NVL) and several_gpus(n) and has_nvlink(n),
         "peer-to-peer is off between all GPUs, NVLink with it", E, "unset NCCL_P2P_LEVEL"),
    Rule("NCCL_SHM_DISABLE", lambda v, n: on(v) and several_gpus(n),
         "GPUs without peer-to-peer talk over the network instead of shared memory", W, "unset NCCL_SHM_DISABLE"),
    Rule("NCCL_IB_DISABLE", lambda v, n: on(v) and has_rdma(n),
         "traffic between nodes goes over TCP sockets although RDMA NICs are here", E, "unset NCCL_IB_DISABLE"),
    Rule("NCCL_NET", lambda v, n: v.strip().lower() == "socket" and has_rdma(n),
         "traffic between nodes goes over TCP sockets although RDMA NICs are here", E, "unset NCCL_NET"),
    Rule("NCCL_NET_GDR_LEVEL", lambda v, n: _level_below(v, floor=PathType.PIX) and has_rdma(n),
         "GPUDirect RDMA is off for every NIC: data between nodes is copied through host memory", E,
         "unset NCCL_NET_GDR_LEVEL (PXB is NCCL's own choice)"),
    Rule("NCCL_DMABUF_ENABLE", lambda v, n: off(v) and has_rdma(n) and n.os.peermem.value is False,
         "GPUDirect RDMA is off: DMA-BUF is disabled and no peer-memory module is loaded", E,
         "unset NCCL_DMABUF_ENABLE, or load nvidia-peermem"),
    Rule("NCCL_NVLS_ENABLE", lambda v, n: off(v) and has_nvls(n),
         "NVLink SHARP is off: all-reduce inside the node loses its fastest algorithm", W, "unset NCCL_NVLS_ENABLE"),
    Rule("NCCL_CUMEM_ENABLE", lambda v, n: off(v) and has_nvls(n),
         "cuMem is off, and NVLink SHARP and multi-node NVLink need it", W, "unset NCCL_CUMEM_ENABLE"),
    Rule("NCCL_MNNVL_ENABLE", lambda v, n: off(v) and any(gpu.c2c.get(False) for gpu in n.gpus),
         "multi-node NVLink is off: trays of one NVLink domain talk over the network", E, "unset NCCL_MNNVL_ENABLE"),
    Rule("NCCL_NVB_DISABLE", lambda v, n: on(v) and any(p.type is PathType.NVB for p in n.paths.values()),
         "GPU pairs without a direct NVLink go over PCIe instead of through a peer", W, "unset NCCL_NVB_DISABLE"),
    Rule("NCCL_PXN_DISABLE", lambda v, n: on(v) and any(p.type is PathType.PXN for p in n.paths.values()),
         "GPUs cannot use another GPU's NIC over NVLink: all-to-all crosses rails", W, "unset NCCL_PXN_DISABLE"),
    Rule("NCCL_MAX_NCHANNELS", lambda v, n: _few(v) and has_nvlink(n),
         f"fewer than {FEW_CHANNELS} channels cannot carry this node's NVLinks", W, "unset NCCL_MAX_NCHANNELS"),
    Rule("NCCL_MAX_CTAS", lambda v, n: _few(v) and has_nvlink(n),
         f"fewer than {FEW_CHANNELS} channels cannot carry this node's NVLinks", W, "unset NCCL_MAX_CTAS"),
    Rule("NCCL_BUFFSIZE", lambda v, n: _small_buffer(v) and bool(n.gpus),
         f"buffers below NCCL's {DEFAULT_BUFFSIZE >> 20} MiB make the pipeline stall", W, "unset NCCL_BUFFSIZE"),
    Rule("NCCL_PROTO", lambda v, n: v.strip().upper() in ("LL", "LL128") and bool(n.gpus),
         "one protocol is forced for all sizes: LL carries half of the bandwidth, LL128 95 %", W, "unset NCCL_PROTO"),
    Rule("NCCL_ALGO", lambda v, n: bool(v.strip()) and not v.strip().startswith("^") and ":" not in v and has_nvls(n)
         and "NVLS" not in v.upper(),
         "the algorithm is forced and NVLink SHARP is not among the choices", I, "unset NCCL_ALGO outside of tests"),
    Rule("NCCL_SOCKET_IFNAME", lambda v, n: v.strip().lstrip("=").split(",")[0] in ("lo", "docker0"),
         "bootstrap and socket traffic are bound to an interface that reaches no other node", E,
         "name the interface that all nodes share, or exclude with NCCL_SOCKET_IFNAME=^lo,docker0"),
    Rule("NCCL_DEBUG", lambda v, n: v.strip().upper() == "TRACE",
         "TRACE writes a line for many operations and slows every call", W, "use NCCL_DEBUG=INFO, or WARN"),
    Rule("NCCL_CHECK_MODE", lambda v, n: v.strip().upper().startswith("DEBUG"),
         "arguments are checked on every call, across ranks with DEBUG_GLOBAL", I, "unset NCCL_CHECK_MODE when done"),
    Rule("CUDA_LAUNCH_BLOCKING", lambda v, n: on(v) and bool(n.gpus),
         "every kernel launch waits for the kernel: computation and communication never overlap", E,
         "unset CUDA_LAUNCH_BLOCKING"),
    Rule("NCCL_LAUNCH_MODE", lambda v, n: v.strip().upper() == "GROUP" and bool(n.gpus),
         "GROUP launch serialises the GPUs of a process", I, "unset NCCL_LAUNCH_MODE"),
    Rule("NCCL_IGNORE_CPU_AFFINITY", lambda v, n: on(v) and len([x for x in n.numa if x.has_cpus]) > 1,
         "NCCL's threads may run on the other socket than their GPU's", I, "unset NCCL_IGNORE_CPU_AFFINITY"),
)  # fmt: skip
