"""Broadcom switches that show two levels become one, by the rules of each version."""

import pytest

from tests.nccl.small_trees import BROADCOM5, built, cpu, element, gpu, host, nic, pci
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.flatten import generation
from topodiag.nccl.graph.graph import RejectedError

GEN4_SWITCH = {"vendor": "0x1000", "device": "0xc010", "subsystem_vendor": "0x1000", "subsystem_device": "0xa096"}


def switches(tree: Element, minor: int = 28) -> list[str]:
    return [vertex.label for vertex in built(tree, minor=minor).nodes["PCI"]]


def two_level(upper: dict[str, str], lower: dict[str, str]) -> Element:
    return host(cpu(0, pci("01", pci("02", gpu("10"), **lower), pci("03", nic("20"), **lower), **upper)))


def gen5(level: int) -> dict[str, str]:
    return {**BROADCOM5, "subsystem_device": f"0x{level}00b"}


@examples("device", "level", "minor", "expected")
def test_a_switch_is_known_by_its_ids_and_gen5_by_its_level(device: int, level: int, minor: int, expected: int) -> None:
    assert generation(device, level, minor) == expected


def test_the_lower_level_goes_and_its_devices_hang_on_the_upper_switch() -> None:
    system = built(two_level(gen5(0), gen5(1)))
    (switch,) = system.nodes["PCI"]
    assert [link.remote.label for link in switch.links] == ["GPU/0-10000", "NIC/0-20000", "CPU/0-0"]
    assert system.gpus[0].links[0].remote is switch
    assert system.gpus[0].paths["NET"][0].count == 3


SWITCHES = {
    "gen5 upper": gen5(0), "gen5 lower": gen5(1), "gen4": GEN4_SWITCH, "Mellanox": {"vendor": "0x15b3"},
    "gen4 of another id": {**GEN4_SWITCH, "subsystem_device": "0xa097"},
}  # fmt: skip


@examples("upper", "lower", "minor", "count")
def test_two_levels_of_switches_are_so_many_switches(upper: str, lower: str, minor: int, count: int) -> None:
    assert len(switches(two_level(SWITCHES[upper], SWITCHES[lower]), minor)) == count


def test_a_link_from_elsewhere_to_a_switch_that_went_is_gone() -> None:
    lower = pci("02", gpu("10"), element("pcilink", target="0000:04:00.0"), **gen5(1))
    peer = pci("04", gpu("11"), element("pcilink", target="0000:02:00.0"))
    system = built(host(cpu(0, pci("01", lower, **gen5(0)), peer)))
    upper, other = system.nodes["PCI"]
    assert [link.remote.label for link in other.links] == ["PCI/0-1000", "GPU/0-11000", "CPU/0-0"]
    assert ("PCI/0-4000", 5000.0) in [(link.remote.label, link.bw) for link in upper.links]


def test_two_levels_with_one_bus_id_are_rejected_as_nccl_would_take_out_the_wrong_one() -> None:
    with pytest.raises(RejectedError, match="two PCI switches PCI/0-1000 below each other"):
        built(host(cpu(0, pci("01", pci("01", gpu("10"), **gen5(1)), **gen5(0)))))
