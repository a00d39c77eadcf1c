"""NET010: RDMA is configured and its counters do not move."""

from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.network.rdma_unused import RdmaUnused
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.interface import Blob
from topodiag.model.finding import Outcome

SENT = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_packets:{}\n"
TCP = "/sys/class/net/{}/statistics/tx_bytes:{}\n"


def judge(before: str, after: str = "", settings: str = "") -> Outcome:
    evidence = Evidence("pasted")
    texts = {"before.txt": before, "after.txt": after, "env.txt": settings}
    evidence.blobs += [Blob(name, text.encode()) for name, text in texts.items() if text]
    return RdmaUnused().judge(read_node(evidence).node)


@examples("sent", "tcp", "settings", "wanted")
def test_rdma_devices_that_send_nothing(
    sent: list[int], tcp: list[int] | None, settings: str | None, wanted: Wanted
) -> None:
    """Packets that a port sent at each reading, and the bytes of the interface `tcp`."""
    interface, *carried = tcp or ["eth0"]
    texts = [SENT.format(count) for count in sent]
    for at, count in enumerate(carried):
        texts[at] += TCP.format(interface, count)
    assert shown(judge(*texts, settings=settings or ""), wanted) == wanted


def test_what_stays_on_the_host_is_no_traffic() -> None:
    (finding,) = judge(SENT.format(5) + TCP.format("lo", 0), SENT.format(5) + TCP.format("lo", 9 * 10**9)).findings
    assert "lo carried" not in finding.message
