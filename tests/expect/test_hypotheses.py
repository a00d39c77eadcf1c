"""The single cause of a shortfall: planted on the machine by the model, found by its figure and by evidence."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.expect.measured_runs import run
from tests.tables import examples
from topodiag.app.case.topology import open_topology
from topodiag.expect.expect import Expected, expected, verdict_of
from topodiag.expect.hypotheses import Evidence, Explained, explain
from topodiag.expect.other_runs import Judged, alike_elsewhere, on_same_nodes
from topodiag.model.bench import BenchDevice, Fit, Hypothesis
from topodiag.model.finding import Confidence, Finding, Outcome, Severity, Status
from topodiag.model.node import Node
from topodiag.nccl.predict import predict_tree


def causes(collective: str, ranks: int, busbw: float, system: str, nodes: int, **known: Any) -> tuple[Hypothesis, ...]:
    measured = run(collective, ranks, busbw, env=known.pop("env", None))
    estimate = expected(measured, system=system, nodes=nodes)
    return explain(measured, estimate, verdict_of(measured, estimate.expectation, estimate.why), **known).causes


@examples("collective", "ranks", "nodes", "busbw", "cause")
def test_the_cause_whose_figure_was_measured_comes_first(
    collective: str, ranks: int, nodes: int, busbw: float, cause: str
) -> None:
    hypotheses = causes(collective, ranks, busbw, "DGX H100", nodes)
    assert hypotheses[0].cause.startswith(cause)
    assert hypotheses[0].predicted_gbs == pytest.approx(busbw, rel=0.1)


def outcome(check: str, status: str) -> Outcome:
    findings = (Finding(check, Severity.ERROR, "seen on n0", "", "", ()),) if status == "finding" else ()
    return Outcome(check, Status(status), "n0", findings)


@examples("run", "checks", "first", "among", "evidence", "most_likely")
def test_the_causes_of_a_shortfall(
    *,
    run: tuple[str, int, float, str, int],
    checks: dict[str, str] | None,
    first: str | None,
    among: list[str] | None,
    evidence: str | None,
    most_likely: float | None,
) -> None:
    """How the first cause begins, words of one among the first three each, a line of the first one's evidence, and what
    its likelihood is below; a row that names no cause has none."""
    known = Evidence(nodes=tuple(outcome(*each) for each in (checks or {}).items()))
    hypotheses = causes(*run, known=known)
    assert bool(hypotheses) is bool(first or among)
    assert not first or hypotheses[0].cause.startswith(first)
    assert [words for words in among or () if not any(words in each.cause for each in hypotheses[:3])] == []
    assert not evidence or evidence in hypotheses[0].evidence
    assert not most_likely or hypotheses[0].likelihood < most_likely


def test_a_setting_of_the_run_speaks_for_its_cause() -> None:
    without = causes("all_reduce", 32, 4, "DGX H100", 4)[0]
    with_it = causes("all_reduce", 32, 4, "DGX H100", 4, env={"NCCL_IB_DISABLE": "1"})[0]
    assert with_it.cause == without.cause
    assert with_it.likelihood > without.likelihood
    assert "for: NCCL_IB_DISABLE=1 is set" in with_it.evidence


def test_a_high_floor_speaks_for_sockets_and_a_low_one_against() -> None:
    slow, quick = (
        next(cause for cause in causes("all_reduce", 32, 4, "DGX H100", 4, fit=Fit(latency_us=floor))
             if cause.cause.startswith("sockets")).likelihood
        for floor in (400.0, 30.0)
    )  # fmt: skip
    assert slow > 0.7 > quick


def test_every_hypothesis_says_what_would_confirm_it() -> None:
    for hypotheses in (causes("all_reduce", 32, 160, "DGX H100", 4), causes("all_reduce", 8, 300, "DGX H100", 1)):
        assert hypotheses
        assert all(hypothesis.confirm and hypothesis.evidence for hypothesis in hypotheses)


@settings(max_examples=12)
@given(
    st.floats(1e-3, 2000),
    st.sampled_from([("DGX H100", 16, 2), ("DGX H100", 8, 1), ("DGX-1 (V100)", 4, 1), ("NC96ads_A100_v4", 4, 1)]),
    st.sampled_from(["all_reduce", "all_gather", "alltoall", "sendrecv"]),
)
def test_likelihoods_are_shares_in_order_and_leave_room_for_what_is_not_listed(
    busbw: float, machine: tuple[str, int, int], collective: str
) -> None:
    system, ranks, nodes = machine
    hypotheses = causes(collective, ranks, busbw, system, nodes)
    shares = [hypothesis.likelihood for hypothesis in hypotheses]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) < 1 or "number of ranks" in " ".join(hypothesis.cause for hypothesis in hypotheses)
    assert all(0 <= hypothesis.predicted_gbs < 2100 for hypothesis in hypotheses)


# --- other runs on the same nodes: one that reaches more than a cause leaves rules it out ---------------------

BRIDGE = {"NCCL_NET_GDR_LEVEL": "SYS"}


def judged(collective: str, busbw: float, **env: str) -> Judged:
    measured = run(collective, 16, busbw, env=env)
    estimate = expected(measured, system="DGX H100", nodes=2)
    return Judged(measured, estimate, verdict_of(measured, estimate.expectation, estimate.why))


def explained(slow: Judged, *others: Judged) -> Explained:
    return explain(slow.run, slow.modelled, slow.verdict, others=on_same_nodes(slow.run, others))


def words(found: Explained) -> str:
    return " ".join(cause.cause for cause in found.causes)


def test_a_broadcast_at_line_rate_rules_out_ports_and_fabric() -> None:
    slow, fast = judged("all_gather", 170.0), judged("broadcast", 380.0)
    alone = explained(slow)
    assert "half their rate" in words(alone)
    found = explained(slow, fast)
    assert "half their rate" not in words(found)
    assert "lossy" not in words(found)
    assert any("broadcast on the same nodes reaches 380 GB/s" in why for why in found.ruled_out)
    assert "one direction at a time" in words(found)  # of which a broadcast says nothing


def test_a_run_under_other_settings_says_nothing() -> None:
    slow, other = judged("all_gather", 170.0), judged("broadcast", 380.0, NCCL_ALGO="Ring")
    assert explained(slow, other) == explained(slow)


def test_a_slow_run_beside_it_says_nothing() -> None:
    slow, other = judged("all_gather", 170.0), judged("broadcast", 150.0)
    assert explained(slow, other).causes == explained(slow).causes


def test_the_run_itself_is_no_other_run() -> None:
    slow = judged("all_gather", 170.0)
    assert on_same_nodes(slow.run, [slow, replace(slow)]) == ()


# --- A node in evidence: NCCL's prediction for it with high confidence, as it should be where a part falls short


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


def test_runs_on_other_nodes_that_reach_the_same_speak_against_a_fault_of_one_part() -> None:
    def on(host: str, busbw: float) -> Judged:
        slow = judged("all_reduce", busbw)
        return replace(slow, run=replace(slow.run, devices=(BenchDevice(0, host, 0, "H100"),)))

    one = on("n1", 368.0)
    assert alike_elsewhere(one, (one, on("n2", 368.4), on("n3", 300.0), on("n1", 368.0))) == 1
    lone, common = (causes("all_reduce", 8, 368.0, "DGX H100", 1, known=Evidence(alike=alike)) for alike in (0, 1))
    part, alike = (next(c for c in found if "NVLinks of one GPU" in c.cause) for found in (lone, common))
    assert part.likelihood > 4 * alike.likelihood
    assert any(words.startswith("against: 1 run on other nodes") for words in alike.evidence)
