"""The ranks of one group, by arithmetic, against the groups of all ranks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.model.layout import Layout, LayoutError
from topodiag.model.layout_groups import groups_of

SIZES = st.sampled_from((1, 2, 3, 4))


def test_an_open_data_dimension_counts_as_one() -> None:
    assert (Layout(tp=8).world, Layout(tp=8).filled.dp, Layout(tp=8, dp=4).filled.dp) == (8, 1, 4)
    assert Layout(tp=8).for_world(64).world == 64


def test_the_first_dimension_of_the_order_has_neighbouring_ranks() -> None:
    layout = Layout(tp=2, pp=2, dp=4, order="tp-pp-dp")
    assert layout.dense_order == ("tp", "pp", "dp", "cp")
    assert list(layout.group("tp", 6)) == [6, 7]
    assert list(layout.group("pp")) == [0, 2]
    assert list(layout.group("dp", 1)) == [1, 5, 9, 13]


def test_of_groups_that_do_not_divide_a_domain_the_one_over_most_domains_is_the_worst() -> None:
    assert list(Layout(tp=6, dp=4).worst("tp", 8)) == [6, 7, 8, 9, 10, 11]


def test_shards_are_neighbours_among_the_replicas() -> None:
    layout = Layout(tp=2, dp=4)
    assert (layout.shards(2), layout.shard_replicas(2)) == ((0, 2), (0, 4))
    with pytest.raises(LayoutError, match="a shard group of 3 does not divide cp x dp = 4"):
        layout.shards(3)


@given(tp=SIZES, cp=SIZES, pp=SIZES, dp=SIZES, ep=st.sampled_from((2, 3, 4)))
def test_experts_are_groups_of_the_expert_grid(tp: int, cp: int, pp: int, dp: int, ep: int) -> None:
    layout = Layout(tp=tp, pp=pp, dp=dp, cp=cp, ep=ep)
    if cp * dp % ep:
        with pytest.raises(LayoutError, match="does not divide"):
            groups_of(layout, layout.world)
        return
    listed = groups_of(layout, layout.world)
    assert list(layout.experts()) in listed["ep"].tolist()
    if cp * dp > ep:
        assert list(layout.expert_replicas()) in listed["expert-dp"].tolist()
    if cp > 1 and dp > 1:
        assert list(layout.replicas()) in listed["dp-cp"].tolist()
