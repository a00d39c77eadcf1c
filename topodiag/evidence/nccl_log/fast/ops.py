"""Operations of a shard: `AllReduce: opCount 1f sendbuff 0x.. recvbuff 0x.. count 8 datatype 7 op 0 root 0 ..`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.fast.rows import Columns, Ints, Texts, bits, in_order, matrix
from topodiag.evidence.nccl_log.tables.facts import TAIL
from topodiag.evidence.nccl_log.tables.hashes import group

WIDE = 9
COLUMNS = (
    "thread", "ctx", "offset", "line", "func", "elements", "dtype", "redop", "root", "nranks", "op_count",
)  # fmt: skip
_KEY = ["thread", "ctx", "func", "elements", "dtype", "redop", "root", "nranks"]

EXACT_OPS = 64
FUNC_CODES = {
    name: code
    for code, name in enumerate(
        ("AllReduce", "Broadcast", "Reduce", "AllGather", "ReduceScatter", "Send", "Recv", "AlltoAll", "Gather",
         "Scatter", "PutSignal", "Signal", "WaitSignal"),
        start=1,
    )
}  # fmt: skip
"""Codes of operations in digests; all others are OTHER_FUNC."""
OTHER_FUNC = 255


def values(columns: dict[str, Any], texts: Texts) -> tuple[int, ...]:
    return tuple(bits(columns[name], texts) for name in COLUMNS[4:])


def operations(rows: Columns, texts: Texts) -> tuple[Columns, Columns]:
    """The tables op and tail; rules in slow.py."""
    rows = dict(in_order(rows))
    size = len(rows["thread"])
    names = texts.words()
    rows["digest"] = _digests(rows, names)
    rows["count"] = np.ones(size, dtype=np.int64)
    _round(rows)
    order, starts = group(matrix(rows, _KEY))
    first = order[starts]
    last = order[np.append(starts[1:], size) - 1] if size else order
    made = {name: rows[name][first] for name in (*_KEY, "offset", "line")}
    made["first"], made["last"] = rows["op_count"][first], rows["op_count"][last]
    made["last_offset"] = rows["offset"][last]
    if size:
        made["count"] = np.add.reduceat(rows["count"][order], starts)
        made["digest"] = np.add.reduceat(rows["digest"][order].view(np.uint64), starts).view(np.int64)
    else:
        made["count"] = made["digest"] = first
    return made, _tails(rows)


def _tails(rows: Columns) -> Columns:
    size = len(rows["thread"])
    order = np.lexsort((rows["ctx"], rows["thread"]))
    keys = matrix(rows, ["thread", "ctx"])[:, order]
    starts = np.flatnonzero(np.append(size > 0, (keys[:, 1:] != keys[:, :-1]).any(axis=0)))
    ends = np.append(starts[1:], size)
    left = np.repeat(ends, ends - starts) - np.arange(size) if size else starts
    kept = order[left <= TAIL] if size else order
    tail = {name: rows[name][kept] for name in ("thread", "ctx", "offset", "line", "count", "func", "dtype", "redop")}
    tail |= {"elements": rows["exact"][kept], "root": rows["root"][kept], "op_count": rows["op_count"][kept]}
    return tail


def _round(rows: Columns) -> None:
    """Elements by power of two where a thread and context has too many different operations; `exact` keeps them."""
    rows["exact"] = rows["elements"]
    order, starts = group(matrix(rows, _KEY))
    if not len(order):
        return
    first = order[starts]
    distinct, owners = group(np.stack([rows["thread"][first], rows["ctx"][first]]).view(np.uint64))
    sizes = np.diff(np.append(owners, len(distinct)))
    many = {(int(rows["thread"][first[distinct[at]]]), int(rows["ctx"][first[distinct[at]]]))
            for at in owners[sizes > EXACT_OPS]}  # fmt: skip
    if not many:
        return
    pairs = zip(rows["thread"].tolist(), rows["ctx"].tolist(), strict=True)
    chosen = np.array([pair in many for pair in pairs])
    rows["elements"] = rows["elements"].copy()
    rows["elements"][chosen] = [_rounded(each) for each in rows["elements"][chosen].tolist()]


def _rounded(elements: int) -> int:
    """The largest power of two that is not above, negated; 0 for 0."""
    return -(1 << (elements.bit_length() - 1)) if elements > 0 else 0


def _digests(rows: Columns, names: list[str]) -> Ints:
    """Hash of each operation: h = mix(code of func), then h = mix(h ^ v) for opCount, elements, dtype, redop and root,
    in this order, each as 64-bit two's complement. opCount is -1 for Send and Recv."""
    codes = np.array([FUNC_CODES.get(name, OTHER_FUNC) for name in names] or [0], dtype=np.uint64)
    hashed = _mix(codes[rows["func"]])
    for name in ("op_count", "elements", "dtype", "redop", "root"):
        hashed = _mix(hashed ^ rows[name].view(np.uint64))
    return hashed.view(np.int64)


def _mix(value: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = value ^ (value >> np.uint64(31))
    return mixed
