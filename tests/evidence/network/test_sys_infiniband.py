"""`/sys/class/infiniband` from a tree file: identity, ports, counters, and what the kernel refuses."""

from tests.evidence.filled import draft_by
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.sys_net import SysInfiniband


def filled(text: str, sample: int = 0) -> NodeDraft:
    return draft_by(SysInfiniband(), Blob("ib.tree", text.encode()), sample)


def test_the_second_sample_holds_counters_alone() -> None:
    text = "= sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error\t9\n"
    reading = filled(text, sample=1).nic(rdma="mlx5_0").child("port", 1).counters["symbol_error"][0]
    assert (reading.value, reading.sample) == (9, 1)
