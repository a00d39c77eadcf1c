"""PCIe in numbers: speeds as tools print them, and the registers of a config space."""

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.config_space import config
from tests.tables import examples
from topodiag.evidence.host.pcie import LIMITED_CONFIG, NO_ACS, gen_of_speed, read_config


@examples("text", "gen")
def test_a_speed_in_any_kernel_or_lspci_spelling_is_a_generation(text: str, gen: int | None) -> None:
    assert gen_of_speed(text) == gen


def test_the_acs_control_register_is_read_and_never_the_capability_register() -> None:
    assert read_config(bytes(config(acs=0x1D))).acs == 0x1D
    assert read_config(bytes(config(acs=0))).acs == 0


def test_no_acs_and_acs_out_of_sight_have_different_reasons() -> None:
    without = read_config(bytes(config(acs=None)))
    unseen = read_config(bytes(config(size=64)))
    assert (without.acs, without.acs_why) == (None, NO_ACS)
    assert (unseen.acs, unseen.acs_why) == (None, LIMITED_CONFIG)
    assert unseen.port_type_why == LIMITED_CONFIG


def test_an_express_function_seen_without_its_extended_space_may_have_acs() -> None:
    short = read_config(bytes(config(size=256)))
    assert short.port_type == "downstream"
    assert short.acs_why not in ("", NO_ACS, LIMITED_CONFIG)


@examples("number", "name")
def test_the_port_type_comes_from_the_express_capability(number: int, name: str) -> None:
    assert read_config(bytes(config(port=number))).port_type == name


def test_a_bridge_without_express_is_a_pci_bridge() -> None:
    data = bytearray(256)
    data[0], data[0x0E] = 0x86, 0x01
    assert read_config(bytes(data)).port_type == "pci-bridge"
    assert read_config(bytes(data)).acs_why == NO_ACS


def test_the_link_registers_give_generation_and_width() -> None:
    read = read_config(bytes(config(link=(4, 8))))
    assert (read.gen, read.width, read.max_gen, read.max_width) == (4, 8, 5, 16)


def test_an_integrated_endpoint_has_no_link() -> None:
    read = read_config(bytes(config(port=9)))
    assert (read.port_type, read.gen, read.max_width) == ("endpoint", None, None)


def test_a_device_off_the_bus_reads_all_ones_and_tells_nothing() -> None:
    read = read_config(b"\xff" * 4096)
    assert (read.acs, read.port_type, read.gen) == (None, None, None)
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
