"""AMD's accelerators and machines: found by the names that tools print, each with its source."""

import pytest

from topodiag.hardware.amd import amd_gpu_by_name, amd_gpus, amd_system_by_name, amd_systems


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
