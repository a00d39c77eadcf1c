"""What rules on settings ask of a node (the conditions of rules.toml under `node`)."""

from __future__ import annotations

from functools import cached_property

from topodiag.checks.env.rules import level
from topodiag.checks.shared.devices import compute_nics, distance, gpu_spec
from topodiag.model.devices import Nic
from topodiag.model.links import Path
from topodiag.model.maker import makers_of
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.provenance import Topic
from topodiag.words.dialect import Maker

BOARD = 8
"""GPUs of the boards for which RCCL has known sets of rings (src/graph/rome_models.cc)."""
_OF_NICS = frozenset({"rdma", "own_ib", "only_efa", "gdr_cut_by"})
_OF_PAIRS = frozenset({"nvlink", "pcie_pairs", "through_peers", "nic_of_another_gpu", "nvswitch", "nvls"})
_OF_NO_GPU = frozenset({"rdma", "own_ib", "only_efa", "no_peermem", "runs_kernels", "several_sockets"})
"""Conditions on NICs, on ways between GPUs, and those that ask about no GPU."""
NVLS_SM = 90
"""First compute capability with NVLink SHARP."""


def internal_ib_nics(node: Node) -> tuple[Nic, ...]:
    """The compute NICs that NCCL's own InfiniBand transport serves: not EFA, which has a plug-in of its own."""
    return tuple(nic for nic in compute_nics(node) if (nic.driver.value or "").lower() != "efa")


def uses_internal_ib(node: Node) -> bool:
    """Whether NCCL's own InfiniBand transport would serve the job: the NICs are there, and no plug-in is chosen."""
    for setting in node.settings:
        value = setting.value.strip().lower()
        if setting.name == "NCCL_NET_PLUGIN" and value not in ("", "none"):
            return False
        if setting.name == "NCCL_NET" and value not in ("", "ib", "socket"):
            return False
    return bool(internal_ib_nics(node))


class NodeMachine:
    """The node that settings hold on. Ways between its GPUs are looked at where a rule asks."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.gpus = bool(node.gpus)
        self.several_gpus = len(node.gpus) > 1
        self.whole_board = len(node.gpus) >= BOARD
        self.runs_kernels = self.gpus or Topic.GPUS not in node.topics  # or may have GPUs that nobody looked for
        self.several_sockets = sum(numa.has_cpus for numa in node.numa) > 1
        self.rdma = bool(compute_nics(node))
        self.own_ib = uses_internal_ib(node)
        self.only_efa = self.rdma and not internal_ib_nics(node)
        self.no_peermem = node.os.peermem.value is False

    def lacks(self, condition: str) -> bool:
        """Whether the evidence does not show what a condition is about: NICs, ways between GPUs, or GPUs."""
        name = condition.removeprefix("not ")
        if name in _OF_NICS and not self.rdma and self.node.topics.isdisjoint((Topic.RDMA_DEVICES, Topic.PCI)):
            return True
        if name in _OF_PAIRS and self.several_gpus and not self.node.paths:
            return True
        return name not in _OF_NO_GPU and not self.gpus and Topic.GPUS not in self.node.topics

    @cached_property
    def amd(self) -> bool:
        return makers_of(self.node) == {Maker.AMD}

    @cached_property
    def _pairs(self) -> list[Path]:
        labels = [gpu.label for gpu in self.node.gpus]
        return [path for a in labels for b in labels if a < b and (path := self.node.paths.get((a, b))) is not None]

    @cached_property
    def nvlink(self) -> bool:
        return any(path.type in (PathType.NVL, PathType.NVB) for path in self._pairs)

    @cached_property
    def pcie_pairs(self) -> bool:
        """Whether some GPUs reach each other over PCIe alone, and their driver offers peer-to-peer there."""
        able = all(spec is None or spec.p2p_pcie for spec in map(gpu_spec, self.node.gpus))
        return able and any(path.type >= PathType.PIX for path in self._pairs)

    @cached_property
    def through_peers(self) -> bool:
        """Whether pairs without a direct NVLink go through a peer."""
        return any(path.type is PathType.NVB for path in self.node.paths.values())

    @cached_property
    def nic_of_another_gpu(self) -> bool:
        return any(path.type is PathType.PXN for path in self.node.paths.values())

    @cached_property
    def nvswitch(self) -> bool:
        """Whether all GPUs are of a product that is joined by NVSwitches, and more than two of them are."""
        specs = [gpu_spec(gpu) for gpu in self.node.gpus]
        return len(specs) > 2 and self.nvlink and all(spec is not None and spec.nvswitch for spec in specs)

    @cached_property
    def nvls(self) -> bool:
        """Whether NVLink SHARP is there to be lost: Hopper or later behind NVSwitches, more than two GPUs."""
        specs = [gpu_spec(gpu) for gpu in self.node.gpus]
        return self.nvswitch and all(spec is not None and spec.sm >= NVLS_SM for spec in specs)

    @cached_property
    def nvlink_domain(self) -> bool:
        """Whether a GPU is in a multi-node NVLink domain: its cluster id is there and not all zeros."""
        return any((gpu.fabric.cluster_uuid.value or "").strip("0-") for gpu in self.node.gpus)

    def gdr_cut_by(self, value: str) -> bool:
        """Whether a level keeps every GPU from GPUDirect RDMA with its nearest NIC, which NCCL's own choice allows."""
        path_type = level(value)
        if path_type is None or path_type >= PathType.PXB or not self.rdma:
            return False
        nics, labels = compute_nics(self.node), [gpu.label for gpu in self.node.gpus]
        ways = [[distance(self.node, label, nic.name)[0] for nic in nics] for label in labels]
        nearest = [min((kind for kind in kinds if kind is not None), default=None) for kinds in ways]
        if not nearest or any(kind is None for kind in nearest):
            return path_type < PathType.PIX
        within = [kind for kind in nearest if kind is not None and kind <= PathType.PXB]
        return bool(within) and all(kind > path_type for kind in within)
