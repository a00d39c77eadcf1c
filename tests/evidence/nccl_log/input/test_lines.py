"""Lines of logs as they were before JSON, a terminal, a mail or a quote."""

import io
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.nccl_log.input.json_lines import JOB_EVENTS, JSON_LINES, json_lines, looks_wrapped, unwrapped
from topodiag.evidence.nccl_log.input.streams import Reading, text_of
from topodiag.evidence.nccl_log.input.wrapped_lines import (
    COLOURS,
    QUOTED,
    dress_of,
    looks_broken,
    undressed,
    whole_lines,
)

RECORD = "node00:7:9 [0] NCCL INFO Using network IB"
WARNING = "node00:7:9 [0] transport/net_ib.cc:9 NCCL WARN NET/IB : Got completion with error 12"


def _docker(text: str, time: str = "2025-06-01T10:00:57.000000057Z") -> bytes:
    return json.dumps({"log": text, "stream": "stdout", "time": time}).encode() + b"\n"


def test_each_runtime_and_collector_names_the_text_its_own_way() -> None:
    for wrapped in (
        {"log": RECORD + "\n", "stream": "stderr", "time": "2025-06-01T10:00:00Z"},
        {"message": RECORD, "kubernetes": {"pod_name": "worker-0"}},
        {"textPayload": RECORD, "insertId": "x", "timestamp": "2025-06-01T10:00:00Z"},
        {"__REALTIME_TIMESTAMP": "1748772000000000", "MESSAGE": RECORD, "_PID": "7"},
        {"labels": {}, "line": RECORD, "timestamp": "2025-06-01T10:00:00Z"},
    ):
        assert unwrapped(json.dumps(wrapped).encode()) == RECORD


def test_an_object_printed_over_several_lines_gives_its_text() -> None:
    assert unwrapped(b'    "textPayload": ' + json.dumps(RECORD).encode() + b",\n") == RECORD
    assert unwrapped(b'    "insertId": "abc",\n') is None


def test_a_warning_keeps_the_time_of_its_object() -> None:
    assert unwrapped(_docker(WARNING)) == f"[2025-06-01T10:00:57.000000057] {WARNING}"
    assert unwrapped(_docker(WARNING, "yesterday")) == WARNING


def test_lines_that_wrap_no_text_go_through_as_they_are() -> None:
    plain = b'{"step": 7, "loss": 2.5}\n{"log": 7}\n{broken\n[1]\nplain text\n'
    assert b"".join(json_lines(iter([plain]))) == plain


def test_what_is_nearly_json_is_read_as_the_standard_library_does() -> None:
    assert unwrapped(b'{"log": "caf\xe9 NCCL INFO x", "load": NaN}') == "caf\ufffd NCCL INFO x"
    assert unwrapped(b'{"log": "a", "log": "b"}') == "b"
    assert unwrapped(b'{"log": "a\tb"}') is None
    assert unwrapped(b'"log"') is None


def test_a_text_of_several_lines_keeps_the_number_of_lines_of_the_file() -> None:
    data = _docker(f"{RECORD}\n{RECORD}\n") + _docker("next\n")
    assert b"".join(json_lines(iter([data]))).split(b"\n") == [f"{RECORD}\r{RECORD}".encode(), b"next", b""]


def test_a_file_is_taken_for_wrapped_by_one_record_or_by_most_of_its_lines() -> None:
    banner = b"starting\n" * 50
    assert kind_of_file(banner + _docker(RECORD)).coding == (JSON_LINES,)
    assert kind_of_file(_docker("epoch 1") * 3 + b"plain\n").coding == (JSON_LINES,)
    assert kind_of_file(banner + _docker("epoch 1")).coding == ()
    assert kind_of_file(banner + RECORD.encode()).coding == ()
    assert not looks_wrapped(b'{"step": 1}\n' * 50)


@given(texts=st.lists(st.text(max_size=30), max_size=8), cuts=st.lists(st.integers(0, 400), max_size=5))
def test_any_cut_into_blocks_gives_the_same_text(texts: list[str], cuts: list[int]) -> None:
    data = b"".join(_docker(text) for text in texts) + b'{"log": "without an end"}'
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    blocks = [data[a:b] for a, b in pairwise(edges)]
    assert b"".join(json_lines(iter(blocks))) == b"".join(json_lines(iter([data])))


@given(data=st.binary(max_size=200))
def test_any_bytes_come_through_with_their_line_ends(data: bytes) -> None:
    text = b"".join(text_of(io.BytesIO(data), (JSON_LINES,), Reading()))
    assert text.count(b"\n") == data.count(b"\n")
    looks_wrapped(data)


def test_an_event_that_an_agent_passes_on_stays_whole() -> None:
    line = b'{"msg": "Handling event", "event": {"health": {"message": "GPU has fallen off the bus (XID 79)"}}}'
    assert unwrapped(line) is None
    assert unwrapped(b'{"msg": "Handling event", "event": {"id": 7}}') == "Handling event"


# --- a watchdog's sentence that a terminal, a mail or a forum broke is put together again; all else stays as it is


HEAD = b"n0:310:351 [0] NCCL INFO "
PIECES = (
    HEAD, b"n0:310:351 [0]", b"[0] NCCL INFO ", b"NCCL WARN ", b"3: " + HEAD, b"[1,3]<stdout>:", b"\x1b[0m", b"\0",
    b" ", b"a" * 250, b"Channel 00/0 : 0[0] -> 9[1] [send] via", b" NET/IB/0", b"NET/IB : Using [0]mlx5_0:1/IB",
    b"; OOB eth0", b"[Rank 3] Watchdog caught collective operation", b"timeout: WorkNCCL(SeqNum=7)",
    b"before timing out.", b"\xff", b"",
)  # fmt: skip


def whole(text: bytes) -> list[bytes]:
    return b"".join(whole_lines(iter([text]))).split(b"\n")


@examples("broken", "mended")
def test_a_broken_watchdog_is_whole_again_and_keeps_the_numbers_of_the_lines_behind_it(
    broken: bytes, mended: bytes
) -> None:
    lines = whole(broken + b"\nlast line\n")
    assert lines[0] == mended
    assert len(lines) == len((broken + b"\nlast line\n").split(b"\n"))
    assert lines[-2] == b"last line"
    assert looks_broken(broken + b"\n")


@examples("text")
def test_what_is_whole_or_not_understood_anyhow_stays_as_it_is(text: bytes) -> None:
    assert not looks_broken(text)
    assert b"".join(whole_lines(iter([text]))) == text


@pytest.mark.parametrize("label", [b"", b"3: ", b"[1,3]<stdout>:"])
@pytest.mark.parametrize("first", [HEAD + b"NET/IB : Using [0]mlx5_0:1/IB", b"n0:310:351 [0]", b"n0:310:351", b"words"])
def test_a_line_in_front_of_a_record_with_its_head_is_whole(first: bytes, label: bytes) -> None:
    assert not looks_broken(first + b"\n" + label + HEAD + b"Using network IB")


WORK = b"(SeqNum=7, OpType=ALLGATHER, NumelIn=8, NumelOut=64, Timeout(ms)=600000)"


@pytest.mark.parametrize("end", [b"", b" ran for 600100 milliseconds before timing out."])
def test_a_watchdogs_sentence_of_two_lines_is_whole_with_its_work(end: bytes) -> None:
    text = b"[Rank 3] Watchdog caught collective operation timeout: WorkNCCL\n" + WORK + end + b"\n[Rank 3] Some words."
    assert whole(text)[0] == b"[Rank 3] Watchdog caught collective operation timeout: WorkNCCL" + WORK + end


# --- colours and marks of a quote come off, wherever the blocks of a text end


LINES = (b"a:1:2 [0] NCCL INFO Using network IB\n", b"> a reply\n", b"x > y\n", b"\n", b"last")


def undone(text: bytes, layer: str, size: int) -> bytes:
    return b"".join(undressed((text[at : at + size] for at in range(0, len(text), size)), layer))


@given(st.lists(st.sampled_from(LINES[:-1]), max_size=8), st.integers(1, 40))
def test_a_text_in_colours_is_the_text_in_any_blocks(lines: list[bytes], size: int) -> None:
    text = b"".join(lines)
    dressed = b"".join(b"\x1b[01;31m\x1b[K" + line[:3] + b"\x1b[m\x1b[K" + line[3:] for line in lines)
    assert undone(dressed, COLOURS, size) == text


@given(st.lists(st.sampled_from(LINES), max_size=8), st.integers(1, 40))
def test_a_quoted_text_is_the_text_in_any_blocks(lines: list[bytes], size: int) -> None:
    lines = [line for line in lines if line.endswith(b"\n")] + [line for line in lines if not line.endswith(b"\n")][:1]
    assert undone(b"".join(b"> " + line for line in lines), QUOTED, size) == b"".join(lines)


ENDED_EVENT = b"005 (8124.001.000) 2024-07-11 10:23:03 Job terminated."
EVENTS = (
    ENDED_EVENT + b"\n\t(1) Normal termination (return value 1)\n...\n",
    b"012 (7.000.000) 07/11 10:22:03 Job was held.\n...\n",
)


@given(st.lists(st.sampled_from(EVENTS), max_size=8), st.integers(1, 40))
def test_how_a_job_of_htcondor_ended_stands_on_the_line_with_its_number_in_any_blocks(
    events: list[bytes], size: int
) -> None:
    text = undone(b"".join(events), JOB_EVENTS, size)
    assert text.count(b"\n") == b"".join(events).count(b"\n")
    assert text.count(ENDED_EVENT + b" (1) Normal termination (return value 1)\n\n...") == events.count(EVENTS[0])


@given(st.binary(max_size=200), st.integers(1, 40))
def test_any_bytes_are_taken(data: bytes, size: int) -> None:
    for layer in (COLOURS, QUOTED, JOB_EVENTS):
        assert len(undone(data, layer, size)) <= len(data)


@examples("head", "layers")
def test_the_first_bytes_show_what_a_text_wears(head: bytes, layers: list[str]) -> None:
    assert list(dress_of(head)) == layers
