"""What costly settings cost: one rule per variable. settings.py applies them."""

from __future__ import annotations

from topodiag.checks.shared.devices import compute_nics, distance, gpu_spec
from topodiag.checks.shared.setting_rules import (
    CHECKED_CALLS,
    CUMEM_OFF,
    FEW_CTAS,
    FEW_NCHANNELS,
    GROUP_LAUNCH,
    NVLS_OFF,
    ONE_PROTOCOL,
    P2P_LEVEL_LOC,
    PXN_OFF,
    SMALL_BUFFERS,
    TRACED,
    Rule,
    few_channels,
    level,
    off,
    on,
    small_buffer,
)
from topodiag.model.devices import Nic
from topodiag.model.finding import Severity
from topodiag.model.links import Path
from topodiag.model.maker import makers_of
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.topics import Topic
from topodiag.words.dialect import Maker

BOARD = 8
"""GPUs of the boards for which RCCL has known sets of rings (src/graph/rome_models.cc)."""
NVLS_SM = 90
"""First compute capability with NVLink SHARP."""


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


def _only_local(value: str) -> bool:
    """Whether an interface list names only interfaces that reach no other node."""
    names = [part.split(":")[0].strip() for part in value.strip().removeprefix("=").split(",")[:64]]
    return not value.strip().startswith("^") and all(name in ("lo", "docker0") for name in names)


def of_amd(node: Node) -> bool:
    return makers_of(node) == {Maker.AMD}


E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741

RULES: tuple[Rule[Node], ...] = (
    Rule("NCCL_P2P_DISABLE", lambda v, n: on(v) and several_gpus(n) and has_nvlink(n),
         "GPUs of this node talk through host memory instead of NVLink", E, "unset NCCL_P2P_DISABLE"),
    Rule("NCCL_P2P_DISABLE", lambda v, n: on(v) and not has_nvlink(n) and has_pcie_pairs(n),
         "GPUs of this node talk through host memory instead of PCIe peer-to-peer", W,
         "unset NCCL_P2P_DISABLE, unless P2P is broken on this machine (then fix that: ACS, IOMMU)"),
    P2P_LEVEL_LOC.when(lambda v, n: _below(v, PathType.NVL) and has_nvlink(n)),
    Rule("NCCL_P2P_LEVEL", lambda v, n: _below(v, PathType.PIX) and not has_nvlink(n) and has_pcie_pairs(n),
         "GPUs of this node talk through host memory instead of PCIe peer-to-peer", W,
         "unset NCCL_P2P_LEVEL, unless P2P is broken on this machine (then fix that: ACS, IOMMU)"),
    Rule("NCCL_SHM_DISABLE", lambda v, n: on(v) and several_gpus(n) and not has_nvlink(n),
         "GPUs without peer-to-peer access use the network instead of shared memory", W, "unset NCCL_SHM_DISABLE"),
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
    NVLS_OFF.when(lambda v, n: off(v) and has_nvls(n)),
    CUMEM_OFF.when(lambda v, n: off(v) and has_nvls(n)),
    Rule("NCCL_MNNVL_ENABLE", lambda v, n: off(v) and in_nvlink_domain(n),
         "multi-node NVLink is off: trays of one NVLink domain talk over the network", E, "unset NCCL_MNNVL_ENABLE"),
    Rule("NCCL_NVB_DISABLE", lambda v, n: on(v) and any(p.type is PathType.NVB for p in n.paths.values()),
         "GPU pairs without a direct NVLink go over PCIe instead of through a peer", W, "unset NCCL_NVB_DISABLE"),
    PXN_OFF.when(lambda v, n: on(v) and any(p.type is PathType.PXN for p in n.paths.values())),
    FEW_NCHANNELS.when(lambda v, n: few_channels(v) and has_nvswitch(n)),
    FEW_CTAS.when(lambda v, n: few_channels(v) and has_nvswitch(n)),
    SMALL_BUFFERS.when(lambda v, n: small_buffer(v) and bool(n.gpus)),
    ONE_PROTOCOL.when(lambda v, n: v.strip().upper() in ("LL", "LL128") and bool(n.gpus)),
    Rule("NCCL_ALGO", lambda v, n: bool(v.strip()) and not v.strip().startswith("^") and ":" not in v and has_nvls(n)
         and "NVLS" not in v.upper(),
         "the algorithm is forced and NVLink SHARP is not among the choices", I, "unset NCCL_ALGO outside of tests"),
    Rule("NCCL_SOCKET_IFNAME", lambda v, n: _only_local(v),
         "bootstrap and socket traffic are bound to an interface that reaches no other node", W,
         "name the interface that all nodes share, or exclude with NCCL_SOCKET_IFNAME=^lo,docker0"),
    TRACED.when(lambda v, n: v.strip().upper() == "TRACE"),
    CHECKED_CALLS.when(lambda v, n: v.strip().upper().startswith("DEBUG")),
    Rule("CUDA_LAUNCH_BLOCKING", lambda v, n: on(v) and (bool(n.gpus) or Topic.GPUS not in n.told),
         "every kernel launch waits for the kernel: computation and communication never overlap", E,
         "unset CUDA_LAUNCH_BLOCKING"),
    Rule("HIP_LAUNCH_BLOCKING", lambda v, n: on(v) and of_amd(n),
         "every kernel launch waits for the kernel: computation and communication never overlap", E,
         "unset HIP_LAUNCH_BLOCKING"),
    Rule("HSA_FORCE_FINE_GRAIN_PCIE", lambda v, n: off(v) and of_amd(n) and not has_nvlink(n) and has_pcie_pairs(n),
         "GPUs of this node get no peer-to-peer over PCIe: data goes through host memory", W,
         "export HSA_FORCE_FINE_GRAIN_PCIE=1, with large BAR on in the BIOS"),
    Rule("HSA_ENABLE_SDMA", lambda v, n: off(v) and of_amd(n),
         "copies run as kernels on the compute units, beside the collectives, not on the copy engines", I,
         "unset HSA_ENABLE_SDMA, unless a fault of the copy engines is worked around"),
    Rule("HSA_NO_SCRATCH_RECLAIM", lambda v, n: off(v) and of_amd(n),
         "scratch memory is taken back after a kernel: RCCL 2.26.6 and later may stop, or run slower on gfx90a", I,
         "export HSA_NO_SCRATCH_RECLAIM=1, or unset it with ROCm 6.4 and later and newer firmware"),
    Rule("RCCL_MODEL_MATCHING_DISABLE", lambda v, n: on(v) and of_amd(n) and has_nvlink(n) and len(n.gpus) >= BOARD,
         "RCCL searches for rings and does not take the known set of this board", I,
         "unset RCCL_MODEL_MATCHING_DISABLE, unless nodes take different sets"),
    GROUP_LAUNCH.when(lambda v, n: v.strip().upper() == "GROUP" and bool(n.gpus)),
    Rule("NCCL_IGNORE_CPU_AFFINITY", lambda v, n: on(v) and len([x for x in n.numa if x.has_cpus]) > 1,
         "NCCL's threads may run on the other socket than their GPU's", I, "unset NCCL_IGNORE_CPU_AFFINITY"),
)  # fmt: skip
