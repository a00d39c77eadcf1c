"""`mlxlink`: state, rate, counters and the firmware's word on the signal of one port."""

from __future__ import annotations

from tests.evidence.filled import draft_by, node_of, values
from tests.tables import texts
from topodiag.checks.nic.events import troubles
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.mlxlink import Mlxlink

TEXTS = texts(__file__)
TEXT = TEXTS["text"]


def read(text: str) -> dict[str, object]:
    [nic] = draft_by(Mlxlink(), Blob("mlxlink.txt", text.encode())).entities("nic")
    return {"name": nic.keys["rdma"]} | values(nic.child("port", 1))


def test_a_port_has_its_state_rate_counters_and_the_firmwares_word() -> None:
    assert Mlxlink().recognises(TEXT)
    assert read(TEXT.format(word="Bad signal integrity")) == {
        "name": "mlx5_5", "state": "ACTIVE", "phys_state": "LinkUp", "link_layer": "InfiniBand",
        "lanes": 4, "rate_gbps": 400.0, "signal": "Bad signal integrity", "symbol_error": 3114, "link_downed": 4,
    }  # fmt: skip


def test_no_issue_and_reasons_of_a_link_that_is_down_are_no_word_on_the_signal() -> None:
    assert "signal" not in read(TEXT.format(word="No issue was observed."))
    assert "signal" not in read(TEXT.format(word="Cable is unplugged."))


def test_a_state_of_the_firmware_is_a_logical_and_a_physical_one() -> None:
    text = TEXT.format(word="Cable is unplugged.").replace(": Active\n", ": Polling\n").replace(": LinkUp", ": Polling")
    document = read(text)
    assert (document["state"], document["phys_state"]) == ("DOWN", "Polling")


def test_ethernet_speeds_are_sums_and_a_device_of_the_firmware_tools_names_no_port() -> None:
    text = TEXT.replace("mlx5_5", "/dev/mst/mt4115_pciconf0").replace("IB-NDR", "100GbE")
    document = read(text.replace("LinkUp", "ETH_AN_FSM_ENABLE"))
    assert (document["name"], document["rate_gbps"], document["link_layer"]) == ("the port", 100.0, "Ethernet")
    assert "phys_state" not in document


def test_errors_that_remain_after_correction_are_those_of_a_poor_signal_above_the_limit() -> None:
    well = TEXT.format(word="No issue was observed.")
    assert read(well + "Effective Physical BER : 15E-255\n")["effective_ber"] == "15E-255"
    assert not troubles(node_of(well + "Effective Physical BER : 15E-255\nSymbol BER : 1E-13\n"))
    (event,) = troubles(node_of(well + "Effective Physical BER : 8E-09\nSymbol BER : 4E-12\n"))
    assert event.words == (
        "its link is up with a poor signal: Effective Physical BER 8E-09, and 1e-12 is the most of a link that is well"
    )


def test_a_port_that_nobody_names_is_told_where_it_is_the_only_one() -> None:
    text = TEXT.replace("# mlxlink -d mlx5_5 -c\n", "").format(word="Bad signal integrity")

    other = "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n"
    assert [nic.name for nic in node_of(text).nics] == ["the port"]
    assert [nic.name for nic in node_of(text, other).nics] == ["mlx5_0"]
    assert [nic.name for nic in node_of(text + text).nics] == []
