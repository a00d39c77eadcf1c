from __future__ import annotations

from topodiag_probes.items.amd import placed, probes
from topodiag_probes.registry import probes as every


def test_of_a_node_only_its_place_and_links_are_kept() -> None:
    text = "simd_count 1216\nunique_id 7281193340112209183\nlocation_id 9728\nvendor_id 4098\nhive_id 12\n"
    assert placed(text) == "simd_count 1216\nlocation_id 9728\nhive_id 12"


def test_amds_items_are_collected() -> None:
    names = {probe.id for probe in probes()}
    assert names == {"sys-kfd", "amd-smi-topology", "amd-smi-xgmi", "amd-smi-metric", "rocm-smi-showtopo"}
    assert names <= {probe.id for probe in every()}
