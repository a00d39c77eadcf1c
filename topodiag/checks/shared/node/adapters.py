"""Whether a node has adapters for RDMA."""

from __future__ import annotations

from topodiag.model.devices import Nic
from topodiag.model.node import Node
from topodiag.model.topics import Topic

_PLAIN_DRIVERS = frozenset({"virtio-pci", "virtio_net", "ena", "e1000", "e1000e", "igb", "igc", "tg3", "vmxnet3", "gve",
                            "r8169", "hv_netvsc"})  # fmt: skip
"""Drivers of Ethernet that have no RDMA beside them (linux drivers/net)."""


def has_no_adapter(node: Node) -> bool:
    """Whether all PCI functions of a node were seen, and none of its network cards can do RDMA: then no verbs program
    finds one there, and nothing is wrong with that."""
    return Topic.PCI in node.told and not any(nic.rdma_name or not _is_plain(nic) for nic in node.nics)


def _is_plain(nic: Nic) -> bool:
    return (nic.driver.get("") in _PLAIN_DRIVERS) or nic.part.get("").startswith("virtio")
