"""Wrappers of launchers, schedulers and loggers are taken off, and what they say is kept."""

from __future__ import annotations

from math import isnan

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.signatures.wrappers import members, unwrap

S = "Bootstrap : no socket interface found"


@examples("line", "text", "host", "rank", "pid")
def test_what_is_left_is_the_sentence(line: str, text: str, host: str, rank: int, pid: int) -> None:
    bare = unwrap(line)
    assert (bare.text, bare.host, bare.rank, bare.pid) == (text, host, rank, pid)


@examples("line", "seconds")
def test_the_time_before_a_line_is_read(line: str, seconds: float | None) -> None:
    read = unwrap(line).time_s
    assert isnan(read) if seconds is None else read == seconds


@given(st.text(max_size=300))
def test_any_line_is_unwrapped_without_an_exception(line: str) -> None:
    unwrap(line)


def test_an_event_inside_an_object_is_a_sentence_with_its_host_and_device() -> None:
    inner = f'{{"message": "{S}", "entities": [{{"type": "PCI", "value": "0000:c3:00"}}], "nodeName": "n7"}}'
    [member] = members(f'{{"msg": "x", "event": {inner}}}')
    assert (member.text, member.host, member.bus_id) == (S, "n7", "0000:c3:00")
    assert members(S) == []
