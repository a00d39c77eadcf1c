"""TOP004 and TOP005 on a topology file: GPUs short of NVLinks, devices that stand there twice, and what is neither."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.checks import topo_trees as made
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.topo.devices import DeviceTwiceInFile, GpuShortInFile
from topodiag.model.finding import Severity, Status
from topodiag.model.nccl_tree import Element

# --- TOP004 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [GpuShortInFile(), DeviceTwiceInFile()])
def test_without_a_file_there_is_nothing_to_judge(check: GpuShortInFile) -> None:
    assert check.judge(made.machine(), ()).status is Status.NOT_APPLICABLE
    assert check.judge(made.told_to_read("/etc/topo.xml"), ()).status is Status.UNKNOWN


def mesh() -> Element:
    """GPUs joined in pairs, with other counts of links."""
    return made.system(made.cpu(*(made.gpu(at, links=2 - at % 2, target=made.bus(at ^ 1)) for at in range(4))))


def refused() -> Element:
    """A file that NCCL refuses, in which a GPU is short of links."""
    tree = made.board((18, 18, 18, 12))
    cpu = tree.children[0]
    return replace(tree, children=(replace(cpu, attributes=tuple(it for it in cpu.attributes if it[0] != "numaid")),))


def gpu_twice() -> Element:
    return made.system(made.cpu(made.gpu(0), made.gpu(1, at=made.bus(0))))


def nics(*nics: dict[str, str]) -> Element:
    return made.system(made.cpu(*(made.nic(number, **nic) for number, nic in enumerate(nics))))


def rack() -> Element:
    """Two trays of a rack."""
    return made.system(*(made.cpu(made.gpu(0), made.nic(0), host=host) for host in ("0x1", "0x2")))


TREES: dict[str, Callable[..., Element]] = {
    "board": lambda *counts: made.board(counts) if counts else made.board(), "mesh": mesh, "refused": refused,
    "gpu_twice": gpu_twice, "nics": nics, "rack": rack,
}  # fmt: skip


@examples("tree", "wanted")
def test_gpus_short_of_links(tree: list[Any], wanted: Wanted) -> None:
    assert shown(GpuShortInFile().judge(made.alone(TREES[tree[0]](*tree[1:])), ()), wanted) == wanted


@examples("tree", "wanted")
def test_devices_that_are_there_twice(tree: list[Any], wanted: Wanted) -> None:
    assert shown(DeviceTwiceInFile().judge(made.alone(TREES[tree[0]](*tree[1:])), ()), wanted) == wanted


def test_a_gpu_without_nvlinks_collapses_the_search_and_says_the_loss_and_the_repair() -> None:
    (finding,) = GpuShortInFile().judge(made.alone(made.board((18, 18, 18, 18, 18, 18, 18, 0))), ()).findings
    assert finding.severity is Severity.ERROR
    assert finding.where.gpus == ("GPU7",)
    assert "collapses, without a warning" in finding.message
    assert finding.cost.share > 0.5
    assert "--repair" in finding.fix[0]
    assert [origin.line for origin in finding.evidence] == [17]


def test_some_links_less_are_told_without_a_collapse() -> None:
    (finding,) = GpuShortInFile().judge(made.alone(made.board((18, 18, 18, 12))), ()).findings
    assert "12 NVLinks to the NVSwitches where the peers have 18" in finding.message
    assert "collapses" not in finding.message
    assert finding.cost.gbs_lost > 0


def test_the_version_asked_for_prices_it() -> None:
    expect(GpuShortInFile().judge(made.alone(made.board((18, 18, 18, 12)), asked=(22,)), ()), observed="*NCCL 2.22*")
