"""Each mend puts its own cause into a machine as built, as a source shows it, and nothing else."""

from typing import Any

import pytest

from tests.tables import examples
from tests.verdict.pricing.machines import bus_of, finding, host, tree
from topodiag.model.finding import Cost
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.changes import down, nets_of, off, rate, remove, width, with_nets, with_values
from topodiag.verdict.pricing.edits import canonical, nvlinks_by_gpu, rates, with_less
from topodiag.verdict.pricing.mend import CannotError, HostGround, Machine, Mend
from topodiag.verdict.pricing.registry import MENDS, NO_NUMBER, mend_of


def inflicted(check: str, on: HostGround, **parts: Any) -> Machine:
    mend = mend_of(check)
    return mend.inflict(on.built, on, finding(check, **parts))


def test_each_check_has_one_mend_or_a_reason_for_none() -> None:
    assert not set(MENDS) & set(NO_NUMBER) - {"PCI004"}
    assert all(isinstance(mend := mend_of(check), Mend) and mend.__doc__ for check in MENDS)


CHANGES = {"down": down, "rate": rate, "remove": remove, "width": width}
NICS = [f"mlx5_{dev}" for dev in range(8)]


@examples("check", "parts", "changes", "given", "wanted")
def test_what_a_fault_does_to_a_machine(
    *,
    check: str,
    parts: dict[str, Any] | None,
    changes: list[tuple[str, str]] | None,
    given: dict[str, str] | None,
    wanted: dict[str, Any],
) -> None:
    """Of a node that its source shows with these `changes`, with settings `given`: `tree` is "built" or as "shown",
    `lost` are the NICs that are gone, `rates` those that differ from 400 Gb/s; `error` is why there is no number."""
    on = host(*(CHANGES[name](text) for name, text in changes or ()), given=given or {})
    named = {name: tuple(part) if isinstance(part, list) else part for name, part in (parts or {}).items()}
    if "share" in named:
        named["cost"] = Cost(share=named.pop("share"))
    if "settings" in named:
        named["settings"] = tuple((name, None) for name in named["settings"])
    if "error" in wanted:
        with pytest.raises(CannotError, match=wanted["error"]):
            inflicted(check, on, **named)
        return
    machine = inflicted(check, on, **named)
    shown = {
        "tree": "shown" if machine.tree == on.views[0] != tree() else "built" if machine.tree == tree() else "",
        "pace": machine.pace,
        "network": machine.network,
        "env": dict(machine.env),
        "lost": [nic for nic in NICS if nic not in nets_of(machine.tree)],
        "nets": len(nets_of(machine.tree)),
        "rates": {name: mbps // 1000 for name, mbps in rates(machine.tree).items() if mbps != 400_000},
    }
    assert {name: shown[name] for name in wanted} == wanted


def test_a_fabric_that_is_not_ready_leaves_no_nvlink() -> None:
    links = nvlinks_by_gpu(inflicted("NVL005", host()).tree)
    assert set(links) == {bus_of(dev) for dev in range(8)}
    assert not any(links.values())


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
    built = HostGround("n2", Machine(merged(tree())), (tree(remove("mlx5_3"), rate("mlx5_2=200")),))
    machine = inflicted("NIC005", built, nics=("mlx5_2", "mlx5_3"))
    assert rates(machine.tree) == {f"mlx5_{dev}": 200000 if dev == 2 else 400000 for dev in range(8) if dev != 3}
    assert "mlx5_2+mlx5_3" not in nets_of(machine.tree)


def test_a_choice_of_nics_takes_single_ports_of_a_virtual_nic() -> None:
    on = HostGround("n2", Machine(merged(tree())), (), {"NCCL_IB_HCA": "^mlx5_3"})
    machine = inflicted("ENV001", on, settings=(("NCCL_IB_HCA", None),))
    assert rates(machine.tree) == {f"mlx5_{dev}": 400000 for dev in range(8) if dev != 3}


def test_gpudirect_is_off_at_every_nic_and_gpu() -> None:
    machine = inflicted("GDR001", host())
    assert {node.get("gdr") for node in machine.tree.walk() if node.tag in ("gpu", "net")} == {"0"}


def test_a_setting_that_is_not_in_force_here_changes_nothing() -> None:
    on = host()
    assert inflicted("ENV001", on, settings=(("NCCL_IB_DISABLE", None),)) == on.built


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
