"""Network interfaces that no job meets over, and the addresses at which a node can be met."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.lazy import regex
from topodiag.model.node import Node

NOT_FOR_JOBS = regex(
    r"^(?:lo|docker\d*|br-[0-9a-f]+|virbr\d*|veth\w*|cali\w*|vxlan\.calico|flannel[.\w]*|cni\d*|cbr\d*|lxcbr\d*"
    r"|lxdbr\d*|podman\d*|kube-\w+|nodelocaldns|dummy\d*|tunl\d*|ip6tnl\d*|sit\d*|gre\d*|usb\d*)$"
)
"""Interfaces that exist on every node with the same address, or lead to this node only."""


def addresses_of_node(node: Node) -> Iterator[str]:
    """The addresses of a node's interfaces, without those of interfaces that every node numbers alike."""
    for device in node.netdevs:
        if not NOT_FOR_JOBS.match(device.name):
            yield from device.addresses.value or ()
