"""Parts that a line counts as fewer than there should be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.host.shortfalls import short_of


@pytest.mark.parametrize(
    ("line", "fault", "had", "wanted"),
    [
        ("[check] expected 8 GPU NIC networks, found 0", "port-count", 0, 8),
        ("gpu check: 7 of 8 GPUs detected", "gpu-count", 7, 8),
        ("Found 6 GPUs, expected 8", "gpu-count", 6, 8),
        ("detected only 3 RDMA devices but expected 8", "port-count", 3, 8),
        ("expected: 18 NVLinks, actual: 16", "nvlink", 16, 18),
        ("ERROR: expected number of GPUs to be 8, but got 7", "gpu-count", 7, 8),
        ("expected GPUs=8 actual=7", "gpu-count", 7, 8),
        ("GPU count: expected 8, got 7", "gpu-count", 7, 8),
        ("expected 4 IB ports, but only 3 are up", "port-down", 3, 4),
        ("should have 8 HCAs, found none", "port-count", 0, 8),
        ("gpu-agent: expected 8 RDMA devices, found 7", "port-count", 7, 8),
        ("GPU node 3: expected 8 NICs, found 7", "port-count", 7, 8),
    ],
)
def test_fewer_than_expected_is_a_fault_of_what_is_counted(line: str, fault: str, had: int, wanted: int) -> None:
    said = short_of(line)
    assert said is not None
    assert (said.fault, said.had, said.wanted) == (fault, had, wanted)


@pytest.mark.parametrize(
    "line",
    [
        "GPU count: expected 8, got 8", "want 8 GPUs, found 16", "3 of 8 GPUs available", "2/8 GPUs free",
        "step 3 of 10 on 8 GPUs done", "expected batch 8 got 4 on GPU 0", "expected 8 nodes, got 7",
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "expected shape 8x16 but got 4x16 from GPU 3", "rank 3 of 8 GPUs: expected loss 2.0, got 1.5", "",
    ],
)  # fmt: skip
def test_other_counts_say_nothing(line: str) -> None:
    assert short_of(line) is None


@given(st.text(alphabet="expected found got of GPUs NICs 0123456789:=,. ", max_size=200) | st.text(max_size=200))
def test_any_line_is_looked_at(line: str) -> None:
    said = short_of(line)
    assert said is None or said.had < said.wanted
