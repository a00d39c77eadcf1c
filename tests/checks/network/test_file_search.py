"""NET006 by a topology file: told where NCCL 2.25 to 2.28 lose the trees between nodes, silent everywhere else."""

from typing import Any

from tests.checks import topo_trees as made
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.network.file_search import TreesLostInFile
from topodiag.model.finding import Status
from topodiag.model.nccl_tree import Element, Refusal


def board(sm: str = "80", nics: int = 4) -> Element:
    """Four GPUs on NVSwitches, each below a switch of its own, so that PXN shortens every way to another's NIC."""
    return made.system(
        made.cpu(*(
            made.switch(at, made.gpu(at, links=12, sm=sm), *([made.nic(at)] if at < nics else [])) for at in range(4)
        ))
    )  # fmt: skip


def shared(sm: str = "80") -> Element:
    """The same GPUs in twos below a switch, as on boards of eight: their NICs are near enough for a tree."""
    return made.system(
        made.cpu(*(
            made.switch(at, *(made.gpu(gpu, links=12, sm=sm) for gpu in (at, at + 1)), made.nic(at), made.nic(at + 1))
            for at in (0, 2)
        ))
    )  # fmt: skip


TREES = {"board": board, "shared": shared}


@examples("tree", "options", "asked", "wanted")
def test_trees_between_nodes_that_some_versions_lose(
    tree: str, options: dict[str, Any], asked: list[int], wanted: Wanted
) -> None:
    outcome = TreesLostInFile().judge(made.alone(TREES[tree](**options), asked=tuple(asked)), ())
    assert shown(outcome, wanted) == wanted


def test_a_file_that_nccl_refuses_is_the_business_of_another_check() -> None:
    refused = Refusal("structure", "XML Parse error", 1, 0, "", 18, 30)
    node = made.alone(board(), refusals=(refused,), asked=(28,))
    assert TreesLostInFile().judge(node, ()).status is Status.NOT_APPLICABLE
