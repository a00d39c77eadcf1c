import json

from topodiag_probes.items.amd import placed, probes
from topodiag_probes.reduced import amd_static
from topodiag_probes.registry import probes as every


def test_of_a_node_only_its_place_and_links_are_kept() -> None:
    text = "simd_count 1216\nunique_id 7281193340112209183\nlocation_id 9728\nvendor_id 4098\nhive_id 12\n"
    assert placed(text) == "simd_count 1216\nlocation_id 9728\nhive_id 12"


def test_amds_items_are_collected() -> None:
    names = {probe.id for probe in probes()}
    of_amd_smi = {f"amd-smi-{name}" for name in ("topology", "xgmi", "metric", "static")}
    assert names == of_amd_smi | {"sys-kfd", "rocm-smi-showtopo"}
    assert names <= {probe.id for probe in every()}


def test_serial_numbers_of_chips_stay_on_the_node() -> None:
    table = {
        "gpu_data": [{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0x5A0BA3C1F0D2E477"}}]
    }
    for indent in (None, 4):
        kept = json.loads(amd_static(json.dumps(table, indent=indent)))
        assert kept["gpu_data"][0]["asic"] == {"market_name": "AMD Instinct MI300X", "asic_serial": "N/A"}
