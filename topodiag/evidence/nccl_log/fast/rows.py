"""Tables of facts from columns of 64-bit numbers: texts as codes, floats as their bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.tables.facts import SCHEMAS, WORDED, Column, Table, used
from topodiag.evidence.nccl_log.tables.facts import table as table_of

Ints = npt.NDArray[np.int64]
Columns = dict[str, Ints]
PLACE = ("thread", "ctx", "offset", "line", "count")
"""Columns of all rows while a shard is read; ctx is a code that stands for ctx and gen."""


class Texts:
    """Codes of texts."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        return self._codes.setdefault(text, len(self._codes))

    def words(self) -> list[str]:
        return list(self._codes)


def codes_of(words: Sequence[bytes], texts: Texts) -> Ints:
    """Codes of many texts of ASCII, most of which come again."""
    codes = {word: texts.code(word.decode("ascii")) for word in dict.fromkeys(words)}
    return np.array([codes[word] for word in words], dtype=np.int64)


def bits(value: Any, texts: Texts) -> int:
    """A value of a cell as a signed 64-bit number."""
    if isinstance(value, str):
        return texts.code(value)
    if isinstance(value, float):
        return int(np.float64(value).view(np.int64))
    return int(np.uint64(value).view(np.int64)) if value >= 1 << 63 else int(value)


def together(parts: list[Columns], names: tuple[str, ...]) -> Columns:
    if not parts:
        return {name: np.zeros(0, dtype=np.int64) for name in names}
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def digests(rows: Columns, names: list[str]) -> Ints:
    """A hash of each operation: h = mix(CRC-32 of func), then h = mix(h ^ v) for opCount, elements, dtype, redop, root,
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


def table(name: str, columns: Columns, contexts: tuple[Ints, Ints], texts: Sequence[str]) -> Table:
    """The table of these rows, which are in their order; `contexts` are ctx and gen by code."""
    if not len(columns["thread"]):
        return table_of(name)
    codes = columns["ctx"]
    columns = {**columns, "ctx": contexts[0][codes], "gen": contexts[1][codes]}
    words: dict[str, Sequence[str]] = {}
    for column in WORDED[name]:
        columns[column], words[column] = used(columns[column], texts)
    return Table({column: _column(columns[column], kind) for column, kind in SCHEMAS[name].items()}, words)


def _column(values: Ints, kind: np.dtype[Any]) -> Column:
    return values.view(kind) if kind.kind == "f" else values.astype(kind)
