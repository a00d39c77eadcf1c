"""Format strings have happened to nobody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.words.unfilled import is_unfilled, without_unfilled


@pytest.mark.parametrize(
    "line",
    [
        "Mismatched NCCL version detected : rank %d version %d rank %d version %d",
        "Duplicate GPU detected : rank %d and rank %d both on CUDA device %lx",
        "Cuda failure '%s'",
        "shared memory segment %s (size %ld), error: %s (%d)",
        "%s:%d:%d [%d] NCCL WARN ",
        "took %.2f ms",
        "comm %p rank %d",
    ],
)
def test_a_place_that_nobody_filled_is_seen(line: str) -> None:
    assert is_unfilled(line)
    assert without_unfilled(f"a\n{line}\nb") == "a\n\nb"


@pytest.mark.parametrize(
    "line",
    [
        "GPU 3: 100% of 80 GiB, 5 %done",
        "http://host/a%2Fb%20s%3Dd",
        "NCCL WARN Cuda failure 'out of memory'",
        "#SBATCH --output=%x-%j.out",
        "load 97%, idle",
        "date +%Y-%m-%d",
        "export NCCL_DEBUG_FILE=/tmp/nccl.%h.%p",
    ],
)
def test_percent_signs_of_messages_are_no_places(line: str) -> None:
    assert not is_unfilled(line)


@pytest.mark.parametrize(
    "line", ['{"message": "took %d ms", "gpu": 3}', "= proc/sys/kernel/printk\tcore is %p", "NCCL_DEBUG_FILE=%s"]
)
def test_data_formats_keep_their_lines(line: str) -> None:
    assert without_unfilled(line) == line


@given(st.text())
def test_the_number_of_lines_stays(text: str) -> None:
    assert without_unfilled(text).count("\n") == text.count("\n")
