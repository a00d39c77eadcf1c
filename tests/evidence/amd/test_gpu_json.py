from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import node_by
from tests.tables import examples, texts
from topodiag.evidence.amd.gpu_json import AmdSmiJson
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node

GPU: dict[str, Any] = {
    "gpu": 0,
    "bus": {"bdf": "0000:05:00.0"},
    "asic": {"market_name": "AMD Instinct MI300X"},
    "pcie": {"width": 16, "speed": {"value": 32, "unit": "GT/s"}, "replay_count": 4},
    "ecc": {"total_uncorrectable_count": 3},
    "ecc_blocks": {
        "UMC": {"correctable_count": 5, "uncorrectable_count": 0},
        "GFX": {"correctable_count": 0, "uncorrectable_count": 1},
        "XGMI_WAFL": {"correctable_count": 41, "uncorrectable_count": 2},
    },
}


def node_of(document: object) -> Node:
    return node_by(AmdSmiJson(), Blob("metric.json", json.dumps(document).encode()))


def test_blocks_are_counted_as_memory_links_and_the_rest() -> None:
    for document in ({"gpu_data": [GPU]}, [GPU]):
        (gpu,) = node_of(document).gpus
        counts = {name: counter.latest.value for name, counter in gpu.counters.items()}
        assert counts["ecc_volatile_uncorrected"] == 0
        assert counts["xgmi_uncorrected"] == 2
        assert counts["ras_uncorrected"] == 1


def united(value: object, unit: str) -> dict[str, object]:
    return {"value": value, "unit": unit}


BUSY: dict[str, Any] = {
    "gpu": 3,
    "usage": {"gfx_activity": united(97, "%"), "umc_activity": united(41, "%"), "mm_activity": "N/A"},
    "power": {"socket_power": united(612, "W"), "throttle_status": "N/A"},
    "clock": {
        "gfx_0": {"clk": united(132, "MHz"), "max_clk": united(2100, "MHz")},
        "gfx_1": {"clk": united(1290, "MHz"), "max_clk": united(2100, "MHz")},
        "gfx_2": {"clk": "N/A", "max_clk": "N/A"},
        "mem_0": {"clk": united(1300, "MHz"), "max_clk": united(1300, "MHz")},
    },
    "throttle": {f"{name}_violation_status": "ACTIVE" for name in ("ppt", "vr_thermal", "hbm_thermal")},
    "pcie": {"width": 8, "speed": united(16, "GT/s")},
    "limit": {"max_power": united(750, "W"), "socket_power": united(650, "W")},
}  # fmt: skip


def as_text(held: dict[str, Any], deep: int = 1) -> str:
    """The text of amd-smi of the same tree: names in capitals, a unit after its number."""
    lines = []
    for key, value in held.items():
        if isinstance(value, dict) and "unit" not in value:
            lines.append(f"{'    ' * deep}{key.upper()}:\n{as_text(value, deep + 1)}")
        elif key != "gpu":
            said = f"{value['value']} {value['unit']}" if isinstance(value, dict) else value
            lines.append(f"{'    ' * deep}{key.upper()}: {said}\n")
    return "".join(lines)


def test_clocks_load_and_power_are_read_from_both_forms() -> None:
    for node in (node_of([BUSY]), of_text("GPU: 3\n" + as_text(BUSY))):
        (gpu,) = node.gpus
        assert (gpu.sm_clock_mhz.value, gpu.max_sm_clock_mhz.value) == (1290, 2100)
        assert (gpu.utilization.value, gpu.memory_utilization.value) == (97, 41)
        assert (gpu.power_w.value, gpu.power_limit_w.value) == (612.0, 650.0)
        assert gpu.throttle.value == ("sw_power_cap", "sw_thermal_slowdown")


def test_a_pcie_link_joins_its_gpu_by_number_where_the_text_has_no_bus_id() -> None:
    (pci_device,) = node_of([BUSY]).pci.values()
    assert (pci_device.width.value, pci_device.gen.value) == (8, 4)
    source, draft = AmdSmiJson(), NodeDraft()
    for gpu in (BUSY, {"gpu": 3, "bus": {"bdf": "0000:65:00.0", "max_pcie_width": 16}, "asic": {}}):
        blob = Blob("part.json", json.dumps([gpu]).encode())
        source.read(blob, draft)
    (device,) = assemble(draft, "n").pci.values()
    assert (device.bus_id, device.width.value, device.max_width.value) == ("0000:65:00.0", 8, 16)


@examples("limit", "watts")
def test_the_limit_in_force_by_release(limit: dict[str, Any], watts: float | None) -> None:
    (gpu,) = node_of([{"gpu": 0, "pcie": {}, "limit": limit}]).gpus or (None,)
    assert (gpu.power_limit_w.value if gpu else None) == watts


def test_without_violations_the_highest_clock_says_nothing() -> None:
    (gpu,) = node_of([{**BUSY, "throttle": {"ppt_violation_status": "N/A"}}]).gpus
    assert (gpu.sm_clock_mhz.value, gpu.max_sm_clock_mhz.value, gpu.throttle.value) == (1290, None, None)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=9), lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["gpu", "ecc", "ecc_blocks", "UMC", "pcie", "speed", "bus", "bdf", "clock", "gfx_0", "clk", "value", "limit", "usage", "throttle"]), x), max_leaves=20))  # fmt: skip  # noqa: E501
def test_no_document_makes_it_fail(document: object) -> None:
    source, draft = AmdSmiJson(), NodeDraft()
    blob = Blob("metric.json", json.dumps({"gpu_data": document}).encode())
    source.read(blob, draft)


TEXTS = texts(__file__)
TEXT = TEXTS["text"]


def of_text(text: str) -> Node:
    return node_by(AmdSmiJson(), Blob("metric.txt", text.encode()))


def test_the_text_is_read_as_the_json() -> None:
    node = of_text(TEXT)
    first, second = node.gpus
    assert (first.name.value, first.numa.value, second.bus_id) == ("AMD Instinct MI300X", 1, "0000:26:00.0")
    assert first.counters["xgmi_uncorrected"].latest.value == 2
    device = node.pci["0000:05:00.0"]
    assert (device.width.value, device.max_width.value, device.gen.value, device.max_gen.value) == (8, 16, 4, 5)
