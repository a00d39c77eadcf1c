"""Columns of connections, and the dimensions of parallel jobs."""

from collections import Counter
from dataclasses import replace

import click
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cost.test_model_step import NODES, WORK
from topodiag.checks.registry import check_class
from topodiag.cli import cli
from topodiag.cost.step import price_step
from topodiag.model.connections import COLUMNS, Connections, distinct, no_connections, packed
from topodiag.model.layout import (
    BY_NAME,
    DIMENSIONS,
    NAMES,
    ORDER,
    ROLE_WORDS,
    Dimension,
    Divides,
    Layout,
    Role,
    of_label,
)
from topodiag.model.layout_groups import LayoutGroups, groups_of

VIAS = ("P2P/CUMEM", "NET/IB/GDRDMA", "SHM/direct/direct")
ROWS = st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3), st.integers(0, 2), st.integers(0, 2),
                          st.integers(1, 9)), max_size=40)  # fmt: skip
WIDE = st.integers(-(1 << 63), (1 << 63) - 1)


def connections(rows: list[tuple[int, int, int, int, int]]) -> Connections:
    """From (host, peer host, via, direction, lines)."""
    host, peer_host, via, direction, count = (np.array([row[i] for row in rows], np.int8) for i in range(5))
    made = replace(no_connections(), **{name: np.arange(len(rows)).astype(np.int16) for name in COLUMNS})
    return replace(
        made, host=host, peer_host=peer_host, via=via, direction=direction, count=count, vias=VIAS, hosts=tuple("abcd")
    )


@given(ROWS, st.integers(1, 50))
def test_batches_of_any_size_are_all_entries_in_their_order(
    rows: list[tuple[int, int, int, int, int]], size: int
) -> None:
    made = connections(rows)
    batches = list(made.batches(size))
    assert [batch.first for batch in batches] == list(range(0, len(rows), size))
    for name in COLUMNS:
        assert [value for batch in batches for value in getattr(batch, name).tolist()] == getattr(made, name).tolist()


@given(ROWS)
def test_flows_count_what_hosts_say_to_each_other(rows: list[tuple[int, int, int, int, int]]) -> None:
    entries, lines, first = Counter[tuple[int, ...]](), Counter[tuple[int, ...]](), dict[tuple[int, ...], int]()
    for number, (*key, count) in enumerate(rows):
        entries[tuple(key)] += 1
        lines[tuple(key)] += count
        first.setdefault(tuple(key), number)
    flows = connections(rows).flows
    columns = (flows.host, flows.peer_host, flows.via, flows.direction, flows.entries, flows.lines, flows.first)
    pairs = list(zip(*(column.tolist() for column in columns), strict=True))
    assert pairs == [(*key, entries[key], lines[key], first[key]) for key in first]


@given(st.lists(st.tuples(st.integers(-1, 2), WIDE | st.integers(0, 3), WIDE | st.integers(0, 3))))
def test_distinct_rows_are_those_that_are_first_of_their_kind(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[i] for row in rows], np.int64) for i in range(3)]
    first, counts = distinct(*columns)
    places: dict[tuple[int, int, int], int] = {}
    for place, row in enumerate(rows):
        places.setdefault(row, place)
    assert first.tolist() == list(places.values())
    assert counts.tolist() == [Counter(rows)[row] for row in places]


@given(st.lists(st.tuples(WIDE | st.integers(-2, 3), WIDE | st.integers(0, 3), st.integers(0, 2)), min_size=1))
def test_packed_numbers_are_ordered_as_the_rows_are(rows: list[tuple[int, int, int]]) -> None:
    key, size = packed([np.array([row[i] for row in rows], np.int64) for i in range(3)])
    assert [rows[at] for at in np.argsort(key, kind="stable").tolist()] == sorted(rows)
    assert int(key.max()) < size


def test_narrow_columns_do_not_overflow() -> None:
    host = np.array([127, 127, -128], np.int8)
    assert [column.tolist() for column in distinct(host, host)] == [[0, 2], [2, 1]]


def test_no_connections_have_no_flows_and_no_batches() -> None:
    assert len(no_connections().flows.host) == 0
    assert list(no_connections().batches()) == []


# --- the table of parallel dimensions: whole, without contradiction, and known to every part that has to know it


def layout_with(name: str) -> Layout:
    """Eight nodes of eight GPUs with this dimension of size 2 and data parallelism for what it leaves."""
    sizes = {} if name == "dp" else {name: 2}
    return Layout(**sizes, order=ORDER).for_world(64)


def named(dimension: Dimension) -> str:
    return dimension.name


@pytest.mark.parametrize("dimension", DIMENSIONS, ids=named)
def test_no_dimension_is_priced_at_nothing(dimension: Dimension) -> None:
    work = replace(WORK, experts=8) if dimension.divides is Divides.EXPERTS else WORK
    step = price_step(work, layout_with(dimension.name), NODES)
    total, _ = step.dimension_us(dimension.name)
    assert total > 0


@pytest.mark.parametrize("dimension", DIMENSIONS, ids=named)
def test_groups_of_a_dimension_have_its_role(dimension: Dimension) -> None:
    families = groups_of(layout_with(dimension.name), 64)
    assert families[dimension.name].shape[1] == layout_with(dimension.name).all_sizes[dimension.name]
    assert LayoutGroups.role(dimension.name) is dimension.role


def test_each_role_but_all_ranks_and_no_known_use_is_one_dimension() -> None:
    assert {dimension.role for dimension in DIMENSIONS} == set(Role) - {Role.WORLD, Role.OTHER}
    assert len({dimension.role for dimension in DIMENSIONS}) == len(DIMENSIONS)


def test_a_word_says_one_role() -> None:
    assert len(ROLE_WORDS) == sum(len(dimension.words) for dimension in DIMENSIONS)
    assert all(ROLE_WORDS[dimension.name] is dimension.role for dimension in DIMENSIONS)


@pytest.mark.parametrize("dimension", [dimension for dimension in DIMENSIONS if dimension.together], ids=named)
def test_what_must_stay_together_is_watched_by_a_check_that_exists(dimension: Dimension) -> None:
    assert check_class(dimension.split_check).id == dimension.split_check


@pytest.mark.parametrize("command", [("logs",), ("model", "step"), ("place", "solve"), ("place", "audit")])
def test_every_command_that_takes_a_layout_has_each_size(command: tuple[str, ...]) -> None:
    found: click.Command | None = cli
    for name in command:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), name)
    options = {option for param in found.params for option in param.opts}
    assert {f"--{name}" for name in NAMES} <= options


def test_a_label_names_its_dimension_by_its_first_word() -> None:
    assert of_label("ep (4)") is BY_NAME["ep"]
    assert of_label("expert dp") is None
    assert [dimension.name for dimension in DIMENSIONS if dimension.divides is Divides.BATCH] == ["dp"]
