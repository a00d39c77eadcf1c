"""NET009: RoCE traffic rides a class without flow control."""

from __future__ import annotations

import pytest

from tests.evidence.filled import node_of
from topodiag.checks.network.lossy_class import LossyClass
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.interface import Blob
from topodiag.model.finding import Outcome, Severity, Status

PORT = "/sys/class/infiniband/mlx5_0/ports/1"


def qos(lossless: str = "0 0 0 1 0 0 0 0", trust: str = "dscp") -> str:
    return f"# mlnx_qos -i eth1\nPriority trust state: {trust}\nPFC configuration:\n enabled {lossless}\n"


def tclass(value: int) -> str:
    return f"$ cat /sys/class/infiniband/mlx5_0/tc/1/traffic_class\nGlobal tclass={value}\n"


def judge(*texts: str) -> Outcome:
    return LossyClass().judge(node_of(*texts))


def sampled(before: str, after: str) -> Outcome:
    evidence = Evidence("pasted")
    evidence.blobs += [Blob("before.txt", before.encode()), Blob("after.txt", after.encode())]
    return LossyClass().judge(read_node(evidence).node)


def counters(*, lost: int = 0, pause: int = 0, marked: int = 0) -> str:
    return (
        f"$ ethtool -S eth1 | grep prio\n  rx_prio0_bytes: {lost + 5}\n  rx_prio3_pause: {pause}\n\n"
        f"{PORT}/hw_counters/out_of_sequence:{lost}\n{PORT}/hw_counters/np_ecn_marked_roce_packets:{marked}\n"
    )


@pytest.mark.parametrize(
    ("value", "trust", "status"),
    [(0, "dscp", Status.FINDING), (106, "dscp", Status.FINDING), (64, "pcp", Status.FINDING)],
)
def test_a_class_that_leads_to_another_priority_is_reported(value: int, trust: str, status: Status) -> None:
    assert judge(qos(trust=trust), tclass(value)).status is status


def test_a_right_class_of_the_kernel_is_a_note_because_gpu_driven_queue_pairs_do_not_take_it() -> None:
    (finding,) = judge(qos(), tclass(106)).findings
    assert finding.severity is Severity.INFO


def test_a_right_class_in_the_setting_too_is_clean() -> None:
    assert judge(qos(), tclass(106), "NCCL_IB_TC=106\n").status is Status.CLEAN


def test_the_setting_alone_is_judged_by_the_table() -> None:
    assert judge(qos(), "NCCL_IB_TC=106\n").status is Status.CLEAN
    assert judge(qos(), "NCCL_IB_TC=16\n").findings


def test_loss_without_a_pause_frame_is_reported_with_the_priority_of_the_traffic() -> None:
    (finding,) = sampled(counters(), counters(lost=900)).findings
    assert "the traffic uses priority 0" in finding.message


def test_loss_with_pause_frames_is_another_fault() -> None:
    assert sampled(counters(), counters(lost=900, pause=7)).status is Status.CLEAN


def test_congestion_marks_without_loss_are_ecn_at_work() -> None:
    assert sampled(counters(), counters(marked=5000)).status is Status.CLEAN


def test_infiniband_has_no_such_class() -> None:
    state = f"{PORT}/link_layer:InfiniBand\n"
    assert sampled(state + counters(), state + counters(lost=900)).status is Status.NOT_APPLICABLE
