"""A declared layout beside the one that ran: ranks by host and GPU, room that a hostfile declares, prices of both."""

import numpy as np
import pytest

from topodiag.evidence.layout.rank_files import ranks_on
from topodiag.model.rank_hosts import RankHosts
from topodiag.placement.declared import MovedRank, compare_layouts


def on(*hosts: str, gpus: list[int] | None = None, whole: bool = False) -> RankHosts:
    return ranks_on("hosts", list(hosts), gpus, whole=whole)


def test_the_same_hosts_in_the_same_order_are_no_difference() -> None:
    ranks = compare_layouts(on("a", "a", "b", "b"), on("a", "a", "b", "b"))
    assert (ranks.differs, ranks.difference, ranks.compared) == (False, "", 4)


def test_a_rank_on_another_host_is_named_with_both() -> None:
    ranks = compare_layouts(on("a", "a", "b", "b"), on("a", "b", "a", "b"))
    assert ranks.elsewhere == (MovedRank(1, "a", "b"), MovedRank(2, "b", "a"))
    assert ranks.difference == "2 of 4 ranks ran on another host than hosts declares"
    assert ranks.hosts == ()


def test_a_host_that_nobody_declared_is_named() -> None:
    assert compare_layouts(on("a", "b"), on("a", "c")).hosts == ("c",)


def test_a_short_name_is_the_same_host() -> None:
    assert not compare_layouts(on("a.cluster", "b.cluster"), on("a", "b")).differs


def test_hosts_without_numbers_declare_as_many_ranks_as_ran() -> None:
    whole = on("b", "a", whole=True)
    assert compare_layouts(whole, on("b", "b", "b", "a")).difference == ""
    assert compare_layouts(whole, on("a", "b", "b", "b")).elsewhere == (MovedRank(0, "b", "a"), MovedRank(3, "a", "b"))


def test_room_that_was_not_used_is_no_difference() -> None:
    assert not compare_layouts(on("a", "a", "b", "b"), on("a", "a")).differs


def test_ranks_beyond_those_declared_are_counted() -> None:
    ranks = compare_layouts(on("a"), on("a", "b", "b"))
    assert (ranks.undeclared, ranks.difference) == (2, "hosts declares 1 rank, and 3 ran")


@pytest.mark.parametrize(("ran", "differs"), [([0, 1], False), ([1, 0], True), ([-1, -1], False)])
def test_gpus_are_compared_where_both_are_known(ran: list[int], differs: bool) -> None:
    ranks = compare_layouts(on("a", "a", gpus=[0, 1]), on("a", "a", gpus=ran))
    assert ranks.differs is differs
    if differs:
        assert ranks.difference == "2 of 2 ranks ran on another GPU than hosts declares"


def test_no_ranks_are_no_difference() -> None:
    empty = RankHosts("hosts", (), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert not compare_layouts(on("a"), empty).differs
