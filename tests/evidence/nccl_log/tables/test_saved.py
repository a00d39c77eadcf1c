"""Saved facts come back as they were, in memory or on disk, and a damaged file is told in one line."""

import ctypes
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.evidence.nccl_log.scan_compare import patched, same_facts
from tests.fleet.ingested import rank_log
from topodiag.evidence.nccl_log.rebuild.rebuild import rebuild
from topodiag.evidence.nccl_log.tables import facts, saved
from topodiag.evidence.nccl_log.tables.facts import (
    FACTS_VERSION,
    ROW_TABLES,
    SCHEMAS,
    Facts,
    Marks,
    SourceFile,
    Table,
    empty,
    firsts,
    group,
    sorted_order,
)
from topodiag.evidence.nccl_log.tables.resolve import merge_facts
from topodiag.evidence.nccl_log.tables.saved import (
    Columns,
    Store,
    give_back,
    load,
    narrowest,
    on_disk,
    save,
    without_files,
)
from topodiag.model.errors import InputError, TopodiagError

FILES = (SourceFile("node-a.log", 7, "ab", "cut short"), SourceFile("node-b.log"))


def extracted(file: int) -> Facts:
    """Of a file of the two ranks of a host."""
    return extract_plain(rank_log(file * 2) + rank_log(file * 2 + 1), file, 0)


WHOLE = merge_facts([extracted(0), extracted(1)])


def in_bytes(whole: Facts, rows: int) -> bytes:
    stream = io.BytesIO()
    with patched((saved, "BATCH_ROWS", rows)):
        save(stream, whole, FILES)
    return stream.getvalue()


def kept(whole: Facts, folder: Path, rows: int = 1 << 17) -> str:
    path = folder / "job.facts"
    path.write_bytes(in_bytes(whole, rows))
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


@settings(max_examples=12)
@given(st.integers(1, 40), st.booleans())
def test_facts_saved_in_any_batches_come_back_in_memory_and_on_disk(folder: Path, rows: int, disk: bool) -> None:
    path = kept(WHOLE, folder, rows)
    with patched((saved, "MOST_BYTES", 0 if disk else 1 << 30), (saved, "SMALL_TABLE", 0)):
        again, files = load(path)
    assert files == FILES
    assert bool(again.maps) == disk
    assert same_facts(again, WHOLE)
    again.rest()
    assert same_facts(again, WHOLE)


@pytest.mark.parametrize("rows", [3, 1 << 17])
def test_all_rows_of_a_loaded_column_are_codes_of_the_same_words_in_order(folder: Path, rows: int) -> None:
    again, _ = load(kept(WHOLE, folder, rows))
    for name in SCHEMAS:
        for words in again[name].words.values():
            assert words == sorted(set(words))


def test_the_job_is_the_same_from_saved_facts_on_disk(folder: Path) -> None:
    path = kept(WHOLE, folder, 5)
    with patched((saved, "MOST_BYTES", 0), (saved, "SMALL_TABLE", 0)):
        again, files = load(path)
    assert repr(rebuild(again, files)) == repr(rebuild(WHOLE, FILES))


def test_loaded_facts_are_merged_with_others_on_disk(folder: Path) -> None:
    path = kept(WHOLE, folder, 5)
    more = extract_plain(rank_log(0).replace(b"node0", b"node2"), 2, 0)
    with patched((saved, "MOST_BYTES", 0), (saved, "SMALL_TABLE", 0)):
        again, _ = load(path)
        store = Store()
        both = merge_facts([again, more], store)
    assert store.maps
    assert same_facts(both, merge_facts([WHOLE, more]))


def test_facts_in_memory_go_to_disk_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "SMALL_TABLE", 0)
    moved = on_disk(WHOLE)
    assert moved.maps
    assert same_facts(moved, WHOLE)
    moved.rest()
    assert same_facts(moved, WHOLE)
    assert on_disk(moved) is moved
    assert same_facts(on_disk(empty()), empty())


def test_facts_of_nothing_are_saved_and_loaded(folder: Path) -> None:
    again, files = load(kept(empty(), folder))
    assert files == FILES
    assert same_facts(again, empty())


@pytest.mark.parametrize("disk", [False, True])
@pytest.mark.parametrize("rows", [3, 1 << 17])
def test_leaving_a_file_out_is_the_same_in_pieces_and_on_disk(rows: int, disk: bool) -> None:
    with patched((facts, "BATCH_ROWS", rows), (saved, "SMALL_TABLE", 0)):
        store = Store()
        left = without_files(WHOLE, frozenset([0]), store if disk else None)
    assert bool(store.maps) == disk
    assert same_facts(left, merge_facts([extracted(1)]))


SAVED = in_bytes(WHOLE, 50)


def _with(name: str, change: Callable[[Table], Table]) -> Facts:
    """The facts with another table."""
    return replace(WHOLE, tables={**WHOLE.tables, name: change(WHOLE[name])})


def _set(table: str, column: str, value: int) -> Facts:
    """Another value in the last row of a table."""

    def change(rows: Table) -> Table:
        values = rows[column].copy()
        values[-1] = value
        return rows.changed(**{column: values})

    return _with(table, change)


@pytest.mark.parametrize("disk", [False, True])
@pytest.mark.parametrize(
    ("whole", "says"),
    [
        (_set("conn", "thread", 4), "rows of a thread that it does not hold"),
        (_set("conn", "thread", -1), "rows of a thread that it does not hold"),
        (_set("contexts", "thread", 99), "rows of a thread that it does not hold"),
        (_set("threads", "file", 2), "rows of a file that it does not hold"),
        (_set("threads", "file", -1), "rows of a file that it does not hold"),
        (_set("conn", "via", -1), "rows of a word that it does not hold"),
        (_set("conn", "via", 99), "rows of a word that it does not hold"),
        (_with("threads", lambda rows: rows.part(slice(0, 0))), "rows of a thread that it does not hold"),
    ],
)
def test_damage_is_told_in_one_line(folder: Path, whole: Facts, says: str, disk: bool) -> None:
    path = kept(whole, folder, 7)
    with (
        patched((saved, "MOST_BYTES", 0 if disk else 1 << 30), (saved, "SMALL_TABLE", 0)),
        pytest.raises(InputError, match=f"is damaged: {says}") as error,
    ):
        load(path)
    assert "\n" not in str(error.value)
    assert "--save" in error.value.hint


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data.replace(b"facts %d" % FACTS_VERSION, b"facts %d" % (FACTS_VERSION + 1), 1), "other version"),
        (lambda data: b"PAR1" + data, "holds no facts of a log, or those of another version"),
        (lambda data: data[:10], "holds no facts of a log"),
        (lambda data: data[: data.index(b"{") + 20], "is damaged"),
        (lambda data: data.replace(b'"files"', b'"flies"', 1), "is damaged"),
        (lambda data: data.replace(b"node-a.log", b'node-a"log', 1), "is damaged"),
        (lambda data: data[: len(data) // 2], "is damaged"),
        (lambda data: data[:-6], "is damaged"),
    ],
)
def test_what_is_no_such_file_is_told_in_one_line(folder: Path, change: Callable[[bytes], bytes], says: str) -> None:
    (folder / "job.facts").write_bytes(change(SAVED))
    with pytest.raises(InputError, match=says) as error:
        load(str(folder / "job.facts"))
    assert "\n" not in str(error.value)
    assert "--save" in error.value.hint


def test_facts_with_other_columns_are_told_in_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "_columns", lambda _: {"thread": "<i8"})
    path = kept(WHOLE, folder)
    monkeypatch.undo()
    with pytest.raises(InputError, match="is damaged: a table has other columns"):
        load(path)


def test_words_are_written_as_they_are_spelt_and_equal_ones_are_one(folder: Path) -> None:
    stream = io.BytesIO()
    save(stream, WHOLE, FILES, lambda word: word.replace("node0", "node1"))
    (folder / "job.facts").write_bytes(stream.getvalue())
    threads = load(str(folder / "job.facts"))[0]["threads"]
    assert threads.words["host"] == ["node1"]
    assert threads.values("host") == ["node1"] * 4


@given(st.data())
def test_a_file_with_other_bytes_in_it_is_refused_or_read(folder: Path, data: st.DataObject) -> None:
    path = folder / "damaged.facts"
    whole = bytearray(SAVED)
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(4, len(whole) - 5))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole[: data.draw(st.sampled_from([len(whole), len(whole) // 2]))])
    try:
        again, _ = load(str(path))
    except InputError as error:
        text = str(error)
    else:
        text = ""
        assert all((again[name]["thread"] >= 0).all() for name in ROW_TABLES)
    assert "\n" not in text


def test_a_full_disk_is_told_as_that_and_not_as_damage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = kept(WHOLE, folder)
    monkeypatch.setattr(saved, "MOST_BYTES", 0)
    monkeypatch.setattr(saved, "SMALL_TABLE", 0)

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(TopodiagError, match=r"No space left on device.*set TMPDIR") as error:
        load(path)
    assert not isinstance(error.value, InputError)


def test_a_file_that_breaks_off_while_tables_go_to_disk_is_not_a_full_disk(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kept(WHOLE, folder, 5)
    monkeypatch.setattr(saved, "MOST_BYTES", 0)
    monkeypatch.setattr(saved, "SMALL_TABLE", 0)
    check = saved._check

    def broken(batch: Table, *more: Any) -> None:
        if "peer" in batch.columns:
            raise OSError(5, "Input/output error")
        check(batch, *more)

    monkeypatch.setattr(saved, "_check", broken)
    with pytest.raises(InputError, match=r"is damaged: .*Input/output error"):
        load(path)


def test_words_that_only_some_batches_have_keep_their_rows(folder: Path) -> None:
    rows = WHOLE["unread"]
    assert len(set(rows.values("text"))) > 1
    again, _ = load(kept(WHOLE, folder, 1))
    assert again["unread"].values("text") == rows.values("text")


def test_a_file_whose_name_is_no_text_is_read(tmp_path: Path) -> None:
    path = Path(kept(WHOLE, tmp_path))
    named = path.rename(f"{tmp_path}/\udcff job.facts")
    assert load(str(named))[1] == FILES


# --- columns grow by rows, in memory or on disk: what comes back is what was put in, in types as narrow as asked

KINDS: dict[str, np.dtype[Any]] = {
    "rank": np.dtype(np.int16),
    "channels": np.dtype(np.uint64),
    "line": np.dtype(np.int32),
}
PARTS = st.lists(st.lists(st.integers(0, 30_000), max_size=20), max_size=8)


@given(PARTS, st.sampled_from([0, 100, 1 << 20]), st.integers(0, 9))
def test_rows_come_back_in_their_order_in_memory_and_on_disk(parts: list[list[int]], size: int, more: int) -> None:
    values = [value for part in parts for value in part]
    made = Columns(KINDS, len(values) + more, size)
    for part in parts:
        own = np.array(part, np.int64)
        made.add({"rank": own, "channels": own.astype(np.uint64) << np.uint64(40), "line": own * 3})
    assert len(made) == len(values)
    ndarrays, maps = made.take()
    assert bool(maps) == (len(values) * 14 > size)
    assert {name: column.dtype for name, column in ndarrays.items()} == KINDS
    assert ndarrays["rank"].tolist() == values
    assert ndarrays["channels"].tolist() == [value << 40 for value in values]
    assert ndarrays["line"].tolist() == [value * 3 for value in values]


@given(st.integers(-(1 << 40), 1 << 40), st.integers(-(1 << 40), 1 << 40))
def test_the_narrowest_type_holds_both_ends_and_no_narrower_one_does(a: int, b: int) -> None:
    low, high = sorted((a, b))
    kind = narrowest(low, high)
    assert np.array([low, high], kind).tolist() == [low, high]
    half = {2: np.int8, 4: np.int16, 8: np.int32}.get(kind.itemsize)
    assert half is None or low < np.iinfo(half).min or high > np.iinfo(half).max


# --- memory that is free inside the process goes back to the system, where the C library can ------------------


def test_the_c_library_is_asked_to_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Library:
        def malloc_trim(self, kept: int) -> None:
            asked.append(kept)

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library())
    give_back()
    assert asked == [0]


@pytest.mark.parametrize("error", [OSError, TypeError, AttributeError])
def test_where_it_cannot_nothing_happens(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def library(_: object) -> None:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", library)
    give_back()


# --- Groups, orders and first places are those that plain Python finds


_WORDS = st.lists(st.integers(0, 3) | st.integers(0, (1 << 64) - 1), max_size=40)


@given(_WORDS, st.integers(1, 3))
def test_groups_are_equal_columns_in_the_order_they_came(values: list[int], rows: int) -> None:
    columns = np.array([[value >> (7 * row) for value in values] for row in range(rows)], dtype=np.uint64)
    order, starts = group(columns)
    met: dict[tuple[int, ...], list[int]] = {}
    for at in range(len(values)):
        met.setdefault(tuple(int(row[at]) for row in columns), []).append(at)
    ends = [*starts.tolist()[1:], len(values)] if values else []
    got = [order[a:b].tolist() for a, b in zip(starts.tolist(), ends, strict=True)]
    assert sorted(got) == sorted(met.values())


@given(_WORDS)
def test_orders_are_stable_and_firsts_are_first(values: list[int]) -> None:
    words = np.array(values, dtype=np.uint64)
    by_value = sorted(range(len(values)), key=lambda at: values[at])
    assert sorted_order(words, 64).tolist() == by_value
    small = words & np.uint64(0xFFFF)
    assert sorted_order(small, 16).tolist() == sorted(range(len(values)), key=lambda at: values[at] & 0xFFFF)
    spread = words << np.uint64(32)
    first = firsts(spread)
    assert sorted(first.tolist()) == sorted(
        {int(value): at for at, value in reversed(list(enumerate(spread)))}.values()
    )


PLACES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), max_size=20)


@given(PLACES, PLACES)
def test_a_row_finds_its_neighbours_among_the_marks_of_its_key(
    places: list[tuple[int, int]], rows: list[tuple[int, int]]
) -> None:
    marks = Marks(*(np.array([place[i] for place in places], np.int64) for i in (0, 1)))
    keys, offsets = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    before, after = [], []
    for key, offset in rows:
        own = sorted((at, number) for number, (each, at) in enumerate(places) if each == key)
        before.append(next((number for at, number in reversed(own) if at <= offset), -1))
        after.append(next((number for at, number in own if at >= offset), -1))
    assert marks.last(keys, offsets).tolist() == before
    assert marks.next(keys, offsets).tolist() == after
