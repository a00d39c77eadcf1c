"""What sweeps conclude: planted faults are found in three rounds, chance accuses nobody, and what cannot be told apart
is said to be so."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sweep_fabric import Noise, fabric_of, false_alarms, found, measure, plant, sweep
from tests.depth import some_of
from tests.tables import examples
from topodiag.model.bench import SLOW_PLACEMENT
from topodiag.sweep.further import next_round
from topodiag.sweep.judge import ONE_RAIL, TWO_KINDS, judge
from topodiag.sweep.parts import acquits, parts_of
from topodiag.sweep.plan import first_round, pair_run, racks_run, rail_run
from topodiag.sweep.values import Fabric, Part, Standing, State, SweepPlan, SweepResult

STILL = Noise(0.01, 0.0)
FABRIC = fabric_of()


@pytest.mark.parametrize("seed", some_of(range(50), "planted"))
def test_a_nic_a_cable_a_leaf_and_a_slow_gpu_of_64_nodes_are_found_in_three_rounds(seed):
    faults = plant(FABRIC, Random(seed))
    measurement = sweep(FABRIC, faults, seed)
    assert len(measurement.plans) <= 3
    assert [part for part in faults if not found(measurement.judgement, part)] == []
    assert false_alarms(measurement.judgement, faults) == 0


@pytest.mark.parametrize("seed", some_of(range(50), "healthy"))
def test_a_healthy_fabric_with_runs_that_are_slow_by_chance_has_no_fault(seed):
    assert sweep(FABRIC, {}, seed, Noise(0.03, 0.02)).judgement.confirmed == ()


def test_finding_takes_less_than_a_quarter_of_measuring_every_rail_of_every_pair_twice():
    measurement = sweep(FABRIC, plant(FABRIC, Random(3)), 3)
    assert measurement.runs < 2 * 64 * 8 / 4


FABRICS = {
    "64 nodes": FABRIC,
    "64 nodes without racks": replace(FABRIC, racks={}),
    "a leaf for each rack": replace(FABRIC, leaf_per_rail=False),
    "two racks of 8": fabric_of(16, 2),
    "two racks of 16": fabric_of(32, 2),
    "four nodes": Fabric(tuple("abcd"), 4, 4),
}


@examples("fabric", "faults", "noise", "confirmed", "none")
def test_what_is_slow_is_found(fabric, faults, noise, confirmed, none):
    parts = {Part(*part): share for *part, share in faults}
    judgement = sweep(FABRICS[fabric], parts, 1, Noise(*noise) if noise else STILL).judgement
    assert [part for part in parts if not found(judgement, part)] == []
    assert confirmed in {None, len(judgement.confirmed)}
    assert [name for name in none or () if getattr(judgement, name)] == []


def test_one_slow_run_is_a_suspicion_of_nobody_in_particular_and_the_next_round_clears_it():
    plan = first_round(FABRIC)
    results = slowed(measure(plan, {}, Random(1), STILL), {"1-pairs-node001+node002"})
    first = judge([plan], results)
    assert [[part.kind for part in fault.parts] for fault in first.suspects] == [["path"]]  # other runs acquit the ends
    second = next_round([plan], first)
    assert len(second.runs) == 1
    both = judge([plan, second], [*results, *measure(second, {}, Random(2), STILL)])
    assert both.confirmed == ()
    assert next_round([plan, second], both) is None


def slowed(results, ids, share=0.5):
    return [replace(each, gbs=(each.gbs or 0) * share) if each.run in ids else each for each in results]


def test_a_first_round_confirms_nothing_and_says_between_what_it_cannot_choose():
    plan = first_round(FABRIC)
    judged = judge([plan], measure(plan, {Part("link", "node010", 2): 0.5}, Random(1), STILL))
    (fault,) = judged.faults
    assert not fault.confirmed
    assert {part.kind for part in fault.parts} == {"link", "pcie", "host"}
    assert {part.place for part in fault.parts} == {"node010"}


def test_the_next_round_pairs_suspects_with_nodes_that_they_have_not_met():
    plan = first_round(FABRIC)
    judged = judge([plan], measure(plan, {Part("link", "node010", 2): 0.5}, Random(1), STILL))
    second = next_round([plan], judged)
    partners = {node for run in second.runs if "node010" in run.nodes for node in run.nodes} - {"node010"}
    assert partners
    assert not partners & {"node009", "node011"}
    assert {run.rail for run in second.runs if run.kind == "rails" and "node010" in run.nodes} == set(range(8))


@pytest.mark.parametrize("kind", ["link", "pcie"])
def test_ib_write_bw_tells_a_nics_link_from_the_gpus_way_to_it(kind):
    faults = {Part(kind, "node010", 2): 0.5}
    plans: list[SweepPlan] = [replace(first_round(FABRIC), write_bw=True)]
    results: list[SweepResult] = []
    judged = judge(plans, results)
    for number in range(3):
        results += measure(plans[-1], faults, Random(number), STILL)
        judged = judge(plans, results)
        further = next_round(plans, judged)
        if further is None:
            break
        plans.append(further)
    (fault,) = judged.confirmed
    assert fault.parts == (Part(kind, "node010", 2),)
    assert any(run.program == "ib_write_bw" for run in plans[-1].runs)


def test_runs_that_fail_accuse_like_slow_ones_but_not_where_most_fail_alike():
    plan = first_round(FABRIC)
    good = measure(plan, {}, Random(1), STILL)
    results = [
        replace(result, state=State.TIMEOUT, gbs=None)
        if "node020" in result.run and "intra" not in result.run
        else result
        for result in good
    ]
    (fault,) = judge([plan], results).faults
    assert fault.share is None
    assert {part.place for part in fault.parts} == {"node020"}
    all_gone = [replace(result, state=State.FAILED, gbs=None, why="no such program") for result in good]
    judged = judge([plan], all_gone)
    assert judged.faults == ()
    assert {run.standing for run in judged.runs} == {Standing.UNKNOWN}


def test_two_nodes_have_no_normal_and_nothing_is_said_of_them():
    plan = first_round(Fabric(("a", "b")))
    judged = judge([plan], measure(plan, {Part("gpu", "a", 1): 0.5}, Random(1), STILL))
    assert judged.faults == ()
    assert any("fewer than 3 runs are alike" in note for note in judged.notes)


def test_where_half_of_all_runs_are_slow_alike_it_is_another_kind_of_machine_and_no_fault():
    plan = first_round(FABRIC, ("intra",))
    slow = {f"1-intra-{node}" for node in FABRIC.nodes[:30]}
    judged = judge([plan], slowed(measure(plan, {}, Random(1), STILL), slow))
    assert judged.faults == ()
    assert judged.notes == (f"30 intra runs cannot be judged: {TWO_KINDS}",)


def test_placements_more_than_30_per_cent_apart_are_told_with_the_slower_one():
    plan = first_round(FABRIC, ("bisection",))
    (gap,) = judge([plan], slowed(measure(plan, {}, Random(1), STILL), {"1-bisection-3", "1-bisection-4"}, 0.6)).gaps
    assert gap.worst.run.why == "every second node: crosses the middle"
    assert gap.lost > SLOW_PLACEMENT
    assert judge([plan], slowed(measure(plan, {}, Random(1), STILL), {"1-bisection-3"}, 0.75)).gaps == ()


def test_one_pair_says_nothing_of_uplinks_and_whole_racks_acquit_nothing_else():
    pair = pair_run(FABRIC, "node001", "node060", 1)
    racks = racks_run(FABRIC, "rack1", "rack2", 1)
    assert not any(part.kind == "uplink" for part in parts_of(pair, FABRIC))
    assert {part.kind for part in acquits(racks, FABRIC)} == {"uplink"}
    assert {part.kind for part in parts_of(racks, FABRIC)} == {"link", "pcie", "host", "leaf", "uplink"}


def test_a_leaf_for_a_whole_rack_is_one_part_for_all_rails():
    fabric = replace(FABRIC, leaf_per_rail=False)
    run = rail_run(fabric, "node001", "node002", 3, 1)
    assert [part for part in parts_of(run, fabric) if part.kind == "leaf"] == [Part("leaf", "rack1")]


def test_the_last_attempt_counts_and_an_interrupted_one_is_none():
    plan = first_round(FABRIC, ("intra",))
    results = measure(plan, {}, Random(1), STILL)
    slow = replace(results[0], gbs=1.0)
    cut = replace(results[0], state=State.INTERRUPTED, gbs=None)
    assert judge([plan], [slow, *results, cut]).faults == ()
    assert judge([plan], [cut]).missing == len(plan.runs)


@given(st.lists(st.tuples(st.integers(0, 139), st.sampled_from(list(State)), st.none() | st.floats(0, 1e8))))
def test_whatever_runs_yield_it_is_judged_and_planned_on(rows):
    plan = first_round(FABRIC)
    results = [SweepResult(plan.runs[place].id, 1, state, gbs) for place, state, gbs in rows]
    judged = judge([plan], results)
    next_round([plan], judged)
    assert judged.confirmed == ()
    assert len(judged.runs) + judged.missing == len(plan.runs)


TWO_RACKS = fabric_of(16, 2)


def test_rails_between_two_racks_are_compared_with_one_another():
    plan = first_round(TWO_RACKS, ("racks",))
    assert [(run.rail, len(run.nodes), run.gpus) for run in plan.runs] == [(rail, 16, (rail,)) for rail in range(8)]
    assert plan.waves == 8
    fault = Part("between", "rack1 and rack2", 5)
    measurement = sweep(TWO_RACKS, {fault: 0.6}, 1, STILL)
    (found_one,) = measurement.judgement.confirmed
    assert found_one.parts == (fault,)
    assert measurement.judgement.suspects == ()
    assert measurement.judgement.gaps == ()
    assert len(found_one.rounds) == 3  # nothing else is there to measure it with


@pytest.mark.parametrize("seed", some_of(range(20), "two racks", 2))
def test_a_fault_in_one_of_two_racks_is_found_and_what_joins_the_racks_is_not_accused(seed):
    planted = plant(TWO_RACKS, Random(seed))
    part = sorted(planted)[seed % 4]  # all four would slow most runs of 16 nodes
    faults = {part: planted[part]}
    measurement = sweep(TWO_RACKS, faults, seed)
    assert found(measurement.judgement, part)
    assert false_alarms(measurement.judgement, faults) == 0
    assert sweep(TWO_RACKS, {}, seed, Noise(0.03, 0.02)).judgement.confirmed == ()


def test_two_racks_with_one_leaf_each_have_one_run_between_them_and_nothing_to_compare_it_with():
    fabric = replace(TWO_RACKS, leaf_per_rail=False)
    plan = first_round(fabric, ("racks",))
    assert [run.rail for run in plan.runs] == [None]
    judged = judge([plan], slowed(measure(plan, {}, Random(1), STILL), {plan.runs[0].id}))
    assert judged.faults == ()
    assert judged.notes == ("1 racks run cannot be judged: fewer than 3 runs are alike",)


def test_runs_of_one_suspect_rail_alone_say_nothing_of_what_is_normal():
    fabric = replace(TWO_RACKS, racks={})
    first = first_round(fabric, ("pairs",))
    runs = tuple(rail_run(fabric, fabric.nodes[place], fabric.nodes[place + 8], 3, 1, number=2) for place in range(8))
    second = SweepPlan(fabric, runs, 2)
    results = [*measure(first, {}, Random(1), STILL), *measure(second, {}, Random(2), STILL)]
    judgement = judge([first, second], results)
    assert {run.why for run in judgement.runs if run.run.kind == "rails"} == {ONE_RAIL}
    others = replace(runs[0], id="2-other", rail=4), replace(runs[1], id="2-third", rail=5)
    wider = replace(second, runs=(*runs, *others))
    judged = judge([first, wider], [*results[:8], *measure(wider, {}, Random(2), STILL)])
    assert {run.standing for run in judged.runs} == {Standing.NORMAL}


def test_what_joins_two_racks_is_not_confirmed_while_pairs_on_that_rail_are_slow_without_a_reason():
    between = Part("between", "rack1 and rack2", 3)
    plans = [first_round(TWO_RACKS)]
    slow = {"1-racks-0-rack1+1-rack2-rail3"}
    results = slowed(measure(plans[0], {}, Random(1), STILL), slow)
    for number in (2, 3):
        further = next_round(plans, judge(plans, results))
        plans.append(further)
        inside = {run.id for run in further.runs if run.rail == 3 and run.why != "control"}
        assert any("racks" in name for name in inside)
        results += slowed(measure(further, {}, Random(number), STILL), inside)
    judged = judge(plans, results)
    assert any(fault.parts == (between,) for fault in judged.suspects)
    assert judged.confirmed == ()
