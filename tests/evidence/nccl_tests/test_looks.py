"""Output of nccl-tests is known by any one line of its own: a row, the averages, an error, behind any label."""

from __future__ import annotations

import time

import pytest

from topodiag.evidence.intake.looks import looks
from topodiag.evidence.kinds import Kind

ROW = (
    "  8589934592    2147483648     float     sum      -1   34520.1  248.84  466.57       0"
    "  34498.0  249.00  466.87       0"
)


@pytest.mark.parametrize(
    "text",
    [
        ROW,
        "[1,0]<stdout>:" + ROW,
        " 0: # nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20",
        "[0] # nThread 1 nGpus 1 minBytes 1048576 maxBytes 1073741824 step: 2(factor)",
        "# nThreads: 1 nGpus: 1 nRanks: 1 minBytes: 8 maxBytes: 134217728 step: 2(factor)",
        "# Avg bus bandwidth    : 4.21",
        "# Out of bounds values : 0 OK",
        "gpu-a01: Test NCCL failure common.cu:959 'unhandled system error / '",
        "  1073741824     536870912    half     sum    48550   22.12   43.55    N/A    48571   22.11   43.53    N/A",
    ],
)
def test_one_line_is_enough(text: str) -> None:
    assert looks((text + "\n").encode()).kind is Kind.NCCL_TESTS


@pytest.mark.parametrize(
    "text", ["hello\n", "float 1 2 3\n", "1 2 float\n", "10 20 int 3 4 5\n", "the size count type of things\n"]
)
def test_other_text_is_not_taken_for_it(text: str) -> None:
    assert Kind.NCCL_TESTS not in looks(text.encode()).kinds


def test_no_text_makes_it_slow() -> None:
    for text in (b"1 " * 30_000, b"1\t1\tfloat\t" * 6_000, b"# size count " * 5_000, b" " * 65_000):
        start = time.monotonic()
        looks(text)
        assert time.monotonic() - start < 5
