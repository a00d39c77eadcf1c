"""What a cause's fix mends, its price and the share of a step, beside what was measured."""

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import jobs
from tests.model.test_step_pace import series
from tests.tables import examples
from tests.verdict.pricing.machines import bus_of, cause, finding, host, run, tree
from topodiag.app.case.jobs import ALONE, with_steps
from topodiag.model.finding import Cost, Outcome, Status
from topodiag.model.nccl_tree import Element
from topodiag.model.provenance import Origin
from topodiag.model.result import Case, Result
from topodiag.model.steps import StepSeries
from topodiag.model.verdict import Agreement, Cause, Price, State
from topodiag.nccl.topo.changes import down, nets_of, off, rate, remove, width, with_nets, with_values
from topodiag.verdict.judge import judge
from topodiag.verdict.pricing.agreement import as_another_algorithm, compare, measured_of, same_as_table
from topodiag.verdict.pricing.edits import canonical, nvlinks_by_gpu, rates, with_less
from topodiag.verdict.pricing.measured_steps import open_steps, with_measured_steps
from topodiag.verdict.pricing.mend import CannotError, HostGround, Machine, Mend
from topodiag.verdict.pricing.registry import MENDS, NO_NUMBER, mend_of
from topodiag.verdict.timeline import timeline


def inflicted(check: str, on: HostGround, **parts: Any) -> Machine:
    mend = mend_of(check)
    return mend.inflict(on.built, on, finding(check, **parts))


def test_each_check_has_one_mend_or_a_reason_for_none() -> None:
    assert not set(MENDS) & set(NO_NUMBER) - {"PCI004"}
    assert all(isinstance(mend := mend_of(check), Mend) and mend.__doc__ for check in MENDS)


CHANGES = {"down": down, "rate": rate, "remove": remove, "width": width}
NICS = [f"mlx5_{dev}" for dev in range(8)]


@examples("check", "parts", "changes", "given", "wanted")
def test_what_a_fault_does_to_a_machine(
    *,
    check: str,
    parts: dict[str, Any] | None,
    changes: list[tuple[str, str]] | None,
    given: dict[str, str] | None,
    wanted: dict[str, Any],
) -> None:
    """Of a node that its source shows with these `changes`, with settings `given`: `tree` is "built" or as "shown",
    `lost` are the NICs that are gone, `rates` those that differ from 400 Gb/s; `error` is why there is no number."""
    on = host(*(CHANGES[name](text) for name, text in changes or ()), given=given or {})
    named = {name: tuple(part) if isinstance(part, list) else part for name, part in (parts or {}).items()}
    if "share" in named:
        named["cost"] = Cost(share=named.pop("share"))
    if "settings" in named:
        named["settings"] = tuple((name, None) for name in named["settings"])
    if "error" in wanted:
        with pytest.raises(CannotError, match=wanted["error"]):
            inflicted(check, on, **named)
        return
    machine = inflicted(check, on, **named)
    shown = {
        "tree": "shown" if machine.tree == on.views[0] != tree() else "built" if machine.tree == tree() else "",
        "pace": machine.pace,
        "network": machine.network,
        "env": dict(machine.env),
        "lost": [nic for nic in NICS if nic not in nets_of(machine.tree)],
        "nets": len(nets_of(machine.tree)),
        "rates": {name: mbps // 1000 for name, mbps in rates(machine.tree).items() if mbps != 400_000},
    }
    assert {name: shown[name] for name in wanted} == wanted


def test_a_fabric_that_is_not_ready_leaves_no_nvlink() -> None:
    links = nvlinks_by_gpu(inflicted("NVL005", host()).tree)
    assert set(links) == {bus_of(dev) for dev in range(8)}
    assert not any(links.values())


def merged(of: Element) -> Element:
    """The tree as NCCL prints it where it merged mlx5_2 and mlx5_3."""
    joined = {"name": "mlx5_2+mlx5_3", "speed": "800000"}
    return with_nets(
        with_less(of, {"mlx5_3"}), lambda net: with_values(net, joined if net.get("name") == "mlx5_2" else {})
    )


def test_ports_of_a_virtual_nic_are_shown_and_none_is_lost() -> None:
    for check in ("NIC005", "NIC002"):
        with pytest.raises(CannotError, match="which NICs are left"):
            inflicted(check, host(edit=merged), nics=("mlx5_2",))


def test_a_virtual_nic_keeps_the_ports_that_are_left() -> None:
    built = HostGround("n2", Machine(merged(tree())), (tree(remove("mlx5_3"), rate("mlx5_2=200")),))
    machine = inflicted("NIC005", built, nics=("mlx5_2", "mlx5_3"))
    assert rates(machine.tree) == {f"mlx5_{dev}": 200000 if dev == 2 else 400000 for dev in range(8) if dev != 3}
    assert "mlx5_2+mlx5_3" not in nets_of(machine.tree)


def test_a_choice_of_nics_takes_single_ports_of_a_virtual_nic() -> None:
    on = HostGround("n2", Machine(merged(tree())), (), {"NCCL_IB_HCA": "^mlx5_3"})
    machine = inflicted("ENV001", on, settings=(("NCCL_IB_HCA", None),))
    assert rates(machine.tree) == {f"mlx5_{dev}": 400000 for dev in range(8) if dev != 3}


def test_gpudirect_is_off_at_every_nic_and_gpu() -> None:
    machine = inflicted("GDR001", host())
    assert {node.get("gdr") for node in machine.tree.walk() if node.tag in ("gpu", "net")} == {"0"}


def test_a_setting_that_is_not_in_force_here_changes_nothing() -> None:
    on = host()
    assert inflicted("ENV001", on, settings=(("NCCL_IB_DISABLE", None),)) == on.built


def test_a_wrong_file_that_nobody_has_has_no_number() -> None:
    bare = HostGround("n2", Machine(tree()))
    with pytest.raises(CannotError, match="topology file"):
        inflicted("TOP002", bare)


def test_hosts_that_differ_by_their_guids_alone_are_one_machine() -> None:
    other = with_nets(tree(), lambda net: with_values(net, {"guid": hex(int(net.get("guid") or "0", 16) + 0xABC)}))
    assert other != tree()
    assert canonical(other) == canonical(tree())


def test_features_off_by_a_change_are_settings_and_no_part() -> None:
    assert tree(off("gdr")) == tree()


# --- predicted against measured: the proof where they agree, what is left where they do not


@examples("whole", "predicted", "measured", "wanted")
def test_within_15_percent_they_agree(whole: float, predicted: float, measured: float, wanted: Agreement) -> None:
    compared = compare(whole, predicted, measured, "the cause")
    assert compared.agreement is wanted, compared.says
    assert f"measured {measured:.0f}" in compared.says.replace(".0", "")


@examples("figures", "cause", "bound", "agreement", "begins", "ends")
def test_how_a_prediction_and_a_measurement_are_compared(
    *,
    figures: tuple[float, float, float],
    cause: str | None,
    bound: list[Any] | None,
    agreement: Agreement | None,
    begins: str | None,
    ends: str | None,
) -> None:
    """The whole, the prediction and the measurement in GB/s. A prediction may be an upper bound: by the part of it that
    is reached at least, and by what NCCL's model leaves out."""
    compared = compare(*figures, cause or "the cause", *(bound or ()))
    assert agreement is None or compared.agreement is agreement
    assert compared.says.startswith(begins or "")
    assert compared.says.endswith(ends or "")


REACHED = {"Tree": 68.2, "Ring": 49.6, "NVLS": 20.0}


def test_what_another_algorithm_reaches_is_said_where_the_prediction_misses() -> None:
    assert as_another_algorithm(68.2, 47.3, "Tree", REACHED) == (
        "Ring reaches 49.6 GB/s on these machines, where NCCL's model takes Tree: NCCL_DEBUG_SUBSYS=TUNING shows which"
        " one ran"
    )


@pytest.mark.parametrize("measured", [66.0, 60.0, 30.0, 90.0])
def test_a_measurement_that_agrees_or_fits_no_algorithm_asks_for_none(measured: float) -> None:
    assert as_another_algorithm(68.2, measured, "Tree", REACHED) == ""


def test_a_job_that_nobody_measured_is_not_measured() -> None:
    assert measured_of(run("n1"), "busbw") is None
    quantity = measured_of(run("n1", "n2", gbs=285.6), "busbw")
    assert (quantity.value, quantity.source) == (285.6, "nccl-tests at 16 GiB on 2 nodes, run.txt")


def test_nccls_own_table_in_the_log_confirms_or_denies() -> None:
    table = {("AllReduce", "NVLS_TREE", "SIMPLE"): (66.8, 215.4), ("AllReduce", "RING", "SIMPLE"): (131.6, 0.0)}
    same = same_as_table(403.6, "NVLSTree/Simple", table, "AllReduce", 1.875)
    assert same == "NCCL's own table in the log says the same: 403.9 GB/s of NVLSTree/Simple"
    assert "461.2 are modelled" in same_as_table(461.2, "NVLSTree/Simple", table, "AllReduce", 1.875)
    assert not same_as_table(1.0, "Ring/Simple", table, "AllReduce", 1.875)


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
