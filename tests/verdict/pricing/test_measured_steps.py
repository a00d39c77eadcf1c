"""The share of a step that is predicted, beside how much longer the steps of the job's own log became."""

from dataclasses import replace

import pytest

from tests.checks import jobs
from tests.model.test_step_pace import series
from tests.verdict.pricing.machines import cause, finding
from topodiag.app.case.jobs import ALONE, with_steps
from topodiag.model.finding import Outcome, Status
from topodiag.model.provenance import Origin
from topodiag.model.result import Case, Result
from topodiag.model.steps import StepSeries
from topodiag.model.verdict import Cause, Price, State
from topodiag.verdict.judge import judge
from topodiag.verdict.pricing.measured_steps import open_steps, with_measured_steps
from topodiag.verdict.timeline import timeline


def slower(seconds: float = 2.0) -> StepSeries:
    step_series = series(lambda n: 1.2 if n < 120 else seconds)
    steps = tuple(
        replace(step, origin=Origin("train.log", step.number, f"step {step.number}")) for step in step_series.steps
    )
    return replace(step_series, steps=steps)


def case_of(*steps: StepSeries) -> Case:
    case = Case(jobs=with_steps((jobs.job(2),), steps))
    return replace(case, timeline=timeline(case, case.identity))


def priced(share: float, *spread: float, line: int | None = None) -> Cause:
    made = cause(finding("NIC005", "n2"))
    evidence = (Origin("train.log", line, "x"),) if line is not None else ()
    bounds = (spread[0], spread[1]) if spread else (share, share)
    price = Price(step_share=share, step_range=bounds)
    return replace(made, finding=replace(made.finding, evidence=evidence), price=price)


def compared(one: Cause, case: Case) -> Price:
    return with_measured_steps([one], case, lambda *_: True)[0].price


def test_where_predicted_and_measured_are_the_same_the_cause_explains_it() -> None:
    case = case_of(slower())
    price = compared(priced(0.39), case)
    assert price.step_agrees
    assert "40 % of a step, predicted 39 %: the cause explains it, if it began then" in price.step_says
    assert open_steps([replace(priced(0.39), price=price)], case) == ()


def test_a_change_that_is_waiting_for_data_is_compared_with_no_cause() -> None:
    step_series = slower()
    steps = tuple(replace(step, waited=0.01 if step.number < 120 else 0.8) for step in step_series.steps)
    case = case_of(replace(step_series, steps=steps))
    price = compared(priced(0.39), case)
    assert (price.step_says, price.step_agrees) == ("", False)
    assert open_steps([], case) == ()


def test_where_they_differ_it_is_said_and_stays_open() -> None:
    case = case_of(slower())
    price = compared(priced(0.1), case)
    assert not price.step_agrees
    assert price.step_says.endswith("these differ")
    assert "no cause that is known began then" in open_steps([], case)[0]


def test_of_a_model_that_is_assumed_a_value_inside_the_range_is_no_proof() -> None:
    price = compared(priced(0.3, 0.2, 0.5), case_of(slower()))
    assert (price.step_agrees, "20-50 %" in price.step_says) == (False, True)
    assert "that fits" in price.step_says


def test_a_cause_of_another_time_explains_nothing_and_one_of_that_time_is_said_to_be() -> None:
    case = case_of(slower())
    lines = {moment.origin.line: moment for moment in case.timeline.moments if moment.origin is not None}
    assert 120 in lines
    now = lines[120]
    early = replace(now, what="link is down", time=now.time - 86_400, origin=Origin("kern.log", 7, "x"))
    moved = replace(case, timeline=replace(case.timeline, moments=(*case.timeline.moments, early)))
    told = replace(priced(0.39), finding=replace(priced(0.39).finding, evidence=(Origin("kern.log", 7, "x"),)))
    assert "of another time" in compared(told, moved).step_says
    near = replace(early, time=now.time - 60)
    close = replace(case, timeline=replace(case.timeline, moments=(*case.timeline.moments, near)))
    assert compared(told, close).step_says.endswith("and its first line is of that time")


def test_a_cause_that_nccl_showed_at_the_start_did_not_change_the_steps_later() -> None:
    case = case_of(slower())
    job = replace(case.jobs[0], files=("rank0.log",))
    report = replace(priced(0.39).finding, id="TOP004", evidence=(Origin("rank0.log", 12, "x"),))
    price = compared(replace(priced(0.39), finding=report), replace(case, jobs=(job,)))
    assert not price.step_agrees
    assert price.step_says.endswith("the cause was there when the job began, so it did not change them")


def test_steady_steps_and_faster_ones_compare_with_nothing() -> None:
    for steady in (series(lambda _: 1.2), series(lambda n: 2.0 if n < 60 else 1.2)):
        case = case_of(steady)
        assert compared(priced(0.39), case).step_says == ""
        assert open_steps([], case) == ()


def test_of_two_causes_with_a_share_neither_takes_the_change_alone() -> None:
    causes = with_measured_steps([priced(0.39), priced(0.2)], case_of(slower()), lambda *_: True)
    assert [each.price.step_says for each in causes] == ["", ""]


def test_steps_that_became_slower_accuse_nobody_and_make_no_job_healthy() -> None:
    case = Case(jobs=with_steps((), (slower(),)))
    verdict = judge(Result(jobs=case.jobs), case)
    assert (verdict.state, verdict.causes) == (State.UNKNOWN, ())
    assert verdict.headline.startswith("steps take 1.7 times as long from step 120 on")
    assert [evidence.where for evidence in verdict.next_evidence] == [""]


@pytest.mark.parametrize("seconds", [1.2, 2.0])
def test_a_healthy_job_whose_steps_became_slower_is_unknown(seconds: float) -> None:
    case = case_of(slower(seconds))
    healthy = Result(jobs=case.jobs, outcomes=(Outcome("NET001", Status.CLEAN, node=case.jobs[0].name),))
    assert judge(healthy, case).state is (State.HEALTHY if seconds == 1.2 else State.UNKNOWN)


def test_a_log_of_its_own_is_of_the_only_job_and_of_none_of_several() -> None:
    one, two = replace(jobs.job(2), name="a"), replace(jobs.job(2), name="b", files=("b.log",))
    assert with_steps((one,), (slower(),))[0].steps
    assert [bool(step.steps) for step in with_steps((one, two), (slower(),))] == [False, False, True]
    assert with_steps((one, two), (slower(),))[2].name == ALONE
    own = replace(slower(), source="b.log")
    assert [bool(step.steps) for step in with_steps((one, two), (own,))] == [False, True]


def test_the_starts_of_a_log_of_two_jobs_are_theirs_in_order() -> None:
    both = [replace(jobs.job(2), name=name, files=("train.log",)) for name in ("a", "b")]
    first, second = series(lambda _: 1.2), series(lambda _: 1.5)
    assert [step.steps for step in with_steps(both, (first, second))] == [(first,), (second,)]
    assert [len(step.steps) for step in with_steps(both, (first,))] == [0, 1]
