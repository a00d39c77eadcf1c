"""Settings of NCCL that take a transport or NICs away: what is expected is without them, and each is a cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topodiag.model.devices import Nic, NicRole
from topodiag.model.node import Node
from topodiag.nccl.topo.hca_list import HcaFilter

HCA = "NCCL_IB_HCA"

_COSTLY: Mapping[str, frozenset[str]] = {
    "NCCL_P2P_DISABLE": frozenset({"1"}),
    "NCCL_P2P_LEVEL": frozenset({"0", "loc"}),
    "NCCL_SHM_DISABLE": frozenset({"1"}),
    "NCCL_NET_GDR_LEVEL": frozenset({"0", "1", "loc"}),
    "NCCL_IB_DISABLE": frozenset({"1"}),
    "NCCL_NET": frozenset({"socket"}),
}
"""Settings that take a transport away. Choices among NCCL's own ways (NCCL_ALGO, NCCL_NVLS_ENABLE) are the user's, and
the expectation keeps them."""

_DRIVERS = frozenset({"mlx4", "mlx5", "hfi1"})
"""Beginnings of device names that end in a digit."""

_NOT_COMPUTE = (NicRole.STORAGE, NicRole.MANAGEMENT)


def is_costly(name: str, value: str) -> bool:
    return value.strip().lower() in _COSTLY.get(name, frozenset())


def compute_nics(node: Node) -> list[Nic]:
    """The NICs of a node that carry a job's traffic over RDMA, in its order."""
    return [nic for nic in node.nics if nic.rdma_name is not None and nic.role not in _NOT_COMPUTE]


def whole_network(node: Node, env: Mapping[str, str]) -> dict[str, str]:
    """The settings, an NCCL_IB_HCA that takes compute NICs away replaced by one with all of them."""
    names = [nic.rdma_name or "" for nic in compute_nics(node)]
    value = env.get(HCA, "")
    return {**env, HCA: "=" + ",".join(names)} if value.strip() and leaves_out(value, names) else {**env}


def leaves_out(value: str, names: Sequence[str]) -> bool:
    """Whether an NCCL_IB_HCA leaves out some of these NICs."""
    left = nics_left(value, names)
    return left is not None and left < len(names)


def nics_left(value: str, names: Sequence[str]) -> int | None:
    """How many of these NICs an NCCL_IB_HCA leaves. Where it names none of them, as many as it lists whole: names of a
    machine that is only assumed are not those of its NICs. None where that cannot be told."""
    text = value.strip()
    if not text or not names:
        return None
    left = sum(HcaFilter(text).takes(name, 1) for name in names)
    if left > 0 and not (left == len(names) and text.startswith("^")):
        return left
    listed = {item.strip().partition(":")[0] for item in text.removeprefix("=").split(",") if item.strip()}
    if text.startswith("^") or not listed or not all(map(_is_whole, listed)):
        return None
    return min(len(listed), len(names))


def _is_whole(name: str) -> bool:
    """Whether it is the name of one device: `mlx5_0`, `ibp24s0`; `mlx5` and `mlx5_` are the beginning of many."""
    return name[-1:].isdigit() and name not in _DRIVERS
