"""Node Health Check: each sentence of a check that failed, once, with the part that it names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.host.health_checks import HealthChecks
from topodiag.evidence.interface import Blob

FAILED = "ERROR:  nhc:  Health check failed:  "


def kinds(text: str) -> list[str]:
    source = HealthChecks()
    assert source.recognises(text)
    return [event.kind for event in source.parse(Blob("nhc.log", text.encode())).records]


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("check_hw_ib:  No IB port mlx5_4:1 is ACTIVE (LinkUp 400 Gb/sec).", "reported port-down"),
        ("Check check_nv_gpu_count 8 returned 1", "reported gpu-count"),
        ("check_nvlink_status: GPU 6 has nvlinks inactive: Link 4: Inactive. FaultCode: NHC2016", "reported nvlink"),
        ("check_gpu_ecc: GPU 3 has uncorrectable ECC errors", "reported gpu-memory"),
        ("check_fs_mount:  /scratch not mounted", "reported storage"),
        ("check_hw_physmem:  Actual RAM size (98 kB) less than minimum allowed (99 kB).", "out-of-service"),
        ("Script timed out.", "out-of-service"),
    ],
)
def test_a_sentence_has_the_part_that_it_names(sentence: str, kind: str) -> None:
    assert kinds(f"{FAILED}{sentence}\n{FAILED}{sentence}\n") == [kind]


@pytest.mark.parametrize("text", ["", "nhc: all checks passed\n", "Health check passed: all 8 GPUs\n"])
def test_a_text_without_a_failed_check_is_another_tools(text: str) -> None:
    assert not HealthChecks().recognises(text)


@given(st.text(max_size=300) | st.text(alphabet="ERROR: nhcHealth check failed\n", max_size=300))
def test_any_text_is_read_or_left(text: str) -> None:
    HealthChecks().recognises(text)
    HealthChecks().parse(Blob("x", text.encode()))
