"""Heads of records, as launchers, containers and torn pipes leave them."""

from math import isnan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.tables import examples
from topodiag.evidence.nccl_log.fast.scan import extract
from topodiag.evidence.nccl_log.grammar.prefix import Record, application, clean, records

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
