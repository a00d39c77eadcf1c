"""Tables of facts from columns of 64-bit numbers: texts as codes, floats as their bits."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topodiag.evidence.nccl_log.tables.facts import SCHEMAS, plain, used
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
