"""The catalogue of systems, AMD's GPUs and compute capabilities among them."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples, parts
from topodiag.hardware import catalog
from topodiag.hardware.amd import XGMI_LANES, amd_gpu_by_name, amd_gpus, amd_system_by_name, amd_systems
from topodiag.hardware.compute import peak
from topodiag.hardware.specs import GpuSpec, InstanceSpec
from topodiag.words.own_data import own_data

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"


@examples("text", "name", "links")
def test_product_names_of_nvml_lead_to_their_datasheet(text: str, name: str | None, links: int | None) -> None:
    gpu = catalog.gpu_by_name(text)
    assert (gpu and gpu.name, gpu and gpu.nvlinks) == (name, links)


@examples("name", "figures")
def test_the_datasheet_of_a_gpu_has_its_figures(name: str, figures: dict[str, Any]) -> None:
    assert parts(catalog.gpu_by_name(name), figures) == figures


@examples("device", "name")
def test_pci_device_ids_lead_to_the_same_datasheets(device: int, name: str | None) -> None:
    gpu = catalog.gpu_by_pci_device(device)
    assert (gpu and gpu.name) == name


@examples("hca_type", "name", "rate")
def test_an_hca_type_is_the_pci_device_id_in_decimal(hca_type: str, name: str, rate: float) -> None:
    nic = catalog.nic_by_hca_type(hca_type)
    assert (nic.name, nic.rate_gbps) == (name, rate)
    assert catalog.nic_by_pci_id(nic.vendor, nic.device) is nic


@examples("device", "figures")
def test_the_datasheet_of_a_virtual_function_has_its_figures(device: int, figures: dict[str, Any]) -> None:
    assert parts(catalog.nic_by_pci_id(0x15B3, device), figures) == figures


@pytest.mark.parametrize("device", [0xEFA0, 0xEFA1, 0xEFA2, 0xEFA3])
def test_every_efa_is_known(device: int) -> None:
    nic = catalog.nic_by_pci_id(0x1D0F, device)
    assert nic is not None


def test_unknown_nics_are_none() -> None:
    assert catalog.nic_by_pci_id(0x15B3, 0xFFFF) is None
    assert catalog.nic_by_hca_type("") is None
    assert catalog.nic_by_hca_type("hfi1") is None


@examples("text", "name")
def test_product_names_and_instance_types_lead_to_their_machine(text: str, name: str | None) -> None:
    system = catalog.system_by_product(text)
    assert (system and system.name) == name


def names(*args: Any) -> list[str]:
    return [system.name for system in catalog.match_system(*args)]


@examples("seen", "systems")
def test_what_is_seen_leaves_these_machines(seen: dict[str, Any], systems: list[str]) -> None:
    assert [system.name for system in catalog.match_system(**seen)] == systems


def test_a_guest_with_32_nics_is_a_p5() -> None:
    assert names("H100 80GB HBM3", 8, 32, None, True)[0] == "p5.48xlarge"


def test_machines_with_the_nics_seen_come_before_those_whose_nics_are_open() -> None:
    specs = catalog.match_system("H100 80GB HBM3", 8, 8)
    fixed = [system.compute_nics == 8 for system in specs]
    assert fixed == sorted(fixed, reverse=True)
    assert not all(fixed)


def test_a_family_name_matches_any_of_its_sizes() -> None:
    assert "DGX-2" in names("V100", 16)


def test_a_container_that_hides_the_switches_of_a_guest_rules_nothing_out() -> None:
    assert "p4d.24xlarge" in names("A100-SXM4-40GB", 8, 4, 0, True)


def test_part_of_a_dgx_mesh_has_fewer_links_by_design() -> None:
    (system,) = catalog.match_system("V100-SXM2-16GB", 4)
    assert (system.name, system.nvlinks_per_gpu) == ("p3.8xlarge", 4)


@examples("gen", "width", "gbs")
def test_nccl_reckons_a_pcie_link_by_lanes(gen: int, width: int, gbs: float) -> None:
    assert catalog.pcie_nccl_gbs(gen, width) == gbs


def test_a_gen5_link_carries_63_gbs_after_coding() -> None:
    assert catalog.pcie_line_gbs(5, 16) == pytest.approx(63.0, abs=0.1)


@pytest.mark.parametrize(("gen", "width"), [(0, 16), (7, 16), (5, 0), (5, -1), (5, 255), (5, 10**400)])
def test_no_such_pcie_link_has_no_bandwidth(gen: int, width: int) -> None:
    assert catalog.pcie_nccl_gbs(gen, width) is None
    assert catalog.pcie_line_gbs(gen, width) is None


@examples("sm", "gbs")
def test_nccl_reckons_an_nvlink_by_compute_capability(sm: int, gbs: float) -> None:
    assert catalog.nvlink_nccl_gbs(sm) == gbs


@examples("arch", "vendor", "family", "model", "gbs")
def test_nccl_reckons_the_processor_interconnect_by_model(
    arch: str, vendor: str | None, family: int | None, model: int | None, gbs: float
) -> None:
    assert catalog.smp_gbs(arch, vendor, family, model) == gbs


@examples("link", "latency_us")
def test_latencies_are_given_only_where_a_source_has_them(link: str, latency_us: float | None) -> None:
    assert catalog.latency_us(link) == latency_us


@given(
    st.sampled_from(catalog.gpus()),
    st.sampled_from(["NVIDIA ", "Tesla ", "nvidia geforce ", ""]),
    st.text(" ", max_size=3),
)
def test_brand_words_and_blanks_around_a_name_change_nothing(gpu: GpuSpec, brand: str, blanks: str) -> None:
    assert catalog.gpu_by_name(f"{blanks}{brand}{gpu.name}{blanks}") is gpu


@given(st.integers(), st.integers())
def test_any_integers_are_looked_up_without_error(left: int, right: int) -> None:
    catalog.gpu_by_pci_device(left)
    catalog.nic_by_pci_id(left, right)
    catalog.pcie_nccl_gbs(left, right)
    catalog.pcie_line_gbs(left, right)
    catalog.match_system("H200", left, right, right)
    assert catalog.nvlink_nccl_gbs(left) > 0


PRODUCT = re.compile(
    r"\b(?:GPU \d+: |device +\d+ \[[0-9a-fx:.]+\] )"
    r"((?:NVIDIA|Tesla|GeForce|Quadro)[A-Za-z0-9 \-]{1,60}?)(?= \(UUID|\s*$|\s{2,})",
    re.MULTILINE,
)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this checkout")
def test_the_product_names_of_the_corpus_resolve() -> None:
    found = set()
    for folder in ("links", "logs", "nccl_tests", "topo_m"):
        for path in (CORPUS / folder).glob("*.txt"):
            found |= set(PRODUCT.findall(path.read_text(encoding="utf-8", errors="replace")))
    assert len(found) > 8
    assert [name for name in sorted(found) if catalog.gpu_by_name(name) is None] == []


# --- the published layouts of instance types hold together ----------------------------------------------------

INSTANCES = catalog.instances()


@pytest.mark.parametrize("spec", INSTANCES, ids=lambda spec: spec.name)
def test_every_gpu_and_every_nic_is_in_one_group(spec: InstanceSpec) -> None:
    assert sorted(at for group in spec.groups for at in group.gpus) == list(range(spec.gpus))
    assert sorted(at for group in spec.groups for at in group.nics) == list(range(spec.nics))
    assert spec.source


@pytest.mark.parametrize("spec", INSTANCES, ids=lambda spec: spec.name)
def test_links_are_pcie_links(spec: InstanceSpec) -> None:
    for gen, width in (spec.gpu_link, spec.nic_link, spec.switch_link):
        assert catalog.pcie_nccl_gbs(gen, width) is not None


@pytest.mark.parametrize("spec", INSTANCES, ids=lambda spec: spec.name)
def test_the_layout_fits_the_machine_of_that_name(spec: InstanceSpec) -> None:
    for name in (spec.name, *spec.names):
        machine = next((system for system in catalog.systems() if name in (system.name, *system.product_names)), None)
        if machine is None:
            assert " " in name, "only the series of a provider may be unknown as machines"
            continue
        assert machine.gpus == spec.gpus
        assert spec.nics in (0, machine.compute_nics)
        assert len({group.numa for group in spec.groups}) >= machine.sockets


def test_no_name_stands_for_two_layouts() -> None:
    names = [name.lower() for spec in INSTANCES for name in (spec.name, *spec.names)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("text", ["nd96isr_h200_v5", "Standard_ND96isr_H200_v5", " ND96isr_H200_v5 "])
def test_a_type_is_found_by_any_of_its_names_and_keeps_the_one_asked_for(text: str) -> None:
    spec = catalog.instance_by_name(text)
    assert spec.name == "ND96isr_H200_v5"


def test_every_type_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "emit.md").read_text()
    names = [name for spec in INSTANCES for name in (spec.name, *spec.names) if " " not in name]
    assert [name for name in names if name.split(".")[0] not in guide] == []


def test_an_unknown_name_finds_nothing() -> None:
    assert catalog.instance_by_name("p9.96xlarge") is None


# --- AMD's accelerators and machines: found by the names that tools print, each with its source


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


# --- peaks of the GPUs: dense, halved from what is printed with sparsity, each with a source


@examples("gpu", "precision", "tflops")
def test_peaks_are_dense(gpu: str, precision: str, tflops: float | None) -> None:
    spec = catalog.gpu_by_name(gpu)
    assert spec is not None
    found = peak(spec, precision)
    assert (found and found.tflops) == tflops
    assert found is None or found.source


def test_every_row_names_known_products_and_no_other_precision() -> None:
    known = {spec.name for spec in catalog.gpus()} | {spec.family for spec in catalog.gpus()}
    for row in own_data("hardware/compute")["gpu"]:
        names = row["names"]
        assert isinstance(names, list)
        assert set(names) <= known
        assert set(row) <= {"names", "source", "bf16", "fp16", "fp8"}
