"""Systems by the names that people type, and the tiers that their datasheets give."""

import pytest

from tests.tables import examples
from topodiag.cost.questions import spread_over
from topodiag.cost.tiers import LackingError, UnknownSystemError, find_system, machine, system_names, with_spine
from topodiag.hardware import catalog

ALONE = ("gh200-single-superchip",)
"""One GPU per node, and no NIC in the datasheet: nothing joins it to anything."""


@examples("typed", "name")
def test_a_system_is_found_by_what_people_type(typed: str, name: str) -> None:
    assert find_system(typed).name == name


def test_an_unknown_name_suggests_near_ones_and_one_of_several_lists_them() -> None:
    with pytest.raises(UnknownSystemError, match="no system is called 'dgx-h1000'") as unknown:
        find_system("dgx-h1000")
    assert unknown.value.near[0] == "dgx-h100"
    with pytest.raises(UnknownSystemError, match="several systems") as several:
        find_system("dgx")
    assert {"dgx-a100", "dgx-h100", "dgx-b200"} <= set(several.value.near)


@pytest.mark.parametrize("name", [name for name in system_names() if name not in ALONE])
def test_every_system_has_tiers_from_the_fastest_inside_to_the_network(name: str) -> None:
    server = machine(find_system(name), 2)
    assert server.inside in server.tiers
    assert server.domain >= server.gpus_per_node
    assert all(tier.source for tier in server.tiers)
    if server.network is not None:
        assert server.network.link.gbs <= server.network.line_gbs, "never above the wire"
        assert server.network.link.gbs <= server.inside.link.gbs


def test_every_name_finds_its_own_system() -> None:
    assert [find_system(name).name for name in system_names()] == [spec.name for spec in catalog.systems()]


def test_nics_may_be_given_and_must_be_where_the_datasheet_leaves_them_open() -> None:
    board = find_system("hgx-h100-h200-8-gpu")
    with pytest.raises(LackingError, match="--nics"):
        machine(board, 2).outside()
    assert machine(board, 2, nics=(4, 200.0)).outside().gbs == pytest.approx(12.5)


def test_a_gpu_is_chosen_where_a_system_is_sold_with_several() -> None:
    board = find_system("hgx-h100-h200-8-gpu")
    chosen = machine(board, 1, gpu="h200").gpu
    assert chosen.name == "H200"
    with pytest.raises(LackingError, match="not sold with 'b200'"):
        machine(board, 1, gpu="b200")


def test_pairs_with_bridges_meet_over_pcie() -> None:
    server = machine(find_system("NC96ads_A100_v4"), 1)
    assert (server.inside.kind, server.domain) == ("pcie", 4)
    assert [tier.gpus for tier in server.tiers if tier.kind == "nvlink"] == [2]


def test_a_placement_over_more_nodes_than_a_leaf_holds_is_carried_by_the_spine() -> None:
    fabric = with_spine(machine(find_system("dgx-h100"), 16), 4, 2.0)
    assert spread_over(fabric, 4, 8).level == "network"
    assert spread_over(fabric, 5, 8).level == "spine"


def test_an_oversubscribed_spine_carries_less() -> None:
    flat = machine(find_system("dgx-h100"), 16)
    fabric = with_spine(flat, 4, 2.0)
    assert fabric.spine.link.gbs == flat.network.link.gbs / 2
    assert fabric.spine.link.alpha_us > flat.network.link.alpha_us
    assert with_spine(flat, 16, 2.0).spine is None, "one leaf holds them all"


@pytest.mark.parametrize("name", ALONE)
def test_one_gpu_without_a_nic_asks_for_one(name: str) -> None:
    with pytest.raises(LackingError, match=r"one GPU per node.*--nics"):
        machine(find_system(name), 2)
    server = machine(find_system(name), 2, nics=(1, 400.0))
    assert (server.domain, server.spread(range(2)).nodes) == (1, 2)
