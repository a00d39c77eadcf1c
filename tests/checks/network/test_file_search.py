"""NET006 by a topology file: told where NCCL 2.25 to 2.28 lose the trees between nodes, silent everywhere else."""

import pytest

from tests.checks import topo_trees as made
from tests.checks.wanted import expect
from topodiag.checks.network.file_search import TreesLostInFile
from topodiag.model.finding import Status
from topodiag.model.nccl_tree import Element, Refusal
from topodiag.model.node import Node


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


def judged(tree: Element, *asked: int) -> Node:
    return made.alone(tree, asked=asked)


def test_older_gpus_that_reach_all_nics_over_pxn_lose_their_trees_in_some_versions() -> None:
    outcome = TreesLostInFile().judge(judged(board(), 27), ())
    finding = expect(outcome, severity="WARNING", message="*NCCL 2.27: no tree is found*")
    assert finding.cost.share > 0.7
    assert finding.settings == (("NCCL_PXN_DISABLE", "1"),)


def test_where_no_version_is_named_it_is_a_note() -> None:
    expect(TreesLostInFile().judge(judged(board()), ()), severity="INFO", message="*NCCL 2.25 to 2.28*")


@pytest.mark.parametrize("minor", [18, 24, 29, 30])
def test_other_versions_find_them(minor: int) -> None:
    outcome = TreesLostInFile().judge(judged(board(), minor), ())
    assert (outcome.status, outcome.why) == (Status.CLEAN, f"NCCL 2.{minor} lets a tree use any path")


@pytest.mark.parametrize("tree", [board(sm="90"), board(nics=1), board(nics=0)])
def test_hopper_and_nodes_with_one_nic_are_not_affected(tree: Element) -> None:
    assert TreesLostInFile().judge(judged(tree, 28), ()).status is Status.NOT_APPLICABLE


def test_gpus_that_share_switches_find_their_trees() -> None:
    assert TreesLostInFile().judge(judged(shared(), 28), ()).status is Status.CLEAN


def test_a_file_that_nccl_refuses_is_the_business_of_another_check() -> None:
    refused = Refusal("structure", "XML Parse error", 1, 0, "", 18, 30)
    node = made.alone(board(), refusals=(refused,), asked=(28,))
    assert TreesLostInFile().judge(node, ()).status is Status.NOT_APPLICABLE
