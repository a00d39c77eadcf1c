"""What NET006 says of a tree that NCCL does not find (TREES_BOUND_BY_PXN), by a file as by a log."""

from __future__ import annotations

from topodiag.model.nccl_features import Feature
from topodiag.model.nccl_versions import spell_version

_BEFORE = spell_version(Feature.TREES_BOUND_BY_PXN.since - 1)
_AFTER = spell_version(Feature.TREES_BOUND_BY_PXN.until + 1)

AROUND = (("NCCL_PXN_DISABLE", "1"),)
NEWER = f"NCCL {_AFTER} or later, or {_BEFORE}"
MEANWHILE = "until then NCCL_PXN_DISABLE=1: GPUs before Hopper then have a path that a tree may use"
EXPECTED = f"as many tree channels as rings: NCCL {_BEFORE} and {_AFTER} find them on such nodes"
