"""Whether a text holds what NCCL's Inspector measured: records by their keys, since the version that they print never
changed, metrics by their names, as a text or as a result of Prometheus' query API."""

from __future__ import annotations

import re

from topodiag.lazy import regex

_NAMES = rb"nccl_(?:p2p_)?(?:(?:bus|algorithm)_bandwidth_gbs|(?:collective_)?exec_time_microseconds)"
METRICS = regex(rb"^" + _NAMES + rb"\{", re.MULTILINE)
QUERY = regex(
    rb'\A\s{0,64}\{\s{0,64}"(?:status|data)"\s{0,4}:(?=[^\0]{0,65536}"__name__"\s{0,4}:\s{0,4}"' + _NAMES + rb'")'
)
_RECORDS = rb'^\{(?=[^\n]{0,4096}"(?:coll|p2p)_perf"\s{0,4}:\s{0,4}\{)'
LOOKS = regex(_RECORDS + rb"|" + METRICS.pattern + rb"|" + QUERY.pattern, re.MULTILINE)


def holds_metrics(block: bytes) -> bool:
    """Whether a line of a block is one of the metrics. Records name NCCL as well, but not where a line begins."""
    return (block.startswith(b"nccl_") or b"\nnccl_" in block) and METRICS.search(block) is not None
