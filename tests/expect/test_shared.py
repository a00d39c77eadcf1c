"""Runs that tell the same of ranks and devices share what is reckoned for them; nothing that was measured is shared."""

from dataclasses import replace

import pytest

from tests.expect.measured_runs import run
from topodiag.expect import shared
from topodiag.expect.expect import expected
from topodiag.expect.hypotheses import explain
from topodiag.expect.hypothesis_causes import causes_of
from topodiag.expect.setup import NoSetupError, setup_of
from topodiag.expect.verdict import verdict_of
from topodiag.hardware import catalog
from topodiag.model.bench import BenchRun, Hypothesis


def low(busbw: float) -> BenchRun:
    return run("all_reduce", 32, busbw)


def causes(busbw: float) -> tuple[Hypothesis, ...]:
    measured = run("all_gather", 8, busbw)
    estimate = expected(measured, system="DGX H100", nodes=1)
    return explain(measured, estimate, verdict_of(measured, estimate.expectation, estimate.why)).causes


def test_runs_that_differ_in_what_they_measured_share_their_set_up() -> None:
    expecteds = [expected(low(busbw), system="DGX H100", nodes=4) for busbw in (342, 300)]
    assert expecteds[0].setup is expecteds[1].setup


def test_the_process_ids_of_another_start_make_no_other_set_up() -> None:
    first = run(gpu="NVIDIA H100 80GB HBM3", ranks=16, hosts=2)
    again = replace(first, devices=tuple(replace(device, pid=device.pid + 7) for device in first.devices))
    assert expected(first).setup is expected(again).setup


@pytest.mark.parametrize("other", [{"env": {"NCCL_ALGO": "Ring"}}, {"version": "2.21"}, {"nodes": 2}])
def test_what_else_a_run_tells_makes_another_set_up(other: dict[str, object]) -> None:
    asked: dict[str, object] = {"system": "DGX H100", "nodes": 4, "version": "2.28"}
    whole, changed = (expected(low(342), **given) for given in (asked, {**asked, **other}))  # type: ignore[arg-type]
    assert whole.setup != changed.setup


def test_a_run_after_others_has_the_causes_that_it_has_alone() -> None:
    after = [causes(busbw) for busbw in (300, 200, 40)][-1]
    for kept in (shared._setup, shared.versions_of, shared.variants_of, shared.known_shares):
        kept.cache_clear()
    assert after
    assert causes(40) == after


@pytest.mark.parametrize("nodes", [1, 2])
def test_no_two_causes_of_a_machine_go_by_the_same_words(nodes: int) -> None:
    for spec in catalog.systems():
        try:
            setup = setup_of(run(ranks=spec.gpus * nodes), system=spec.name, nodes=nodes)
        except NoSetupError:  # its NICs are the integrator's choice
            continue
        words = [cause.words for cause in causes_of(setup, "all_reduce", 100.0)]
        assert len(set(words)) == len(words), spec.name
