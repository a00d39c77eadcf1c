"""The table of parallel dimensions: whole, without contradiction, and known to every part that has to know it."""

from dataclasses import replace

import click
import pytest

from tests.cost.test_model_step import NODES, WORK
from topodiag.checks.registry import check_class
from topodiag.cli import cli
from topodiag.cost.step import price_step
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
