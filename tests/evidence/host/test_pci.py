"""PCI functions by lspci and by sysfs, their links and errors."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.config_space import config
from tests.evidence.filled import place, read, recognises, text_of, value
from tests.tables import examples, parts
from topodiag.evidence.host.pcie import LIMITED_CONFIG, NO_ACS, gen_of_speed, read_config
from topodiag.model.cpulist import parse_cpulist

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"


def test_fragments_from_public_threads_are_read() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not here")
    text = (CORPUS / "links" / "017.txt").read_text()
    assert recognises("lspci", text)
    assert len(read("lspci", text)[1].records) == 2
    acs = json.loads((CORPUS / "cases" / "007.json").read_text())["inputs"][0]["text"]
    flags = [fact.value for fact in read("lspci", acs)[0].acs_lines]
    assert flags.count(1) == sum("SrcValid+" in line for line in acs.splitlines())
    assert flags.count(0) == sum("SrcValid-" in line for line in acs.splitlines())


# --- /sys/bus/pci/devices as a tree


AT = "sys/bus/pci/devices/0000:16:00.0"
GPU = text_of("sys-pci", "GPU")
FIELDS = {
    "class_code": 0x030200, "vendor": 0x10DE, "device": 0x2330, "subsystem_vendor": 0x10DE, "subsystem_device": 0x16C1,
    "gen": 4, "width": 8, "max_gen": 5, "max_width": 16, "numa": 0, "local_cpus": "0-55,112-167", "driver": "nvidia",
    "iommu_type": "identity", "parent": "0000:15:01.0", "root": "pci0000:15",
}  # fmt: skip


def test_the_config_space_gives_acs_and_port_type() -> None:
    draft, _ = read("sys-pci", f"x {AT}/config\t{bytes(config()).hex()}\n")
    bridge = draft.pci("0000:16:00.0")
    assert (value(bridge, "acs"), value(bridge, "port_type")) == (0x1D, "downstream")
    assert place(bridge, "acs")[1].endswith("/config\tACSCtl 0x001d")


def test_the_link_registers_stand_in_only_where_sysfs_has_no_such_file() -> None:
    space = f"x {AT}/config\t{bytes(config(link=(3, 4))).hex()}\n"
    node_draft, _ = read("sys-pci", space)
    beside, _ = read("sys-pci", space + f"= {AT}/current_link_width\t16\n= {AT}/current_link_speed\tUnknown\n")
    assert (value(node_draft.pci("0000:16:00.0"), "gen"), value(node_draft.pci("0000:16:00.0"), "width")) == (3, 4)
    assert (value(beside.pci("0000:16:00.0"), "gen"), value(beside.pci("0000:16:00.0"), "width")) == (None, 16)


@given(st.permutations(GPU.splitlines()))
def test_the_order_of_lines_does_not_matter_to_the_facts(lines: list[str]) -> None:
    draft, _ = read("sys-pci", "\n".join(lines))
    gpu = draft.pci("0000:16:00.0")
    assert {name: value(gpu, name) for name in FIELDS} == FIELDS


@given(st.text(alphabet="0123456789,-", max_size=40))
def test_local_cpus_are_a_cpu_list_or_unknown(text: str) -> None:
    draft, _ = read("sys-pci", f"= {AT}/local_cpulist\t{text}\n")
    offered = value(draft.pci("0000:16:00.0"), "local_cpus")
    assert offered is None or parse_cpulist(offered) is not None


# --- PCIe in numbers: speeds as tools print them, and the registers of a config space


@examples("text", "gen")
def test_a_speed_in_any_kernel_or_lspci_spelling_is_a_generation(text: str, gen: int | None) -> None:
    assert gen_of_speed(text) == gen


REASONS = {"none": NO_ACS, "limited": LIMITED_CONFIG, "": ""}


@examples("space", "wanted")
def test_a_config_space_tells_its_registers(space: dict[str, Any], wanted: dict[str, Any]) -> None:
    """The space has an ACS control register where its row does not say "null" for it, and its own link."""
    if "link" in space:
        space = space | {"link": tuple(space["link"])}
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
