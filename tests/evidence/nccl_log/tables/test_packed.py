"""Packed tables say what the tables said, whatever stands in them, in parts, on disk and in a merge."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.evidence.nccl_log.scan_compare import patched, same_facts
from topodiag.evidence.nccl_log.fast.scan import extract
from topodiag.evidence.nccl_log.tables import packed, resolve_rows, saved
from topodiag.evidence.nccl_log.tables.facts import ROW_TABLES, SCHEMAS, Facts, empty, numbers, table
from topodiag.evidence.nccl_log.tables.packed import AnyFacts, PackedTable, pack, unpacked_bytes
from topodiag.evidence.nccl_log.tables.resolve import merge_facts

HEAD = "n{0}:1{0}:2{0} [{0}] NCCL INFO "


def log() -> bytes:
    """Six ranks that print in turns, twice over the same connections."""
    lines = []
    for turn in range(2):
        for rank in range(6):
            lines.append(
                HEAD.format(rank) + f"ncclCommInitRank comm 0x7f{rank}{turn}00 rank {rank} nranks 6 cudaDev 0 "
                f"nvmlDev 0 busId 1000 commId 0xab{turn} - Init START"
            )
        for peer in range(6):
            for rank in (5, 2, 0, 3, 1, 4):
                ends = f"Channel 0{turn}/0 : {rank}[{rank}] -> {peer}[{peer}] [send] via NET/IB/{peer}/GDRDMA"
                lines.append(HEAD.format(rank) + ends)
    return ("\n".join(lines) + "\n").encode()


LOG = log()
ENDS = [i + 1 for i, byte in enumerate(LOG) if byte == 10]
WHOLE = merge_facts([extract_plain(LOG, 0, 0)])


def whole(facts: AnyFacts) -> Facts:
    tables = {
        name: each.table() if isinstance(each, PackedTable) else each
        for name, each in ((name, facts[name]) for name in SCHEMAS)
    }
    return Facts(tables)


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_dictionary(kind):
        return st.sampled_from(["", "a", "NET/IB", "ä"])
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_floating(kind):
        return st.floats(width=64)
    info = np.iinfo(kind.to_pandas_dtype())
    low, high = int(info.min), int(info.max)
    return st.one_of(st.integers(low, high), st.integers(0, 3), st.sampled_from([low, high, 0]))


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, pa.Table]:
    """Rows of any table, in the order of their threads, with columns that repeat and columns that do not."""
    name = draw(st.sampled_from(ROW_TABLES))
    runs = draw(st.lists(st.integers(1, 30), min_size=1, max_size=5))
    columns: dict[str, list[Any]] = {}
    for field in SCHEMAS[name]:
        if draw(st.booleans()):
            said = [draw(values(field.type)) for _ in runs]
            columns[field.name] = [one for one, count in zip(said, runs, strict=True) for _ in range(count)]
        else:
            some = draw(st.lists(values(field.type), min_size=1, max_size=4))
            columns[field.name] = [some[at % len(some)] for at in range(sum(runs))]
    columns["thread"] = sorted(abs(each) for each in columns["thread"])
    columns["thread"] = [min(each, 2**31 - 1) for each in columns["thread"]]
    return name, table(name, columns)


@given(tables(), st.integers(0, 150), st.integers(0, 150))
def test_any_columns_come_back_with_their_widths(rows: tuple[str, pa.Table], first: int, last: int) -> None:
    name, plain = rows
    with patched((packed, "LEAST_ROWS", 1)):
        held = pack(Facts({**empty().tables, name: plain}))[name]
    assert isinstance(held, PackedTable)
    assert repr(held.table().to_pylist()) == repr(plain.to_pylist())
    assert held.table().schema == plain.schema
    for each, some in held.columns(slice(first, last)).items():
        expected = numbers(plain.column(each))[first:last]
        assert some.tobytes() == expected.tobytes()  # NaN keeps its bits
        assert some.dtype == expected.dtype


@given(st.lists(st.sampled_from(ENDS), max_size=5), st.integers(1, 40), st.integers(1, 3), st.booleans())
def test_packed_shards_merge_as_plain_ones_do(cuts: list[int], least: int, threads: int, on_disk: bool) -> None:
    edges = sorted({0, len(LOG), *cuts})
    with patched((packed, "LEAST_ROWS", least), (saved, "SMALL_BYTES", 0)):
        parts: list[AnyFacts] = []
        for number, (start, end) in enumerate(pairwise(edges)):
            read = extract if number % 3 else extract_plain  # one numbers threads as they come, the other by name
            parts.append(pack(read(LOG[start:end], 0, start)))
        if on_disk:
            parts = list(saved.stored(parts))
        merged = merge_facts(parts, threads=threads)
        assert same_facts(merged, WHOLE)
        assert same_facts(whole(pack(merged)), WHOLE)
        assert same_facts(merge_facts([pack(merged)]), WHOLE)


def test_rows_that_are_not_by_thread_stay_as_they_are() -> None:
    rows = table("ring", {name: [2, 1] if name == "thread" else [7, 7] for name in SCHEMAS["ring"].names})
    with patched((packed, "LEAST_ROWS", 1)):
        assert pack(Facts({**empty().tables, "ring": rows}))["ring"] is rows


def test_packed_facts_take_a_fraction_and_travel_between_processes() -> None:
    lines = [
        HEAD.format(rank) + f"Channel 00/0 : {rank}[0] -> {peer}[0] via P2P/CUMEM/read"
        for rank in range(8)
        for peer in range(200)
    ]
    facts = extract("\n".join(lines).encode(), 0, 0)
    held = pack(facts)
    assert isinstance(held["conn"], PackedTable)
    assert 3 * held["conn"].nbytes < facts["conn"].nbytes
    assert unpacked_bytes(held) <= facts.nbytes
    assert same_facts(whole(pickle.loads(pickle.dumps(held))), facts)
    assert pack(held)["conn"] is held["conn"]


def test_hashes_that_agree_by_chance_join_no_rows() -> None:
    def useless(rows: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        return np.zeros(len(rows[0]), np.uint64)

    edges = [0, *ENDS[::9], len(LOG)]
    parts = [extract_plain(LOG[a:b], 0, a) for a, b in pairwise(edges)]
    with patched((resolve_rows, "mix", useless)):
        assert same_facts(merge_facts(parts), WHOLE)
