"""Messages of NCCL and what each becomes, behind heads as launchers, containers and torn pipes leave them."""

from math import isnan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.tables import examples
from topodiag.evidence.nccl_log.fast.rows import DEFAULTS
from topodiag.evidence.nccl_log.fast.scan import extract
from topodiag.evidence.nccl_log.grammar.grammar import NOISE, START, STARTS, kind_by_start, parse
from topodiag.evidence.nccl_log.grammar.prefix import Record, application, clean, records
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


# --- heads of records, as launchers, containers and torn pipes leave them


HEAD = "gpu-a:4021:4077 [2] NCCL INFO Using network IB"


def one(text: str) -> Record:
    (record,) = records(text)
    return record


def test_a_plain_head_has_no_time() -> None:
    assert isnan(one(HEAD).ts)


@examples("line", "fields")
def test_a_head_names_what_the_record_is_of(line: str, fields: dict[str, Any]) -> None:
    record = one(line)
    assert {name: getattr(record, name) for name in fields} == fields


@examples("front", "label")
def test_what_a_launcher_puts_in_front_is_a_label_and_no_part_of_the_host(front: str, label: str) -> None:
    record = one(front + HEAD)
    assert record.host == "gpu-a"
    assert record.message == "Using network IB"
    assert record.label == label


@pytest.mark.parametrize("head", ["gpu-b:900:961 [3] ", "[3] ", ""])
def test_a_notice_of_2_32_is_a_record_whatever_is_left_of_its_head(head: str) -> None:
    record = one(f"{head}graph/topo.cc:812 (ncclTopoGetSystem) NCCL ATTN Comm config maxP2pPeers set to 8")
    assert (record.level, record.place) == ("ATTN", "" if head.startswith("gpu-b") else "graph/topo.cc:812")
    assert record.message == "Comm config maxP2pPeers set to 8"


def test_records_glued_on_one_line_are_told_apart_with_their_labels() -> None:
    glued = "[1,0]<stdout>:a:1:2 [0] NCCL INFO first[1,1]<stdout>:b:3:4 [1] NCCL INFO second[1,1]<stdout>:"
    assert [(record.host, record.message, record.label) for record in records(glued)] == [
        ("a", "first", "0"),
        ("b", "second", "1"),
    ]


@examples("line")
def test_what_only_resembles_a_head_is_no_record(line: str) -> None:
    assert list(records(line)) == []


def test_colours_nuls_and_progress_bars_are_taken_off() -> None:
    text = clean(b"\x1b[32ma:1:2 [0] NCCL\x00 INFO x\x1b[0m\r 10%|\xff|\r\n")
    assert one(text).message == "x"


@examples("line", "text")
def test_versions_stand_without_a_head(line: str, text: str) -> None:
    assert application(line) == ("text", {"kind": "version", "text": text})


@examples("line")
def test_talk_about_nccl_is_no_event(line: str) -> None:
    assert application(line) is None


@examples("line", "label", "place", "text")
def test_what_an_application_says_of_nccl_is_an_event(
    line: str, label: str | None, place: str | None, text: str
) -> None:
    name, columns = application(line) or ("", {})
    assert (name, columns["level"], columns["text"]) == ("event", "APP", text)
    assert label is None or columns["label"] == label
    assert place is None or columns["place"] == place


def test_a_rank_of_a_process_group_is_not_taken_for_one_of_the_world() -> None:
    text = "ProcessGroupNCCL.cpp:616] {} Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5"
    for front, label in (
        ("[rank9]:[E1 02:07:08.4 ", "9"), ("[default3]:[E ", "default3"), ("[E ", "ProcessGroupNCCL"),
    ):  # fmt: skip
        name, columns = application(front + text.format("[PG ID 2 PG GUID 5(tp) Rank 1]")) or ("", {})
        assert name == "event"
        assert (str(columns["label"]).startswith(label)) or not str(columns["label"]).isdigit()
    _, columns = application("[E " + text.format("[PG ID 0 PG GUID 0(default_pg) Rank 3]")) or ("", {})
    assert columns["label"] == "3"


@given(st.text(alphabet="a:1 [0]NCLIFOWAR.<>\r\t²٣-", max_size=120))
def test_anything_that_resembles_heads_can_be_searched(text: str) -> None:
    for record in records(text + " a:1:2 [0] NCCL INFO " + text):
        assert "\r" not in record.message


@examples("text")
def test_nccls_last_error_below_torchs_trace_is_evidence_of_its_rank(text: str) -> None:
    name, columns = application(f"[rank3]: {text}") or ("", {})
    assert (name, columns["level"], columns["label"], columns["text"]) == ("event", "APP", "3", text)
    assert application(f"we saw that {text}") is None


@examples("text", "place", "dev")
def test_a_warning_whose_host_was_cut_off_keeps_its_place(text: str, place: str, dev: int) -> None:
    record = one(text)
    assert (record.host, record.level, record.place, record.dev) == ("", "WARN", place, dev)
    assert record.message == text.split("NCCL WARN ")[1]


def test_of_a_line_that_is_too_long_both_ends_are_kept() -> None:
    line = f"[ERROR] [launch.py:321:sigkill_handler] [{'--flag, ' * 400}] exits with return code = -9"
    row = application(line)
    text = str(row[1]["text"])
    assert (text[:7], text[-27:], len(text) <= 2000) == ("[ERROR]", "exits with return code = -9", True)


# --- heads of any kind: masked, without a host, behind any label; and prose that only speaks of NCCL's levels

MESSAGE = "Using network Socket"


@examples("front", "who")
def test_a_head_that_was_masked_or_taken_off_still_is_a_record(front: str, who: tuple[str, int, int, int]) -> None:
    found = list(records(f"{front}NCCL INFO {MESSAGE}"))
    assert [(record.host, record.pid, record.tid, record.dev, record.message) for record in found] == [(*who, MESSAGE)]


def test_the_place_of_a_warning_is_read_behind_a_masked_head() -> None:
    (record,) = records("[Node-A]:[PID]:[Thread] [0] misc/socket.cc:483 NCCL WARN Net : Connect failed")
    assert (record.level, record.place, record.message) == ("WARN", "misc/socket.cc:483", "Net : Connect failed")


@examples("front")
def test_both_readers_agree_on_masked_heads(front: str) -> None:
    lines = "".join(
        f"{front}NCCL INFO {message}\n"
        for message in (MESSAGE, "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC", "Channel 00/02 : 0 1", "strange words")
    )
    data = (lines * 3).encode()
    plain, fast = extract_plain(data, 0, 0), extract(data, 0, 0)
    for name in plain.tables:
        if name not in ("contexts",):
            assert _rows(fast[name]) == _rows(plain[name]), name


def _rows(table: object) -> list[str]:
    return sorted(map(str, table.rows()))  # type: ignore[attr-defined]
