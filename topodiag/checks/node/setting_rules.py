"""What costly settings cost: one rule per variable. settings.py applies them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from topodiag.checks.common import compute_nics, distance, gpu_spec
from topodiag.model.devices import Nic
from topodiag.model.finding import Severity
from topodiag.model.links import Path, PathType
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


def _pairs(node: Node) -> list[Path]:
    labels = [gpu.label for gpu in node.gpus]
    return [path for a in labels for b in labels if a < b and (path := node.paths.get((a, b))) is not None]


def has_nvlink(node: Node) -> bool:
    return any(path.type in (PathType.NVL, PathType.NVB) for path in _pairs(node))


def has_pcie_pairs(node: Node) -> bool:
    """Whether some GPUs reach each other over PCIe alone, and their driver offers peer-to-peer there."""
    specs = [gpu_spec(gpu) for gpu in node.gpus]
    able = all(spec is None or spec.p2p_pcie for spec in specs)
    return able and any(path.type >= PathType.PIX for path in _pairs(node))


def internal_ib_nics(node: Node) -> tuple[Nic, ...]:
    """The compute NICs that NCCL's own InfiniBand transport serves: not EFA, which has a plug-in of its own."""
    return tuple(nic for nic in compute_nics(node) if (nic.driver.value or "").lower() != "efa")


def has_rdma(node: Node) -> bool:
    return bool(compute_nics(node))


def uses_internal_ib(node: Node) -> bool:
    """Whether NCCL's own InfiniBand transport would serve the job: the NICs are there, and no plug-in is chosen."""
    for setting in node.settings:
        value = setting.value.strip().lower()
        if setting.name == "NCCL_NET_PLUGIN" and value not in ("", "none"):
            return False
        if setting.name == "NCCL_NET" and value not in ("", "ib", "socket"):
            return False
    return bool(internal_ib_nics(node))


def only_efa(node: Node) -> bool:
    return has_rdma(node) and not internal_ib_nics(node)


def has_nvswitch(node: Node) -> bool:
    """Whether all GPUs are of a product that is joined by NVSwitches, and more than two of them are."""
    specs = [gpu_spec(gpu) for gpu in node.gpus]
    return len(specs) > 2 and has_nvlink(node) and all(spec is not None and spec.nvswitch for spec in specs)


def has_nvls(node: Node) -> bool:
    """Whether NVLink SHARP is there to be lost: Hopper or later behind NVSwitches, more than two GPUs."""
    specs = [gpu_spec(gpu) for gpu in node.gpus]
    return has_nvswitch(node) and all(spec is not None and spec.sm >= NVLS_SM for spec in specs)


def in_nvlink_domain(node: Node) -> bool:
    """Whether a GPU is in a multi-node NVLink domain: its cluster id is there and not all zeros."""
    return any((gpu.fabric.cluster_uuid.value or "").strip("0-") for gpu in node.gpus)


def level(value: str) -> PathType | None:
    """A path type as NCCL's level settings read it: a word, or one of the old numbers (src/graph/paths.cc)."""
    text = value.strip().upper()
    words = {name: kind for name, kind in PathType.__members__.items() if kind <= PathType.SYS}
    numbers = {0: PathType.LOC, 1: PathType.PIX, 2: PathType.PXB, 3: PathType.PHB}
    made = number(text)
    return words.get(text) if made is None else numbers.get(made, PathType.SYS)


def _below(value: str, floor: PathType) -> bool:
    said = level(value)
    return said is not None and said < floor


def _cuts_gdr(value: str, node: Node) -> bool:
    """Whether a level keeps every GPU from GPUDirect RDMA with its nearest NIC, which NCCL's own choice would allow."""
    said = level(value)
    if said is None or said >= PathType.PXB or not has_rdma(node):
        return False
    nearest = []
    for gpu in node.gpus:
        kinds = [distance(node, gpu.label, nic.name)[0] for nic in compute_nics(node)]
        known = [kind for kind in kinds if kind is not None]
        nearest.append(min(known, default=None))
    if not nearest or any(kind is None for kind in nearest):
        return said < PathType.PIX
    within = [kind for kind in nearest if kind is not None and kind <= PathType.PXB]
    return bool(within) and all(kind > said for kind in within)


def few_channels(value: str) -> bool:
    made = number(value)
    return made is not None and 0 < made < FEW_CHANNELS


def small_buffer(value: str) -> bool:
    made = number(value)
    return made is not None and 0 < made < DEFAULT_BUFFSIZE


def _only_local(value: str) -> bool:
    """Whether an interface list names only interfaces that reach no other node."""
    names = [part.split(":")[0].strip() for part in value.strip().removeprefix("=").split(",")[:64]]
    return not value.strip().startswith("^") and all(name in ("lo", "docker0") for name in names)


E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741

RULES = (
    Rule("NCCL_P2P_DISABLE", lambda v, n: on(v) and several_gpus(n) and has_nvlink(n),
         "GPUs of this node talk through host memory instead of NVLink", E, "unset NCCL_P2P_DISABLE"),
    Rule("NCCL_P2P_DISABLE", lambda v, n: on(v) and not has_nvlink(n) and has_pcie_pairs(n),
         "GPUs of this node talk through host memory instead of PCIe peer-to-peer", W,
         "unset NCCL_P2P_DISABLE, unless P2P is broken on this machine (then mend that: ACS, IOMMU)"),
    Rule("NCCL_P2P_LEVEL", lambda v, n: _below(v, PathType.NVL) and has_nvlink(n),
         "peer-to-peer is off between all GPUs, NVLink with it", E, "unset NCCL_P2P_LEVEL"),
    Rule("NCCL_P2P_LEVEL", lambda v, n: _below(v, PathType.PIX) and not has_nvlink(n) and has_pcie_pairs(n),
         "GPUs of this node talk through host memory instead of PCIe peer-to-peer", W,
         "unset NCCL_P2P_LEVEL, unless P2P is broken on this machine (then mend that: ACS, IOMMU)"),
    Rule("NCCL_SHM_DISABLE", lambda v, n: on(v) and several_gpus(n) and not has_nvlink(n),
         "GPUs without peer-to-peer talk over the network instead of shared memory", W, "unset NCCL_SHM_DISABLE"),
    Rule("NCCL_IB_DISABLE", lambda v, n: on(v) and uses_internal_ib(n),
         "traffic between nodes goes over TCP sockets although RDMA NICs are here", E, "unset NCCL_IB_DISABLE"),
    Rule("NCCL_NET", lambda v, n: v.strip().lower() == "socket" and has_rdma(n),
         "traffic between nodes goes over TCP sockets although RDMA NICs are here", E, "unset NCCL_NET"),
    Rule("NCCL_NET_PLUGIN", lambda v, n: v.strip().lower() == "none" and only_efa(n),
         "traffic between nodes goes over TCP sockets: only the plug-in drives EFA", E, "unset NCCL_NET_PLUGIN"),
    Rule("FI_EFA_USE_DEVICE_RDMA", lambda v, n: off(v) and only_efa(n),
         "EFA may not read and write GPU memory: data between nodes is copied through host memory", W,
         "unset FI_EFA_USE_DEVICE_RDMA"),
    Rule("NCCL_NET_GDR_LEVEL", _cuts_gdr,
         "GPUDirect RDMA is off for every NIC: data between nodes is copied through host memory", E,
         "unset NCCL_NET_GDR_LEVEL (PXB is NCCL's own choice)"),
    Rule("NCCL_DMABUF_ENABLE", lambda v, n: off(v) and uses_internal_ib(n) and n.os.peermem.value is False,
         "GPUDirect RDMA is off: DMA-BUF is disabled and no peer-memory module is loaded", E,
         "unset NCCL_DMABUF_ENABLE, or load nvidia-peermem"),
    Rule("NCCL_NVLS_ENABLE", lambda v, n: off(v) and has_nvls(n),
         "NVLink SHARP is off: all-reduce inside the node loses its fastest algorithm", W, "unset NCCL_NVLS_ENABLE"),
    Rule("NCCL_CUMEM_ENABLE", lambda v, n: off(v) and has_nvls(n),
         "cuMem is off, and NVLink SHARP and multi-node NVLink need it", W, "unset NCCL_CUMEM_ENABLE"),
    Rule("NCCL_MNNVL_ENABLE", lambda v, n: off(v) and in_nvlink_domain(n),
         "multi-node NVLink is off: trays of one NVLink domain talk over the network", E, "unset NCCL_MNNVL_ENABLE"),
    Rule("NCCL_NVB_DISABLE", lambda v, n: on(v) and any(p.type is PathType.NVB for p in n.paths.values()),
         "GPU pairs without a direct NVLink go over PCIe instead of through a peer", W, "unset NCCL_NVB_DISABLE"),
    Rule("NCCL_PXN_DISABLE", lambda v, n: on(v) and any(p.type is PathType.PXN for p in n.paths.values()),
         "GPUs cannot use another GPU's NIC over NVLink: all-to-all crosses rails", W, "unset NCCL_PXN_DISABLE"),
    Rule("NCCL_MAX_NCHANNELS", lambda v, n: few_channels(v) and has_nvswitch(n),
         f"fewer than {FEW_CHANNELS} channels cannot carry this node's NVLinks", W, "unset NCCL_MAX_NCHANNELS"),
    Rule("NCCL_MAX_CTAS", lambda v, n: few_channels(v) and has_nvswitch(n),
         f"fewer than {FEW_CHANNELS} channels cannot carry this node's NVLinks", W, "unset NCCL_MAX_CTAS"),
    Rule("NCCL_BUFFSIZE", lambda v, n: small_buffer(v) and bool(n.gpus),
         f"buffers below NCCL's {DEFAULT_BUFFSIZE >> 20} MiB make the pipeline stall", W, "unset NCCL_BUFFSIZE"),
    Rule("NCCL_PROTO", lambda v, n: v.strip().upper() in ("LL", "LL128") and bool(n.gpus),
         "one protocol is forced for all sizes: LL carries half of the bandwidth, LL128 95 %", W, "unset NCCL_PROTO"),
    Rule("NCCL_ALGO", lambda v, n: bool(v.strip()) and not v.strip().startswith("^") and ":" not in v and has_nvls(n)
         and "NVLS" not in v.upper(),
         "the algorithm is forced and NVLink SHARP is not among the choices", I, "unset NCCL_ALGO outside of tests"),
    Rule("NCCL_SOCKET_IFNAME", lambda v, n: _only_local(v),
         "bootstrap and socket traffic are bound to an interface that reaches no other node", W,
         "name the interface that all nodes share, or exclude with NCCL_SOCKET_IFNAME=^lo,docker0"),
    Rule("NCCL_DEBUG", lambda v, n: v.strip().upper() == "TRACE",
         "in a build with traces, TRACE writes a line for every operation", I, "use NCCL_DEBUG=INFO, or WARN"),
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
