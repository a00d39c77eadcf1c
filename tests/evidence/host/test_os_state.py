"""Kernel and driver state as a tree."""

from tests.evidence.filled import read, text_of, value, why
from tests.tables import examples

DMI = "sys/class/dmi/id"
HOST = text_of("os-state", "HOST")


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
