"""Ranks on the slots of a cluster: by a launcher's rule, or as a file names hosts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.model.cluster import Cluster, RankHosts
from topodiag.model.errors import TopodiagError
from topodiag.placement.seats import RULES, assign, by_rule


def cluster(*names: str, free: list[list[int]] | None = None, gpus: int = 2) -> Cluster:
    usable = np.ones((len(names), gpus), bool)
    if free is not None:
        usable[:] = False
        for node, numbers in enumerate(free):
            usable[node, numbers] = True
    return Cluster(names, usable, np.arange(len(names)), (), 1.0, 400.0)


def named(*hosts: str, gpus: list[int] | None = None, whole: bool = False) -> RankHosts:
    distinct = tuple(dict.fromkeys(hosts))
    host = np.asarray([distinct.index(host) for host in hosts], np.int64)
    gpu = np.full(len(hosts), -1, np.int64) if gpus is None else np.asarray(gpus, np.int64)
    return RankHosts("file", distinct, host, gpu, whole)


def test_block_goes_node_by_node_and_cyclic_takes_nodes_in_turn() -> None:
    fabric = cluster("n1", "n2", "n3")
    assert by_rule(fabric, "block", 4).slot.tolist() == [0, 1, 2, 3]
    assert by_rule(fabric, "cyclic").slot.tolist() == [0, 2, 4, 1, 3, 5]


def test_cyclic_passes_over_nodes_that_are_full() -> None:
    assert by_rule(cluster("n1", "n2", free=[[1], [0, 1]]), "cyclic").slot.tolist() == [1, 2, 3]


def test_alphabetical_puts_node10_before_node9() -> None:
    fabric = cluster("node9", "node10")
    assert by_rule(fabric, "alphabetical").slot.tolist() == [2, 3, 0, 1]


def test_ranks_of_a_node_take_its_free_gpus_in_their_order() -> None:
    fabric = cluster("a", "b", free=[[1], [0, 1]])
    assert assign(fabric, named("b", "a", "b")).slot.tolist() == [2, 1, 3]


def test_named_gpus_are_taken_and_the_rest_fills_up() -> None:
    assert assign(cluster("a", gpus=4), named("a", "a", "a", gpus=[-1, 0, -1])).slot.tolist() == [1, 0, 2]


def test_whole_hosts_give_all_their_free_gpus() -> None:
    fabric = cluster("a", "b", free=[[1], [0, 1]])
    assert assign(fabric, named("b", "a", whole=True)).slot.tolist() == [2, 3, 1]


def test_a_host_is_known_by_the_first_part_of_its_name() -> None:
    assert assign(cluster("a.hpc", "b.hpc"), named("b", "a.other")).slot.tolist() == [2, 0]


@examples("hosts", "gpus", "world", "says")
def test_what_cannot_be_seated_is_one_clear_line(
    hosts: list[str], gpus: list[int] | None, world: int | None, says: str
) -> None:
    with pytest.raises(TopodiagError) as caught:
        assign(cluster("a", "b"), named(*hosts, gpus=gpus), world or 0)
    assert says in str(caught.value)


def test_more_ranks_than_gpus_is_one_clear_line() -> None:
    with pytest.raises(TopodiagError, match="5 ranks do not fit on 4 usable GPUs of 2 nodes"):
        by_rule(cluster("a", "b"), "block", 5)


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=6), st.sampled_from(RULES))
def test_a_rule_seats_every_rank_on_its_own_free_gpu(rows: list[list[bool]], rule: str) -> None:
    usable = np.asarray(rows)
    fabric = Cluster(tuple(f"n{n}" for n in range(len(rows))), usable, np.arange(len(rows)), (), 1.0, 400.0)
    assert sorted(by_rule(fabric, rule).slot.tolist()) == fabric.free_slots().tolist()


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=5), st.randoms())
def test_names_of_slots_seat_the_same_slots(rows: list[list[bool]], random: object) -> None:
    usable = np.asarray(rows)
    fabric = Cluster(tuple(f"n{n}" for n in range(len(rows))), usable, np.arange(len(rows)), (), 1.0, 400.0)
    slots = fabric.free_slots().tolist()
    random.shuffle(slots)  # type: ignore[attr-defined]
    if slots:
        ranks = named(*(fabric.names[slot // 3] for slot in slots), gpus=[slot % 3 for slot in slots])
        assert assign(fabric, ranks).slot.tolist() == slots
