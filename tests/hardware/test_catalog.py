"""Look-ups in the datasheets: names as the tools print them, ids as the kernel shows them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.hardware import catalog
from topodiag.hardware.specs import GpuSpec

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"


@pytest.mark.parametrize(
    ("text", "name", "links"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 80GB HBM3", 18),
        ("NVIDIA H100", "H100", 18),
        ("NVIDIA H100 PCIe", "H100 PCIe", 12),
        ("NVIDIA H100 NVL", "H100 NVL", 12),
        ("NVIDIA H200", "H200", 18),
        ("NVIDIA H200 NVL", "H200 NVL", 18),
        ("NVIDIA H20", "H20", 18),
        ("NVIDIA H20-3e", "H20-3e", 18),
        ("NVIDIA H800", "H800", 8),
        ("NVIDIA H800 PCIe", "H800 PCIe", 8),
        ("NVIDIA GH200 480GB", "GH200 96GB", 18),
        ("NVIDIA GH200 144G HBM3e", "GH200 144GB HBM3e", 18),
        ("NVIDIA GB200", "GB200", 18),
        ("NVIDIA GB300", "GB300", 18),
        ("NVIDIA B200", "B200", 18),
        ("NVIDIA B300 SXM6 AC", "B300", 18),
        ("NVIDIA GB10", "GB10", 0),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB", 12),
        ("A100-SXM4-80GB", "A100-SXM4-80GB", 12),
        ("NVIDIA A100-SXM-64GB", "A100-SXM-64GB", 12),
        ("NVIDIA A100-PCIE-40GB", "A100-PCIE-40GB", 12),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe", 12),
        ("NVIDIA A800-SXM4-80GB", "A800-SXM4-80GB", 8),
        ("NVIDIA A800 80GB PCIe LC", "A800 80GB PCIe", 8),
        ("Tesla V100-SXM2-16GB", "V100-SXM2-16GB", 6),
        ("Tesla V100-SXM2-32GB", "V100-SXM2-32GB", 6),
        ("Tesla V100-SXM3-32GB", "V100-SXM3-32GB", 6),
        ("Tesla V100-PCIE-16GB", "V100-PCIE-16GB", 0),
        ("Tesla V100S-PCIE-32GB", "V100S-PCIE-32GB", 0),
        ("Tesla P100-SXM2-16GB", "P100-SXM2-16GB", 4),
        ("Tesla P100-PCIE-16GB", "P100-PCIE-16GB", 0),
        ("Tesla T4", "T4", 0),
        ("NVIDIA A2", "A2", 0),
        ("NVIDIA A10", "A10", 0),
        ("NVIDIA A10G", "A10G", 0),
        ("NVIDIA A30", "A30", 4),
        ("NVIDIA A40", "A40", 4),
        ("NVIDIA L4", "L4", 0),
        ("NVIDIA L40", "L40", 0),
        ("NVIDIA L40S", "L40S", 0),
        ("NVIDIA RTX A6000", "RTX A6000", 4),
        ("NVIDIA RTX A5000", "RTX A5000", 4),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada Generation", 0),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell Server", 0),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell Workstation", 0),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000 Blackwell Max-Q", 0),
        ("NVIDIA GeForce RTX 3090", "RTX 3090", 4),
        ("NVIDIA GeForce RTX 4090", "RTX 4090", 0),
        ("NVIDIA GeForce RTX 4090 D", "RTX 4090 D", 0),
        ("NVIDIA GeForce RTX 5090", "RTX 5090", 0),
        ("GeForce RTX 2080 Ti", "RTX 2080 Ti", 2),
        ("Quadro RTX 8000", "Quadro RTX 8000", 2),
    ],
)
def test_product_names_of_nvml_lead_to_their_datasheet(text: str, name: str, links: int) -> None:
    gpu = catalog.gpu_by_name(text)
    assert gpu is not None
    assert (gpu.name, gpu.nvlinks) == (name, links)


@pytest.mark.parametrize(
    "text",
    [
        "GRID A100-7-40C",
        "GRID V100DX-32Q",
        "NVIDIA A40-48Q",
        "NVIDIA A10-24Q",
        "NVIDIA L40S-48Q",
        "NVIDIA H100XM-80C",
        "NVIDIA H20 NVL16",
        "NVIDIA GeForce RTX 3080 Laptop GPU",
        "NVIDIA RTX A5000 Laptop GPU",
        "NVIDIA GeForce ...",
        "NVIDIA",
        "AMD Instinct MI300X",
        "",
    ],
)
def test_virtual_and_unknown_gpus_have_no_datasheet(text: str) -> None:
    assert catalog.gpu_by_name(text) is None


def test_a_name_cut_by_the_table_of_nvidia_smi_still_tells_the_form() -> None:
    gpu = catalog.gpu_by_name("Tesla V100-SXM2...")
    assert gpu is not None
    assert (gpu.family, gpu.nvlinks, gpu.memory_gb) == ("V100", 6, 0)


def test_spelling_case_and_a_mig_slice_do_not_matter() -> None:
    plain = catalog.gpu_by_name("NVIDIA A100-SXM4-40GB")
    assert plain is not None
    assert catalog.gpu_by_name("  nvidia   a100-sxm4-40gb ") is plain
    assert catalog.gpu_by_name("NVIDIA A100-SXM4-40GB MIG 1g.5gb") is plain


def test_figures_of_an_h100_are_those_of_the_datasheet() -> None:
    gpu = catalog.gpu_by_name("NVIDIA H100 80GB HBM3")
    assert gpu is not None
    assert (gpu.sm, gpu.form, gpu.nvlink_line_gbs, gpu.nvlink_nccl_gbs) == (90, "sxm", 26.562, 20.6)
    assert (gpu.pcie_gen, gpu.pcie_width, gpu.nvswitch, gpu.bridged, gpu.p2p_pcie) == (5, 16, True, False, True)


def test_geforce_offers_no_peer_to_peer_over_pcie() -> None:
    gpu = catalog.gpu_by_name("NVIDIA GeForce RTX 4090")
    assert gpu is not None
    assert not gpu.p2p_pcie


def test_a_single_grace_hopper_may_show_no_nvlink_at_all() -> None:
    gpu = catalog.gpu_by_name("NVIDIA GH200 480GB")
    assert gpu is not None
    assert gpu.bridged


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (0x2330, "H100 80GB HBM3"),
        (0x20B2, "A100-SXM4-80GB"),
        (0x1DB1, "V100-SXM2-16GB"),
        (0x26B9, "L40S"),
        (0x2941, "GB200"),
    ],
)
def test_pci_device_ids_lead_to_the_same_datasheets(device: int, name: str) -> None:
    gpu = catalog.gpu_by_pci_device(device)
    assert gpu is not None
    assert gpu.name == name


def test_an_nvswitch_is_no_gpu() -> None:
    assert catalog.gpu_by_pci_device(0x22A3) is None


@pytest.mark.parametrize(
    ("hca_type", "name", "rate"),
    [
        ("MT4115", "ConnectX-4", 100),
        ("MT4119", "ConnectX-5", 100),
        ("MT4123", "ConnectX-6", 200),
        ("MT4125", "ConnectX-6 Dx", 200),
        ("MT4129", "ConnectX-7", 400),
        ("mt4131\n", "ConnectX-8", 800),
        ("MT41686", "BlueField-2", 200),
        ("MT41692", "BlueField-3", 400),
    ],
)
def test_an_hca_type_is_the_pci_device_id_in_decimal(hca_type: str, name: str, rate: float) -> None:
    nic = catalog.nic_by_hca_type(hca_type)
    assert nic is not None
    assert (nic.name, nic.rate_gbps) == (name, rate)
    assert catalog.nic_by_pci_id(nic.vendor, nic.device) is nic


def test_a_virtual_function_is_known_as_one() -> None:
    nic = catalog.nic_by_pci_id(0x15B3, 0x101C)
    assert nic is not None
    assert (nic.name, nic.is_vf, nic.rate_gbps) == ("ConnectX-6 VF", True, 200)


def test_the_shared_virtual_function_id_promises_no_rate() -> None:
    nic = catalog.nic_by_pci_id(0x15B3, 0x101E)
    assert nic is not None
    assert (nic.is_vf, nic.rate_gbps, nic.pcie_gen) == (True, 0, 0)


@pytest.mark.parametrize("device", [0xEFA0, 0xEFA1, 0xEFA2, 0xEFA3])
def test_every_efa_is_known(device: int) -> None:
    nic = catalog.nic_by_pci_id(0x1D0F, device)
    assert nic is not None
    assert nic.link_layers == ("EFA",)


def test_unknown_nics_are_none() -> None:
    assert catalog.nic_by_pci_id(0x15B3, 0xFFFF) is None
    assert catalog.nic_by_hca_type("") is None
    assert catalog.nic_by_hca_type("hfi1") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("DGXA100 920-23687-2531-001", "DGX A100"),
        ("NVIDIA DGX H100", "DGX H100"),
        ("DGX-1 with V100-32", "DGX-1 (V100)"),
        ("p5.48xlarge", "p5.48xlarge"),
        ("p5en.48xlarge", "p5en.48xlarge"),
        ("Standard_ND96isr_H100_v5", "ND96isr_H100_v5"),
        ("a3-megagpu-8g", "a3-megagpu-8g"),
        ("BM.GPU.H100.8", "BM.GPU.H100.8"),
    ],
)
def test_product_names_and_instance_types_lead_to_their_machine(text: str, name: str) -> None:
    system = catalog.system_by_product(text)
    assert system is not None
    assert system.name == name


@pytest.mark.parametrize("text", ["", "Virtual Machine", "Google Compute Engine", "SYS-821GE-TNHR", "xp5.48xlargex"])
def test_a_product_that_says_nothing_leads_nowhere(text: str) -> None:
    assert catalog.system_by_product(text) is None


def names(*args: Any) -> list[str]:
    return [system.name for system in catalog.match_system(*args)]


def test_eight_h100_with_eight_nics_on_bare_metal_may_be_a_dgx_or_an_hgx() -> None:
    assert names("H100 80GB HBM3", 8, 8, 4, False) == ["DGX H100", "HGX H100/H200 8-GPU"]


def test_a_nic_count_that_no_fixed_machine_has_leaves_the_board() -> None:
    assert names("H100 80GB HBM3", 8, 9, 4, False) == ["HGX H100/H200 8-GPU"]


def test_a_guest_with_32_nics_is_a_p5() -> None:
    assert names("H100 80GB HBM3", 8, 32, None, True)[0] == "p5.48xlarge"


def test_machines_with_the_nics_seen_come_before_those_whose_nics_are_open() -> None:
    found = catalog.match_system("H100 80GB HBM3", 8, 8)
    fixed = [system.compute_nics == 8 for system in found]
    assert fixed == sorted(fixed, reverse=True)
    assert not all(fixed)


def test_a_family_name_matches_any_of_its_sizes() -> None:
    assert "DGX-2" in names("V100", 16)


def test_visible_switches_rule_out_machines_without() -> None:
    assert "HGX A100 4-GPU" in names("A100-SXM4-40GB", 4)
    assert names("A100-SXM4-40GB", 4, None, 6) == []


def test_a_container_that_hides_the_switches_of_a_guest_rules_nothing_out() -> None:
    assert "p4d.24xlarge" in names("A100-SXM4-40GB", 8, 4, 0, True)


def test_part_of_a_dgx_mesh_has_fewer_links_by_design() -> None:
    (system,) = catalog.match_system("V100-SXM2-16GB", 4)
    assert (system.name, system.nvlinks_per_gpu) == ("p3.8xlarge", 4)


def test_no_machine_has_seven_gpus() -> None:
    assert names("H100 80GB HBM3", 7) == []


@pytest.mark.parametrize(
    ("gen", "width", "gbs"), [(3, 16, 12), (4, 16, 24), (5, 16, 48), (6, 16, 96), (4, 8, 12), (3, 8, 6), (1, 16, 3)]
)
def test_nccl_reckons_a_pcie_link_by_lanes(gen: int, width: int, gbs: float) -> None:
    assert catalog.pcie_nccl_gbs(gen, width) == gbs


def test_a_gen5_link_carries_63_gbs_after_coding() -> None:
    assert catalog.pcie_line_gbs(5, 16) == pytest.approx(63.0, abs=0.1)


@pytest.mark.parametrize(("gen", "width"), [(0, 16), (7, 16), (5, 0), (5, -1), (5, 255), (5, 10**400)])
def test_no_such_pcie_link_has_no_bandwidth(gen: int, width: int) -> None:
    assert catalog.pcie_nccl_gbs(gen, width) is None
    assert catalog.pcie_line_gbs(gen, width) is None


@pytest.mark.parametrize(
    ("sm", "gbs"),
    [(60, 18), (70, 20), (75, 20), (80, 20), (86, 12), (89, 20), (90, 20.6), (100, 40.1), (103, 40.1), (120, 40.1)],
)
def test_nccl_reckons_an_nvlink_by_compute_capability(sm: int, gbs: float) -> None:
    assert catalog.nvlink_nccl_gbs(sm) == gbs


@pytest.mark.parametrize(
    ("arch", "vendor", "family", "model", "gbs"),
    [
        ("x86_64", "GenuineIntel", 6, 0x4F, 6),
        ("x86_64", "GenuineIntel", 6, 0x55, 10),
        ("x86_64", "GenuineIntel", 6, 0x6A, 10),
        ("x86_64", "GenuineIntel", 6, 0x8F, 22),
        ("x86_64", "GenuineIntel", 6, 0xCF, 40),
        ("x86_64", "AuthenticAMD", 25, 17, 16),
        ("x86_64", "AuthenticAMD", None, None, 16),
        ("x86_64", "  Shanghai  ", 7, 0x5B, 9),
        ("x86_64", "CentaurHauls", 7, 0x3B, 6),
        ("aarch64", "", None, None, 6),
        ("arm64", None, None, None, 6),
        ("ppc64le", None, None, None, 32),
    ],
)
def test_nccl_reckons_the_processor_interconnect_by_model(
    arch: str, vendor: str | None, family: int | None, model: int | None, gbs: float
) -> None:
    assert catalog.smp_gbs(arch, vendor, family, model) == gbs


@pytest.mark.parametrize(
    ("arch", "vendor", "family", "model"),
    [
        ("", "", 0, 0),
        ("riscv64", None, None, None),
        ("x86_64", None, None, None),
        ("x86_64", "HygonGenuine", 24, 1),
        ("x86_64", "GenuineIntel", 6, None),
        ("x86_64", "GenuineIntel", 0, 0),
    ],
)
def test_an_unknown_processor_bounds_nothing(
    arch: str, vendor: str | None, family: int | None, model: int | None
) -> None:
    assert catalog.smp_gbs(arch, vendor, family, model) == 5000


def test_latencies_are_given_only_where_a_source_has_them() -> None:
    assert catalog.latency_us("nvlink") == 0.6
    assert catalog.latency_us("pcie") == 1.0
    assert catalog.latency_us("network") == 2.7
    assert catalog.latency_us("smp") is None
    assert catalog.latency_us("source") is None


@given(st.text(max_size=400))
def test_any_text_is_a_name_or_none(text: str) -> None:
    catalog.gpu_by_name(text)
    catalog.system_by_product(text)
    catalog.nic_by_hca_type(text)
    catalog.latency_us(text)
    assert catalog.smp_gbs(text, text) > 0


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
