"""`ethtool -i`: driver, firmware and function, and whose they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.network.ethtool import EthtoolDriver

MLX5 = """\
driver: mlx5_core
version: 24.10-1.1.4
firmware-version: 28.41.1000 (MT_0000000838)
expansion-rom-version:
bus-info: 0000:18:00.0
supports-statistics: yes
"""
CAPTURED = Item("ethtool-i-ens1", "ethtool-driver", "commands/x.txt", argv=("ethtool", "-i", "ens1"))


def filled(text: str, item: Item | None = None) -> NodeDraft:
    return draft_by(EthtoolDriver(), Blob("driver.txt", text.encode(), item))


def values(entity: Entity) -> dict[str, object]:
    return {name: offers[0].value for name, offers in entity.offers.items()}


def test_the_captured_command_names_the_interface() -> None:
    draft = filled(MLX5, CAPTURED)
    found = values(draft.netdev("ens1"))
    assert (found["driver"], found["firmware"], found["bus_id"]) == ("mlx5_core", "28.41.1000", "0000:18:00.0")
    assert list(draft.entities("nic")) == []


def test_the_echoed_command_of_a_paste_names_the_interface() -> None:
    other = MLX5.replace("18:00.0", "29:00.0")
    draft = filled(f"$ ethtool -i eth0\n{MLX5}\nroot@gpu1:~# ethtool -i eth1\n{other}")
    assert [values(draft.netdev(name))["bus_id"] for name in ("eth0", "eth1")] == ["0000:18:00.0", "0000:29:00.0"]


def test_without_a_name_the_facts_go_to_the_nic_of_the_function() -> None:
    draft = filled(MLX5)
    assert values(draft.nic(bus_id="0000:18:00.0")) == {
        "driver": "mlx5_core",
        "firmware": "28.41.1000",
        "board_id": "MT_0000000838",
    }
    assert list(draft.entities("netdev")) == []


def test_ip_over_infiniband_has_the_driver_below_it() -> None:
    text = MLX5.replace("driver: mlx5_core", "driver: mlx5_core[ib_ipoib]")
    assert values(filled(text, CAPTURED).netdev("ens1"))["driver"] == "mlx5_core"


def test_a_firmware_that_is_not_available_is_no_reading() -> None:
    found = values(filled(MLX5.replace("28.41.1000 (MT_0000000838)", "N/A"), CAPTURED).netdev("ens1"))
    assert (found["firmware"], found["driver"]) == (None, "mlx5_core")


def test_only_its_own_form_is_recognised() -> None:
    assert EthtoolDriver().recognises(MLX5)
    assert not EthtoolDriver().recognises("driver: mlx5_core\nversion: 24.10\n")
    assert not EthtoolDriver().recognises("Settings for eth0:\n\tSpeed: 100000Mb/s\n")


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30))
def test_a_bad_value_loses_only_that_value(junk: str) -> None:
    found = values(filled(MLX5.replace("0000:18:00.0", junk), CAPTURED).netdev("ens1"))
    assert (found["driver"], found["firmware"]) == ("mlx5_core", "28.41.1000")
