"""Facts of shards come to one normal form, whatever the cut, the grouping, and how many rows are held at once."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.evidence.nccl_log.scan_compare import patched, same_facts
from topodiag.evidence.nccl_log.rebuild import comms, frame
from topodiag.evidence.nccl_log.rebuild.rebuild import rebuild
from topodiag.evidence.nccl_log.tables import facts, saved
from topodiag.evidence.nccl_log.tables import resolve as resolving
from topodiag.evidence.nccl_log.tables.facts import Facts, SourceFile, table
from topodiag.evidence.nccl_log.tables.resolve import merge_facts, resolve
from topodiag.evidence.nccl_log.tables.resolve_rows import packed
from topodiag.model.connections import COLUMNS, unique_rows

RANKS = 4
FILES = (SourceFile("job.log"),)


PRINTED = ("=== System : maxBw 48.0 totalBw 48.0 ===", "CPU/0-0 (1/1/2)", "=" * 42)


def log() -> bytes:
    """Four ranks of two hosts that print in turns, twice over, with one address for both communicators of a rank, and
    lines that only context places."""
    lines = []
    for turn in range(2):
        heads = [f"n{rank // 2}:{10 + rank}:{20 + rank} [{rank % 2}] NCCL INFO " for rank in range(RANKS)]
        inits = [
            f"ncclCommInitRank comm 0x7f{rank}000 rank {rank} nranks 4 cudaDev {rank % 2} nvmlDev {rank % 2} busId "
            f"{rank % 2 + 1}000 commId 0xab{turn} - Init "
            for rank in range(RANKS)
        ]
        for head, init in zip(heads, inits, strict=True):
            lines += [head + text for text in ("Using network IB", init + "START", *PRINTED)]
        for channel in range(4):
            for rank, head in enumerate(heads):
                after = (rank + 1) % RANKS
                ends = f"Channel {channel:02d}/0 : {rank}[{rank % 2}] -> {after}[{after % 2}]"
                via = "P2P/CUMEM" if after // 2 == rank // 2 else f"NET/IB/{channel % 2}/GDRDMA"
                lines.append(f"{head}{ends} {'[send] ' if 'NET' in via else ''}via {via}")
                lines.append(f"{head}Ring {channel:02d} : {(rank - 1) % RANKS} -> {rank} -> {after}")
        lines += [head + init + "COMPLETE" for head, init in zip(heads, inits, strict=True)]
        lines += ["", *(head.replace("INFO ", "WARN ") + "something odd" for head in heads)]
        for count in range(70):
            lines += [
                f"{head}AllReduce: opCount {count:x} sendbuff 0x1 recvbuff 0x2 count {1000 + count} datatype 7 op 0 "
                f"root 0 comm 0x7f{rank}000 [nranks=4] stream 0x3"
                for rank, head in enumerate(heads)
            ]
    return ("\n".join(lines) + "\n").encode()


LOG = log()
ENDS = [i + 1 for i, byte in enumerate(LOG) if byte == 10]
WHOLE = merge_facts([extract_plain(LOG, 0, 0)])


def shards(cuts: list[int]) -> list[Facts]:
    return [extract_plain(LOG[a:b], 0, a) for a, b in pairwise(sorted({0, len(LOG), *cuts}))]


CUTS = st.lists(st.sampled_from(ENDS), max_size=5)


@given(CUTS, st.randoms(use_true_random=False), st.integers(0, 6), st.integers(1, 60))
def test_any_cut_grouping_and_range_of_threads_gives_the_same_facts(
    cuts: list[int], random: object, first: int, rows: int
) -> None:
    parts = shards(cuts)
    random.shuffle(parts)  # type: ignore[attr-defined]
    left, right = parts[:first], [resolve(part) for part in parts[first:]]
    with patched((resolving, "RANGE_ROWS", rows)):
        assert same_facts(merge_facts(parts), WHOLE)
        assert same_facts(merge_facts([merge_facts(left), merge_facts(right)]), WHOLE)
        assert same_facts(resolve(WHOLE), WHOLE)


def test_an_address_used_again_is_another_generation() -> None:
    assert len(set(WHOLE["ring"].values("gen"))) == 2 * RANKS
    assert min(WHOLE["ring"].values("gen")) >= 0


def test_a_part_without_the_beginning_stays_open() -> None:
    middle = ENDS[22]
    part = resolve(extract_plain(LOG[middle:], 0, middle))
    assert min(part["conn"].values("gen")) == -1
    assert same_facts(merge_facts([part, extract_plain(LOG[:middle], 0, 0)]), WHOLE)


def test_lines_are_those_of_the_file() -> None:
    lines = LOG.decode().split("\n")
    for row in merge_facts(shards(ENDS[::9]))["init"].rows():
        assert "Init" in lines[row["line"] - 1]


@settings(max_examples=15)
@given(CUTS, st.integers(1, 200))
def test_tables_on_disk_are_merged_as_those_in_memory(cuts: list[int], rows: int) -> None:
    with patched((resolving, "RANGE_ROWS", rows), (saved, "SMALL_TABLE", 0)):
        parts = [saved.on_disk(merge_facts([part])) for part in shards(cuts)]
        assert all(part.maps for part in parts)
        store = saved.Store()
        merged = merge_facts(parts, store)
        assert store.maps
        assert same_facts(merged, WHOLE)
        merged.rest()
        assert same_facts(merged, WHOLE)


def test_merging_lets_go_of_its_parts() -> None:
    parts = shards(ENDS[::50])
    assert same_facts(merge_facts(parts), WHOLE)
    assert not parts
    assert same_facts(merge_facts([]), facts.empty())


@settings(max_examples=15)
@given(st.integers(1, 300), st.sampled_from([0, 100, 1 << 20]))
def test_any_batch_of_connections_gives_the_same_job_in_memory_and_on_disk(rows: int, size: int) -> None:
    (job,) = rebuild(WHOLE, FILES)
    assert len(job.connections) == 2 * (2 + 2 * 2)  # twice: two inside hosts; two between, over two devices each
    of_frames = {"BATCH_ROWS": rows, "SMALL_ROWS": size, "_AT_ONCE": rows}
    with patched(*((frame, name, value) for name, value in of_frames.items()), (comms, "SMALL_BYTES", size)):
        (again,) = rebuild(WHOLE, FILES)
    assert bool(again.connections.maps) == (size < 1 << 20)
    for name in COLUMNS:
        left, right = getattr(job.connections, name), getattr(again.connections, name)
        assert left.dtype == right.dtype, name
        assert left.tolist() == right.tolist(), name
    assert job.connections.vias == again.connections.vias
    assert job.connections.hosts == again.connections.hosts
    assert repr(job.communicators) == repr(again.communicators)
    assert (job.ranks, job.processes, job.events) == (again.ranks, again.processes, again.events)


def test_members_that_called_the_same_share_what_is_kept_of_it() -> None:
    (job,) = rebuild(WHOLE, FILES)
    for communicator in job.communicators:
        first, *others = communicator.operations.values()
        assert len(first.tail) == facts.TAIL
        assert [call[0] for call in first.tail] == list(range(70 - facts.TAIL, 70))
        assert first.calls_by_collective == {"AllReduce": 70}
        assert all(other.tail is first.tail for other in others)
        assert (
            len(
                {(other.origin.source, other.origin.line) for other in communicator.operations.values() if other.origin}
            )
            == 4
        )


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, (1 << 64) - 1))))
def test_packed_words_are_ordered_and_equal_as_the_columns_are(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[i] for row in rows], kind) for i, kind in enumerate((np.int32, np.int64, np.uint64))]
    first, inverse = unique_rows(columns)
    assert [rows[i] for i in first.tolist()] == sorted(set(rows))
    assert [sorted(set(rows))[i] for i in inverse.tolist()] == rows


def test_a_table_gives_its_rows_by_part_and_by_batch() -> None:
    rows = table("order", {
        **{name: list(range(9)) for name in ("thread", "ctx", "gen", "offset", "line", "count", "channel")},
        "nchannels": [9] * 9, "ranks": list("abcabcabc"), "cut": [i % 2 == 0 for i in range(9)],
    })  # fmt: skip
    assert rows.words == {"ranks": ["a", "b", "c"]}
    assert rows.values("ranks") == list("abcabcabc")
    assert rows.part(slice(3, 7)).rows() == rows.rows()[3:7]
    assert rows.part(slice(9, None)).rows() == []
    assert rows.part(rows["cut"]).values("line") == [0, 2, 4, 6, 8]
    assert [row for batch in rows.batches(4) for row in batch.rows()] == rows.rows()
    assert rows.changed(line=rows["line"] + 1).values("line") == list(range(1, 10))


# --- columns share words that are equal, and ordered, as their tuples are


NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-2, 9)


@given(st.lists(st.tuples(*[NUMBERS] * 4), min_size=1, max_size=20))
def test_words_are_equal_and_ordered_as_the_tuples_that_they_stand_for(rows: list[tuple[int, ...]]) -> None:
    words = packed([np.array([row[at] for row in rows], dtype=np.int64) for at in range(4)])
    tuples = [tuple(int(word[at]) for word in words) for at in range(len(rows))]
    assert sorted(range(len(rows)), key=tuples.__getitem__) == sorted(range(len(rows)), key=rows.__getitem__)
    assert len(set(tuples)) == len(set(rows))
