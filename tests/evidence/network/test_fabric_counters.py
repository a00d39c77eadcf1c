"""`ibqueryerrors` and `perfquery`: counters of the fabric's ports, and what NIC003 makes of them alone."""

from __future__ import annotations

from tests.evidence.filled import node_of
from topodiag.checks.nic.errors import NicPortErrors
from topodiag.model.finding import Finding, Outcome, Status

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


def test_perfquery_is_read_for_one_port() -> None:
    assert only(judge(PERFQUERY.format(downs=40))).where.nics == ("LID 21 port 1",)
    assert judge(PERFQUERY.format(downs=1)).status is Status.CLEAN


def test_a_port_of_the_fabric_is_no_nic_of_the_node() -> None:
    assert node_of(report("[LinkDownedCounter == 17]")).nics == ()
