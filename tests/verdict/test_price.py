"""The price of a cause: NCCL's own search on the machines without it, alone and with all others gone."""

from dataclasses import replace

import pytest

from benchmarks.counterfactual import CORPUS, MACHINES, rows
from tests.verdict.pricing.machines import SIZE, bus_of, case, cause, finding, node, run, tree
from topodiag.expect.expect import expected, verdict_of
from topodiag.expect.hypotheses import explain
from topodiag.model.finding import Confidence, Cost, Severity
from topodiag.model.result import Case
from topodiag.model.verdict import Agreement
from topodiag.nccl.connect.communicator import Member
from topodiag.nccl.predict import predict_job, predict_tree
from topodiag.nccl.topo.changes import down, rate, remove
from topodiag.verdict.price import priced
from topodiag.words.units import in_gbs

LINKS = finding("NVL001", gpus=("GPU3",), cost=Cost(123.6, 1 / 3, "6 links x 20.6 GB/s = 123.6 GB/s per direction"))
NIC = finding("NIC001", nics=("mlx5_4",), cost=Cost(50.0, 0.125, "350 of 400 GB/s"))


def members(hosts: int = 2) -> tuple[Member, ...]:
    return tuple(Member(place * 8 + dev, place, bus_of(dev)) for place in range(hosts) for dev in range(8))


def by_nccl(*trees: object) -> float:
    prediction = predict_job([(each, ()) for each in trees], members(len(trees)), version="2.29.7", sizes=(SIZE,))  # type: ignore[misc]
    assert prediction.accepted
    return prediction.all_reduce.busbw_gbs


def test_equal_hosts_reach_what_equal_nodes_do() -> None:
    alike = predict_tree(tree(), nodes=2, version="2.29.7", sizes=(SIZE,))
    prediction = predict_job([(tree(), ()), (tree(), ())], members(), version="2.29.7", sizes=(SIZE,))
    assert (prediction.choices, prediction.tuning, prediction.channels) == (alike.choices, alike.tuning, alike.channels)


def test_one_bad_host_of_many_costs_what_all_bad_hosts_cost() -> None:
    bad = tree(down("nvlink:GPU3:6"))
    assert by_nccl(tree(), bad) == by_nccl(bad, bad) < by_nccl(tree(), tree())


def test_hosts_search_with_their_own_settings() -> None:
    off = (("NCCL_NVLS_ENABLE", "0"),)
    prediction = predict_job([(tree(), ()), (tree(), off)], members(), version="2.29.7", sizes=(SIZE,))
    assert (prediction.all_reduce is not None and prediction.all_reduce.algorithm != "NVLSTree") or prediction.graphs


def test_links_down_are_priced_by_nccls_own_figures_of_both_machines() -> None:
    (price,) = priced([cause(LINKS)], case(down("nvlink:GPU3:6"), gbs=290.0))
    share = by_nccl(tree(), tree(down("nvlink:GPU3:6"))) / by_nccl(tree(), tree())
    assert price.predicted.value == pytest.approx(share * price.all_gone.value)
    assert price.alone.value == price.all_gone.value
    assert price.job_share == pytest.approx(1 - share)
    assert price.agreement is Agreement.AGREES
    assert "explains" in price.says


def test_all_gone_is_what_bench_expects() -> None:
    (price,) = priced([cause(LINKS)], case(down("nvlink:GPU3:6")))
    expectation = expected(run("n1", "n2", gbs=1.0), node("n1")).expectation
    assert price.all_gone.value == pytest.approx(expectation.busbw[SIZE])


def test_the_numbers_of_the_place_are_those_of_the_finding() -> None:
    (price,) = priced([cause(LINKS)], case(down("nvlink:GPU3:6")))
    assert (price.gbs_lost, price.share) == (LINKS.cost.gbs_lost, LINKS.cost.share)
    assert price.text.endswith(LINKS.cost.text)
    assert f"of {in_gbs(LINKS.cost.gbs_lost / LINKS.cost.share)} of the GPU's NVLinks, so that busbw of" in price.text


def test_a_cause_without_a_place_loses_what_its_job_loses() -> None:
    (price,) = priced([cause(replace(LINKS, cost=Cost()))], case(down("nvlink:GPU3:6")))
    assert price.gbs_lost == pytest.approx(price.all_gone.value - price.predicted.value)
    assert price.share == price.job_share


def test_each_of_two_causes_is_priced_alone_and_with_the_other_gone() -> None:
    links, nic = priced([cause(LINKS), cause(NIC)], case(down("nvlink:GPU3:6"), remove("mlx5_4")))
    assert links.predicted == nic.predicted
    assert links.all_gone == nic.all_gone
    assert links.alone.value > nic.alone.value, "the NIC alone costs less than the links alone"
    assert links.job_share > nic.job_share > 0


def test_a_cause_of_a_node_outside_the_run_has_no_number() -> None:
    (price,) = priced([cause(replace(LINKS, where=replace(LINKS.where, nodes=("n9",))))], case(down("nvlink:GPU3:6")))
    assert price.predicted is None
    assert price.agreement is Agreement.NOT_PREDICTED


def test_what_was_not_measured_is_priced_and_says_so() -> None:
    jobless = case(down("nvlink:GPU3:6"), gbs=None)
    (price,) = priced([cause(LINKS)], jobless)
    assert price.predicted is not None
    assert price.measured is None
    assert price.agreement is Agreement.NOT_MEASURED


def test_a_loss_that_was_not_measured_exceeds() -> None:
    (price,) = priced([cause(LINKS)], case(down("nvlink:GPU3:6"), gbs=470.0))
    assert price.agreement is Agreement.EXCEEDS


def test_a_setting_is_the_cause_of_the_run_that_has_it() -> None:
    hca = finding("ENV001", "n1", settings=(("NCCL_IB_HCA", None),))
    (price,) = priced([cause(hca)], case(env={"NCCL_IB_HCA": "mlx5_0"}, gbs=60.0))
    (other,) = priced([cause(hca)], case(gbs=470.0))
    assert other.predicted is not None
    assert price.predicted.value < price.all_gone.value / 4
    assert other.job_share == 0.0


def test_a_cause_without_a_mend_is_priced_by_what_follows_from_it() -> None:
    acs, refused = finding("PCI004"), finding("P2P001")
    (price,) = priced([cause(acs, refused)], case())
    (bare,) = priced([cause(acs)], case())
    assert price.predicted is not None
    assert price.job_share > 0
    assert bare.predicted is None
    assert "no source shows it" in bare.text


def test_a_slow_port_slows_all_rails() -> None:
    (price,) = priced([cause(finding("NIC002", nics=("mlx5_2",)))], case(rate("mlx5_2=100")))
    assert price.job_share > 0.1


@pytest.mark.parametrize("check", ["JOB005", "JOB001", "JOB006", "JOB009", "NET008"])
def test_a_cause_that_ends_the_job_costs_all_of_it(check: str) -> None:
    (price,) = priced([cause(finding("GPU001"), finding(check))], Case())
    assert (price.share, price.job_share) == (1.0, 1.0)
    assert price.text.startswith("100 %")


def test_a_warning_ends_no_job() -> None:
    late = replace(finding("JOB006"), severity=Severity.WARNING)
    (price,) = priced([cause(finding("GPU001"), late)], Case())
    assert price.share is None


def test_nothing_is_priced_where_no_machine_is_known() -> None:
    report = replace(finding("NVL001", gpus=("GPU3",)), confidence=Confidence.LOW)
    nothing = Case(runs=(run("n1", "n2", gbs=100.0),))
    (price,) = priced([cause(report)], nothing)
    assert price.predicted is None
    assert price.text
    assert priced([], nothing) == ()


def test_hosts_of_which_nothing_is_known_are_taken_like_their_siblings() -> None:
    one = Case(nodes=(node("n2", down("nvlink:GPU3:6")),), runs=(run("n1", "n2", gbs=290.0),))
    (price,) = priced([cause(LINKS)], one)
    (both,) = priced([cause(LINKS)], case(down("nvlink:GPU3:6"), gbs=290.0))
    assert price.predicted == both.predicted


def test_an_alltoall_is_priced_on_hosts_that_are_not_alike() -> None:
    whole = case(remove("mlx5_4"), gbs=40.0)
    (price,) = priced([cause(NIC)], replace(whole, runs=(replace(whole.runs[0], collective="alltoall"),)))
    assert price.predicted is not None
    assert price.job_share == pytest.approx(0.125)


def test_a_benchmark_and_a_diagnosis_predict_the_same_bandwidth() -> None:
    """Both take the share from NCCL's own figures of the two machines, and the whole from the expectation."""
    links = "6 of 18 NVLinks of one GPU down"
    measured = run("n1", "n2", gbs=290.0)
    estimate = expected(measured, node("n1"))
    explained = explain(measured, estimate, verdict_of(measured, estimate.expectation))
    (bench,) = [hypothesis.predicted_gbs for hypothesis in explained.causes if hypothesis.cause == links]
    (price,) = priced([cause(LINKS)], case(down("nvlink:GPU3:6"), gbs=290.0))
    assert abs(price.predicted.value - bench) < 1e-6
    assert price.all_gone.value == estimate.expectation.busbw[SIZE]


# --- what degraded machines of the corpus lose is, to the digit, what NCCL itself found on them and on the whole ones


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus is not at {CORPUS}")
def test_the_predicted_loss_of_20_degraded_machines_is_nccls_own() -> None:
    assert len({machine.name for machine in MACHINES}) >= 20
    records = list(rows(versions=("2.28",), counts=(2,)))
    assert not [row for row in records if not row.agrees]
    assert sum(row.degraded < row.whole for row in records if row.whole and row.degraded is not None) >= 12, (
        "real losses"
    )
