"""The table of `rocm-smi`: clock and load, and what GPU004 makes of them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import node_of
from topodiag.evidence.amd.rocm_smi import RocmSmi
from topodiag.evidence.interface import Blob

HEAD = "Device  Node  IDs  Temp  Power  Partitions  SCLK  MCLK  Fan  Perf  PwrCap  VRAM%  GPU%  \n"
OLD = "GPU  Temp (DieEdge)  AvgPwr  SCLK     MCLK     Fan  Perf  PwrCap  VRAM%  GPU%\n"


def row(index: int, clock: int, load: int) -> str:
    return f"{index} 2 0x74a1, 28851 61.0C 612.0W NPS1, SPX, 0  {clock}Mhz  1300Mhz  0%  auto  750.0W  71%  {load}%\n"


def test_clock_and_load_are_read_from_old_and_new_tables() -> None:
    for text in (
        HEAD + row(0, 2097, 100),
        OLD + "0  61.0c  412.0W  2097Mhz  1300Mhz  0%  auto  560.0W  71%  100%\n",
    ):
        (gpu,) = node_of(text).gpus
        assert (gpu.sm_clock_mhz.value, gpu.utilization.value) == (2097, 100)


def test_the_json_has_product_place_clock_and_load() -> None:
    node = node_of(
        '{"card0": {"Card Series": "AMD Instinct MI300X", "PCI Bus": "0000:05:00.0", "sclk clock speed:": "(132Mhz)",'
        ' "GPU use (%)": "3"}, "card1": {"Card Series": "N/A"}, "system": {"Driver version": "6.12"}}'
    )
    first, second = node.gpus
    assert (first.name.value, first.bus_id, first.sm_clock_mhz.value, first.utilization.value) == (
        "AMD Instinct MI300X", "0000:05:00.0", 132, 3,
    )  # fmt: skip
    assert second.name.value is None


@given(st.recursive(st.none() | st.integers() | st.text(max_size=9), lambda x: st.dictionaries(st.sampled_from(["card0", "PCI Bus", "sclk clock speed:", "GPU use (%)"]), x), max_leaves=9))  # fmt: skip  # noqa: E501
def test_no_json_makes_it_fail(document: object) -> None:
    RocmSmi().parse(Blob("any.json", ('{"card1": {"a": 1}, "x": ' + json.dumps(document) + "}").encode()))
