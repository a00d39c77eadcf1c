"""Logs that a container's runtime wrapped in JSON, one object a line."""

import io
import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.nccl_log.input.json_lines import JSON_LINES, json_lines, looks_wrapped, unwrapped
from topodiag.evidence.nccl_log.input.streams import Reading, text_of

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
