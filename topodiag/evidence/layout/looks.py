"""What a file that says where ranks sit looks like, by the first 64 KiB of its text. Light: no reader is loaded."""

from __future__ import annotations

import re

from topodiag.evidence.kinds import Kind
from topodiag.lazy import regex

_HOST = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}"
_SLOTS = regex(rf"{_HOST}(?::\d{{1,7}}|\s+slots\s?=\s?\d{{1,7}}(?:\s.*)?)", re.ASCII | re.IGNORECASE)
_RANK = regex(rf"rank\s{{1,20}}\d{{1,7}}\s{{0,20}}=\s{{0,20}}\+?{_HOST}(?:\s.*)?", re.ASCII | re.IGNORECASE)
_NUMBERED = regex(r"(?=[A-Za-z])[A-Za-z0-9._-]{0,60}\d[A-Za-z0-9._-]{0,60}", re.ASCII)
_MAP = regex(r'"map"\s{0,9}:\s{0,9}\[\s{0,99}\{\s{0,99}"rank"')
_TOGETHER = regex(r'^(?:\{\s{0,99})?"?(?:together|may_span)"?\s{0,9}:', re.MULTILINE)
_SIZE = regex(r'"?([A-Za-z_-]{2,40})"?\s{0,9}:\s{0,9}"?[\w-]{1,60}"?,?', re.ASCII)
SIZE_NAMES = {
    "tp": "tp", "tensor_parallel": "tp", "tensor_parallel_size": "tp", "tensor_model_parallel_size": "tp",
    "pp": "pp", "pipeline_parallel": "pp", "pipeline_parallel_size": "pp", "pipeline_model_parallel_size": "pp",
    "dp": "dp", "data_parallel": "dp", "data_parallel_size": "dp",
    "cp": "cp", "context_parallel": "cp", "context_parallel_size": "cp",
    "ep": "ep", "expert_parallel_size": "ep", "expert_model_parallel_size": "ep",
    "order": "order", "world_size": "world",
}  # fmt: skip
"""What files call the sizes of a job: topodiag's options and Megatron's arguments, by topodiag's names."""
_FEW = 400
"""Lines that are looked at."""


def layout_format(head: str) -> Kind | None:
    """Whether a text is a map, a rankfile, a hostfile, sizes, or groups of ranks. A bare list of hosts is a hostfile
    where it has two lines or more and every name holds a digit."""
    if _MAP.search(head):
        return Kind.RANK_MAP
    lines = [bare for line in head.split("\n", _FEW)[:_FEW] if (bare := line.partition("#")[0].strip())]
    if not lines:
        return None
    if len(lines) > 1 and len(head) >= 1 << 16:
        lines.pop()  # it may be cut
    if all(_RANK.fullmatch(line) for line in lines):
        return Kind.RANKFILE
    if all(_SLOTS.fullmatch(line) for line in lines):
        return Kind.HOSTFILE
    if len(lines) > 1 and all(_NUMBERED.fullmatch(line) for line in lines):
        return Kind.HOSTFILE
    if _is_sizes(lines):
        return Kind.SIZES
    grouped = ("together" in head or "may_span" in head) and _TOGETHER.search(head) is not None
    return Kind.GROUPS if grouped else None


def _is_sizes(lines: list[str]) -> bool:
    """Two sizes or more, and nothing that is none."""
    bare = [line.strip("{} \t") for line in lines if line.strip("{}, \t")]
    pairs = [part for line in bare for part in (line.split(",") if line.count(":") > 1 else [line]) if part.strip()]
    found = [_SIZE.fullmatch(part.strip()) for part in pairs]
    names = [SIZE_NAMES.get(match[1].lower().replace("-", "_"), "") if match else "" for match in found]
    return all(names) and len(set(names) - {"order", "world"}) > 1
