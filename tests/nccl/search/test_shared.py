"""What the processes of the suite share of NCCL's search (tests/searches.py) is what each would find by itself."""

from dataclasses import asdict

import pytest

from tests import searches
from tests.scanned import node_at
from topodiag.nccl.graph.attach import HostTree
from topodiag.nccl.graph.domains import build_system
from topodiag.nccl.graph.graph import RejectedError, System
from topodiag.nccl.search import search
from topodiag.nccl.settings import read_settings
from topodiag.nccl.topo.detect import tree_of
from topodiag.nccl.topo.numbered import numbered

ENV = {
    "NCCL_CROSS_NIC": "1", "NCCL_NETDEVS_POLICY": "MAX:1", "NCCL_ALGO": "Ring", "NCCL_NVLS_ENABLE": "0",
    "NCCL_MAX_CTAS": "4", "NCCL_P2P_LEVEL": "PIX", "NCCL_PXN_DISABLE": "1",
}  # fmt: skip


def system_of(name: str, minor: int, env: dict[str, str]) -> System:
    (tree,) = numbered([tree_of(node_at(f"fixture:{name}")).tree])
    return build_system([HostTree(tree)], minor=minor, settings=read_settings(env, minor), nranks=64, me=0)


def found(system: System, env: dict[str, str], by: object) -> list[dict[str, object]] | str:
    try:
        return [asdict(graph) for graph in by(system, read_settings(env, system.minor))]  # type: ignore[operator]
    except RejectedError as rejected:
        return rejected.words


@pytest.mark.parametrize("env", [{}, ENV], ids=["unset", "set"])
@pytest.mark.parametrize("minor", [18, 24, 28, 32])
@pytest.mark.parametrize("name", ["dgx-h100-healthy", "hgx-a100", "gb200-tray"])
def test_a_search_looks_at_nothing_that_is_left_out_of_the_question(name: str, minor: int, env: dict[str, str]) -> None:
    records = found(system_of(name, minor, env), env, search.search_graphs)
    for _ in range(2):  # the second time it is known
        assert found(system_of(name, minor, env), env, searches.search_graphs) == records
