"""Who talks to whom: demands of a layout agree with the step model, rank by rank and microsecond by microsecond."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from topodiag.app.case.placement import PlaceOptions, open_cluster
from topodiag.cost.questions import ModelError
from topodiag.cost.step import price_step
from topodiag.model.cluster import Assignment, Cluster, Demand
from topodiag.model.errors import TopodiagError
from topodiag.model.layout import Layout
from topodiag.model.layout_groups import groups_of
from topodiag.placement import groups
from topodiag.placement.price import price_placement

SIZES = st.sampled_from((1, 2, 4, 8))


def nodes(count: int) -> Cluster:
    return open_cluster(PlaceOptions(system="dgx-h100", nodes=count))


def block(ranks: int) -> Assignment:
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
    placed = price_placement(replace(cluster, rails=0), talk.demands, block(world))
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
