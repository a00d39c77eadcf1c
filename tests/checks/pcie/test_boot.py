"""PCI001 by what the kernel says at boot of a link that is narrower than its device, in the words of any version."""

from __future__ import annotations

from pathlib import Path

from tests.pasted import loud
from tests.tables import examples

LINE = (
    "[   10.02{0}] {1}: {2} Gb/s available PCIe bandwidth, limited by {3} link at 0000:b2:00.0"
    " (capable of {4} Gb/s with {5} link)\n"
)


def limited(*devices: str, had: str = "8 GT/s x8", able: str = "16 GT/s x16") -> str:
    return "".join(LINE.format(f"193{at}", device, "63.008", had, "252.048", able) for at, device in enumerate(devices))


@examples("had", "able")
def test_fewer_lanes_than_the_device_has_are_named_in_any_wording(tmp_path: Path, had: str, able: str) -> None:
    assert loud(tmp_path, limited("mlx5_core 0000:b3:00.0", had=had, able=able)) == ["PCI001"]


def test_two_functions_of_one_card_are_one_card(tmp_path: Path) -> None:
    text = limited("mlx5_core 0000:b3:00.0", "mlx5_core 0000:b3:00.1")
    assert set(loud(tmp_path, text)) == {"PCI001"}


@examples("text")
def test_links_that_are_built_so_are_no_fault(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []
