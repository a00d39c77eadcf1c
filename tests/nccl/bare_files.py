"""Truth of topology files that NCCL was given alone, without the NICs that a communicator adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BARE = "Could not find any local path from gpu 0 to net."
"""What NCCL 2.29 and 2.30 print for such a file. A communicator adds the NICs of its plugin, at least the one of
sockets, and starts."""


def is_bare(truth: Mapping[str, Any]) -> bool:
    """Whether NCCL refused the file for want of any NIC."""
    return set(truth.get("warn") or ()) == {BARE}
