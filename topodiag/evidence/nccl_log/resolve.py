"""Facts of shards brought to one normal form: the same for every cut, order of files and grouping of the shards.

Shards of one file that follow each other are merged into one run: lines count from the start of the run, a row without
a context takes the one that its thread had before the row's shard, an unknown generation the last Init START before
the row's shard, and rows that became equal are one. What a run cannot say (its file's beginning is not there yet)
stays open and is filled when that shard joins. So `resolve(concat(a, b))` may be taken anywhere in a tree of shards,
and equals `resolve(concat(resolve(a), resolve(b)))`; it is idempotent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topodiag.evidence.nccl_log.facts import ROW_TABLES, SCHEMAS, TAIL, Facts

Ints = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]

MOST_EXACT_OPS = 64
"""Distinct operations of one thread in one communicator that keep their exact size."""

_ROOM = 42
"""Bits for an offset where it shares 64 bits with a thread or file: files below 4 TB, 2 million threads."""

_OR = {"conn": "channels", "ring": "channels", "tree": "channels"}
_LAST = {"op": ("last",), "event": ("last_ts",)}
_FIRST = {"op": ("first",), "event": ("ts",), "unread": ("text",)}


@dataclass(frozen=True, slots=True)
class _Runs:
    """The shards in order of file and base, and the run each belongs to."""

    key: Ints
    file: Ints
    base: Ints
    run: Ints
    lines_before: Ints

    def shard_of(self, file: Ints, offset: Ints) -> Ints:
        """Index of the shard that holds this place, -1 where none is known."""
        if not self.key.size:
            return np.full(len(file), -1, np.int64)
        found = np.searchsorted(self.key, (file << _ROOM) + offset, side="right") - 1
        return np.where((found >= 0) & (self.file[np.maximum(found, 0)] == file), found, -1)

    def of(self, values: Ints, shard: Ints, other: int) -> Ints:
        if not values.size:
            return np.full(len(shard), other, np.int64)
        return np.where(shard >= 0, values[np.maximum(shard, 0)], other)


def resolve(facts: Facts) -> Facts:
    tables: dict[str, pa.Table] = {}
    renumber, tables["threads"], file_of, process_of = _threads(facts["threads"])
    runs, tables["shards"] = _runs(facts["shards"])
    rows: dict[str, Columns] = {}
    words: dict[str, dict[str, pa.Array]] = {}
    for name in (*ROW_TABLES, "contexts"):
        columns, words[name] = _columns(facts[name])
        columns["thread"] = renumber[columns["thread"]] if renumber.size else columns["thread"]
        shard = runs.shard_of(file_of[columns["thread"]], columns["offset"])
        columns["~base"] = runs.of(runs.base, shard, 0)
        columns["~run"] = runs.of(runs.run, shard, -1)
        if "line" in columns:
            columns["line"] = columns["line"] + runs.of(runs.lines_before, shard, 0)
        rows[name] = columns
    _fill(rows, words["init"], process_of)
    for name in ROW_TABLES:
        tables[name] = _regroup(name, rows[name], words[name])
    tables["contexts"] = _last_contexts(rows["contexts"])
    return Facts({name: tables[name] for name in SCHEMAS})


def _threads(threads: pa.Table) -> tuple[Ints, pa.Table, Ints, Ints]:
    """New number by old, the table without doubles in sorted order, and by new number the file and the process."""
    columns, words = _columns(threads)
    names = ("file", "host", "pid", "tid", "dev")
    first, inverse = _unique([columns[name] for name in names], threads.num_rows)
    kept = {name: columns[name][first] for name in names}
    _, process = _unique([kept["file"], kept["host"], kept["pid"]], len(first))
    return inverse, _table("threads", kept, words), kept["file"], process


def _runs(shards: pa.Table) -> tuple[_Runs, pa.Table]:
    columns, _ = _columns(shards)
    order = np.lexsort((columns["size"], columns["base"], columns["file"]))
    columns = {name: values[order] for name, values in columns.items()}
    file, base, size, lines = (columns[name] for name in ("file", "base", "size", "lines"))
    breaks = np.ones(len(file), bool)
    breaks[1:] = (file[1:] != file[:-1]) | (base[1:] != base[:-1] + size[:-1])
    run = np.cumsum(breaks) - 1
    starts = np.flatnonzero(breaks)
    total = np.cumsum(lines) - lines
    before = total - total[starts][run] if len(file) else total
    merged = {"file": file[starts], "base": base[starts]}
    for name in ("size", "lines", "records", "understood"):
        merged[name] = np.add.reduceat(columns[name], starts) if len(starts) else columns[name]
    return _Runs((file << _ROOM) + base, file, base, run, before), _table("shards", merged, {})


def _fill(rows: Mapping[str, Columns], init_words: Mapping[str, pa.Array], process_of: Ints) -> None:
    """Context and generation of rows whose shard did not say them, from the shards before it in the same run."""
    init, contexts = rows["init"], rows["contexts"]
    events = init_words["event"]
    start = pc.index(events, "start").as_py()
    begun = np.flatnonzero(init["event"] == start)
    starts = {name: values[begun] for name, values in init.items()}
    _generations(contexts, starts, process_of)
    order = np.lexsort((contexts["offset"], contexts["thread"]))
    key = (contexts["thread"][order] << _ROOM) + contexts["offset"][order]
    for name in ROW_TABLES:
        columns = rows[name]
        open_ = np.flatnonzero(columns["ctx"] == 0)
        if open_.size and key.size:
            thread = columns["thread"][open_]
            found = np.searchsorted(key, (thread << _ROOM) + columns["~base"][open_], side="left") - 1
            place = order[np.maximum(found, 0)]
            known = (found >= 0) & (contexts["thread"][place] == thread)
            known &= contexts["~run"][place] == columns["~run"][open_]
            columns["ctx"][open_[known]] = contexts["ctx"][place[known]]
            columns["gen"][open_[known]] = contexts["gen"][place[known]]
        _generations(columns, starts, process_of)


def _generations(columns: Columns, starts: Columns, process_of: Ints) -> None:
    open_ = np.flatnonzero((columns["gen"] < 0) & (columns["ctx"] != 0))
    if not open_.size or not len(starts["ctx"]):
        return
    process = np.concatenate([process_of[starts["thread"]], process_of[columns["thread"][open_]]])
    pointer = np.concatenate([starts["ctx"], columns["ctx"][open_]])
    _, pair = _unique([process, pointer], len(pointer))
    pairs, asked = pair[: len(starts["ctx"])], pair[len(starts["ctx"]) :]
    order = np.lexsort((starts["offset"], pairs))
    key = (pairs[order] << _ROOM) + starts["offset"][order]
    found = np.searchsorted(key, (asked << _ROOM) + columns["~base"][open_], side="left") - 1
    place = order[np.maximum(found, 0)]
    known = (found >= 0) & (pairs[place] == asked) & (starts["~run"][place] == columns["~run"][open_])
    columns["gen"][open_[known]] = starts["offset"][place[known]]


def _last_contexts(contexts: Columns) -> pa.Table:
    order = np.lexsort((contexts["offset"], contexts["~run"], contexts["thread"]))
    thread, run = contexts["thread"][order], contexts["~run"][order]
    last = np.ones(len(order), bool)
    last[:-1] = (thread[1:] != thread[:-1]) | (run[1:] != run[:-1])
    return _table("contexts", {name: values[order[last]] for name, values in contexts.items()}, {})


def _regroup(name: str, columns: Columns, words: Mapping[str, pa.Array]) -> pa.Table:
    if name == "print":
        return _join_prints(columns, words)
    if name == "tail":
        columns = _cut_tails(columns)
    else:
        if name == "op":
            columns = _grouped(name, columns)
            _bucket(columns)
        columns = _grouped(name, columns)
    return _table(name, columns, words)


def _keys(name: str, columns: Columns) -> list[str]:
    apart = {"offset", "line", "count", "~base", "last_offset", "digest", _OR.get(name, "")}
    apart.update(_LAST.get(name, ()), _FIRST.get(name, ()))
    return [column for column in columns if column not in apart]


def _grouped(name: str, columns: Columns) -> Columns:
    """Equal rows of one thread and context as one row, in order of thread and offset."""
    size = len(columns["offset"])
    if not size:
        return columns
    keys = _keys(name, columns)
    _, group = _unique([columns[key] for key in keys], size)
    order = np.lexsort((columns["offset"], group))
    starts = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0])
    first = order[starts]
    made = {key: values[first] for key, values in columns.items()}
    made["count"] = np.add.reduceat(columns["count"][order], starts)
    if name in _OR:
        made[_OR[name]] = np.bitwise_or.reduceat(columns[_OR[name]][order], starts)
    if name in _LAST:
        late = np.lexsort((columns["last_offset"], group))
        ends = np.flatnonzero(np.r_[np.diff(group[late]) != 0, True])
        for column in (*_LAST[name], "last_offset"):
            made[column] = columns[column][late[ends]]
    if name == "op":
        made["digest"] = np.add.reduceat(columns["digest"][order], starts)
    rank = np.lexsort((*(made[key] for key in reversed(keys)), made["offset"], made["thread"]))
    return {key: values[rank] for key, values in made.items()}


def _bucket(columns: Columns) -> None:
    """Sizes rounded down to powers of two where one thread and communicator has too many different operations.

    Rounded sizes are kept as their negative, so that a merge knows that this communicator was rounded before.
    """
    size = len(columns["offset"])
    if not size:
        return
    _, owner = _unique([columns[name] for name in ("thread", "ctx", "gen", "~run")], size)
    rounded = np.bincount(owner, columns["elements"] < 0) > 0
    many = (np.bincount(owner) > MOST_EXACT_OPS) | rounded
    chosen = many[owner] & (columns["elements"] > 0)
    exponent = np.frexp(columns["elements"][chosen].astype(np.float64))[1] - 1
    columns["elements"][chosen] = -(np.int64(1) << exponent.astype(np.int64))


def _cut_tails(columns: Columns) -> Columns:
    size = len(columns["offset"])
    if not size:
        return columns
    _, owner = _unique([columns[name] for name in ("thread", "ctx", "gen", "~run")], size)
    order = np.lexsort((-columns["offset"], owner))
    starts = np.flatnonzero(np.r_[True, np.diff(owner[order]) != 0])
    place = np.arange(size) - np.repeat(starts, np.diff(np.r_[starts, size]))
    kept = order[place < TAIL]
    kept = kept[np.lexsort((columns["offset"][kept], columns["thread"][kept]))]
    return {name: values[kept] for name, values in columns.items()}


def _join_prints(columns: Columns, words: Mapping[str, pa.Array]) -> pa.Table:
    size = len(columns["offset"])
    if not size:
        return _table("print", columns, words)
    _, owner = _unique([columns[name] for name in ("thread", "ctx", "gen", "~run")], size)
    order = np.lexsort((columns["offset"], owner))
    starts = np.flatnonzero(np.r_[True, np.diff(owner[order]) != 0])
    made = {name: values[order[starts]] for name, values in columns.items()}
    made["count"] = np.add.reduceat(columns["count"][order], starts)
    ends = np.r_[starts[1:], size]
    split = np.flatnonzero(ends - starts > 1)
    text = made["text"].copy()
    joined: list[str] = []
    for i in split.tolist():
        pieces = columns["text"][order[starts[i] : ends[i]]]
        text[i] = len(words["text"]) + len(joined)
        joined.append("\n".join(words["text"][int(piece)].as_py() for piece in pieces))
    made["text"] = text
    every = pa.concat_arrays([words["text"], pa.array(joined, pa.string())])
    rank = np.lexsort((made["ctx"], made["offset"], made["thread"]))
    return _table("print", {name: values[rank] for name, values in made.items()}, {"text": every})


def _unique(columns: Sequence[npt.NDArray[Any]], size: int) -> tuple[Ints, Ints]:
    """First row of each distinct tuple, in the order of the tuples, and the number of each row's tuple."""
    if not size:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.lexsort(tuple(reversed([_bits(column) for column in columns])))
    new = np.zeros(size, bool)
    new[0] = True
    for column in columns:
        there = _bits(column)[order]
        new[1:] |= there[1:] != there[:-1]
    inverse = np.empty(size, np.int64)
    inverse[order] = np.cumsum(new) - 1
    return order[new], inverse


def _bits(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Floats by their bits: one NaN equals another."""
    return column.view(np.int64) if column.dtype == np.float64 else column


def _columns(rows: pa.Table) -> tuple[Columns, dict[str, pa.Array]]:
    """Columns as 64-bit numbers; words by their rank in the sorted words of the table, given beside."""
    made: Columns = {}
    words: dict[str, pa.Array] = {}
    for field in rows.schema:
        column = rows.column(field.name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], field.type)
        if pa.types.is_dictionary(field.type):
            codes, words[field.name] = _sorted_words(column)
            made[field.name] = codes
        elif pa.types.is_boolean(field.type):
            made[field.name] = column.to_numpy(zero_copy_only=False).astype(np.int64)
        elif pa.types.is_uint64(field.type):
            made[field.name] = column.to_numpy().copy()
        elif pa.types.is_floating(field.type):
            made[field.name] = column.to_numpy(zero_copy_only=False).astype(np.float64)
        else:
            made[field.name] = column.to_numpy().astype(np.int64)
    return made, words


def _sorted_words(column: pa.DictionaryArray) -> tuple[Ints, pa.Array]:
    dictionary = column.dictionary
    order = pc.sort_indices(dictionary).to_numpy()
    codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if not len(dictionary):
        return codes, dictionary
    ordered = dictionary.take(pa.array(order))
    fresh = np.ones(len(order), bool)
    if len(order) > 1:
        fresh[1:] = pc.not_equal(ordered.slice(1), ordered.slice(0, len(order) - 1)).to_numpy(zero_copy_only=False)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.cumsum(fresh) - 1
    return rank[codes], ordered.filter(pa.array(fresh))


def _table(name: str, columns: Mapping[str, npt.NDArray[Any]], words: Mapping[str, pa.Array]) -> pa.Table:
    schema = SCHEMAS[name]
    arrays = []
    for field in schema:
        values = columns[field.name]
        if pa.types.is_dictionary(field.type):
            used, codes = np.unique(values, return_inverse=True)
            kept = words[field.name].take(pa.array(used, pa.int64()))
            arrays.append(pa.DictionaryArray.from_arrays(pa.array(codes.reshape(-1), pa.int32()), kept))
        else:
            arrays.append(pa.array(values).cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)
