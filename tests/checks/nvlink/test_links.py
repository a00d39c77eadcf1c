"""NVL001, NVL002 and NVL004: missing links, slow links, pairs without NVLink."""

from typing import Any

import pytest

from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.nodes import read, status
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.nvlink.links import FewerNvlinks
from topodiag.checks.nvlink.pairs import PairWithoutNvlink
from topodiag.checks.nvlink.rate import SlowNvlinks
from topodiag.model.finding import Status
from topodiag.model.node import Node


def fewer(node: Node) -> Any:
    return FewerNvlinks().judge(node, ())


def slow(node: Node) -> Any:
    return SlowNvlinks().judge(node, ())


def pairs(node: Node) -> Any:
    return PairWithoutNvlink().judge(node, ())


def h100_pcie(active: tuple[int, ...]) -> Node:
    """Cards with bridge connectors, so many links up on each."""
    cards = [
        nodes.gpu(at, "NVIDIA H100 NVL", 90, 0, nvlinks=nodes.links(18, 26.562, tuple(range(count, 18))))
        for at, count in enumerate(active)
    ]
    return Node("nvl-01", os=nodes.hgx_h100().os, gpus=tuple(cards))


def two_v100(down: tuple[int, ...], of_first: tuple[int, ...] = ()) -> Node:
    cards = [
        nodes.gpu(at, "Tesla V100-SXM2-32GB", 70, 0, nvlinks=nodes.links(6, 25.781, lost))
        for at, lost in ((2, of_first), (3, down))
    ]
    return Node("n", gpus=tuple(cards))


# --- NVL001 ---------------------------------------------------------------------------------------------------


@examples("node", "changes", "wanted")
def test_links_that_are_not_active(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(fewer(machine(node, changes, h100_pcie=h100_pcie, two_v100=two_v100)), wanted) == wanted


@pytest.mark.parametrize("shown", [1, 5, 17])
def test_a_list_of_links_that_was_cut_off_accuses_nobody(shown: int) -> None:
    last = len(nodes.hgx_h100().gpus) - 1
    cut = nodes.with_gpu(nodes.hgx_h100(), last, nvlinks=nodes.links(shown, 26.562))
    assert fewer(cut).status is Status.UNKNOWN
    alike = nodes.with_gpus(nodes.hgx_h100(), nvlinks=nodes.links(shown, 26.562))
    assert fewer(alike).status is Status.UNKNOWN


def test_mig_reads_links_as_down_and_is_not_judged() -> None:
    node = nodes.with_gpus(nodes.hgx_h100(), mig=read(True), nvlinks=nodes.links(18, 26.562, tuple(range(18))))
    for check in (fewer, slow, pairs):
        assert status(check(node)) == "not_applicable"


# --- NVL002 ---------------------------------------------------------------------------------------------------


@examples("node", "changes", "wanted")
def test_links_that_run_slowly(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(slow(machine(node, changes)), wanted) == wanted


# --- NVL004 ---------------------------------------------------------------------------------------------------


@examples("node", "changes", "wanted")
def test_pairs_without_nvlink(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(pairs(machine(node, changes, h100_pcie=h100_pcie)), wanted) == wanted
