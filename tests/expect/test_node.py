"""A node in evidence: NCCL's prediction for it with high confidence, as it should be where a part falls short."""

import pytest

from tests.expect.measured_runs import run
from topodiag.app.case.topology import open_topology
from topodiag.expect.expect import Expected, expected
from topodiag.expect.hypotheses import explain
from topodiag.expect.verdict import verdict_of
from topodiag.model.finding import Confidence
from topodiag.model.node import Node
from topodiag.nccl.predict import predict_tree


def node(name: str) -> Node:
    return open_topology(f"fixture:{name}").node


def made_of(name: str, busbw: float = 480) -> Expected:
    return expected(run(busbw=busbw), node(name))


def test_its_prediction_is_nccls_for_its_topology() -> None:
    estimate = made_of("dgx-h100-healthy")
    assert estimate.setup.confidence is Confidence.HIGH
    choices = predict_tree(estimate.setup.tree, version="2.28", sizes=(16 << 30,)).choices
    assert estimate.rates.peak == pytest.approx(
        next(choice.busbw_gbs for choice in choices if choice.collective == "AllReduce")
    )


def test_a_gpu_short_of_its_siblings_nvlinks_is_no_reason_to_expect_less() -> None:
    sick, well = made_of("dgx-h100-gpu3-12of18-nvlink").expectation, made_of("dgx-h100-healthy").expectation
    assert sick.busbw_gbs == pytest.approx(well.busbw_gbs)
    assert any("GPU3" in formula for name, _, formula in sick.terms if name == "assumed")


def test_it_is_the_first_cause_of_a_run_as_slow_as_it_predicts() -> None:
    measured = run(busbw=289)
    estimate = expected(measured, node("dgx-h100-gpu3-12of18-nvlink"))
    hypotheses = explain(measured, estimate, verdict_of(measured, estimate.expectation)).causes
    assert hypotheses[0].cause.startswith("what was found on the node: NVLinks of GPU3")
    assert hypotheses[0].likelihood > 0.8


def test_a_guest_has_a_cloud_network() -> None:
    estimate = expected(run(ranks=16), node("vm-flat-pci"), nodes=2)
    assert estimate.setup.network == "cloud"


def test_a_node_without_gpus_falls_back_to_what_the_output_says() -> None:
    estimate = expected(run(gpu="NVIDIA H100 80GB HBM3"), Node("empty"))
    assert estimate.setup.confidence is Confidence.LOW
