"""What a process prints of its own start: which of how many nodes it is, or which rank, and where it meets the others.

    Namespace(dist_url='tcp://10.0.0.2:3002', machine_rank=0, num_gpus=2, num_machines=2, ..)
    world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://10.0.0.2:29501 backend=nccl

By itself it says nothing of a fault. Two starts that take themselves for the same one, or that count unlike worlds, do.

SOURCE: detectron2/engine/defaults.py (default_argument_parser; engine/launch.py counts a world of num_machines times
num_gpus), YOLOX and FastReID, which have it from there; vllm/distributed/parallel_state.py.
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.lazy import regex

LAUNCHED = "launched"
_NODE = compiled(r"\bNamespace\((?=.{0,1500}\bnum_machines=(\d{1,5})\b)(?=.{0,1500}\bmachine_rank=(\d{1,5})\b)")
_GPUS = compiled(r"\b(?:num_gpus|devices)=(\d{1,3})\b")
_AT = compiled(r"\bdist_url='(tcp://[^'\s]{3,80})'")
_RANK = compiled(
    r"\bworld_size=(\d{1,6}),? rank=(\d{1,6}),? local_rank=\d{1,3},? distributed_init_method=(tcp://[^\s,]{3,80})"
)
_CLOCK = regex(r"(?<![\d:])(\d\d):(\d\d):(\d\d)(?![\d:])")
WORDS = (b"machine_rank=", b"distributed_init_method=tcp")
"""A line without any of these is none of theirs."""


def launch_of(text: str) -> dict[str, str] | None:
    """`nodes`, `node`, `each` (processes of the node), or `world`, `rank`; `at`, where they meet; `clock`, seconds of
    the day. None for all other lines."""
    rank = _RANK.search(text)
    if rank is not None and int(rank[1]) > 1:
        clock = _CLOCK.search(text[: rank.start()])
        seconds = str(int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3])) if clock is not None else ""
        return _given({"world": rank[1], "rank": rank[2], "at": rank[3], "clock": seconds})
    node = _NODE.search(text)
    if node is None or int(node[1]) < 2:
        return None
    gpus, place = _GPUS.search(text), _AT.search(text)
    at = place[1] if place is not None else ""
    return _given({"nodes": node[1], "node": node[2], "each": gpus[1] if gpus is not None else "", "at": at})


def _given(named: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in named.items() if value}
