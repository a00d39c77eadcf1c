"""NET009: RoCE traffic rides a class without flow control."""

from tests.checks.wanted import Wanted, shown
from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.checks.network.lossy_class import LossyClass
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.interface import Blob
from topodiag.model.finding import Outcome, Status

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


@examples("texts", "wanted")
def test_the_priority_of_the_traffic(texts: list[str], wanted: Wanted) -> None:
    """The table of the port with its trust, the class of the kernel, or a setting."""
    told = {"qos": qos(), "pcp": qos(trust="pcp")}
    made = [told.get(text) or (tclass(int(text)) if text.isdecimal() else text) for text in texts]
    assert shown(judge(*made), wanted) == wanted


@examples("after", "wanted")
def test_counters_of_the_priorities(after: dict[str, int], wanted: Wanted) -> None:
    assert shown(sampled(counters(), counters(**after)), wanted) == wanted


def test_infiniband_has_no_such_class() -> None:
    state = f"{PORT}/link_layer:InfiniBand\n"
    assert sampled(state + counters(), state + counters(lost=900)).status is Status.NOT_APPLICABLE
