"""Network interfaces that no job meets over."""

from __future__ import annotations

import re

NOT_FOR_JOBS = re.compile(
    r"^(?:lo|docker\d*|br-[0-9a-f]+|virbr\d*|veth\w*|cali\w*|vxlan\.calico|flannel[.\w]*|cni\d*|cbr\d*|lxcbr\d*"
    r"|lxdbr\d*|podman\d*|kube-\w+|nodelocaldns|dummy\d*|tunl\d*|ip6tnl\d*|sit\d*|gre\d*|usb\d*)$"
)
"""Interfaces that exist on every node with the same address, or lead to this node only."""
