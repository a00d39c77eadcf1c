"""Each mend puts its own cause into a machine as built, as a source shows it, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verdict.pricing.machines import bus_of, finding, host, tree
from topodiag.model.finding import Cost
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.changes import down, nets_of, off, rate, remove, width, with_values
from topodiag.verdict.pricing.edits import canonical, nvlinks_by_gpu, rates, with_less, with_nets
from topodiag.verdict.pricing.mend import CannotError, HostGround, Machine, Mend, View
from topodiag.verdict.pricing.registry import MENDS, NO_NUMBER, mend_of


def inflicted(check: str, on: HostGround, **parts: Any) -> Machine:
    mend = mend_of(check)
    assert mend is not None
    return mend.inflict(on.built, on, finding(check, **parts))


def test_each_check_has_one_mend_or_a_reason_for_none() -> None:
    assert not set(MENDS) & set(NO_NUMBER) - {"PCI004"}
    assert all(isinstance(mend := mend_of(check), Mend) and mend.__doc__ for check in MENDS)


@pytest.mark.parametrize("check", ["NVL001", "NVL004", "TOP004"])
def test_nvlinks_are_those_that_the_source_shows(check: str) -> None:
    shown = host(down("nvlink:GPU3:6"))
    assert inflicted(check, shown, gpus=("GPU3",)).tree == shown.views[0].tree


def test_nvlinks_of_another_gpu_are_not_this_cause() -> None:
    with pytest.raises(CannotError, match="shows how many links are left"):
        inflicted("NVL001", host(down("nvlink:GPU3:6")), gpus=("GPU5",))


def test_links_that_are_all_there_and_slow_set_the_pace_of_all() -> None:
    machine = inflicted("NVL002", host(), gpus=("GPU3",), cost=Cost(share=0.5))
    assert (machine.tree, machine.pace) == (tree(), 0.5)


def test_a_fabric_that_is_not_ready_leaves_no_nvlink() -> None:
    links = nvlinks_by_gpu(inflicted("NVL005", host()).tree)
    assert set(links) == {bus_of(dev) for dev in range(8)}
    assert not any(links.values())


def test_a_narrow_link_that_nccl_sees_is_in_its_tree() -> None:
    shown = host(width("GPU5=4"))
    machine = inflicted("PCI001", shown, gpus=("GPU5",), cost=Cost(share=0.75))
    assert (machine.tree, machine.pace) == (shown.views[0].tree, 1.0)


def test_a_narrow_link_that_nccl_does_not_see_sets_the_pace() -> None:
    machine = inflicted("PCI001", host(), nics=("mlx5_5",), cost=Cost(share=0.75))
    assert (machine.tree, machine.pace) == (tree(), 0.25)


def test_a_narrow_link_of_unknown_speed_has_no_number() -> None:
    with pytest.raises(CannotError, match="speed of the link"):
        inflicted("PCI001", host(), nics=("mlx5_5",))


def test_a_gpus_narrow_link_costs_nothing_where_all_stays_on_nvlink() -> None:
    assert inflicted("PCI001", host(), gpus=("GPU5",), cost=Cost(share=0.75)).pace == 1.0


def test_peer_to_peer_that_is_refused_is_off() -> None:
    assert dict(inflicted("P2P001", host()).env) == {"NCCL_P2P_DISABLE": "1"}


@pytest.mark.parametrize("check", ["NIC001", "NIC005", "NET003"])
def test_a_nic_that_no_source_shows_is_gone(check: str) -> None:
    machine = inflicted(check, host(remove("mlx5_4")), nics=("mlx5_4",))
    assert nets_of(machine.tree) == [f"mlx5_{dev}" for dev in range(8) if dev != 4]


def test_a_nic_that_is_not_named_is_the_one_that_is_not_shown() -> None:
    assert "mlx5_6" not in nets_of(inflicted("NIC005", host(remove("mlx5_6"))).tree)


def test_a_nic_is_named_by_its_place_on_the_bus_as_well() -> None:
    assert "mlx5_4" not in nets_of(inflicted("NIC005", host(remove("mlx5_4")), nics=("0000:54:00.0",)).tree)


def test_a_slow_port_has_the_rate_that_is_shown() -> None:
    machine = inflicted("NIC002", host(rate("mlx5_2=200")), nics=("mlx5_2",))
    assert rates(machine.tree) == {f"mlx5_{dev}": 200000 if dev == 2 else 400000 for dev in range(8)}


def merged(of: Element) -> Element:
    """The tree as NCCL prints it where it merged mlx5_2 and mlx5_3."""
    joined = {"name": "mlx5_2+mlx5_3", "speed": "800000"}
    return with_nets(
        with_less(of, {"mlx5_3"}), lambda net: with_values(net, joined if net.get("name") == "mlx5_2" else {})
    )


def test_ports_of_a_virtual_nic_are_shown_and_none_is_lost() -> None:
    for check in ("NIC005", "NIC002"):
        with pytest.raises(CannotError, match="which NICs are left"):
            inflicted(check, host(edit=merged), nics=("mlx5_2",))


def test_a_virtual_nic_keeps_the_ports_that_are_left() -> None:
    built = HostGround("n2", Machine(merged(tree())), (View(tree(remove("mlx5_3"), rate("mlx5_2=200")), "a capture"),))
    machine = inflicted("NIC005", built, nics=("mlx5_2", "mlx5_3"))
    assert rates(machine.tree) == {f"mlx5_{dev}": 200000 if dev == 2 else 400000 for dev in range(8) if dev != 3}
    assert "mlx5_2+mlx5_3" not in nets_of(machine.tree)


def test_a_choice_of_nics_takes_single_ports_of_a_virtual_nic() -> None:
    on = HostGround("n2", Machine(merged(tree())), (), {"NCCL_IB_HCA": "^mlx5_3"})
    machine = inflicted("ENV001", on, settings=(("NCCL_IB_HCA", None),))
    assert rates(machine.tree) == {f"mlx5_{dev}": 400000 for dev in range(8) if dev != 3}


def test_a_port_that_is_down_now_counts_where_nccl_saw_it_before() -> None:
    assert "mlx5_1" not in nets_of(inflicted("NIC001", host(), nics=("mlx5_1",)).tree)


def test_nics_that_every_source_shows_are_no_cause() -> None:
    with pytest.raises(CannotError, match="which NICs are left"):
        inflicted("NIC005", host(), nics=("mlx5_1",))


def test_sockets_take_the_place_of_all_nics() -> None:
    machine = inflicted("NET001", host())
    assert (len(nets_of(machine.tree)), machine.network) == (1, "sockets")


def test_gpudirect_is_off_at_every_nic_and_gpu() -> None:
    machine = inflicted("GDR001", host())
    assert {node.get("gdr") for node in machine.tree.walk() if node.tag in ("gpu", "net")} == {"0"}


def test_a_setting_is_put_back_as_it_was_given() -> None:
    given = {"NCCL_NVLS_ENABLE": "0", "NCCL_DEBUG": "INFO"}
    machine = inflicted("ENV001", host(given=given), message="NCCL_NVLS_ENABLE=0: no reduction in the switches")
    assert dict(machine.env) == {"NCCL_NVLS_ENABLE": "0"}


def test_a_setting_that_is_not_in_force_here_changes_nothing() -> None:
    on = host()
    assert inflicted("ENV001", on, settings=(("NCCL_IB_DISABLE", None),)) == on.built


def test_a_choice_of_nics_takes_the_others_away() -> None:
    on = host(given={"NCCL_IB_HCA": "mlx5_0"})
    assert nets_of(inflicted("ENV001", on, settings=(("NCCL_IB_HCA", None),)).tree) == ["mlx5_0"]


@pytest.mark.parametrize(("name", "value"), [("NCCL_IB_DISABLE", "1"), ("NCCL_NET", "Socket")])
def test_a_setting_that_takes_rdma_away_leaves_sockets(name: str, value: str) -> None:
    assert inflicted("ENV001", host(given={name: value}), settings=((name, None),)).network == "sockets"


def test_a_wrong_file_is_what_nccl_makes_of_it() -> None:
    shown = host(width("GPU5=4"), remove("mlx5_0"))
    assert inflicted("TOP002", shown).tree == shown.views[0].tree


def test_a_wrong_file_that_nobody_has_has_no_number() -> None:
    bare = HostGround("n2", Machine(tree()))
    with pytest.raises(CannotError, match="topology file"):
        inflicted("TOP002", bare)


def test_hosts_that_differ_by_their_guids_alone_are_one_machine() -> None:
    other = with_nets(tree(), lambda net: with_values(net, {"guid": hex(int(net.get("guid") or "0", 16) + 0xABC)}))
    assert other != tree()
    assert canonical(other) == canonical(tree())


def test_features_off_by_a_change_are_settings_and_no_part() -> None:
    assert tree(off("gdr")) == tree()
