"""Kernel and driver state as a tree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import drop_lines, place, read, recognises, value, why
from tests.tables import examples, texts

DMI = "sys/class/dmi/id"
TEXTS = texts(__file__)
HOST = TEXTS["host"]
WANTED = {
    "kernel": "5.15.0-1066-nvidia", "cmdline": "root=/dev/md0 ro iommu=pt", "uptime_s": 1814402.55,
    "distribution": "Ubuntu 22.04.4 LTS", "driver_version": "570.86.15", "driver_open": True, "memlock_bytes": 65536,
    "shm_bytes": 67108864, "numa_balancing": True, "iommu_enabled": False, "peermem": False,
    "virtualization": "none", "container": "none", "modules": frozenset({"nvidia", "nvidia_uvm", "ib_core"}),
    "devices": frozenset({"nvidia0", "infiniband", "infiniband/uverbs0"}),
}  # fmt: skip


def test_the_state_of_a_host_is_offered() -> None:
    draft, parsed = read("os-state", HOST)
    assert {name: value(draft.single("os"), name) for name in WANTED} == WANTED
    assert place(draft.single("os"), "memlock_bytes")[0] == 7
    assert parsed.unread == []


def test_driver_parameters_are_offered_by_name_without_quotes() -> None:
    draft, _ = read("os-state", HOST)
    assert value(draft.single("registry"), "NvLinkDisable") == "0"
    assert value(draft.single("registry"), "RegistryDwords") == "RMNvLinkDisable=1"


def test_gpus_that_the_driver_claimed_are_offered() -> None:
    draft, _ = read("os-state", HOST)
    gpu = draft.gpu(bus_id="0000:1b:00.0")
    assert (value(gpu, "name"), value(gpu, "minor")) == ("NVIDIA H100 80GB HBM3", 3)


def test_a_uuid_that_the_driver_has_not_read_yet_is_none() -> None:
    draft, _ = read("os-state", HOST.replace("GPU-368f6d6f-a2bb-19ac-f0cc-3ccbeb800e6c", "GPU-????????-????"))
    assert value(draft.gpu(bus_id="0000:1b:00.0"), "uuid") is None


def test_the_closed_driver_is_not_open() -> None:
    text = "= proc/driver/nvidia/version\tNVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19\n"
    draft, _ = read("os-state", text)
    os = draft.single("os")
    assert (value(os, "driver_version"), value(os, "driver_open")) == ("535.129.03", False)


def test_no_driver_is_said_where_the_modules_show_none() -> None:
    draft, _ = read("os-state", "= proc/modules\tnvme 61440 3 - Live 0x0\n")
    assert why(draft.single("os"), "driver_version") == "the NVIDIA kernel module is not loaded"


def test_unlimited_locked_memory_is_minus_one() -> None:
    draft, _ = read(
        "os-state", "= proc/self/limits\tMax locked memory         unlimited            unlimited   bytes\n"
    )
    assert value(draft.single("os"), "memlock_bytes") == -1


@examples("path")
def test_any_file_that_nccl_tests_shows_peer_memory(path: str) -> None:
    draft, _ = read("os-state", f"= {path}\t570.86.15\n")
    assert value(draft.single("os"), "peermem") is True


def test_peer_memory_is_missing_only_where_it_was_looked_for() -> None:
    text = (
        "! sys/kernel/mm/memory_peers\tENOENT No such file or directory\n"
        "! sys/module/nvidia_peermem/version\tENOENT No such file or directory\n"
    )
    looked, _ = read("os-state", text)
    silent, _ = read("os-state", "= proc/uptime\t1.0 1.0\n")
    denied, _ = read("os-state", "! sys/module/nvidia_peermem/version\tEACCES Permission denied\n")
    assert value(looked.single("os"), "peermem") is False
    assert "peermem" not in silent.single("os").offers
    assert value(denied.single("os"), "peermem") is None


def test_a_loaded_module_without_its_version_file_leaves_peer_memory_unknown() -> None:
    draft, _ = read("os-state", "= proc/modules\tnvidia_peermem 16384 0 - Live 0x0\n")
    assert "peermem" not in draft.single("os").offers
    assert "nvidia_peermem" in value(draft.single("os"), "modules")


def test_groups_behind_an_iommu_show_that_it_is_on() -> None:
    draft, _ = read("os-state", "d sys/class/iommu\t\nd sys/kernel/iommu_groups\t\nd sys/kernel/iommu_groups/0\t\n")
    assert value(draft.single("os"), "iommu_enabled") is True


@examples("vendor", "product", "word")
def test_the_hypervisor_is_told_by_the_firmware_or_unknown(vendor: str, product: str, word: str | None) -> None:
    draft, _ = read("os-state", f"= {DMI}/sys_vendor\t{vendor}\n= {DMI}/product_name\t{product}\n")
    os = draft.single("os")
    assert value(os, "virtualization") == word
    assert (why(os, "virtualization") != "") == (word is None)


def test_bare_metal_by_its_firmware_yields_to_the_processors_hypervisor_flag() -> None:
    draft, _ = read("os-state", HOST)
    flagged, _ = read("sys-cpu", "= proc/cpuinfo\tvendor_id\t: x\n= proc/cpuinfo\tflags\t: hypervisor\n")
    bare = draft.single("os").offers["virtualization"][0]
    guest = flagged.single("os").offers["virtualization"][0]
    named = read("os-state", f"= {DMI}/sys_vendor\tQEMU\n")[0].single("os").offers["virtualization"][0]
    assert bare.trust < guest.trust < named.trust


@examples("vendor", "product", "name")
def test_the_system_is_named_by_vendor_and_product(vendor: str, product: str, name: str | None) -> None:
    draft, _ = read("os-state", f"= {DMI}/sys_vendor\t{vendor}\n= {DMI}/product_name\t{product}\n")
    assert value(draft.single("node"), "system") == name


def test_the_bios_is_told_with_its_date() -> None:
    draft, _ = read("os-state", f"= {DMI}/bios_version\t2.16\n= {DMI}/bios_date\t12/05/2023\n")
    assert value(draft.single("os"), "bios") == "2.16 12/05/2023"


@examples("lines", "word")
def test_the_container_is_told_by_its_marks_or_unknown(lines: str, word: str | None) -> None:
    draft, _ = read("os-state", lines)
    assert value(draft.single("os"), "container") == word


@examples("line", "field")
def test_a_bad_value_loses_that_value_only(line: str, field: str) -> None:
    start = line.rpartition("\t")[0] + "\t"
    draft, parsed = read("os-state", "\n".join(line if x.startswith(start) else x for x in HOST.splitlines()))
    assert {name: value(draft.single("os"), name) for name in WANTED} == WANTED | {field: None}
    assert len(parsed.unread) == 1


def test_it_recognises_its_tree_and_not_those_of_others() -> None:
    assert recognises("os-state", HOST)
    assert not recognises("os-state", "= sys/class/net/eth0/mtu\t1500\n= proc/net/route\tIface\n")
    assert not recognises("os-state", "= environ\tNCCL_DEBUG=INFO\n")


@given(st.binary(max_size=300), st.integers(0, len(HOST)))
def test_any_bytes_in_the_middle_are_survived(noise: bytes, at: int) -> None:
    raw = HOST.encode()
    read("os-state", raw[:at] + noise + raw[at:])


@given(st.sets(st.sampled_from([0, 1, 2, 5, 6, 7, 8, 10, 11, 12, 13, 26])))
def test_missing_lines_cost_only_their_own_facts(gone: set[int]) -> None:
    draft, _ = read("os-state", drop_lines(HOST, gone))
    os = draft.single("os")
    assert all(value(os, name) in (None, wanted) for name, wanted in WANTED.items())
