"""The datasheets hold together: every entry has a source, figures in range and names that others can rely on."""

import tomllib
from importlib import resources
from typing import Any

import pytest

from topodiag.hardware import catalog
from topodiag.hardware.specs import GpuSpec, NicSpec, SystemSpec

GPUS = catalog.gpus()
NICS = catalog.nics()
SYSTEMS = catalog.systems()
LANES = {0, 1, 2, 4, 8, 16}

FAMILY_KEYS = {
    "name", "sm", "form", "nvlinks", "line_gbs", "bridged", "nvswitch", "pcie", "p2p_pcie", "c2c_gbs",
    "memory_gb", "source", "products",
}  # fmt: skip
PRODUCT_KEYS = {"name", "match", "pci", "memory_gb", "pcie", "nvswitch"}
NIC_KEYS = {"name", "device", "vf", "rate_gbps", "ports", "pcie", "is_vf", "dpu"}
SYSTEM_KEYS = {
    "name", "vendor", "gpu", "gpus", "nvlink", "nvlinks", "nics", "gdr", "nvswitches", "sockets", "virtual", "names",
    "source",
}  # fmt: skip


def data(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("topodiag.hardware").joinpath(name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_a_gpu_entry_is_complete_and_in_range(gpu: GpuSpec) -> None:
    assert gpu.source
    assert gpu.family
    assert 37 <= gpu.sm <= 130
    assert gpu.form in {"sxm", "pcie", "superchip"}
    assert 0 <= gpu.nvlinks <= 18
    assert gpu.pcie_gen in range(7)
    assert gpu.pcie_width in LANES
    assert (gpu.pcie_gen == 0) == (gpu.form == "superchip")
    assert 0 <= gpu.memory_gb <= 300
    assert 0 <= gpu.c2c_gbs <= 500


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_a_gpu_has_nvlink_figures_exactly_when_it_has_links(gpu: GpuSpec) -> None:
    has = gpu.nvlinks > 0
    assert (gpu.nvlink_line_gbs > 0) == has
    assert (gpu.nvlink_nccl_gbs > 0) == has
    assert has or not (gpu.bridged or gpu.nvswitch)
    assert gpu.nvlink_nccl_gbs <= gpu.nvlink_line_gbs


def test_a_pcie_card_with_nvlink_is_bridged_and_never_on_a_switch() -> None:
    for gpu in GPUS:
        if gpu.form == "pcie":
            assert gpu.bridged == (gpu.nvlinks > 0), gpu.name
            assert not gpu.nvswitch, gpu.name


def test_names_and_pci_ids_of_gpus_are_unique() -> None:
    assert len({gpu.name for gpu in GPUS}) == len(GPUS)
    ids = [
        device for family in data("gpus.toml")["family"] for row in family["products"] for device in row.get("pci", ())
    ]
    assert len(set(ids)) == len(ids)
    assert all(0 < device <= 0xFFFF for device in ids)


def test_every_gpu_is_found_by_its_own_name() -> None:
    for gpu in GPUS:
        assert catalog.gpu_by_name(gpu.name) is gpu, gpu.name


def test_the_files_hold_no_misspelt_key() -> None:
    for family in data("gpus.toml")["family"]:
        assert set(family) <= FAMILY_KEYS, family["name"]
        for product in family["products"]:
            assert set(product) <= PRODUCT_KEYS, product["name"]
    for vendor in data("nics.toml")["vendor"]:
        assert set(vendor) <= {"id", "name", "hca_type", "source", "nics"}
        for nic in vendor["nics"]:
            assert set(nic) <= NIC_KEYS, nic["name"]
    for system in data("systems.toml")["system"]:
        assert set(system) <= SYSTEM_KEYS, system["name"]


@pytest.mark.parametrize("nic", NICS, ids=lambda nic: nic.name)
def test_a_nic_entry_is_complete_and_in_range(nic: NicSpec) -> None:
    assert nic.source
    assert 0 < nic.vendor <= 0xFFFF
    assert 0 < nic.device <= 0xFFFF
    assert nic.rate_gbps in {0, 25, 50, 56, 100, 200, 400, 800}
    assert nic.ports in {1, 2}
    assert nic.pcie_gen in range(7)
    assert nic.pcie_width in LANES
    assert not (nic.is_vf and nic.dpu and nic.hca_type == "")


def test_a_nic_port_is_never_built_for_more_than_its_pcie_link_carries() -> None:
    for nic in NICS:
        line = catalog.pcie_line_gbs(nic.pcie_gen, nic.pcie_width)
        assert line is None or nic.rate_gbps / 8 <= line, nic.name


def test_pci_ids_and_hca_types_of_nics_are_unique() -> None:
    assert len({(nic.vendor, nic.device) for nic in NICS}) == len(NICS)
    types = [nic.hca_type for nic in NICS if nic.hca_type]
    assert len(set(types)) == len(types)


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_a_system_entry_is_complete_and_in_range(system: SystemSpec) -> None:
    assert system.source
    assert system.vendor
    assert 1 <= system.gpus <= 16
    assert 0 <= system.compute_nics <= 32
    assert (system.compute_nics == 0) == (system.compute_nic_gbps == 0)
    assert 0 <= system.compute_nic_gbps <= 800
    assert system.nvlink in {"nvswitch", "hybrid-mesh", "mesh", "pairs", "none"}
    assert 0 <= system.nvswitches <= 12
    assert system.sockets in {0, 1, 2, 4}
    assert system.nvlink == "nvswitch" or system.nvswitches == 0


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_a_system_names_gpus_of_the_catalogue_whose_nvlinks_fit_its_wiring(system: SystemSpec) -> None:
    by_name = {gpu.name: gpu for gpu in GPUS}
    for name in (system.gpu, *system.other_gpus):
        gpu = by_name[name]
        links = gpu.nvlinks if system.nvlinks_per_gpu is None else system.nvlinks_per_gpu
        assert links <= gpu.nvlinks
        assert (links > 0) == (system.nvlink != "none")
        assert system.nvlink != "nvswitch" or gpu.nvswitch
        assert system.nvlink != "pairs" or gpu.bridged
        assert system.nvlink != "mesh" or links % (system.gpus - 1) == 0


def test_system_names_and_product_names_are_unique() -> None:
    assert len({system.name for system in SYSTEMS}) == len(SYSTEMS)
    names = [name.lower() for system in SYSTEMS for name in system.product_names]
    assert len(set(names)) == len(names)


def test_every_product_name_leads_to_its_own_system() -> None:
    for system in SYSTEMS:
        for name in system.product_names:
            assert catalog.system_by_product(name) is system


def test_pcie_generations_double_and_nccl_reckons_less_than_the_line() -> None:
    for gen in range(1, 7):
        one = catalog.pcie(gen)
        assert one.source
        assert one.nccl_value / 80 < one.line_gbs_per_lane <= one.gts / 8
        before = catalog.pcie(gen - 1)
        assert before is None or one.gts >= 1.6 * before.gts


def test_link_tables_name_their_sources() -> None:
    tables = data("links.toml")
    assert all(tables[name]["source"] for name in ("nvlink", "smp", "latency"))
