"""AMD's accelerators in the catalogue: each from MI50 to MI355X, with its links, its dies and where that is written."""

import pytest

from tests.tables import examples
from topodiag.hardware.amd import XGMI_LANES, amd_gpu_by_name, amd_gpus

PRODUCTS = ("MI50", "MI60", "MI100", "MI210", "MI250", "MI250X", "MI300A", "MI300X", "MI325X", "MI350X", "MI355X")


@pytest.mark.parametrize("name", PRODUCTS)
def test_each_product_is_found_as_tools_print_it(name: str) -> None:
    for text in (name, f"AMD Instinct {name}", f"Instinct {name} OAM", f"amd instinct {name.lower()}"):
        amd_gpu = amd_gpu_by_name(text)
        assert amd_gpu.name == name


def test_a_figure_has_its_source_and_fits_the_others() -> None:
    assert {gpu.name for gpu in amd_gpus()} >= set(PRODUCTS)
    for gpu in amd_gpus():
        assert len(gpu.source) > 30
        assert 0 < gpu.rccl_gbs <= gpu.line_gbs
        assert gpu.pcie_gen in (4, 5)
        assert gpu.dies in (1, 2)
        assert list(gpu.partitions.values()) == sorted(gpu.partitions.values())


@examples("name", "dies", "links")
def test_cards_of_two_dies_show_two_devices(name: str, dies: int, links: int) -> None:
    amd_gpu = amd_gpu_by_name(name)
    assert (amd_gpu.dies, amd_gpu.links) == (dies, links)


@examples("name", "modes")
def test_partitions_are_those_that_the_driver_allows(name: str, modes: dict[str, int]) -> None:
    amd_gpu = amd_gpu_by_name(name)
    assert dict(amd_gpu.partitions) == modes


@examples("name", "gt_s")
def test_a_line_rate_is_sixteen_lanes_of_its_transfers(name: str, gt_s: float) -> None:
    amd_gpu = amd_gpu_by_name(name)
    assert amd_gpu.line_gbs == pytest.approx(gt_s * XGMI_LANES / 8)
