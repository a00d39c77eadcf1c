"""Processors and NUMA nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import drop_lines, place, read, recognises, value, why
from tests.tables import examples, texts

NODE = "sys/devices/system/node"
CPU = "sys/devices/system/cpu"
TEXTS = texts(__file__)
X86 = TEXTS["x86"]
GRACE = TEXTS["grace"]


def test_an_x86_machine_is_named_as_its_cpuinfo_does() -> None:
    draft, parsed = read("sys-cpu", X86)
    wanted = {
        "arch": "x86_64", "vendor": "GenuineIntel", "family": 6, "model": 143,
        "name": "Intel(R) Xeon(R) Platinum 8480C", "count": 224, "sockets": 2,
    }  # fmt: skip
    assert {name: value(draft.single("cpu"), name) for name in wanted} == wanted
    assert place(draft.single("cpu"), "model") == (11, "proc/cpuinfo\tmodel\t\t: 143")
    assert parsed.unread == []


def test_numa_nodes_have_cpus_distances_and_a_socket() -> None:
    draft, _ = read("sys-cpu", X86)
    node = draft.numa(1)
    assert (value(node, "cpus"), value(node, "distances"), value(node, "socket")) == ("56-111,168-223", (21, 10), 1)


def test_an_arm_machine_is_named_by_implementer_and_part() -> None:
    draft, _ = read("sys-cpu", GRACE)
    cpu = draft.single("cpu")
    assert (value(cpu, "arch"), value(cpu, "vendor")) == ("aarch64", "ARM")
    assert (value(cpu, "family"), value(cpu, "model"), value(cpu, "name")) == (8, 0xD4F, "Neoverse-V2")


def test_nvidias_own_cores_are_nvidias() -> None:
    draft, _ = read("sys-cpu", GRACE.replace("0x41", "0x4e"))
    assert value(draft.single("cpu"), "vendor") == "NVIDIA"


def test_a_node_of_memory_alone_has_an_empty_list_of_cpus() -> None:
    draft, _ = read("sys-cpu", GRACE)
    assert value(draft.numa(2), "cpus") == ""


def test_the_hypervisor_flag_makes_a_guest_and_its_absence_makes_nothing() -> None:
    guest, _ = read("sys-cpu", X86.replace("fpu vme de", "fpu vme hypervisor de"))
    host, _ = read("sys-cpu", X86)
    assert value(guest.single("os"), "virtualization") == "vm"
    assert "virtualization" not in host.single("os").offers


def test_a_package_of_minus_one_is_no_socket() -> None:
    draft, parsed = read("sys-cpu", f"= {NODE}/node0/cpulist\t0-3\n= {CPU}/cpu0/topology/physical_package_id\t-1\n")
    assert value(draft.numa(0), "socket") is None
    assert value(draft.single("cpu"), "sockets") is None
    assert parsed.unread == []


@examples("line", "subject", "field")
def test_a_bad_value_loses_that_value_only(line: str, subject: str, field: str) -> None:
    start = line.rpartition("\t")[0]
    lines = [line if row.startswith(start) else row for row in X86.splitlines()]
    draft, parsed = read("sys-cpu", "\n".join(lines))
    entity = draft.numa(0) if subject == "numa" else draft.single("cpu")
    assert value(entity, field) is None
    assert why(entity, field) != ""
    assert len(parsed.unread) == 1
    assert value(draft.numa(1), "cpus") == "56-111,168-223"
    assert value(draft.single("cpu"), "vendor") == "GenuineIntel"


def test_it_recognises_its_tree_and_not_a_mention_of_it() -> None:
    assert recognises("sys-cpu", X86)
    assert recognises("sys-cpu", GRACE)
    assert not recognises("sys-cpu", "see /proc/cpuinfo\nprocessor : 0\n")


@given(st.binary(max_size=300), st.integers(0, len(X86)))
def test_any_bytes_in_the_middle_are_survived(noise: bytes, at: int) -> None:
    raw = X86.encode()
    read("sys-cpu", raw[:at] + noise + raw[at:])


@given(st.sets(st.integers(0, 17)))
def test_missing_lines_cost_only_their_own_facts(gone: set[int]) -> None:
    draft, _ = read("sys-cpu", drop_lines(X86, gone))
    assert value(draft.numa(0), "cpus") in (None, "0-55,112-167")
    assert value(draft.single("cpu"), "count") in (None, 224)
    assert value(draft.single("cpu"), "sockets") in (None, 1, 2)
