"""PCIe in numbers: speeds as tools print them, and the registers of a config space."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.config_space import config
from tests.tables import examples, parts
from topodiag.evidence.host.pcie import LIMITED_CONFIG, NO_ACS, gen_of_speed, read_config


@examples("text", "gen")
def test_a_speed_in_any_kernel_or_lspci_spelling_is_a_generation(text: str, gen: int | None) -> None:
    assert gen_of_speed(text) == gen


REASONS = {"none": NO_ACS, "limited": LIMITED_CONFIG, "": ""}


@examples("space", "wanted")
def test_a_config_space_tells_its_registers(space: dict[str, Any], wanted: dict[str, Any]) -> None:
    """The space has an ACS control register where its row does not say "null" for it."""
    read = read_config(bytes(config(**{name: None if own == "null" else own for name, own in space.items()})))
    reasons = {name: REASONS.get(own, own) for name, own in wanted.items() if name.endswith("_why")}
    assert parts(read, wanted | reasons) == wanted | reasons


def test_an_express_function_seen_without_its_extended_space_may_have_acs() -> None:
    short = read_config(bytes(config(size=256)))
    assert short.port_type == "downstream"
    assert short.acs_why not in ("", NO_ACS, LIMITED_CONFIG)


def test_a_bridge_without_express_is_a_pci_bridge() -> None:
    data = bytearray(256)
    data[0], data[0x0E] = 0x86, 0x01
    assert read_config(bytes(data)).port_type == "pci-bridge"
    assert read_config(bytes(data)).acs_why == NO_ACS


def test_a_device_off_the_bus_reads_all_ones_and_tells_nothing() -> None:
    read = read_config(b"\xff" * 4096)
    assert (read.acs, read.port_type, read.lost) == (None, None, True)
    assert "does not answer" in read.acs_why


def test_loops_in_either_list_of_capabilities_end() -> None:
    legacy = config()
    legacy[0x40:0x42] = bytes([0x05, 0x40])
    extended = config(acs=None)
    extended[0x100:0x104] = (0x0001 | 2 << 16 | 0x100 << 20).to_bytes(4, "little")
    assert read_config(bytes(legacy)).port_type is None
    assert read_config(bytes(extended)).acs is None
    assert read_config(bytes(extended)).acs_why != NO_ACS


@given(st.binary(max_size=600))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    read = read_config(data)
    assert (read.acs is None) == bool(read.acs_why)
    assert (read.port_type is None) == bool(read.port_type_why)


@given(st.data())
def test_a_damaged_config_space_is_read_without_an_error(data: st.DataObject) -> None:
    damaged = config()
    for at in data.draw(st.lists(st.sampled_from([0x06, 0x0E, 0x34, 0x41, 0x42, 0x102, 0x103, 0x14A, 0x14B]))):
        damaged[at] = data.draw(st.integers(0, 255))
    read = read_config(bytes(damaged))
    assert read.acs is None or 0 <= read.acs <= 0xFFFF
