"""The single cause of a shortfall: planted on the machine by the model, found by its figure and by evidence."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.expect.measured_runs import run
from tests.tables import examples
from topodiag.expect.expect import expected
from topodiag.expect.hypotheses import Evidence, explain
from topodiag.expect.verdict import verdict_of
from topodiag.model.bench import Fit, Hypothesis
from topodiag.model.finding import Finding, Outcome, Severity, Status


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


def test_a_node_that_goes_through_host_memory_may_lack_p2p_or_one_gpus_links() -> None:
    hypotheses = causes("all_gather", 8, 40, "DGX H100", 1)
    assert {hypothesis.cause.split(":")[0] for hypothesis in hypotheses[:2]} == {
        "P2P off between GPUs",
        "one GPU without any NVLink",
    }


def test_causes_that_predict_the_same_share_the_likelihood() -> None:
    hypotheses = causes("all_gather", 16, 93, "DGX A100", 2)
    assert {hypothesis.cause.split("(")[0].strip() for hypothesis in hypotheses[:2]} == {
        "4 of 8 NICs not used",
        "all NIC ports at half their rate",
    }
    assert hypotheses[0].likelihood < 0.5


def test_a_figure_that_sockets_bring_names_them() -> None:
    assert causes("all_reduce", 32, 4, "DGX H100", 4)[0].cause == "sockets instead of RDMA"


def test_a_setting_of_the_run_speaks_for_its_cause() -> None:
    without = causes("all_reduce", 32, 4, "DGX H100", 4)[0]
    with_it = causes("all_reduce", 32, 4, "DGX H100", 4, env={"NCCL_IB_DISABLE": "1"})[0]
    assert with_it.cause == without.cause
    assert with_it.likelihood > without.likelihood
    assert "for: NCCL_IB_DISABLE=1 is set" in with_it.evidence


def finding(check: str) -> Outcome:
    return Outcome(check, Status.FINDING, "n0", (Finding(check, Severity.ERROR, "seen on n0", "", "", ()),))


def test_a_finding_on_the_node_outweighs_a_cause_that_predicts_as_well() -> None:
    first = causes("all_gather", 16, 93, "DGX A100", 2, known=Evidence(nodes=(finding("NIC002"),)))[0]
    assert first.cause.startswith("all NIC ports at half")
    assert "for: NIC002: seen on n0" in first.evidence


def test_a_check_that_looked_and_found_nothing_speaks_against_its_cause() -> None:
    clean = [Outcome(check, Status.CLEAN, "n0") for check in ("NET003", "NIC005", "NIC001")]
    hypotheses = causes("all_reduce", 32, 342, "DGX H100", 4, known=Evidence(nodes=tuple(clean)))
    assert not hypotheses[0].cause.startswith("1 of 8 NICs")
    unknown = [Outcome(check, Status.UNKNOWN, "n0") for check in ("NET003", "NIC005", "NIC001")]
    assert causes("all_reduce", 32, 342, "DGX H100", 4, known=Evidence(nodes=tuple(unknown)))[0].cause.startswith(
        "1 of 8 NICs"
    )


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


def test_a_rack_that_does_not_use_its_nvlink_is_priced_over_the_network() -> None:
    hypotheses = causes("all_gather", 16, 190, "GB200 NVL72", 4)
    assert any("multi-node NVLink is not used" in hypothesis.cause for hypothesis in hypotheses[:3])


def test_a_normal_run_has_no_causes() -> None:
    assert causes("all_reduce", 8, 480, "DGX H100", 1) == ()


def test_an_impossible_run_asks_for_ranks_placement_and_machine() -> None:
    words = " ".join(cause.cause for cause in causes("all_reduce", 32, 900, "DGX H100", 4))
    assert "fewer nodes" in words
    assert "number of ranks" in words
    assert "another machine" in words


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
