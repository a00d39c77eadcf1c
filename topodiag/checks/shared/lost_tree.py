"""What NET006 says of a tree that NCCL does not find (TREES_BOUND_BY_PXN), by a file as by a log."""

from __future__ import annotations

AROUND = (("NCCL_PXN_DISABLE", "1"),)
NEWER = "NCCL 2.29 or later, or 2.24"
MEANWHILE = "until then NCCL_PXN_DISABLE=1: GPUs before Hopper then have a path that a tree may use"
EXPECTED = "as many tree channels as rings: NCCL 2.24 and 2.29 find them on such nodes"
