"""`ibqueryerrors` and `perfquery`: counters of the fabric's ports, and what NIC003 makes of them alone."""

from __future__ import annotations

from tests.evidence.filled import node_of
from topodiag.checks.nic.errors import NicPortErrors
from topodiag.model.finding import Confidence, Finding, Outcome, Severity, Status

PERFQUERY = """\
$ sudo perfquery -x 21 1
# Port extended counters: Lid 21 port 1 (CapMask: 0x5A00)
PortSelect:......................1
CounterSelect:...................0x0000
SymbolErrorCounter:..............0
LinkDownedCounter:...............{downs}
PortXmitDiscards:................0
PortXmitWait:....................90210
"""


def judge(*texts: str) -> Outcome:
    return NicPortErrors().judge(node_of(*texts))


def only(outcome: Outcome) -> Finding:
    (finding,) = outcome.findings
    return finding


def report(counters: str, name: str = "node041 HCA-1", port: str = "1") -> str:
    return f'Errors for "{name}"\n   GUID 0xb8599f0300ae11d2 port {port}: {counters}\n'


def test_a_port_above_the_thresholds_is_named_with_its_node() -> None:
    finding = only(judge(report("[LinkDownedCounter == 17] [PortRcvErrors == 4409]")))
    assert finding.severity is Severity.WARNING
    assert finding.where.nics == ("node041 HCA-1 port 1",)
    assert "since the counters were last cleared" in finding.message


def test_all_ports_of_a_switch_are_called_so() -> None:
    finding = only(judge(report("[PortXmitDiscards == 2846 (2.779K)]", "MF0;edge-03:MQM8700/U1", "ALL")))
    assert finding.where.nics == ("MF0;edge-03:MQM8700/U1 (all ports)",)


def test_waiting_for_credits_alone_is_no_error() -> None:
    assert judge(report("[PortXmitWait == 4294967295] [PortXmitData == 6399401 (24.412MB)]")).status is Status.CLEAN


def test_totals_below_the_thresholds_are_clean() -> None:
    assert judge(report("[LinkDownedCounter == 3] [PortXmitDiscards == 90]")).status is Status.CLEAN


def test_errors_that_other_ports_made_do_not_accuse_this_one() -> None:
    assert judge(report("[PortRcvRemotePhysicalErrors == 120] [PortXmitWait == 5]")).status is Status.CLEAN


def test_symbol_errors_alone_are_of_low_confidence() -> None:
    assert only(judge(report("[SymbolErrorCounter == 500]"))).confidence is Confidence.LOW


def test_perfquery_is_read_for_one_port() -> None:
    assert only(judge(PERFQUERY.format(downs=40))).where.nics == ("LID 21 port 1",)
    assert judge(PERFQUERY.format(downs=1)).status is Status.CLEAN


def test_a_port_of_the_fabric_is_no_nic_of_the_node() -> None:
    assert node_of(report("[LinkDownedCounter == 17]")).nics == ()


def test_lines_that_are_cut_off_or_indented_by_a_quote_are_read_as_far_as_they_go() -> None:
    assert judge('> Errors for "n1 HCA-1"\n>    GUID 0x1 port 2: [LinkDownedCounter == 90] [PortRcvEr').findings
