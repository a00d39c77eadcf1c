"""Equal rows are one row, contexts follow what threads name, operations are gathered."""

from math import nan
from typing import Any

import pytest

from tests.evidence.nccl_log.line_by_line import Collector, rounded
from topodiag.evidence.nccl_log.grammar.grammar import parse
from topodiag.evidence.nccl_log.tables.facts import SCHEMAS, TAIL, Facts

ONE, OTHER, ELSEWHERE = ("a", 1, 10, 0), ("a", 1, 11, 0), ("b", 1, 10, 0)
START = "ncclCommInitRank comm {p} rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x9 - Init START"
OP = "{f}: opCount {n:x} sendbuff 0x1 recvbuff 0x2 count {e} datatype 7 op 0 root 0 comm {p} [nranks=2] stream 0x3"
VIA = "Channel {c:02d}/0 : 0[0] -> 1[1] via P2P/CUMEM"


class Shard:
    """Lines of ten bytes each."""

    def __init__(self) -> None:
        self.collector = Collector(0, 0)
        self.lines = 0

    def say(self, thread: tuple[str, int, int, int], message: str) -> int:
        offset = self.lines * 10
        self.lines += 1
        self.collector.add(thread, offset, self.lines, parse("INFO", message) or [])
        return offset

    def facts(self) -> Facts:
        return self.collector.facts(self.lines * 10, self.lines)

    def rows(self, name: str) -> list[dict[str, Any]]:
        return list(self.facts()[name].rows())


def test_equal_connections_are_one_row_with_a_mask_a_count_and_the_first_place() -> None:
    shard = Shard()
    shard.say(ONE, "Using network IB")
    for channel in (0, 3, 3):
        shard.say(ONE, VIA.format(c=channel))
    (row,) = shard.rows("conn")
    assert (row["channels"], row["count"], row["offset"], row["line"]) == (0b1001, 3, 10, 2)


def test_a_context_is_of_its_thread_and_begins_with_the_line_that_names_it() -> None:
    shard = Shard()
    shard.say(ONE, VIA.format(c=0))
    started = shard.say(ONE, START.format(p="0x56"))
    shard.say(ONE, VIA.format(c=0))
    shard.say(OTHER, VIA.format(c=0))
    assert [(row["thread"], row["ctx"], row["gen"]) for row in shard.rows("conn")] == [
        (0, 0, -1),
        (0, 0x56, started),
        (1, 0, -1),
    ]
    (init,) = shard.rows("init")
    assert (init["ctx"], init["gen"]) == (0x56, started)
    assert shard.rows("contexts") == [{"thread": 0, "offset": started, "ctx": 0x56, "gen": started}]


def test_a_pointer_used_again_is_another_communicator_once_a_thread_names_it_again() -> None:
    shard = Shard()
    first = shard.say(ONE, START.format(p="0x56"))
    shard.say(OTHER, OP.format(f="AllReduce", n=0, e=8, p="0x56"))
    second = shard.say(ONE, START.format(p="0x56"))
    shard.say(OTHER, VIA.format(c=0))
    shard.say(OTHER, OP.format(f="AllReduce", n=0, e=8, p="0x56"))
    shard.say(ELSEWHERE, OP.format(f="AllReduce", n=0, e=8, p="0x56"))
    assert [row["gen"] for row in shard.rows("conn")] == [first]
    assert [(row["thread"], row["gen"]) for row in shard.rows("op")] == [(1, first), (1, second), (2, -1)]


def test_prints_of_one_context_are_one_text() -> None:
    shard = Shard()
    for text in ("=== System : maxBw 1.0 totalBw 1.0 ===", "CPU/0 (1/1/2)", "Pattern 4, x"):
        shard.say(ONE, text)
    (row,) = shard.rows("print")
    assert row["text"].split("\n") == ["=== System : maxBw 1.0 totalBw 1.0 ===", "CPU/0 (1/1/2)", "Pattern 4, x"]
    assert row["count"] == 3


def test_operations_keep_what_came_last() -> None:
    counts = (3, 1, 2)
    for order in (counts, counts[::-1]):
        shard = Shard()
        for count in order:
            shard.say(ONE, OP.format(f="AllReduce", n=count, e=8, p="0x56"))
        (row,) = shard.rows("op")
        assert (row["last"], row["last_offset"], row["count"]) == (order[-1], 20, 3)


def test_more_sizes_than_can_be_kept_are_rounded_all_of_them_and_marked() -> None:
    shard = Shard()
    for elements in range(65):
        shard.say(ONE, OP.format(f="AllReduce", n=elements, e=elements, p="0x56"))
    rows = shard.rows("op")
    assert sorted((row["elements"], row["count"]) for row in rows) == [
        (-64, 1), (-32, 32), (-16, 16), (-8, 8), (-4, 4), (-2, 2), (-1, 1), (0, 1),
    ]  # fmt: skip
    assert {row["last"] for row in rows} == {0, 1, 3, 7, 15, 31, 63, 64}


def test_the_last_operations_are_kept_by_context() -> None:
    shard = Shard()
    for count in range(TAIL + 4):
        shard.say(ONE, OP.format(f="AllReduce", n=count, e=8, p="0x56"))
    shard.say(ONE, OP.format(f="Send", n=0, e=8, p="0x57"))
    tail = shard.rows("tail")
    assert [row["op_count"] for row in tail] == [*range(4, TAIL + 4), -1]
    assert {row["count"] for row in tail} == {1}


def test_events_keep_when_they_were_first_and_last_seen() -> None:
    collector = Collector(0, 0)
    for offset, ts in ((0, 5.0), (10, nan), (20, 9.0)):
        columns: dict[str, object] = {"level": "WARN", "text": "x", "ts": ts}
        collector.add(ONE, offset, 1, [("event", columns)])
    (row,) = collector.facts(30, 3)["event"].rows()
    assert (row["ts"], row["last_ts"], row["last_offset"], row["count"]) == (5.0, 9.0, 20, 3)


def test_tables_have_their_schemas_and_are_ordered_by_thread_and_offset() -> None:
    shard = Shard()
    shard.say(ONE, "Using network IB")
    shard.say(OTHER, "Using network IB")
    shard.say(ONE, "cudaDriverVersion 12040")
    facts = shard.facts()
    assert all(
        {column: values.dtype for column, values in facts[name].columns.items()} == schema
        for name, schema in SCHEMAS.items()
    )
    assert [(row["thread"], row["offset"]) for row in facts["text"].rows()] == [(0, 0), (0, 20), (1, 10)]


@pytest.mark.parametrize(("elements", "expected"), [(0, 0), (1, -1), (2, -2), (3, -2), (4, -4), (1023, -512)])
def test_rounding_goes_down_and_is_marked(elements: int, expected: int) -> None:
    assert rounded(elements) == expected
