"""Processors and NUMA nodes."""

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import drop_lines, read, text_of, value, why
from tests.tables import examples

X86 = text_of("sys-cpu", "X86")


@examples("line", "subject", "field")
def test_a_bad_value_loses_that_value_only(line: str, subject: str, field: str) -> None:
    start = line.rpartition("\t")[0]
    lines = [line if row.startswith(start) else row for row in X86.splitlines()]
    draft, parsed = read("sys-cpu", "\n".join(lines))
    entity = draft.numa(0) if subject == "numa" else draft.single("cpu")
    assert value(entity, field) is None
    assert why(entity, field) != ""
    assert len(parsed.unread) == 1
    assert value(draft.numa(1), "cpus") == "56-111,168-223"
    assert value(draft.single("cpu"), "vendor") == "GenuineIntel"


@given(st.binary(max_size=300), st.integers(0, len(X86)))
def test_any_bytes_in_the_middle_are_survived(noise: bytes, at: int) -> None:
    raw = X86.encode()
    read("sys-cpu", raw[:at] + noise + raw[at:])


@given(st.sets(st.integers(0, 17)))
def test_missing_lines_cost_only_their_own_facts(gone: set[int]) -> None:
    draft, _ = read("sys-cpu", drop_lines(X86, gone))
    assert value(draft.numa(0), "cpus") in (None, "0-55,112-167")
    assert value(draft.single("cpu"), "count") in (None, 224)
    assert value(draft.single("cpu"), "sockets") in (None, 1, 2)
