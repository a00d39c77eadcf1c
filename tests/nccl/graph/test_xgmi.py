from tests.nccl.rccl.machines import mi300x
from topodiag.evidence.nccl_xml import read_file
from topodiag.nccl.graph.xgmi import all_by_xgmi, neighbours
from topodiag.nccl.rccl.decide import decided


def test_gpus_are_joined_over_gpus_between_them() -> None:
    system = decided(read_file(mi300x(lost=[(2, 5)]), "n.xml").tree, nodes=1, env={}).system
    assert 5 not in neighbours(system)[2]
    assert all_by_xgmi(system)
    assert not all_by_xgmi(system, between=0)
