"""/sys/bus/pci/devices as a tree."""

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.config_space import config
from tests.evidence.filled import place, read, text_of, value
from topodiag.model.cpulist import parse_cpulist

AT = "sys/bus/pci/devices/0000:16:00.0"
GPU = text_of("sys-pci", "GPU")
FIELDS = {
    "class_code": 0x030200, "vendor": 0x10DE, "device": 0x2330, "subsystem_vendor": 0x10DE, "subsystem_device": 0x16C1,
    "gen": 4, "width": 8, "max_gen": 5, "max_width": 16, "numa": 0, "local_cpus": "0-55,112-167", "driver": "nvidia",
    "iommu_type": "identity", "parent": "0000:15:01.0", "root": "pci0000:15",
}  # fmt: skip


def test_the_config_space_gives_acs_and_port_type() -> None:
    draft, _ = read("sys-pci", f"x {AT}/config\t{bytes(config()).hex()}\n")
    bridge = draft.pci("0000:16:00.0")
    assert (value(bridge, "acs"), value(bridge, "port_type")) == (0x1D, "downstream")
    assert place(bridge, "acs")[1].endswith("/config\tACSCtl 0x001d")


@given(st.permutations(GPU.splitlines()))
def test_the_order_of_lines_does_not_matter_to_the_facts(lines: list[str]) -> None:
    draft, _ = read("sys-pci", "\n".join(lines))
    gpu = draft.pci("0000:16:00.0")
    assert {name: value(gpu, name) for name in FIELDS} == FIELDS


@given(st.text(alphabet="0123456789,-", max_size=40))
def test_local_cpus_are_a_cpu_list_or_unknown(text: str) -> None:
    draft, _ = read("sys-pci", f"= {AT}/local_cpulist\t{text}\n")
    offered = value(draft.pci("0000:16:00.0"), "local_cpus")
    assert offered is None or parse_cpulist(offered) is not None
