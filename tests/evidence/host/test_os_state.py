"""Kernel and driver state as a tree."""

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import drop_lines, read, text_of, value, why
from tests.tables import examples

DMI = "sys/class/dmi/id"
HOST = text_of("os-state", "HOST")
WANTED = {
    "kernel": "5.15.0-1066-nvidia", "cmdline": "root=/dev/md0 ro iommu=pt", "uptime_s": 1814402.55,
    "distribution": "Ubuntu 22.04.4 LTS", "driver_version": "570.86.15", "driver_open": True, "memlock_bytes": 65536,
    "shm_bytes": 67108864, "numa_balancing": True, "iommu_enabled": False, "peermem": False,
    "virtualization": "none", "container": "none", "modules": frozenset({"nvidia", "nvidia_uvm", "ib_core"}),
    "devices": frozenset({"nvidia0", "infiniband", "infiniband/uverbs0"}),
}  # fmt: skip


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


@given(st.binary(max_size=300), st.integers(0, len(HOST)))
def test_any_bytes_in_the_middle_are_survived(noise: bytes, at: int) -> None:
    raw = HOST.encode()
    read("os-state", raw[:at] + noise + raw[at:])


@given(st.sets(st.sampled_from([0, 1, 2, 5, 6, 7, 8, 10, 11, 12, 13, 26])))
def test_missing_lines_cost_only_their_own_facts(gone: set[int]) -> None:
    draft, _ = read("os-state", drop_lines(HOST, gone))
    os = draft.single("os")
    assert all(value(os, name) in (None, wanted) for name, wanted in WANTED.items())
