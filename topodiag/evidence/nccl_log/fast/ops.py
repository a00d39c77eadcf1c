"""Operations of a shard: `AllReduce: opCount 1f sendbuff 0x.. recvbuff 0x.. count 8 datatype 7 op 0 root 0 ..`."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.fast.rows import Columns, Ints


def operations(rows: Columns, names: list[str]) -> Columns:
    """Rows of the table op, one for each operation; rules in slow.py."""
    counts = rows["op_count"]
    last = {"first": counts, "last": counts, "last_offset": rows["offset"]}
    return {**rows, **last, "digest": _digests(rows, names)}


def _digests(rows: Columns, names: list[str]) -> Ints:
    """Hash of each operation: h = mix(CRC-32 of func), then h = mix(h ^ v) for opCount, elements, dtype, redop, root,
    in this order, each as 64-bit two's complement. opCount is -1 for Send and Recv."""
    codes = np.array([crc32(name.encode()) for name in names], dtype=np.uint64)
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
