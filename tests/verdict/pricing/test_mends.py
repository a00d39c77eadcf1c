"""What is mended by a cause's fix, and the price of it in agreement with what was measured."""

from typing import Any

import pytest

from tests.tables import examples
from tests.verdict.pricing.machines import bus_of, finding, host, run, tree
from topodiag.model.finding import Cost
from topodiag.model.nccl_tree import Element
from topodiag.model.verdict import Agreement
from topodiag.nccl.topo.changes import down, nets_of, off, rate, remove, width, with_nets, with_values
from topodiag.verdict.pricing.agreement import as_another_algorithm, compare, measured_of, same_as_table
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


# --- predicted against measured: the proof where they agree, what is left where they do not


@examples("whole", "predicted", "measured", "wanted")
def test_within_15_percent_they_agree(whole: float, predicted: float, measured: float, wanted: Agreement) -> None:
    compared = compare(whole, predicted, measured, "the cause")
    assert compared.agreement is wanted, compared.says
    assert f"measured {measured:.0f}" in compared.says.replace(".0", "")


@examples("figures", "cause", "bound", "agreement", "begins", "ends")
def test_how_a_prediction_and_a_measurement_are_compared(
    *,
    figures: tuple[float, float, float],
    cause: str | None,
    bound: list[Any] | None,
    agreement: Agreement | None,
    begins: str | None,
    ends: str | None,
) -> None:
    """The whole, the prediction and the measurement in GB/s. A prediction may be an upper bound: by the part of it that
    is reached at least, and by what NCCL's model leaves out."""
    compared = compare(*figures, cause or "the cause", *(bound or ()))
    assert agreement is None or compared.agreement is agreement
    assert compared.says.startswith(begins or "")
    assert compared.says.endswith(ends or "")


REACHED = {"Tree": 68.2, "Ring": 49.6, "NVLS": 20.0}


def test_what_another_algorithm_reaches_is_said_where_the_prediction_misses() -> None:
    assert as_another_algorithm(68.2, 47.3, "Tree", REACHED) == (
        "Ring reaches 49.6 GB/s on these machines, where NCCL's model takes Tree: NCCL_DEBUG_SUBSYS=TUNING shows which"
        " one ran"
    )


@pytest.mark.parametrize("measured", [66.0, 60.0, 30.0, 90.0])
def test_a_measurement_that_agrees_or_fits_no_algorithm_asks_for_none(measured: float) -> None:
    assert as_another_algorithm(68.2, measured, "Tree", REACHED) == ""


def test_a_job_that_nobody_measured_is_not_measured() -> None:
    assert measured_of(run("n1"), "busbw") is None
    quantity = measured_of(run("n1", "n2", gbs=285.6), "busbw")
    assert (quantity.value, quantity.source) == (285.6, "nccl-tests at 16 GiB on 2 nodes, run.txt")


def test_nccls_own_table_in_the_log_confirms_or_denies() -> None:
    table = {("AllReduce", "NVLS_TREE", "SIMPLE"): (66.8, 215.4), ("AllReduce", "RING", "SIMPLE"): (131.6, 0.0)}
    same = same_as_table(403.6, "NVLSTree/Simple", table, "AllReduce", 1.875)
    assert same == "NCCL's own table in the log says the same: 403.9 GB/s of NVLSTree/Simple"
    assert "461.2 are modelled" in same_as_table(461.2, "NVLSTree/Simple", table, "AllReduce", 1.875)
    assert not same_as_table(1.0, "Ring/Simple", table, "AllReduce", 1.875)
