"""What is kept of files and output that hold more than a check reads."""

from __future__ import annotations

import pytest

from tests.tables import examples, texts
from topodiag_probes import reduced

TEXTS = texts(__file__)
FIB = TEXTS["fib"]


def test_of_the_table_of_routes_the_nodes_own_addresses_are_kept_once():
    assert reduced.local_addresses(FIB) == "|-- 10.24.6.50 /32 host LOCAL\n|-- 172.17.0.1 /32 host LOCAL"


def test_of_ipv6_the_addresses_of_global_scope_are_kept():
    local = "fe800000000000000042acfffe110002 02 40 20 80     eth0\n"
    world = "fd000000000000000000000000000002 02 40 00 82     eth0"
    assert reduced.local_addresses6(local + world) == world


def test_of_the_kernels_command_line_the_parameters_that_checks_read_are_kept():
    line = (
        "BOOT_IMAGE=/boot/vmlinuz root=UUID=8f4a ro iommu=pt intel_iommu=on pci=realloc=off,nocrs pcie_aspm=hunter2"
        " isolcpus=2-31 nvidia.NVreg_EnableStreamMemOPs=1 luks.key=hunter2 ks=http://a:b@10.0.0.1/ks password=hunter2"
        " ip=10.0.0.5::10.0.0.1:255.255.255.0:gpu-001:eth0:none rd.iscsi.password=hunter2 systemd.hostname=gpu-001"
    )
    assert reduced.kernel_command_line(line) == (
        "ro iommu=pt intel_iommu=on pci=realloc=off,nocrs pcie_aspm=(left-out) isolcpus=2-31"
        " nvidia.NVreg_EnableStreamMemOPs=1"
    )
    assert reduced.kernel_command_line("pci=realloc iommu.passthrough=1") == "pci=realloc iommu.passthrough=1"


@pytest.mark.parametrize("value", ["hunter2", "password:hunter2", "pt,hunter2"])
def test_a_parameters_value_of_another_form_is_replaced_and_it_is_said(value: str):
    assert reduced.kernel_command_line("iommu=" + value) == "iommu=(left-out)"


@examples("said", "name")
def test_of_a_process_the_name_of_its_program_is_kept(said: str, name: str):
    assert reduced.program(said) == name


def test_vital_product_data_of_lspci_is_not_kept():
    text = (
        "0000:18:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"
        "\tCapabilities: [48] Vital Product Data\n\t\tProduct Name: Card\n\t\tRead-only fields:\n"
        "\t\t\t[SN] Serial number: MT2048X12345\n\t\t\t[V3] Vendor specific: a088c2401fa1\n\t\tEnd\n"
        "\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n\t\tLnkSta:\tSpeed 32GT/s, Width x16\n"
    )
    assert reduced.lspci(text).split("\n")[1:] == [
        "\tCapabilities: [48] Vital Product Data",
        "\tCapabilities: [60] Express (v2) Endpoint, MSI 00",
        "\t\tLnkSta:\tSpeed 32GT/s, Width x16",
        "",
    ]


@examples("line", "kept")
def test_of_a_control_group_the_words_of_runtimes_are_kept(line: str, kept: str):
    assert reduced.cgroup(line) == kept


def test_a_conf_file_keeps_its_lines_and_loses_its_comments():
    text = (
        "# mail alice@corp.example\nNCCL_DEBUG=INFO\n NCCL_ALGO = Ring # for alice\nexport NCCL_IB_HCA='mlx5_0'\n"
        "  # NCCL_PROTO=LL\nNCCL_DEBUG INFO\nask alice\nAWS_SECRET_ACCESS_KEY=abc\nNCCL_BUFFSIZE=hunter2\n\n"
    )
    assert reduced.conf(text).split("\n") == [
        "# (left out)",
        "NCCL_DEBUG=INFO",
        " NCCL_ALGO = Ring # (left out)",
        "export NCCL_IB_HCA='mlx5_0'",
        "  # NCCL_PROTO=LL",
        "NCCL_DEBUG INFO",
        "(left out)",
        "AWS_SECRET_ACCESS_KEY=<replaced: not a variable that is kept>",
        "NCCL_BUFFSIZE=<replaced: not a number, known words or names of network devices>",
        "",
        "",
    ]


def test_a_topology_file_keeps_elements_and_attributes():
    text = (
        '<system version="1">\n<!-- by alice,\n password hunter2 -->\n  <cpu numaid="0" arch="x86_64">note of alice\n'
        '    <pci busid="0000:1b:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" note="token=hunter2"/>\n'
        "  </cpu>\n</system>\n"
    )
    kept = reduced.topo_xml(text)
    assert kept.count("\n") == text.count("\n")
    assert "alice" not in kept
    assert "hunter2" not in kept
    assert 'link_speed="32.0 GT/s PCIe" note="(left out)"/>' in kept


def test_of_the_release_and_the_driver_who_built_them_is_not_kept():
    assert reduced.kernel_version("Linux version 5.15.0-91-generic (alice@build9) (gcc 11)") == (
        "Linux version 5.15.0-91-generic"
    )
    assert reduced.without_builder("NVRM version: NVIDIA  570.86.15  Release Build  (alice@build9)") == (
        "NVRM version: NVIDIA  570.86.15  Release Build "
    )


def test_of_smi_the_programs_are_kept_and_serial_numbers_are_not():
    text = "<serial>1650555372534</serial><process_name>/home/alice/train --password hunter2</process_name>"
    assert reduced.smi_xml(text) == "<serial>N/A</serial><process_name>train</process_name>"


def test_an_asset_tag_is_kept_where_it_names_a_cloud():
    assert reduced.asset_tag("Amazon EC2") == "Amazon EC2"
    assert not reduced.asset_tag("INV-00417")
