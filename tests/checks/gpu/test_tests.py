"""GPU006: copies that are far slower with one GPU than among the others, and tests that a GPU failed."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from tests.checks import nodes
from tests.checks.nodes import only, read, status
from tests.checks.wanted import expect
from topodiag.checks.gpu.tests import SlowGpuInTest
from topodiag.model.finding import Severity
from topodiag.model.node import Node


def judged(node: Node) -> Any:
    return SlowGpuInTest().judge(node)


def copied(gbs: dict[int, float], usual: float = 387.0, count: int = 8) -> Node:
    """A node whose pairs copy at the usual pace, those with a GPU of `gbs` at that."""
    node = nodes.hgx_h100()
    node = replace(node, gpus=node.gpus[:count])
    pairs = permutations(range(count), 2)
    table = {(f"GPU{a}", f"GPU{b}"): read(min(gbs.get(a, usual), gbs.get(b, usual))) for a, b in pairs}
    return replace(node, copies=table)


def from_host(*gbs: float) -> Node:
    node = nodes.hgx_h100()
    return replace(
        node, gpus=tuple(replace(gpu, host_copy_gbs=read(each)) for gpu, each in zip(node.gpus, gbs, strict=False))
    )


def test_without_a_test_there_is_no_question() -> None:
    assert status(judged(nodes.hgx_h100())) == "not_applicable"


def test_one_gpu_that_is_slow_with_all_others_is_an_error() -> None:
    finding = only(judged(copied({3: 25.1})))
    assert finding.message == "GPU3: copies with every other GPU at 25.1 GB/s and less, 387 among the rest"
    assert (finding.severity, finding.where.gpus) == (Severity.ERROR, ("GPU3",))
    assert finding.cost.share == pytest.approx(1 - 25.1 / 387)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (copied({}), "clean"),
        (copied({3: 300.0}), "clean"),  # within what boards differ by
        (copied({1: 25.0, 2: 25.0, 5: 25.0}), "unknown"),  # a machine of two kinds of places
        (copied({3: 5.0}, usual=22.0), "unknown"),  # over PCIe the place decides
        (copied({1: 25.0}, count=3), "unknown"),
        (from_host(55.3, 55.2), "unknown"),
        (from_host(*[55.3] * 8), "clean"),
        (from_host(*[55.3] * 4, *[37.0] * 4), "clean"),  # the other socket's memory
    ],
)
def test_what_the_place_of_a_gpu_explains_is_no_fault(node: Node, expected: str) -> None:
    assert status(judged(node)) == expected


def test_one_gpu_with_slow_copies_from_the_host_is_named() -> None:
    finding = only(judged(from_host(55.3, 55.3, 13.7, 55.3, 55.3, 55.3, 55.3, 55.3)))
    assert finding.message == "GPU2: copies from the host at 13.7 GB/s, 55.3 on its peers"


def test_a_failed_test_that_names_no_gpu_is_of_the_node() -> None:
    node = replace(nodes.hgx_h100(), failed_tests=read(("the test Inforom failed",)))
    [finding] = SlowGpuInTest().judge(node).findings
    assert (finding.message, finding.where.gpus) == ("DCGM: the test Inforom failed (no GPU is named)", ())


def test_a_failed_test_of_dcgm_is_a_warning_with_its_words() -> None:
    node = nodes.with_gpu(nodes.hgx_h100(), 5, failed_tests=read(("the test PCIe failed",)))
    expect(judged(node), severity="WARNING", message="GPU5: DCGM: the test PCIe failed")
