"""Heads of records, as launchers, containers and torn pipes leave them."""

from datetime import UTC, datetime
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.nccl_log.grammar.prefix import Record, application, clean, records

HEAD = "gpu-a:4021:4077 [2] NCCL INFO Using network IB"


def one(text: str) -> Record:
    (record,) = records(text)
    return record


def test_a_plain_head_names_host_process_thread_and_device() -> None:
    record = one(HEAD)
    assert (record.host, record.pid, record.tid, record.dev) == ("gpu-a", 4021, 4077, 2)
    assert (record.level, record.message) == ("INFO", "Using network IB")
    assert (record.label, record.place) == ("", "")
    assert isnan(record.ts)


@examples("front", "label")
def test_what_a_launcher_puts_in_front_is_a_label_and_no_part_of_the_host(front: str, label: str) -> None:
    record = one(front + HEAD)
    assert record.host == "gpu-a"
    assert record.message == "Using network IB"
    assert record.label == label


def test_a_warning_carries_its_place_and_time() -> None:
    record = one(
        "[2026-01-11 03:22:19] gpu-b:900:961 [3] transport/net_ib/p2p.cc:688 (ncclIbLog) NCCL WARN NET/IB: Got it"
    )
    assert (record.level, record.place, record.message) == ("WARN", "transport/net_ib/p2p.cc:688", "NET/IB: Got it")
    assert record.ts == datetime(2026, 1, 11, 3, 22, 19, tzinfo=UTC).timestamp()
    assert record.label == ""


@pytest.mark.parametrize("head", ["gpu-b:900:961 [3] ", "[3] ", ""])
def test_a_notice_of_2_32_is_a_record_whatever_is_left_of_its_head(head: str) -> None:
    record = one(f"{head}graph/topo.cc:812 (ncclTopoGetSystem) NCCL ATTN Comm config maxP2pPeers set to 8")
    assert (record.level, record.place) == ("ATTN", "" if head.startswith("gpu-b") else "graph/topo.cc:812")
    assert record.message == "Comm config maxP2pPeers set to 8"


def test_fractions_of_a_second_are_kept() -> None:
    record = one("[2026-01-11 03:22:19.250] a:1:2 [0] init.cc:3 NCCL WARN x")
    assert record.ts == datetime(2026, 1, 11, 3, 22, 19, 250000, tzinfo=UTC).timestamp()


def test_the_place_of_a_plugins_warning_may_hold_blanks() -> None:
    record = one("a:1:2 [0] int foo(bar*, long):123 NCCL WARN NET/OFI Only EFA provider is supported")
    assert record.place == "int foo(bar*, long):123"


def test_calls_have_no_device_and_traces_have_a_time_and_a_place() -> None:
    assert one("a:1:2 NCCL CALL ncclGroupEnd()").dev == -1
    trace = one("a:1:2 [1] 124.329582 nccl_net_ofi_init:1396 NCCL TRACE NET/OFI x")
    assert (trace.level, trace.message) == ("TRACE", "NET/OFI x")
    assert one("a:1:2 [0] ncclTopoPrintRec, 289 NCCL INFO + PCI[12.0]").message == "+ PCI[12.0]"


def test_records_glued_on_one_line_are_told_apart_with_their_labels() -> None:
    glued = "[1,0]<stdout>:a:1:2 [0] NCCL INFO first[1,1]<stdout>:b:3:4 [1] NCCL INFO second[1,1]<stdout>:"
    assert [(record.host, record.message, record.label) for record in records(glued)] == [
        ("a", "first", "0"),
        ("b", "second", "1"),
    ]


def test_a_torn_record_in_front_does_not_name_the_one_behind() -> None:
    (record,) = records("a:1:2 [0] tra b:3:4 [1] NCCL INFO x")
    assert (record.host, record.pid, record.message) == ("b", 3, "x")


def test_a_clock_in_front_is_no_head() -> None:
    assert one("10:23:45 " + HEAD).host == "gpu-a"


def test_a_head_without_a_host_belongs_to_nobody_known() -> None:
    record = one("[3] NCCL INFO Using network IB")
    assert (record.host, record.pid, record.tid, record.dev) == ("", -1, -1, 3)
    assert not list(records("859 [2] NCCL INFO comm 0x1 rank 1 nranks 2"))


def test_devices_out_of_all_bounds_are_unknown() -> None:
    assert one("a:1:2 [-1234567890123456789] NCCL INFO x").dev == -1


def test_colours_nuls_and_progress_bars_are_taken_off() -> None:
    text = clean(b"\x1b[32ma:1:2 [0] NCCL\x00 INFO x\x1b[0m\r 10%|\xff|\r\n")
    assert one(text).message == "x"


@examples("line", "text")
def test_versions_stand_without_a_head(line: str, text: str) -> None:
    assert application(line) == ("text", {"kind": "version", "text": text})


def test_talk_about_versions_is_none() -> None:
    assert application("INFO: Using NCCL version 2.19.3 from the image") is None


def test_the_watchdogs_timeout_is_an_event_of_its_rank() -> None:
    line = (
        "[rank6]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 6] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=5, OpType=BROADCAST, Timeout(ms)=300000) ran for 300013 milliseconds"
    )
    name, columns = application(line) or ("", {})
    assert name == "event"
    assert (columns["level"], columns["place"], columns["label"]) == ("APP", "ProcessGroupNCCL.cpp:607", "6")
    assert str(columns["text"]).startswith("[Rank 6] Watchdog caught")
    older = application("[E ProcessGroupNCCL.cpp:737] [Rank 1] Watchdog caught collective operation timeout: W")
    assert older is not None
    assert older[1]["label"] == "1"


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


def test_frames_of_a_trace_are_not_told_again() -> None:
    assert application("frame #4: c10d::ncclCommWatchdog() NCCL error") is None
    assert application("  what():  [Rank 6] Watchdog caught collective operation timeout: x") is None


@given(st.binary(max_size=200))
def test_any_bytes_can_be_searched(raw: bytes) -> None:
    text = clean(raw)
    list(records(text))
    application(text)


@given(st.text(alphabet="a:1 [0]NCLIFOWAR.<>\r\t²٣-", max_size=120))
def test_anything_that_resembles_heads_can_be_searched(text: str) -> None:
    for record in records(text + " a:1:2 [0] NCCL INFO " + text):
        assert "\r" not in record.message


def test_a_duplicate_gpu_below_torchs_last_error_is_evidence() -> None:
    name, columns = application("Duplicate GPU detected : rank 3 and rank 0 both on CUDA device f000") or ("", {})
    assert (name, columns["level"]) == ("event", "APP")
    assert application("Duplicate GPU detected in the config") is None


def test_a_warning_of_2_2_has_a_place_and_no_word_nccl() -> None:
    record = one("gpuX:18553:18611 [0] include/socket.h:360 WARN Call to connect failed : Connection timed out")
    assert (record.host, record.level, record.place) == ("gpuX", "WARN", "include/socket.h:360")
    assert record.message == "Call to connect failed : Connection timed out"
    assert list(records("12:30:45 [0] worker.py:3 said WARN nothing")) == []


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


def test_a_place_before_information_is_the_talk_of_an_application() -> None:
    assert list(records("train.cpp:12 NCCL INFO comm is up")) == []


def test_an_operation_that_xla_says_failed_is_evidence_of_the_application() -> None:
    text = "NCCL operation ncclCommInitRank failed: unhandled cuda error (run with NCCL_DEBUG=INFO for details)."
    name, columns = application(f"2024-05-14 10:33:08.612345: W xla/service/gpu/nccl_utils.cc:12] {text}") or ("", {})
    assert (name, columns["level"]) == ("event", "APP")
    assert str(columns["text"]).endswith(text)
