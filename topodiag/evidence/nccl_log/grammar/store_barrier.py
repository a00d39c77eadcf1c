"""What torch's ranks print where they meet at the store, before there is a communicator.

    Added key: store_based_barrier_key:1 to store for rank: 0
    Waiting in store based barrier to initialize process group for rank: 0, key: .. (world_size=8, worker_count=7, ..)
    Waiting in store based barrier .. for 3 seconds, rank: 0, key: .. (world_size=8, num_workers_joined=7, ..)
    Rank 0: Completed store-based barrier for key:store_based_barrier_key:1 with 8 nodes.

Each start prints them, so a line alone is no fault: who judges (`checks/job/absent.py`) needs all of one key.

SOURCE: torch/distributed/distributed_c10d.py, _store_based_barrier, 1.8 to 2.7.
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.numbers import compiled

MET = "met"
_ADDED = compiled(r"\bAdded key: (\S{1,120}) to store for rank: (\d{1,7})\b")
_WAITS = compiled(
    r"\b[Ww]aiting in store[ -]based barrier\b.{0,80}?\brank: (\d{1,7}), (?:for )?key: (\S{1,120}?),? "
    r"\(([^)]{1,300})\)?"
)
_SIZE = compiled(r"\bworld_size=(\d{1,7})\b")
_CAME = compiled(r"\b(?:worker_count|num_workers_joined)=(\d{1,7})\b")
_DONE = compiled(
    r"\b[Rr]ank (\d{1,7}): [Cc]ompleted store[ -]based barrier for (?:key: ?)?(\S{1,120}) with (\d{1,7}) nodes\b"
)

WORDS = (b"tore based barrier", b"tore-based barrier", b" to store for rank: ")
"""A line without any of these is none of theirs."""


def met_of(text: str) -> dict[str, str] | None:
    """`key` and `ranks` (the one rank that speaks); `world` and `came`, how many it waits for and saw, or `all`, of how
    many it saw all. None for all other lines, and for the error of a barrier whose time is over."""
    if "ore" not in text or "rank" not in text.lower():
        return None
    added = _ADDED.search(text)
    if added is not None:
        return {"key": added[1], "ranks": added[2]}
    done = _DONE.search(text)
    if done is not None:
        return {"key": done[2], "ranks": done[1], "all": done[3]}
    waits = _WAITS.search(text)
    if waits is None:
        return None
    size, came = _SIZE.search(waits[3]), _CAME.search(waits[3])
    if size is None or came is None:
        return None
    return {"key": waits[2], "ranks": waits[1], "world": size[1], "came": came[1]}
