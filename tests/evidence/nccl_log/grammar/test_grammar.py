"""Messages of NCCL 2.3 to 2.30 and what each becomes."""

from math import isnan
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.nccl_log.fast.rows import DEFAULTS
from topodiag.evidence.nccl_log.grammar.grammar import NOISE, START, STARTS, kind_by_start, parse
from topodiag.evidence.nccl_log.tables.facts import SCHEMAS


def row(message: str, name: str, level: str = "INFO") -> dict[str, Any]:
    rows = parse(level, message)
    assert rows is not None, message
    assert [each for each, _ in rows] == [name]
    return dict(rows[0][1])


def some(columns: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(columns[name] for name in names)


@examples("message", "event", "func")
def test_every_spelling_of_a_communicators_life_is_an_init_row(message: str, event: str, func: str) -> None:
    columns = row(message, "init")
    assert some(columns, "ctx", "event", "func", "rank", "nranks") == (0x56, event, func, 2, 16)


@examples("message", "table", "fields")
def test_a_message_is_a_row_with_its_fields(message: str, table: str, fields: dict[str, Any]) -> None:
    columns = {**DEFAULTS[table], **row(message, table)}
    assert {name: columns[name] for name in fields} == fields


@examples("level", "message")
def test_what_says_nothing_is_passed_over(level: str, message: str) -> None:
    assert parse(level, message) == []


@examples("message")
def test_a_torn_communicator_line_is_not_understood(message: str) -> None:
    assert parse("INFO", message) is None


def test_a_time_that_was_not_printed_is_unknown() -> None:
    message = "Init timings: rank 2 nranks 16 total 1.84 (kernels 0.21, bootstrap 0.31, rest 0.04)"
    assert isnan(row(message, "timing")["alloc"])


@examples("message", "expected")
def test_every_spelling_of_a_connection_is_a_conn_row(message: str, expected: tuple[Any, ...]) -> None:
    columns = row(message, "conn")
    assert some(columns, "via", "net_dev", "proxy", "direction", "conn", "dev", "peer", "peer_dev") == expected
    assert some(columns, "rank", "channels") == (0, 1)


@examples("end")
def test_a_torn_connection_is_not_understood(end: str) -> None:
    assert parse("INFO", f"Channel 00/0 : 0[0] -> 1[1] via {end}") is None


def test_channels_above_63_share_the_last_bit() -> None:
    assert row("Channel 70/0 : 0[0] -> 1[1] via P2P/CUMEM", "conn")["channels"] == 1 << 63
    assert row("Channel 08/0 : 0[0] -> 1[1] via P2P/CUMEM", "conn")["channels"] == 1 << 8


def trees(message: str) -> list[tuple[Any, ...]]:
    rows = parse("INFO", message) or []
    assert {name for name, _ in rows} <= {"tree"}
    return [some(columns, "up", "rank", "d0", "d1", "d2", "channels", "second") for _, columns in rows]


def test_equal_trees_of_one_line_are_one_row() -> None:
    assert trees("Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1 [2] -1/-1/-1->0->1") == [
        (-1, 0, 1, -1, -1, 3, 0),
        (1, 0, -1, -1, -1, 4, 0),
    ]


def test_older_trees_are_read_in_their_own_order() -> None:
    assert trees("Trees [0] 26->25->-1/-1/-1") == [(26, 25, -1, -1, -1, 1, 0)]
    assert trees("Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1") == [(-1, 0, 1, -1, -1, 1, 0), (-1, 0, 1, -1, -1, 1, 1)]


def test_the_last_tree_of_a_line_that_may_be_cut_is_not_trusted() -> None:
    text = "Trees" + "".join(f" [{c}] 101/-1/-1->100->112" for c in range(40))
    assert sum(bin(mask).count("1") for *_, mask, _ in trees(text)) == 39


@examples("message", "nchannels", "count", "cut")
def test_an_order_says_whether_it_is_whole(message: str, nchannels: int, count: int, *, cut: bool) -> None:
    columns = row(message, "order")
    assert some(columns, "nchannels", "cut") == (nchannels, cut)
    assert len(columns["ranks"].split()) == count


@examples("message", "expected")
def test_channel_counts_are_unknown_where_not_printed(message: str, expected: tuple[int, ...]) -> None:
    assert some(row(message, "channels"), "coll", "collnet", "nvls", "p2p", "per_peer") == expected


@examples("message", "expected")
def test_choices_name_algorithm_and_protocol_whatever_the_version(message: str, expected: tuple[Any, ...]) -> None:
    assert some(row(message, "choice"), "func", "bytes", "algo", "proto", "lo", "hi") == expected


@examples("message")
def test_rows_of_the_prints_are_kept_as_they_stand(message: str) -> None:
    assert row(message, "print") == {"text": message}


def test_unwinding_is_an_event_with_its_place() -> None:
    assert row("init.cc:123 (ncclInit) -> 6", "event") == {
        "level": "UNWIND", "place": "init.cc:123", "text": "init.cc:123 (ncclInit) -> 6",
    }  # fmt: skip


@examples("message", "kind")
def test_other_lines_are_texts_of_a_kind(message: str, kind: str) -> None:
    assert row(message, "text") == {"kind": kind, "text": message}


def test_queue_pairs_that_differ_in_number_only_are_equal_texts() -> None:
    texts = {row(f"NET/IB: Dev 0 Port 1 qpn {qp} mtu 5 GID 3 (0/FF)", "text")["text"] for qp in (112, 9931)}
    assert texts == {"NET/IB: Dev 0 Port 1 qpn # mtu 5 GID 3 (0/FF)"}


def test_levels_decide_before_words() -> None:
    assert row("NET/IB : No device found.", "event", "WARN")["level"] == "WARN"


@given(
    st.sampled_from(["", "Channel 00/0 : ", "comm 0x1 rank ", "Trees [0] ", "Init timings: ", "AllReduce: ", "²"]),
    st.text(alphabet="0123456789abcx/->[]|: \t²٣{}=.,nrk", max_size=80),
)
def test_any_message_gives_rows_of_known_columns(front: str, rest: str) -> None:
    for name, columns in parse("INFO", front + rest) or []:
        assert set(columns) <= {*SCHEMAS[name], "op_count"}


@given(
    st.sampled_from([start for start, _ in STARTS] + ["GPU/0-1b000 (3)", "NET/IB : ", "CPU/0", "Trees ", "12 coll "]),
    st.text(alphabet="0123456789abc/->[]|: .GPUCommNETRail", max_size=60),
)
def test_a_kind_that_the_beginning_decides_is_the_kind_of_the_message(start: str, rest: str) -> None:
    message = (start + rest).rstrip()
    kind = kind_by_start(message[:START])
    if kind is not None and len(message) >= START:
        assert parse("INFO", message) == ([] if kind == NOISE else [("text", {"kind": kind, "text": message})])


def test_the_beginning_decides_where_it_can() -> None:
    assert kind_by_start("GPU Direct RDMA Enabled"[:START]) == "gdr pair"
    assert kind_by_start("Connected to proxy"[:START]) is None  # `Connected ` has another kind
    assert kind_by_start("Allocated 4194304"[:START]) == NOISE
    assert kind_by_start("CPU/0-0 (1/1/3)") is None


_SHAPE = st.sampled_from(["1/-1/-1->0->3", "-1/-1/-1->0->1", "2/3->0->-1", "1->0->3", "1->0->3|3->0->1", "x", "1/2"])


@given(st.lists(st.tuples(st.integers(0, 70), _SHAPE), max_size=20))
def test_trees_are_the_same_however_their_line_is_read(trees: list[tuple[int, str]]) -> None:
    line = " ".join(["Trees", *(f"[{channel}] {shape}" for channel, shape in trees)])
    assert parse("INFO", line) == parse("INFO", line + " ")  # a blank at the end is not written by NCCL


def test_threads_of_something_else_are_not_understood() -> None:
    assert parse("INFO", "Using 128 threads for the data loader") is None


def test_a_notice_of_2_32_is_read_as_information_and_never_as_an_error() -> None:
    assert parse("ATTN", "comm 0x56 rank 2 nranks 16") == parse("INFO", "comm 0x56 rank 2 nranks 16")


@examples("message")
def test_what_was_a_warning_before_2_31_is_none_as_info(message: str) -> None:
    assert [name for name, _ in parse("WARN", message) or ()] == ["event"]
    assert parse("INFO", message) == []


@examples("message", "kind")
def test_what_2_32_says_in_other_words_is_of_the_kind_it_was(message: str, kind: str) -> None:
    assert row(message, "text")["kind"] == kind
