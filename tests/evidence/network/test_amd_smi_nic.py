"""AMD's adapters by `amd-smi static --nic`, and ports with the time since which they are down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud, said


def nic(number: int, state: str) -> str:
    up = state == "ACTIVE"
    return f"""NIC: {number}
        SLOT_TYPE: N/A
    DRIVER:
        NAME: ionic
        VERSION: 25.05.4.001
    PORTS:
        PORT_0:
            TYPE: Ethernet
            NETDEV: enp{number}s0
            CARRIER: {int(up)}
            LINK_STATE: {"up" if up else "down"}
    RDMA_DEVICES:
        RDMA_DEVICE_0:
            NAME: rocep{number}s0
            NODE_TYPE: CA
            PORT_0:
                NETDEV: enp{number}s0
                PORT_NUM: 1
                STATE: {state}
                ACTIVE_MTU: N/A
"""


def test_a_port_of_amds_adapter_that_is_down_is_named_with_its_device(tmp_path: Path) -> None:
    finding = first_of(tmp_path, nic(11, "DOWN"))
    assert finding["id"] == "NIC001"
    assert "rocep11s0 is DOWN" in finding["message"]


def test_beside_ports_that_are_up_one_that_is_down_leaves_open_whether_it_should_be(tmp_path: Path) -> None:
    made = said(tmp_path, nic(10, "ACTIVE") + nic(11, "DOWN") + nic(12, "ACTIVE"))
    states = [(each["name"], each["ports"][0]["state"]) for each in made["facts"]["nodes"][0]["nics"]]
    assert states == [("rocep10s0", "ACTIVE"), ("rocep11s0", "DOWN"), ("rocep12s0", "ACTIVE")]
    assert made["verdict"]["state"] == "unknown"


def test_ports_that_are_all_active_and_the_drivers_name_are_no_fault(tmp_path: Path) -> None:
    text = nic(10, "ACTIVE") + nic(11, "ACTIVE")
    assert not loud(tmp_path, text)
    assert len(said(tmp_path, text)["facts"]["nodes"][0]["nics"]) == 2


@pytest.mark.parametrize(
    "line",
    [
        "✔ accelerator-nvidia-infiniband: ok; no infiniband port issue",
        "mlx5_1 port 1 down since 2025-07-10T15:16:35Z until 2025-07-10T15:16:41Z, restored",
        "alert when mlx5_1 port 1 is down for 60 s",
    ],
)
def test_a_port_that_came_back_and_a_rule_for_alerts_are_no_port_that_is_down(line: str, tmp_path: Path) -> None:
    assert "NIC001" not in loud(tmp_path, f"✔ successfully checked cpu\n{line}\n")
