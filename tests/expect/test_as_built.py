"""A port that is down or slow, a narrow PCIe link, one NIC by setting: less is measured, not less expected."""

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.calibrating import Observation, fit
from tests.expect.measured_runs import run
from tests.tables import examples
from topodiag.app.case.topology import open_topology
from topodiag.expect.as_built import as_built, narrow_links
from topodiag.expect.calibration import calibration
from topodiag.expect.expect import Expected, expected
from topodiag.expect.hypotheses import Evidence, explain
from topodiag.expect.settings import nics_left
from topodiag.expect.verdict import verdict_of
from topodiag.model.bench import BenchDevice, BenchRow, Timing
from topodiag.model.finding import Finding, Outcome, Severity, Status
from topodiag.model.node import Node
from topodiag.model.provenance import known

ROOT = Path(__file__).parents[2]
HEALTHY = open_topology("fixture:dgx-h100-healthy").node
MEASURED = run(ranks=16, busbw=240)


def with_port(node: Node, name: str, **port: Any) -> Node:
    nics = tuple(
        replace(nic, ports=tuple(replace(nic_port, **port) for nic_port in nic.ports)) if nic.rdma_name == name else nic
        for nic in node.nics
    )
    assert nics != node.nics
    return replace(node, nics=nics)


def at_width(node: Node, place: int, width: int) -> Node:
    bus = node.gpus[place].bus_id
    assert bus is not None
    return replace(node, pci={**node.pci, bus: replace(node.pci[bus], width=known(width))})


def of(node: Node, **options: Any) -> Expected:
    return expected(MEASURED, node, nodes=2, **options)


def test_a_port_at_half_rate_lowers_what_is_measured_and_not_what_is_expected() -> None:
    slow, well = of(with_port(HEALTHY, "mlx5_0", rate_gbps=known(200.0))), of(HEALTHY)
    assert slow.expectation.busbw_gbs == pytest.approx(well.expectation.busbw_gbs)
    assert any("mlx5_0 runs at 200 Gb/s" in formula for _, _, formula in slow.expectation.terms)


def test_a_port_that_is_down_lowers_nothing_that_is_expected() -> None:
    down, well = of(with_port(HEALTHY, "mlx5_0", state=known("DOWN"))), of(HEALTHY)
    assert down.expectation.busbw_gbs == pytest.approx(well.expectation.busbw_gbs)
    assert "mlx5_0 is down" in down.setup.faults[0]


def test_ports_that_are_all_alike_are_as_built() -> None:
    assert as_built(HEALTHY).faults == ()
    assert as_built(replace(HEALTHY, nics=HEALTHY.nics[:1])).faults == ()


def test_pci001_of_the_given_bundle_is_the_cause() -> None:
    node = at_width(HEALTHY, 5, 4)
    assert [link.share for link in narrow_links(node)] == [0.25]
    estimate = of(node)
    slow = replace(MEASURED, rows=(BenchRow(8 << 30, out_of_place=Timing(1.0, 70.0, 130.0)),))
    outcome = Outcome(
        "PCI001", Status.FINDING, "n0", (Finding("PCI001", Severity.ERROR, "GPU5 trained at x4", "", "", ()),)
    )
    explained = explain(slow, estimate, verdict_of(slow, estimate.expectation), known=Evidence(nodes=(outcome,)))
    assert "GPU5 trained at x4" in explained.causes[0].cause
    assert explained.causes[0].shown


def test_all_links_narrow_alike_are_built_so() -> None:
    node = HEALTHY
    for place in range(len(node.gpus)):
        node = at_width(node, place, 8)
    assert list(narrow_links(node)) == []


def test_one_hca_in_the_setting_is_the_cause_and_the_expectation_is_without_it() -> None:
    for node in (HEALTHY, None):
        slow = run(ranks=16, busbw=47.3, gpu="NVIDIA H100 80GB HBM3", hosts=2, env={"NCCL_IB_HCA": "mlx5_0"})
        estimate = expected(slow, node)
        assert estimate.expectation.busbw_gbs > 300
        (first, *_) = explain(slow, estimate, verdict_of(slow, estimate.expectation)).causes
        assert first.cause.startswith("NCCL_IB_HCA=mlx5_0 leaves 1 of 8 NICs")
        assert first.shown
        assert first.likelihood > 0.8


@examples("value", "left")
def test_how_many_nics_a_setting_leaves_of_an_assumed_machine(value: str, left: int | None) -> None:
    assert nics_left(value, [f"nic{number}" for number in range(8)]) == left


def test_a_setting_that_names_storage_ports_away_costs_nothing() -> None:
    assert nics_left("^mlx5_8", [f"mlx5_{number}" for number in range(8)]) is None
    assert nics_left("mlx5_0,mlx5_1", ["mlx5_0", "mlx5_1", "mlx5_2"]) == 2


def clean(check: str) -> Outcome:
    return Outcome(check, Status.CLEAN, "n0")


def test_a_bundle_with_all_links_up_removes_nvlink() -> None:
    slow = run(busbw=240)
    estimate = expected(slow, HEALTHY)
    verdict = verdict_of(slow, estimate.expectation)
    assert "NVLinks of one GPU down" in explain(slow, estimate, verdict).causes[0].cause
    bundles = Evidence(nodes=(clean("NVL001"),), all_nodes=True)
    left = explain(slow, estimate, verdict, known=bundles)
    assert not any("of one GPU" in cause.cause and "NVLink" in cause.cause for cause in left.causes)
    assert any("NVL001 looked at the bundles of all nodes" in reason for reason in left.ruled_out)
    part = explain(slow, estimate, verdict, known=replace(bundles, all_nodes=False))
    assert any("NVLinks of one GPU" in cause.cause for cause in part.causes)


def test_a_net_ib_line_or_29_gbs_removes_sockets() -> None:
    slow = run(ranks=16, busbw=5.0, gpu="NVIDIA H100 80GB HBM3", hosts=2)
    estimate = expected(slow)
    verdict = verdict_of(slow, estimate.expectation)
    assert explain(slow, estimate, verdict).causes[0].cause == "sockets instead of RDMA"
    seen = explain(slow, estimate, verdict, known=Evidence(network="rdma"))
    assert not any("sockets" in cause.cause for cause in seen.causes)
    fast = replace(slow, rows=(*slow.rows, BenchRow(32 << 20, out_of_place=Timing(1.0, 15.0, 29.0))))
    cliff = explain(fast, estimate, verdict)
    assert not any("sockets" in cause.cause for cause in cliff.causes)
    assert any("29 GB/s at 32 MiB are more than sockets bring" in reason for reason in cliff.ruled_out)


def test_gpudirect_disabled_in_the_same_file_comes_first() -> None:
    slow = run(ranks=16, busbw=22.5, gpu="NVIDIA H100 80GB HBM3", hosts=2)
    estimate = expected(slow)
    gdr = Finding("GDR001", Severity.ERROR, "GPU Direct RDMA is disabled (no module)", "", "", ())
    known_ = Evidence(logs=(Outcome("GDR001", Status.FINDING, "job", (gdr,)),))
    (first, *_) = explain(slow, estimate, verdict_of(slow, estimate.expectation), known=known_).causes
    assert first.check == "GDR001"
    assert first.shown


def test_the_same_bus_id_twice_is_one_gpu() -> None:
    devices = tuple(BenchDevice(rank, "n0", 0, "NVIDIA H100 80GB HBM3", "0000:1b:00.0") for rank in range(2))
    estimate = expected(replace(run(ranks=2), devices=devices))
    assert estimate.expectation is None
    assert "ranks 0 and 1 name one GPU" in estimate.why


def test_a_nvlink_edge_whose_directions_differ_is_a_cause_though_nccl_refuses_it() -> None:
    node = open_topology(str(ROOT / "fixtures" / "topo" / "one-sided-nvlink" / "topo.xml")).node
    slow = run(busbw=20, gpu="Tesla V100-SXM2-32GB")
    estimate = expected(slow, node)
    verdict = verdict_of(slow, estimate.expectation)
    assert verdict.word == "low"
    assert explain(slow, estimate, verdict).causes[0].shown


# --- Published healthy results, each expected by a calibration that never saw its system: near enough, and never low


PUBLISHED = ROOT.parent / "shared" / "corpus" / "healthy.csv"

needs_results = pytest.mark.skipif(not PUBLISHED.exists(), reason=f"no published results at {PUBLISHED}")

WITHIN, SHARE = 0.15, 0.85


@cache
def published() -> tuple[list[Any], list[Observation], int]:
    """The rows that name a machine, what each measured over the raw model, and how many rows there are at all."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from healthy_rows import MORE, observations, rows  # noqa: PLC0415 - a script beside the package
    finally:
        sys.path.pop(0)
    every = rows(PUBLISHED)
    healthy = [row for row in every if not row.none]
    more = [row for row in rows(MORE) if not row.none]
    return healthy, list(observations([*healthy, *more])), len(every)


@cache
def held_out() -> list[tuple[str, float, str]]:
    """Row, error of the expectation, verdict."""
    healthy, seen, _ = published()
    rows = []
    for row in healthy:
        fitted = fit((observation for observation in seen if observation.system != row.group), calibration().tolerances)
        expectation = row.expected(fitted).expectation
        assert expectation is not None, row.name
        wanted = expectation.busbw.get(row.size, expectation.busbw_gbs)
        rows.append((row.name, wanted / row.busbw - 1, verdict_of(row.run, expectation).word))
    return rows


@needs_results
def test_most_of_all_rows_are_expected_within_fifteen_percent() -> None:
    errors = [error for _, error, _ in held_out()]
    assert sum(abs(error) <= WITHIN for error in errors) / published()[2] >= SHARE


@needs_results
def test_no_healthy_row_is_called_low_or_impossible() -> None:
    assert [row for row in held_out() if row[2] not in ("normal", "unknown")] == []


@needs_results
def test_the_shipped_factors_are_those_of_a_fit_on_all_rows() -> None:
    shipped, factors = calibration().factors, fit(published()[1]).factors
    assert shipped.keys() == factors.keys()
    assert all(abs(shipped[key].factor - factors[key].factor) < 0.001 for key in factors)
