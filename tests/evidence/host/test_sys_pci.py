"""/sys/bus/pci/devices as a tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.config_space import config
from tests.evidence.filled import drop_lines, place, read, recognises, value, why
from tests.tables import texts
from topodiag.model.cpulist import parse_cpulist

AT = "sys/bus/pci/devices/0000:16:00.0"
TEXTS = texts(__file__)
GPU = TEXTS["gpu"]
FIELDS = {
    "class_code": 0x030200, "vendor": 0x10DE, "device": 0x2330, "subsystem_vendor": 0x10DE, "subsystem_device": 0x16C1,
    "gen": 4, "width": 8, "max_gen": 5, "max_width": 16, "numa": 0, "local_cpus": "0-55,112-167", "driver": "nvidia",
    "iommu_group": 12, "iommu_type": "identity", "parent": "0000:15:01.0", "root": "pci0000:15",
}  # fmt: skip


def test_every_attribute_of_a_function_is_offered() -> None:
    draft, parsed = read("sys-pci", GPU)
    gpu = draft.pci("0000:16:00.0")
    assert {name: value(gpu, name) for name in FIELDS} == FIELDS
    assert parsed.unread == []


def test_a_fact_names_the_line_that_it_was_read_from() -> None:
    draft, _ = read("sys-pci", GPU)
    line, text = place(draft.pci("0000:16:00.0"), "width")
    assert (line, text) == (8, f"{AT}/current_link_width\t8")


def test_aer_counters_keep_the_kernels_names_and_totals_are_totals() -> None:
    draft, _ = read("sys-pci", GPU)
    counters = draft.pci("0000:16:00.0").counters
    assert {name: offers[0].value for name, offers in counters.items()} == {
        "aer_correctable_RxErr": 3,
        "aer_correctable_BadTLP": 0,
        "aer_correctable_total": 3,
        "aer_fatal_total": 1,
    }


@pytest.mark.parametrize("width", ["0", "255"])
def test_widths_that_stand_for_not_known_are_unknown(width: str) -> None:
    draft, parsed = read("sys-pci", f"= {AT}/current_link_width\t{width}\n= {AT}/max_link_width\t16\n")
    gpu = draft.pci("0000:16:00.0")
    assert value(gpu, "width") is None
    assert f"width {width}" in why(gpu, "width")
    assert value(gpu, "max_width") == 16
    assert parsed.unread == []


def test_a_width_of_all_ones_is_a_device_that_does_not_answer() -> None:
    draft, parsed = read("sys-pci", f"= {AT}/current_link_width\t63\n")
    assert value(draft.pci("0000:16:00.0"), "width") is None
    assert "does not answer" in why(draft.pci("0000:16:00.0"), "width")
    assert parsed.unread == []


@pytest.mark.parametrize("speed", ["Unknown", "Unknown speed"])
def test_an_unknown_speed_is_unknown_and_no_fault_of_the_file(speed: str) -> None:
    draft, parsed = read("sys-pci", f"= {AT}/current_link_speed\t{speed}\n")
    assert value(draft.pci("0000:16:00.0"), "gen") is None
    assert "Unknown" in why(draft.pci("0000:16:00.0"), "gen")
    assert parsed.unread == []


def test_a_numa_node_of_minus_one_is_offered_as_the_kernel_says_it() -> None:
    draft, _ = read("sys-pci", f"= {AT}/numa_node\t-1\n")
    assert value(draft.pci("0000:16:00.0"), "numa") == -1


def test_a_file_that_could_not_be_read_is_unknown_with_the_errors_words() -> None:
    draft, _ = read("sys-pci", f"! {AT}/current_link_speed\tEINVAL Invalid argument\n")
    assert why(draft.pci("0000:16:00.0"), "gen") == "EINVAL Invalid argument"


def test_a_function_below_the_root_has_no_parent() -> None:
    draft, _ = read("sys-pci", "> sys/bus/pci/devices/0000:15:01.0\t../../../devices/pci0000:15/0000:15:01.0\n")
    port = draft.pci("0000:15:01.0")
    assert "parent" not in port.offers
    assert value(port, "root") == "pci0000:15"


def test_a_drive_behind_vmd_hangs_on_the_vmd_root_with_its_long_domain() -> None:
    target = "../../../devices/pci0000:16/0000:16:00.5/pci10000:00/10000:00:02.0/10000:01:00.0"
    draft, _ = read("sys-pci", f"> sys/bus/pci/devices/10000:01:00.0\t{target}\n")
    drive = draft.pci("10000:01:00.0")
    assert value(drive, "parent") == "10000:00:02.0"
    assert value(drive, "root") == "pci10000:00"


def test_a_path_that_is_no_bus_id_is_left_and_the_rest_is_kept() -> None:
    draft, parsed = read("sys-pci", f"= sys/bus/pci/devices/0000:1f:7f.0/class\t0x060000\n{GPU}")
    assert [line.line for line in parsed.unread] == [1]
    assert value(draft.pci("0000:16:00.0"), "width") == 8


def test_a_link_to_the_physical_function_makes_a_virtual_one() -> None:
    draft, _ = read("sys-pci", f"= {AT}/class\t0x020700\n> {AT}/physfn\t../0000:16:00.1\n")
    assert value(draft.pci("0000:16:00.0"), "is_vf") is True


def test_only_a_function_that_can_have_virtual_ones_is_surely_physical() -> None:
    draft, _ = read("sys-pci", f"= {AT}/class\t0x020700\n= {AT}/sriov_totalvfs\t16\n")
    guest, _ = read("sys-pci", f"= {AT}/class\t0x020700\n")
    assert value(draft.pci("0000:16:00.0"), "is_vf") is False
    assert value(guest.pci("0000:16:00.0"), "is_vf") is None


def test_the_config_space_gives_acs_and_port_type() -> None:
    draft, _ = read("sys-pci", f"x {AT}/config\t{bytes(config()).hex()}\n")
    bridge = draft.pci("0000:16:00.0")
    assert (value(bridge, "acs"), value(bridge, "port_type")) == (0x1D, "downstream")
    assert place(bridge, "acs")[1].endswith("/config\tACSCtl 0x001d")


def test_sixty_four_bytes_of_config_space_need_root_for_more() -> None:
    draft, _ = read("sys-pci", f"x {AT}/config\t{bytes(config(size=64)).hex()}\n")
    assert why(draft.pci("0000:16:00.0"), "acs") == "needs root: config space past 64 bytes was not readable"


def test_a_config_space_that_was_denied_needs_root() -> None:
    draft, _ = read("sys-pci", f"! {AT}/config\tEACCES Permission denied\n")
    assert why(draft.pci("0000:16:00.0"), "acs").startswith("needs root: ")


def test_the_link_registers_stand_in_only_where_sysfs_has_no_such_file() -> None:
    space = f"x {AT}/config\t{bytes(config(link=(3, 4))).hex()}\n"
    node_draft, _ = read("sys-pci", space)
    beside, _ = read("sys-pci", space + f"= {AT}/current_link_width\t16\n= {AT}/current_link_speed\tUnknown\n")
    assert (value(node_draft.pci("0000:16:00.0"), "gen"), value(node_draft.pci("0000:16:00.0"), "width")) == (3, 4)
    assert (value(beside.pci("0000:16:00.0"), "gen"), value(beside.pci("0000:16:00.0"), "width")) == (None, 16)


def test_counters_alone_say_nothing_of_the_driver() -> None:
    draft, _ = read("sys-pci", f"= {AT}/aer_dev_fatal\tTOTAL_ERR_FATAL 0\n")
    assert draft.pci("0000:16:00.0").offers == {}


def test_it_recognises_its_tree_and_not_those_of_others() -> None:
    assert recognises("sys-pci", GPU)
    assert not recognises("sys-pci", "> sys/class/infiniband/mlx5_0/device\t../../../0000:16:00.0\n")
    assert not recognises("sys-pci", "see /sys/bus/pci/devices/0000:16:00.0/class\n")


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("class", "class_code"), ("vendor", "vendor"), ("device", "device"), ("numa_node", "numa"),
        ("current_link_speed", "gen"), ("current_link_width", "width"), ("max_link_speed", "max_gen"),
        ("max_link_width", "max_width"), ("local_cpulist", "local_cpus"),
    ],
)  # fmt: skip
def test_a_bad_value_loses_that_value_only(name: str, field: str) -> None:
    start = f"= {AT}/{name}\t"
    lines = [f"{start}@@" if line.startswith(start) else line for line in GPU.splitlines()]
    draft, parsed = read("sys-pci", "\n".join(lines))
    gpu = draft.pci("0000:16:00.0")
    assert {wanted: value(gpu, wanted) for wanted in FIELDS} == FIELDS | {field: None}
    assert len(parsed.unread) == 1


@given(st.binary(max_size=400), st.integers(0, len(GPU)))
def test_any_bytes_in_the_middle_are_survived(noise: bytes, at: int) -> None:
    raw = GPU.encode()
    read("sys-pci", raw[:at] + noise + raw[at:])


@given(st.permutations(GPU.splitlines()))
def test_the_order_of_lines_does_not_matter_to_the_facts(lines: list[str]) -> None:
    draft, _ = read("sys-pci", "\n".join(lines))
    gpu = draft.pci("0000:16:00.0")
    assert {name: value(gpu, name) for name in FIELDS} == FIELDS


@given(st.sets(st.integers(0, 20)))
def test_missing_lines_cost_only_their_own_facts(gone: set[int]) -> None:
    draft, _ = read("sys-pci", drop_lines(GPU, gone))
    gpu = draft.pci("0000:16:00.0")
    assert all(value(gpu, name) in (None, wanted) for name, wanted in FIELDS.items())


@given(st.text(alphabet="0123456789,-", max_size=40))
def test_local_cpus_are_a_cpu_list_or_unknown(text: str) -> None:
    draft, _ = read("sys-pci", f"= {AT}/local_cpulist\t{text}\n")
    offered = value(draft.pci("0000:16:00.0"), "local_cpus")
    assert offered is None or parse_cpulist(offered) is not None
