"""Ranks exchanged, and declared places against those that a log shows."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.layout.rank_files import ranks_on
from topodiag.model.cluster import RankHosts
from topodiag.placement.declared import compare_layouts
from topodiag.placement.exchange import exchanges


def after(labels: list[int], pairs: list[tuple[int, int]]) -> list[int]:
    numbers = list(labels)
    for one, other in pairs:
        numbers[one], numbers[other] = numbers[other], numbers[one]
    return numbers


def runs(labels: list[int]) -> int:
    return 1 + int((np.diff(labels) != 0).sum()) if labels else 0


def test_what_lies_in_order_needs_no_exchange() -> None:
    assert exchanges([0, 0, 1, 1, 2]) == []
    assert exchanges([]) == []


def test_two_of_sixty_four_nodes_are_one_exchange() -> None:
    labels = np.arange(64) // 8
    labels[[3, 40]] = labels[[40, 3]]
    assert exchanges(labels) == [(3, 40)]


def test_three_in_a_circle_are_two_exchanges() -> None:
    labels = np.arange(30) // 10
    labels[[1, 11, 21]] = labels[[11, 21, 1]]
    assert len(exchanges(labels)) == 2


def test_an_order_that_is_another_one_altogether_is_no_exchange() -> None:
    assert exchanges(np.arange(512) % 8) == []


@given(st.lists(st.integers(0, 5), max_size=40))
def test_exchanges_leave_each_kind_side_by_side(labels: list[int]) -> None:
    numbers = after(labels, exchanges(labels))
    assert sorted(numbers) == sorted(labels)
    assert runs(numbers) == len(set(labels))


# --- a declared layout beside the one that ran: ranks by host and GPU, and the room that a hostfile declares


def on(hosts: str, gpus: list[int] | None = None, *, whole: bool = False) -> RankHosts:
    return ranks_on("hosts", hosts.split(), gpus, whole=whole)


@examples("declared", "ran", "wanted")
def test_what_is_declared_beside_what_ran(declared: list[Any], ran: list[Any], wanted: dict[str, Any]) -> None:
    """Hosts of the ranks in their order, perhaps with their GPUs; `whole` hosts are declared without numbers. Ranks
    that ran `elsewhere` have both hosts."""
    *parts, whole = declared if declared[-1] == "whole" else [*declared, ""]
    ranks = compare_layouts(on(*parts, whole=bool(whole)), on(*ran))
    shown = {
        "differs": ranks.differs, "difference": ranks.difference, "compared": ranks.compared,
        "elsewhere": [[rank.rank, rank.declared, rank.ran] for rank in ranks.elsewhere], "hosts": list(ranks.hosts),
        "undeclared": ranks.undeclared,
    }  # fmt: skip
    assert {name: shown[name] for name in wanted} == wanted


def test_no_ranks_are_no_difference() -> None:
    empty = RankHosts("hosts", (), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert not compare_layouts(on("a"), empty).differs
