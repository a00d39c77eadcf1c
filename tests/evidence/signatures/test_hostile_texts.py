"""Hostile texts: lines without an end, and one sentence again and again. Memory does not grow with them.

`benchmarks/hostile_text.py` reads the same at full size.
"""

import tracemalloc

import pytest

from benchmarks.hostile_text import SENTENCE, TEXTS
from topodiag.evidence.signatures.engine import MOST_LOOKED_AT, MOST_OF_ONE, read
from topodiag.evidence.signatures.wrappers import unwrap

SCALE = 0.01
"""1 MB without a newline."""
LINES = 0.0002
"""2,000 lines."""


def scale_of(name: str) -> float:
    return SCALE if name.startswith("no newline") else LINES


@pytest.mark.parametrize("name", TEXTS)
def test_memory_does_not_grow_with_the_text(name: str) -> None:
    read(TEXTS[name](scale_of(name) / 4), name)  # loads what is loaded once
    tracemalloc.start()
    try:
        sentences = read(TEXTS[name](scale_of(name)), name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 << 20
    assert len(sentences.events) <= MOST_OF_ONE * 2


def test_lines_of_an_entry_with_too_many_events_are_no_longer_read_and_those_of_others_are() -> None:
    line = b"[rank%d]: can't read sgid of index 5"  # one entry alone has these words
    sentences = read(
        [b"\n".join([*(line % at for at in range(MOST_LOOKED_AT)), line % 0, SENTENCE])],
        "x",
        "",
        "collective",
        "launcher",
    )
    assert len(sentences.events) == MOST_OF_ONE + 1
    assert sentences.events[0].count == 1  # the line that says it again is not read
    assert sentences.events[-1].origin.line == MOST_LOOKED_AT + 2


@pytest.mark.parametrize("part", ["> ", "gpu-1: ", "[rank0]: ", "{", '{"msg":', "\x1b[", "0: ", "(A pid=1) "])
def test_a_megabyte_of_wrappers_is_taken_off_a_few_at_a_time(part: str) -> None:
    unwrap(part * (1_000_000 // len(part)))
