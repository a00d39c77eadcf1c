"""Roles of communicators: by name, by the declared layout, or guessed and marked as such."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.nccl_log.rebuild.roles import RolesOfJobs, assign_roles, descriptions, role_of_name
from topodiag.model.finding import Confidence
from topodiag.model.job import Communicator, FlightRecord, Operations
from topodiag.model.layout import Layout, LayoutError, Role
from topodiag.model.layout_groups import groups_of

LOW, HIGH = Confidence.LOW, Confidence.HIGH


def communicators(*members: list[int], world: int, operations: Sequence[str] = ()) -> list[Communicator]:
    """The world, and below it one communicator per list, split together when their sizes agree."""
    groups = [Communicator(0, world, np.arange(world, dtype=np.int64))]
    for ranks, operation in zip_longest(members, operations, fillvalue=""):
        done = {0: Operations(bytes_by_collective={operation: 8})} if operation else {}
        own = np.array(ranks, np.int64)
        groups.append(Communicator(len(groups), len(ranks), own, parent=0, split=len(ranks), operations=done))
    return groups


def hosts(world: int, per_host: int = 8) -> dict[int, str]:
    return {rank: f"node{rank // per_host}" for rank in range(world)}


def several(world: int, **group: Any) -> list[list[int]]:
    """All blocks of a size at a stride, or pairs of neighbours so far apart."""
    if "pairs" in group:
        return [[rank, rank + group["apart"]] for rank in range(group["pairs"])]
    size, stride = group["size"], group["stride"]
    starts = [base for base in range(world) if base % (stride * size) < stride]
    return [[base + stride * step for step in range(size)] for base in starts]


def roles(groups: list[Communicator], world: int, layout: Layout | None = None) -> list[tuple[Role, Confidence]]:
    return [(role.role, role.role_sure) for role in assign_roles(groups, world, hosts(world), layout)]


@examples("world", "groups", "layout", "roles", "why")
def test_a_group_has_its_role(
    world: int, groups: list[Any], layout: Layout | None, roles: list[tuple[Role, Confidence, int]], why: str | None
) -> None:
    members: list[list[int]] = []
    operations: list[str] = []
    for group in groups:
        members += [group] if isinstance(group, list) else several(world, **group)
        operations += [group.get("operation", "") if isinstance(group, dict) else ""] * (len(members) - len(operations))
    own = communicators(*members, world=world, operations=operations)
    wanted = [(role, sure) for role, sure, count in roles for _ in range(count)]
    found = assign_roles(own, world, hosts(world), layout)
    assert [(role.role, role.role_sure) for role in found] == [(Role.WORLD, HIGH), *wanted]
    assert (why or "") in found[1].role_why


@examples("name", "role")
def test_a_name_says_what_a_group_is_for(name: str, role: Role | None) -> None:
    assert role_of_name(name) is role


def test_a_name_goes_before_sizes_and_layout() -> None:
    groups = communicators([0, 1], [2, 3], world=4)
    groups[1] = Communicator(1, 2, np.array([0, 1]), name="PP", parent=0)
    assert roles(groups, 4, Layout(tp=2))[1] == (Role.PP, HIGH)


def test_a_description_of_torch_is_a_name() -> None:
    record = FlightRecord(0, (), {"0": (0, 1, 2, 3), "7": (1, 0)}, {"0": "default_pg", "7": "PIPELINE_PARALLEL"})
    groups = assign_roles(communicators([0, 1], [2, 3], world=4), 4, hosts(4), described=descriptions([record]))
    assert groups[1].role is Role.PP
    assert "PIPELINE_PARALLEL" in groups[1].role_why


def test_the_order_of_the_layout_is_that_of_megatron() -> None:
    groups = groups_of(Layout(tp=2, cp=2, pp=2, ep=2), 16)
    assert groups["tp"][0].tolist() == [0, 1]
    assert groups["cp"][0].tolist() == [0, 2]
    assert groups["dp"][0].tolist() == [0, 4]
    assert groups["dp-cp"][0].tolist() == [0, 2, 4, 6]
    assert groups["pp"][0].tolist() == [0, 8]
    assert groups["ep"][0].tolist() == [0, 2]
    assert groups["expert-dp"][0].tolist() == [0, 4]


@examples("layout")
def test_a_layout_that_does_not_fit_is_refused(layout: Layout) -> None:
    with pytest.raises(LayoutError) as refusal:
        assign_roles(communicators([0, 1], world=16), 16, hosts(16), layout)
    assert "\n" not in str(refusal.value)


def test_a_layout_that_fits_one_job_of_several_leaves_the_others_a_note() -> None:
    several = RolesOfJobs(Layout(tp=3), {})
    small, why = several.assign(communicators([0, 1], world=4), 4, hosts(4), complete=True)
    assert "ranks; the job has 4" in why
    assert {communicator.role for communicator in small[1:]} == {
        role.role for role in assign_roles(small, 4, hosts(4))[1:]
    }
    fitting, why = several.assign(communicators([0, 1, 2], world=6), 6, hosts(6), complete=True)
    assert (fitting[1].role, why) == (Role.TP, "")
    several.check()


def test_a_layout_that_fits_no_job_is_refused_for_the_largest() -> None:
    several = RolesOfJobs(Layout(tp=3), {})
    for size in (4, 8, 2):
        several.assign(communicators([0, 1], world=size), size, hosts(size), complete=True)
    with pytest.raises(LayoutError, match="the job has 8"):
        several.check()


def test_a_world_size_that_was_only_counted_refutes_no_layout() -> None:
    several = RolesOfJobs(Layout(tp=3), {})
    several.assign(communicators([0, 1], world=4), 4, hosts(4), complete=False)
    several.check()


def test_a_layout_is_no_complaint_where_the_size_of_the_job_is_unknown() -> None:
    assert roles([Communicator(0, 2, np.array([0, 1]))], -1, Layout(tp=8)) == [(Role.OTHER, LOW)]


@given(st.lists(st.lists(st.integers(-1, 15), min_size=1, max_size=16), max_size=8), st.integers(-1, 20))
def test_any_groups_get_a_role_and_a_reason(members: list[list[int]], world: int) -> None:
    groups = [Communicator(i, len(ranks), np.array(ranks, np.int64)) for i, ranks in enumerate(members)]
    for role in assign_roles(groups, world, {}):
        assert role.role_why
