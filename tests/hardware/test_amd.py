"""AMD's accelerators and machines: found by the names that tools print, each with its source."""

import pytest

from tests.tables import examples
from topodiag.hardware.amd import XGMI_LANES, amd_gpu_by_name, amd_gpus, amd_system_by_name, amd_systems


@pytest.mark.parametrize("said", ["AMD Instinct MI300X", "MI300X", "amd instinct mi300x vf", "Instinct MI300X OAM"])
def test_a_gpu_is_found_by_its_product_name(said: str) -> None:
    amd_gpu = amd_gpu_by_name(said)
    assert amd_gpu.name == "MI300X"


def test_rocm_smi_names_the_card_of_two_dies_by_its_family() -> None:
    amd_gpu = amd_gpu_by_name("AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2")
    assert (amd_gpu.name, amd_gpu.dies) == ("MI250X", 2)


@pytest.mark.parametrize("said", ["", "NVIDIA H100 80GB HBM3", "MI300XX", "MI" * 5000])
def test_other_names_are_nothing_of_amds(said: str) -> None:
    assert amd_gpu_by_name(said) is None
    assert amd_system_by_name(said) is None


def test_a_machine_is_found_whatever_its_signs_and_case() -> None:
    for name in ("BM.GPU.MI300X.8", "bm-gpu-mi300x-8"):
        amd_system = amd_system_by_name(name)
        assert amd_system.nics == (8, 400.0)


def test_every_entry_has_a_source_and_links_to_all_other_gpus() -> None:
    assert all(each.source for each in (*amd_gpus(), *amd_systems()))
    assert all(system.gpu.links == system.gpus - 1 for system in amd_systems())
    assert all(gpu.rccl_gbs < gpu.line_gbs for gpu in amd_gpus())


# --- AMD's accelerators in the catalogue: each from MI50 to MI355X, with its links, its dies and where that is written

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
