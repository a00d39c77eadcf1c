"""A layout judged: its demands agree with the step model, what is split is found and priced."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.app.case.placement import PlaceOptions, open_cluster
from topodiag.cost.questions import ModelError
from topodiag.cost.step import Work, price_step
from topodiag.model.cluster import Assignment, Cluster, Demand, Ints, Level
from topodiag.model.errors import TopodiagError
from topodiag.model.layout import Layout
from topodiag.model.layout_groups import groups_of
from topodiag.placement import groups
from topodiag.placement.audit import Audit, AuditError, audit, whole_us
from topodiag.placement.groups import Talk, talk_of_groups, talk_of_layout
from topodiag.placement.price import price_demand, price_placement


def cluster(nodes: int, leaf: int = 0, over: float = 1.0, system: str = "dgx-h100", nics: int = 8) -> Cluster:
    given_nics = (nics, 400.0) if system == "dgx-h100" else None
    return open_cluster(PlaceOptions(system=system, nodes=nodes, leaf=leaf, oversubscription=over, nics=given_nics))


def judged(fabric: Cluster, layout: Layout, slot: Ints, work: Work | None = None) -> Audit:
    return audit(fabric, talk_of_layout(fabric, layout, slot.size, work), Assignment(slot))


def block(ranks: int) -> Ints:
    return np.arange(ranks, dtype=np.int64)


def over_two_nodes(ranks: int) -> Ints:
    """Tensor groups of eight, each with four ranks on one node and four on the next."""
    rank = block(ranks)
    group, member = rank // 8, rank % 8
    return (2 * (group // 2) + member // 4) * 8 + (group % 2) * 4 + member % 4


# --- the worked examples ------------------------------------------------------------------------------------


def test_256_gpus_with_every_tensor_group_over_two_nodes_lose_about_30_percent() -> None:
    """On four 400 Gb/s NICs, where compute reaches half of the peak, by rings; by NVLSTree somewhat less."""
    work = Work(70e9, 80, 8192, 4096, 1, 128, 989.0, reached=0.5)
    few_nics = cluster(32, nics=4)
    verdict = judged(replace(few_nics, switch=False), Layout(tp=8, pp=4, dp=8), over_two_nodes(256), work)
    switched = judged(few_nics, Layout(tp=8, pp=4, dp=8), over_two_nodes(256), work)
    assert 0.2 < switched.gain < verdict.gain
    tensor = verdict.dimensions[0]
    assert (tensor.dimension, tensor.split.tolist()) == ("tp", list(range(32)))
    assert verdict.gain == pytest.approx(0.30, abs=0.05)
    assert (verdict.worst.dimension, len(verdict.worst.nodes)) == ("tp", 2)
    assert not verdict.hardly_matters


def test_the_signature_of_split_tensor_groups_is_an_order_of_magnitude_on_few_nics() -> None:
    verdict = judged(cluster(32, system="p4d.24xlarge"), Layout(tp=8, pp=4, dp=8), over_two_nodes(256))
    tensor = verdict.dimensions[0]
    assert 6 < tensor.step_us / tensor.best_us < 13


def test_64_gpus_8x2x4_have_nothing_to_regain_and_a_split_tensor_group_is_what_would_hurt_most() -> None:
    verdict = judged(cluster(8), Layout(tp=8, pp=2, dp=4), block(64))
    assert verdict.gain == 0
    assert verdict.worst is None
    assert (verdict.could.dimension, verdict.could.group) == ("tp", 0)
    assert verdict.could.lost_us > 0.2 * verdict.step_us


def test_64_gpus_with_one_exchange_have_that_group_named() -> None:
    slot = block(64)
    slot[[19, 42]] = slot[[42, 19]]
    verdict = judged(cluster(8), Layout(tp=8, pp=2, dp=4), slot)
    tensor = verdict.dimensions[0]
    assert tensor.split.tolist() == [2, 5]
    assert (verdict.worst.dimension, verdict.worst.ranks) == ("tp", tuple(range(16, 24)))
    assert verdict.worst.nodes == ("node003", "node006")


def test_four_gpus_in_twos_hold_no_tensor_group_of_four() -> None:
    two = cluster(2)
    usable = np.zeros((2, 8), bool)
    usable[:, :2] = True
    verdict = judged(replace(two, usable=usable), Layout(tp=4), np.asarray([0, 1, 8, 9]))
    tensor = verdict.dimensions[0]
    assert verdict.gain == 0
    assert not tensor.split.size, "no order of ranks mends it"
    assert tensor.step_us > 2 * sum(whole_us(two, cost.demand) for cost in tensor.now)
    assert not verdict.hardly_matters


def test_reducing_by_rack_first_beats_one_ring_over_the_spine() -> None:
    """Two phases, in the racks and then between one rank of each, against all at once, four times oversubscribed."""
    numbers = np.arange(16)
    levels = (Level("rack", numbers // 4, 3.0, 50.0), Level("spine", np.zeros(16, np.int64), 3.3, 12.5))
    racks = Cluster(tuple(f"n{n}" for n in numbers), np.ones((16, 1), bool), numbers, levels, 1.0, 50.0)
    size = 2.0**30
    inside = Demand("rack", numbers.reshape(4, 4), "all_reduce", size)
    between = Demand("leaders", numbers.reshape(4, 4).T, "all_reduce", size / 4)
    flat = Demand("all", numbers[None, :], "all_reduce", size)
    place = Assignment(numbers)
    phases = price_demand(racks, inside, place).step_us + price_demand(racks, between, place).step_us
    assert phases < price_demand(racks, flat, place).step_us / 1.5


def test_stage_k_of_a_replica_on_node_k_stays_in_its_leaf() -> None:
    """tp 8, pp 4, dp 2 over two leaves of four nodes: replicas on nodes 0-3 and 4-7."""
    verdict = judged(cluster(8, leaf=4), Layout(tp=8, pp=4, dp=2, order="tp-pp-dp"), block(64))
    levels = {
        dimension.dimension: {verdict.level_name(level) for level in dimension.levels.tolist()}
        for dimension in verdict.dimensions
    }
    assert levels == {"tp": {"node"}, "pp": {"leaf"}, "dp": {"spine"}}
    assert verdict.gain < 0.001


def test_a_layout_as_good_as_the_map_loses_nothing_in_any_dimension() -> None:
    """What the map would give to pipelines it would take from gradients: no dimension is called misplaced."""
    verdict = judged(cluster(8, leaf=4, over=4.0), Layout(tp=8, dp=4, pp=2), block(64))
    assert verdict.gain == 0
    assert verdict.worst is None
    assert [verdict.lost(dimension) for dimension in verdict.dimensions] == [0, 0, 0]


# --- what holds for every layout ----------------------------------------------------------------------------


@settings(max_examples=8)
@given(st.permutations(range(32)))
def test_no_layout_gains_less_than_nothing_and_the_map_compared_with_uses_the_same_slots(order: list[int]) -> None:
    verdict = judged(cluster(4, leaf=2, over=2.0), Layout(tp=4, pp=2, dp=4), np.asarray(order))
    assert verdict.gain >= 0
    assert sorted(verdict.best.slot.tolist()) == list(range(32))
    assert all(dimension.step_us >= dimension.bound_us * (1 - 1e-9) for dimension in verdict.dimensions)


@settings(max_examples=8)
@given(st.permutations(range(4)), st.permutations(range(32)))
def test_relabelling_nodes_changes_no_cost(nodes: list[int], order: list[int]) -> None:
    one = cluster(4, leaf=2, over=2.0)
    talk = talk_of_layout(one, Layout(tp=4, pp=2, dp=4), 32)
    slot, index = np.asarray(order), np.asarray(nodes)  # node k is called index[k]
    back = np.argsort(index)
    levels = tuple(replace(level, group=level.group[back]) for level in one.levels)
    other = replace(one, levels=levels, nvlink_domain=one.nvlink_domain[back])
    first = audit(one, talk, Assignment(slot))
    second = audit(other, talk, Assignment(index[slot // 8] * 8 + slot % 8))
    assert second.waited_us == pytest.approx(first.waited_us)


def test_one_node_has_no_placement_to_get_wrong() -> None:
    assert "one node" in judged(cluster(1), Layout(tp=4), np.asarray([3, 1, 0, 2])).hardly_matters


def test_a_job_that_computes_much_more_than_it_says_is_told_so() -> None:
    work = Work(70e9, 80, 8192, 4096, 1, 1024, 989.0, reached=0.01, zero=1)
    verdict = judged(cluster(2), Layout(tp=2, dp=8), block(16), work)
    assert "compute carries it" in verdict.hardly_matters


def test_a_layout_without_known_compute_is_judged_by_communication_alone() -> None:
    report = audit(cluster(2), talk_of_groups(cluster(2), (Demand("a", np.asarray([[0, 1]]), bytes=1e6),), 2),
                 Assignment(np.asarray([0, 8])))  # fmt: skip
    assert report.talk.base_us is None
    assert report.step_us == report.waited_us > 0


@examples("slot", "words")
def test_a_layout_that_is_none_is_one_clear_line(slot: list[int], words: str) -> None:
    one = cluster(1)
    usable = one.usable.copy()
    usable[0, 7] = False
    talk = Talk(3, (Demand("tp", np.asarray([[0, 1, 2]]), bytes=1e6),))
    with pytest.raises(AuditError, match=words):
        audit(replace(one, usable=usable), talk, Assignment(np.asarray(slot, np.int64)))


SIZES = st.sampled_from((1, 2, 4, 8))


def nodes(count: int) -> Cluster:
    return open_cluster(PlaceOptions(system="dgx-h100", nodes=count))


def in_blocks(ranks: int) -> Assignment:
    return Assignment(np.arange(ranks, dtype=np.int64))


@given(
    sizes=st.tuples(SIZES, st.sampled_from((1, 2)), st.sampled_from((1, 2, 4)), SIZES, st.sampled_from((1, 2, 4))),
    zero=st.sampled_from((0, 1, 3)),
)
def test_ranks_in_blocks_cost_what_the_step_model_says(sizes: tuple[int, int, int, int, int], zero: int) -> None:
    tp, cp, pp, dp, ep = sizes
    world = tp * cp * pp * dp
    assume(world % 8 == 0 and (cp * dp) % ep == 0)
    cluster, layout = nodes(world // 8), Layout(tp=tp, pp=pp, dp=dp, cp=cp, ep=ep)
    machine = groups.machine_of(cluster, world)
    work = replace(groups.thumb(machine.gpu, layout), zero=zero)
    step = price_step(work, layout.for_world(world), machine)
    talk = groups.talk_of_step(cluster, step, layout.for_world(world))
    # The step model knows no rails.
    placed = price_placement(replace(cluster, rails=0), talk.demands, in_blocks(world))
    assert talk.base_us + placed.step_us == pytest.approx(step.time_us, rel=1e-6)


@given(tp=SIZES, cp=SIZES, pp=SIZES, dp=SIZES, order=st.permutations(("tp", "cp", "dp", "pp")))
def test_the_group_that_is_priced_is_one_of_those_that_are_listed(
    tp: int, cp: int, pp: int, dp: int, order: list[str]
) -> None:
    """The step model prices one group of each dimension without listing the others; it is one of the listed ones."""
    priced = Layout(tp=tp, pp=pp, dp=dp, cp=cp, order="-".join(order))
    listed = groups_of(priced, priced.world)
    for name, size in priced.sizes.items():
        if size > 1:
            assert list(priced.group(name)) in listed[name].tolist()
    if cp > 1 and dp > 1:
        assert sorted(priced.replicas()) in listed["dp-cp"].tolist()


def test_groups_of_a_layout_are_megatrons() -> None:
    ndarrays = {
        demand.dimension: demand.groups
        for demand in groups.talk_of_layout(nodes(2), Layout(tp=2, pp=2, dp=4), 16).demands
    }
    assert ndarrays["tp"][1].tolist() == [2, 3]
    assert ndarrays["dp"][0].tolist() == [0, 2, 4, 6]
    assert ndarrays["pp"][0].tolist() == [0, 8]


def test_deepspeeds_order_has_data_inside_pipeline_and_model_innermost() -> None:
    """PipeModelDataParallelTopology (deepspeed/runtime/pipe/topology.py): axes pipe, data, model, the last fastest."""
    talk = groups.talk_of_layout(nodes(1), Layout(tp=2, pp=2, dp=2, order="tp-dp-pp"), 8)
    assert {demand.dimension: demand.groups[0].tolist() for demand in talk.demands} == {"tp": [0, 1], "dp": [0, 2],
                                                                                    "pp": [0, 4]}  # fmt: skip


def test_hsdp_shards_among_neighbours_and_replicates_across() -> None:
    cluster = nodes(2)
    work = replace(groups.thumb(None, Layout(dp=16)), zero=3, shard=8)
    document = {
        demand.dimension: demand.groups.tolist()
        for demand in groups.talk_of_layout(cluster, Layout(dp=16), 16, work).demands
    }
    assert document["dp shards"] == [list(range(8)), list(range(8, 16))]
    assert document["dp replicas"][0] == [0, 8]
    assert len(document["dp replicas"]) == 8


def test_experts_are_sharded_among_the_ranks_of_a_shard_group_that_hold_them() -> None:
    layout = Layout(dp=16, ep=2)
    work = replace(groups.thumb(None, layout), zero=3, shard=8, experts=8)
    document = {
        demand.dimension: demand.groups.tolist() for demand in groups.talk_of_layout(nodes(2), layout, 16, work).demands
    }
    assert document["dp shards"] == [list(range(8)), list(range(8, 16))]
    assert document["expert shards"] == [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]]
    assert document["dp replicas"][0] == [0, 8]


def test_experts_and_their_replicas_are_groups_of_their_own() -> None:
    talk = groups.talk_of_layout(nodes(2), Layout(tp=1, dp=16, ep=8), 16)
    ndarrays = {demand.dimension: demand.groups for demand in talk.demands}
    assert ndarrays["ep"][0].tolist() == list(range(8))
    assert ndarrays["expert dp"][0].tolist() == [0, 8]
    assert ndarrays["dp"].shape == (1, 16)


def test_the_rule_of_thumb_is_said_and_given_work_is_not_called_so() -> None:
    cluster, layout = nodes(1), Layout(tp=8)
    assert groups.talk_of_layout(cluster, layout, 8).assumed == (groups.THUMB_WORDS,)
    assert not groups.talk_of_layout(cluster, layout, 8, groups.thumb(None, layout)).assumed


def test_work_that_does_not_divide_is_refused_and_the_rule_of_thumb_takes_fractions() -> None:
    cluster, layout = nodes(3), Layout(tp=8, pp=3)
    with pytest.raises(ModelError, match="--layers 80 is no multiple"):
        groups.talk_of_layout(cluster, layout, 24, groups.thumb(None, layout))
    assert groups.talk_of_layout(cluster, layout, 24).base_us


@pytest.mark.parametrize("sizes", [{"tp": 3}, {"tp": 8, "dp": 4}, {"tp": 8, "ep": 3}, {"tp": 8, "order": "pp-tp-tp"}])
def test_sizes_that_do_not_multiply_are_one_clear_line(sizes: dict[str, int]) -> None:
    with pytest.raises(TopodiagError) as caught:
        groups.talk_of_layout(nodes(2), Layout(**sizes), 16)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_only_inner_dimensions_belong_together_and_stretch_the_pipeline() -> None:
    demands = {demand.dimension: demand for demand in groups.talk_of_layout(nodes(8), Layout(tp=8, pp=4), 64).demands}
    assert {name for name, demand in demands.items() if demand.keep_together} == {"tp"}
    assert demands["tp"].stretch == pytest.approx((16 + 3) / 16)  # (p-1)/(m+p-1) idle, p = 4 stages, m = 16
    assert demands["dp"].stretch == 1


def test_what_hides_behind_compute_is_waited_for_as_far_as_it_is_longer() -> None:
    demand = Demand("dp", np.zeros((1, 2), np.int64), calls=2.0, exposed=0.0, beside_us=30.0)
    assert [demand.waited_us(us) for us in (10.0, 15.0, 25.0)] == [0.0, 0.0, 20.0]


def test_given_groups_without_sizes_get_the_rule_of_thumb_and_say_so() -> None:
    given_groups = (
        Demand("replicas", np.asarray([[0, 1], [2, 3]]), keep_together=True),
        Demand("ring", np.asarray([[0, 2]]), bytes=5.0),
    )
    talk = groups.talk_of_groups(nodes(1), given_groups, 4)
    assert [(demand.bytes, demand.calls) for demand in talk.demands] == [(64 * 2**20, 5120.0), (5.0, 1.0)]
    assert len(talk.assumed) == 1
    assert not groups.talk_of_groups(nodes(1), given_groups[1:], 4).assumed


def test_a_rank_that_the_job_has_not_is_refused() -> None:
    with pytest.raises(TopodiagError, match="rank 4, and the job has 4 ranks"):
        groups.talk_of_groups(nodes(1), (Demand("a", np.asarray([[0, 4]])),), 4)


def test_every_rank_knows_its_group() -> None:
    ndarrays = groups.ids_by_rank(groups.talk_of_layout(nodes(1), Layout(tp=2, dp=4), 8))
    assert ndarrays["tp"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert ndarrays["dp"].tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
