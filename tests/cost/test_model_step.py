"""A training step: what is sent where, what is waited for, what is idle, and what a misplacement costs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.cost import memory, traffic
from topodiag.cost.collectives import Link
from topodiag.cost.questions import ModelError
from topodiag.cost.step import Step, Work, price_step
from topodiag.cost.tiers import Machine, find_system, machine, machine_of_links
from topodiag.cost.training import fitted_layout, peak_of, price_training, weak_scaling
from topodiag.model.layout import Layout, LayoutError, dense_order

WORK = Work(70e9, 80, 8192, 4096, 1, 64, 989.4)
NODES = machine(find_system("dgx-h100"), 8)


def priced(layout: Layout, nodes: Machine = NODES, **changes: object) -> Step:
    return price_step(replace(WORK, **changes), layout, nodes)  # type: ignore[arg-type]


def test_the_parts_add_up_to_the_step() -> None:
    step = priced(Layout(tp=8, pp=2, dp=4))
    waited = sum(step.dimension_us(name)[1] for name in step.dimensions)
    assert step.time_us == pytest.approx(step.compute_us + step.bubble_us + waited)
    assert step.terms[-1].value == step.time_us


def test_compute_is_six_operations_per_parameter_and_token_and_those_of_attention() -> None:
    step = priced(Layout(tp=8, dp=8), reached=0.5)
    operations = (6 * 70e9 + 12 * 80 * 8192 * 4096) * 64 * 4096
    assert step.compute_us == pytest.approx(operations / 64 / (989.4e6 * 0.5))
    full = priced(Layout(tp=8, dp=8), recompute="full")
    assert full.compute_us == pytest.approx(step.compute_us * 4 / 3)
    assert full.mfu < step.mfu, "what is computed twice counts once"


def test_each_dimension_sends_what_its_papers_say() -> None:
    step = priced(Layout(tp=8, pp=2, dp=4), zero=0)
    sent = {piece.dimension: piece.traffic for piece in step.pieces}
    layers, micro_batches, activation = 40, 16, 4096 * 8192 * 2.0
    assert (sent["tp"].collective, sent["tp"].calls, sent["tp"].size) == (
        "all_reduce", 4 * layers * micro_batches, activation,
    )  # fmt: skip
    assert (sent["pp"].collective, sent["pp"].calls, sent["pp"].size) == ("send_recv", 2 * micro_batches, activation)
    assert (sent["dp"].collective, sent["dp"].size) == ("all_reduce", pytest.approx(70e9 / 16 * 2))


def test_zero_sends_as_much_as_an_all_reduce_and_its_third_stage_half_as_much_again() -> None:
    def volume(stage: int) -> float:
        return sum(each.calls * each.size for each in traffic.zero(stage, 1e9, 2))

    (plain,) = traffic.data(1e9, 2)
    assert volume(1) == volume(2) == 2 * plain.calls * plain.size, "an all-reduce is a reduce-scatter and an all-gather"
    assert volume(3) == 1.5 * volume(1)


def test_context_parallel_ring_and_ulysses() -> None:
    (ring,) = traffic.context(10, 4, 1e6, 8)
    (ulysses,) = traffic.context(10, 4, 1e6, 8, ulysses=True, activation=5e5)
    assert (ring.collective, ring.calls) == ("send_recv", 3 * 10 * 4 * 7)
    assert (ulysses.collective, ulysses.calls, ulysses.size) == ("all_to_all", 8 * 10 * 4, 5e5)
    assert traffic.context(10, 4, 1e6, 1) == ()


def test_expert_parallel_sends_top_k_times_the_capacity() -> None:
    (sent,) = traffic.expert(10, 4, 4096, 8192, 2, top_k=2, capacity=1.25)
    assert (sent.collective, sent.calls) == ("all_to_all", 4 * 10 * 4)
    assert sent.size == 4096 * 2 * 1.25 * 8192 * 2


def test_an_interleaved_pipeline_idles_less_and_sends_more() -> None:
    plain, interleaved = priced(Layout(tp=8, pp=4, dp=2)), priced(Layout(tp=8, pp=4, dp=2), chunks=2)
    assert interleaved.bubble_us < plain.bubble_us
    assert interleaved.dimension_us("pp")[0] == pytest.approx(2 * plain.dimension_us("pp")[0])


def test_gradients_hide_behind_no_more_than_the_last_micro_batch() -> None:
    step = priced(Layout(tp=8, pp=2, dp=4))
    total, waited = step.dimension_us("dp")
    assert total - waited == pytest.approx(min(total, step.compute_us / step.micro_batches))
    open_ = priced(Layout(tp=8, pp=2, dp=4), overlap={})
    assert open_.dimension_us("dp")[1] == pytest.approx(total)
    assert open_.time_us == pytest.approx(open_.unhidden_us)


def test_experts_are_shared_by_expert_parallelism_and_reduced_among_their_own_replicas() -> None:
    step = priced(Layout(tp=1, ep=8, dp=64), experts=64, active_parameters=13e9, zero=0)
    spans = {(piece.dimension, piece.spread.ranks): piece for piece in step.pieces}
    assert ("ep", 8) in spans
    assert ("dp", 64) in spans, "the dense part"
    assert ("dp", 8) in spans, "the experts"
    assert spans[("ep", 8)].spread.level == "NVLink"
    dense, experts = spans[("dp", 64)].traffic.size, spans[("dp", 8)].traffic.size
    assert dense / 2 + experts / 2 * 8 == pytest.approx(70e9)


def test_memory_counts_states_and_the_micro_batches_in_flight() -> None:
    one, four = priced(Layout(tp=8, dp=8)), priced(Layout(tp=8, pp=4, dp=2))
    assert one.activations_gb == pytest.approx(memory.activations(4096, 8192, 80, 8, sequence_parallel=False))
    assert four.activations_gb == pytest.approx(one.activations_gb), "a quarter of the layers, four in flight"
    less = priced(Layout(tp=8, dp=8), sequence_parallel=True)
    assert less.activations_gb < one.activations_gb
    assert priced(Layout(tp=8, dp=8), recompute="full").activations_gb < less.activations_gb


def test_zero_shards_experts_among_their_own_replicas_only() -> None:
    work = replace(WORK, experts=64, active_parameters=13e9, zero=1)
    layout = Layout(ep=8, dp=64)
    experts = work.expert_parameters
    step = price_step(work, layout, NODES)
    dense = 70e9 - experts
    assert step.memory.optimiser == pytest.approx(12 * (dense / 64 + experts / 8 / 8) / 1e9)
    assert step.memory.weights == pytest.approx(2 * (dense + experts / 8) / 1e9)


def test_a_shard_group_shards_experts_among_those_of_its_ranks_that_hold_them() -> None:
    work = replace(WORK, experts=64, active_parameters=13e9, shard=32, zero=3)
    layout = Layout(ep=8, dp=64)
    step = price_step(work, layout, NODES)
    dense, experts = 70e9 - work.expert_parameters, work.expert_parameters / 8
    assert step.memory.weights == pytest.approx(2 * (dense / 32 + experts / 4) / 1e9)
    sent = {
        (piece.ranks, piece.traffic.collective): piece.traffic.size for piece in step.pieces if piece.dimension == "dp"
    }
    assert sent[tuple(range(32)), "all_gather"] == pytest.approx(2 * dense)
    assert sent[(0, 8, 16, 24), "all_gather"] == pytest.approx(2 * experts)
    shards = [piece.traffic.size for piece in step.pieces if piece.ranks == (0, 32)]
    assert sorted(shards) == pytest.approx(sorted([2 * dense / 32, 2 * experts / 4]))


def test_a_shard_group_of_one_of_each_expert_gathers_no_expert() -> None:
    step = price_step(replace(WORK, experts=64, active_parameters=13e9, shard=8, zero=3), Layout(ep=8, dp=64), NODES)
    assert {len(piece.ranks) for piece in step.pieces if piece.traffic.collective == "all_gather"} == {8}


def test_groups_that_straddle_domains_are_priced_by_the_worst() -> None:
    layout = Layout(tp=6, dp=32)
    assert len({rank // 8 for rank in layout.worst("tp", 8)}) == 2
    assert NODES.spread(layout.worst("tp", 8)).nodes > 1


def test_a_split_group_costs_more_and_a_group_over_all_domains_cannot_be_split() -> None:
    step = priced(Layout(tp=8, pp=2, dp=4))
    assert [dimension.dimension for dimension in step.misplaced] == ["tp"]
    assert step.misplaced[0].step_us > step.time_us
    assert priced(Layout(dp=64)).misplaced == ()


def test_the_place_of_a_dimension_in_the_order_decides_its_tier() -> None:
    inner, outer = Layout(tp=8, dp=8), Layout(tp=8, dp=8, order="dp-cp-tp-pp")
    assert priced(inner).time_us < priced(outer).time_us
    tiers = {piece.dimension: piece.spread.level for piece in priced(outer).pieces}
    assert tiers == {"tp": "network", "dp": "NVLink"}


def test_a_bad_order_is_told_with_the_one_that_serves_better_and_never_called_unimportant() -> None:
    bad, good = priced(Layout(tp=8, dp=8, order="dp-cp-tp-pp")), priced(Layout(tp=8, dp=8))
    assert bad.better.order[:2] == ("tp", "dp")
    assert bad.better.step_us == pytest.approx(good.time_us)
    assert (good.better, bad.hardly_matters) == (None, "")


def test_an_order_may_name_ep_and_must_name_the_others_once() -> None:
    assert dense_order("tp-cp-ep-dp-pp") == ("tp", "cp", "dp", "pp")
    assert dense_order("pp-tp") == ("pp", "tp", "cp", "dp")
    for wrong in ("tp-tp", "tp-xx", ""):
        with pytest.raises(LayoutError):
            dense_order(wrong)


@given(st.permutations(["tp", "cp", "dp", "pp"]), st.lists(st.sampled_from([1, 2, 3, 4]), min_size=4, max_size=4))
def test_the_groups_of_a_dimension_share_out_the_ranks(order: list[str], sizes: list[int]) -> None:
    layout = Layout(tp=sizes[0], cp=sizes[1], pp=sizes[2], dp=sizes[3], order="-".join(order))
    for name in order:
        step = layout.stride(name)
        bases = [rank for rank in range(layout.world) if rank // step % layout.sizes[name] == 0]
        seen = sorted(rank for base in bases for rank in layout.group(name, base))
        assert seen == list(range(layout.world))


@examples("sizes", "why")
def test_sizes_that_do_not_multiply_are_refused(sizes: dict[str, int], why: str) -> None:
    with pytest.raises(ModelError, match=why):
        fitted_layout(NODES, sizes, ("tp", "cp", "dp", "pp"))


@examples("changes", "layout", "why")
def test_what_does_not_divide_is_refused(changes: dict[str, object], layout: Layout, why: str) -> None:
    with pytest.raises(ModelError, match=why):
        price_training(replace(WORK, **changes), layout, NODES)  # type: ignore[arg-type]


def test_a_gpu_without_a_known_peak_asks_for_one() -> None:
    bare = machine_of_links(Link(1.0, 300.0, "inside"), None, 8, 1)
    with pytest.raises(ModelError, match="no data on the bf16 peak"):
        peak_of(bare, "bf16", None)
    assert peak_of(bare, "bf16", 500.0).tflops == 500.0


def test_nodes_without_a_network_cannot_be_spanned() -> None:
    bare = machine_of_links(Link(1.0, 300.0, "inside"), None, 8, 2)
    with pytest.raises(ModelError, match="no NIC for the job is known"):
        price_training(WORK, Layout(tp=8, dp=2), bare)


def test_scaling_starts_at_the_fewest_nodes_and_never_gains_from_more() -> None:
    scaleds = weak_scaling(priced(Layout(tp=8, dp=8), overlap={}))
    assert [scaled.nodes for scaled in scaleds] == [1, 2, 4, 8]
    assert scaleds[0].efficiency == 1.0
    assert [scaled.efficiency for scaled in scaleds] == sorted((scaled.efficiency for scaled in scaleds), reverse=True)
    assert [scaled.nodes for scaled in weak_scaling(priced(Layout(tp=8, pp=8), overlap={}))] == [8]


@given(
    st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.sampled_from([0, 1, 2, 3]), st.booleans(),
    st.floats(0, 1),
)  # fmt: skip
def test_more_overlap_never_slows_a_step(tp: int, pp: int, zero: int, parallel: bool, share: float) -> None:
    layout = Layout(tp=tp, pp=pp, dp=64 // tp // pp)
    more = priced(layout, zero=zero, sequence_parallel=parallel, overlap={"dp": 1.0, "tp": 1.0})
    some = priced(layout, zero=zero, sequence_parallel=parallel, overlap={"dp": share, "tp": share})
    assert more.time_us <= some.time_us * (1 + 1e-9) <= some.unhidden_us * (1 + 2e-9) + more.bubble_us
