"""NET010: RDMA is configured and its counters do not move."""

from __future__ import annotations

from topodiag.checks.network.rdma_unused import RdmaUnused
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.interface import Blob
from topodiag.model.finding import Outcome, Severity, Status

SENT = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_packets:{}\n"
TCP = "/sys/class/net/{}/statistics/tx_bytes:{}\n"


def judge(before: str, after: str = "", settings: str = "") -> Outcome:
    evidence = Evidence("pasted")
    texts = {"before.txt": before, "after.txt": after, "env.txt": settings}
    evidence.blobs += [Blob(name, text.encode()) for name, text in texts.items() if text]
    return RdmaUnused().judge(read_node(evidence).node)


def test_counters_that_stand_still_beside_a_setting_for_sockets_are_a_warning() -> None:
    (finding,) = judge(SENT.format(5), SENT.format(5), "NCCL_NET=Socket\n").findings
    assert finding.severity is Severity.WARNING
    assert "NCCL_NET=Socket" in finding.message


def test_counters_that_stand_still_alone_are_a_note() -> None:
    (finding,) = judge(SENT.format(5), SENT.format(5)).findings
    assert finding.severity is Severity.INFO


def test_an_interface_that_carries_much_meanwhile_is_named() -> None:
    (finding,) = judge(SENT.format(5) + TCP.format("eth0", 0), SENT.format(5) + TCP.format("eth0", 9 * 10**9)).findings
    assert finding.severity is Severity.INFO
    assert "eth0 carried 9.0 GB" in finding.message


def test_what_stays_on_the_host_is_no_traffic() -> None:
    (finding,) = judge(SENT.format(5) + TCP.format("lo", 0), SENT.format(5) + TCP.format("lo", 9 * 10**9)).findings
    assert "lo carried" not in finding.message


def test_traffic_is_clean_whatever_the_settings_say() -> None:
    assert judge(SENT.format(5), SENT.format(9), "NCCL_NET=Socket\n").status is Status.CLEAN


def test_one_reading_raises_no_question() -> None:
    assert judge(SENT.format(5)).status is Status.NOT_APPLICABLE


def test_counters_that_went_back_are_unknown() -> None:
    assert judge(SENT.format(5), SENT.format(1)).status is Status.UNKNOWN
