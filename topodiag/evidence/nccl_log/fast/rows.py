"""Tables of facts from columns of 64-bit numbers: texts as codes, floats as their bits."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topodiag.evidence.nccl_log.tables.facts import SCHEMAS, plain, strings, used
from topodiag.evidence.nccl_log.tables.facts import table as table_of
from topodiag.evidence.nccl_log.tables.hashes import group, sorted_order

Ints = npt.NDArray[np.int64]
Columns = dict[str, Ints]
PLACE = ("thread", "ctx", "offset", "line", "count")
"""Columns of all rows while a shard is read; ctx is a code that stands for ctx and gen."""

_MASKED = frozenset({"conn", "ring", "tree"})


class Texts:
    """Codes of texts."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        return self._codes.setdefault(text, len(self._codes))

    def words(self) -> list[str]:
        return list(self._codes)


def codes_of(words: list[bytes], texts: Texts) -> Ints:
    """Codes of many texts of ASCII, by a dictionary that is no Python."""
    if not words:
        return np.zeros(0, dtype=np.int64)
    ends = np.cumsum([0, *map(len, words)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(words))]
    encoded = pa.Array.from_buffers(pa.large_string(), len(words), buffers).dictionary_encode()
    _, starts, data = encoded.dictionary.buffers()
    text = data.to_pybytes().decode("ascii", "replace")
    places = np.frombuffer(starts, dtype=np.int64)[: len(encoded.dictionary) + 1].tolist()
    known = [texts.code(text[a:b]) for a, b in pairwise(places)]
    return np.array(known, dtype=np.int64)[np.frombuffer(encoded.indices.buffers()[1], dtype=np.int32)[: len(words)]]


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


def matrix(columns: Columns, names: list[str]) -> npt.NDArray[np.uint64]:
    if not names:
        return np.zeros((0, 0), dtype=np.uint64)
    return np.stack([columns[name] for name in names]).view(np.uint64)


class _Packed:
    """Columns as few words that are equal where all columns are: small numbers share a word. Few words are grouped and
    moved faster than many columns."""

    def __init__(self, columns: Columns) -> None:
        self.words: list[npt.NDArray[np.uint64]] = []
        self._layout: list[tuple[str, int, int, int]] = []  # name, width, least value, word
        size = len(next(iter(columns.values())))
        room = 0
        for name, values in columns.items():
            low, high = int(values.min()), int(values.max())
            width = (high - low).bit_length()
            if width:
                rest = values.view(np.uint64) - np.uint64(low & ((1 << 64) - 1))
                if width <= room:
                    self.words[-1] = (self.words[-1] << np.uint64(width)) | rest
                    room -= width
                else:
                    self.words.append(rest)
                    room = 64 - width
            self._layout.append((name, width, low, len(self.words) - 1))
        if not self.words:
            self.words.append(np.zeros(size, dtype=np.uint64))

    def columns(self, rows: Ints) -> Columns:
        """The columns of these rows."""
        words = [word.take(rows) for word in self.words]
        made = {}
        for name, width, low, number in reversed(self._layout):
            if not width:
                made[name] = np.full(len(rows), low, dtype=np.int64)
                continue
            word = words[number]
            if width < 64:
                made[name] = (word & np.uint64((1 << width) - 1)).view(np.int64) + low
                words[number] = word >> np.uint64(width)
            else:
                made[name] = (word + np.uint64(low & ((1 << 64) - 1))).view(np.int64)
        return made


def sorted_by_place(columns: Columns) -> Columns:
    order = by_place(columns["thread"], columns["offset"])
    return {name: values.take(order) for name, values in columns.items()}


def in_order(columns: Columns) -> Columns:
    offset = columns["offset"]
    if (offset[1:] >= offset[:-1]).all():  # as rows of blocks mostly are
        return columns
    order = by_place(np.zeros_like(offset), offset)
    return {name: values.take(order) for name, values in columns.items()}


def by_place(thread: Ints, offset: Ints) -> Ints:
    """The order by thread, then offset, then as they came."""
    if not len(thread):
        return thread
    least = int(offset.min())
    room = (int(offset.max()) - least).bit_length()
    bits = int(thread.max()).bit_length() + room
    if bits > 64:
        return np.lexsort((offset, thread))
    return sorted_order(((thread << room) | (offset - least)).view(np.uint64), bits)


def merged(name: str, columns: Columns) -> Columns:
    """Equal rows as one, with the first place, by thread and offset; `columns` in any order."""
    if not len(columns["thread"]):
        return columns
    columns = in_order(columns)
    apart = {"offset", "line", "count", "ts"} | ({"channels"} if name in _MASKED else set())
    packed = _Packed({each: values for each, values in columns.items() if each not in apart})
    order, starts = group(packed.words)
    first = order[starts]
    turn = by_place(columns["thread"][first], columns["offset"][first])
    first = first[turn]
    made = packed.columns(first) | {each: columns[each].take(first) for each in apart if each in columns}
    made["count"] = np.add.reduceat(columns["count"][order], starts)[turn]
    if name in _MASKED:
        made["channels"] = np.bitwise_or.reduceat(columns["channels"][order], starts)[turn]
    return made


def table(name: str, columns: Columns, contexts: tuple[Ints, Ints], texts: pa.Array) -> pa.Table:
    """The table of these rows, which are in their order; `contexts` are ctx and gen by code."""
    if not len(columns["thread"]):
        return table_of(name)
    columns = dict(columns)
    codes = columns.get("ctx")
    if codes is not None:
        columns["ctx"], columns["gen"] = contexts[0][codes], contexts[1][codes]
    schema = SCHEMAS[name]
    return pa.table({field.name: _column(columns[field.name], field.type, texts) for field in schema}, schema)


def _column(values: Ints, kind: pa.DataType, texts: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(kind):
        codes, words = used(values, texts)
        return pa.DictionaryArray.from_arrays(plain(codes, kind.index_type), words)
    return plain(values.view(np.float64) if pa.types.is_floating(kind) else values, kind)


def listed(name: str, columns: dict[str, Any]) -> pa.Table:
    """The table of these lists of values, made as `table` makes it; `facts.table` would go through lists of pyarrow."""
    schema = SCHEMAS[name]
    if not len(columns[schema.names[0]]):
        return table_of(name)
    texts = Texts()
    cells = {
        each: values if isinstance(values, np.ndarray) else np.array([bits(one, texts) for one in values], np.int64)
        for each, values in columns.items()
    }
    words = strings(texts.words())
    return pa.table({field.name: _column(cells[field.name], field.type, words) for field in schema}, schema)
