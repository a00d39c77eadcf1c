"""A topology file as evidence of a node: which facts it gives, from which lines, and what it leaves unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topodiag
from tests.depth import some_of
from tests.evidence.filled import place, read, recognises, value
from tests.tables import examples, texts
from topodiag.evidence import registry
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Item
from topodiag.model.cpulist import parse_cpumask
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.result import Result
from topodiag.words.fold import fold_numbers

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
FILES = sorted((CORPUS / "topo").glob("*.xml"))
DESERVED = {
    "dgx_h100_gpu3_12nvl": {"NVL001"}, "dgx_h100_7nics": {"NIC005"}, "x_nic_on_cpu": {"NIC005"},
    "gen011": {"NVL001"}, "gen019": {"PCI001"}, "gen024": {"NVL001"}, "gen040": {"NVL001"},
}  # fmt: skip
"""Alarms on files of the corpus but for those that concern the file itself."""
DRAWN = [file for file in FILES if file.stem.startswith("gen") and file.stem not in DESERVED]
ASKED = [file for file in FILES if file.stat().st_size and (file not in DRAWN or file in some_of(DRAWN, "drawn"))]
"""Of the files that are drawn by chance and deserve no alarm a third, all with TOPODIAG_TESTS=deep."""

PCI = 'vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16"'
NIC = 'class="0x020700" vendor="0x15b3" device="0x1021" link_speed="32.0 GT/s PCIe" link_width="16"'
TEXTS = texts(__file__)
DUMP = TEXTS["dump"]


def test_nccls_files_are_recognised_good_and_refused_ones() -> None:
    assert recognises("nccl-xml", DUMP)
    assert recognises("nccl-xml", '<?xml version="1.0"?>\n<!-- by hand -->\n' + DUMP)
    assert recognises("nccl-xml", '<system version="1"/>')
    assert recognises("nccl-xml", "\ufeff" + DUMP.replace("  ", "\t"))


@examples("text")
def test_other_texts_are_not(text: str) -> None:
    assert not recognises("nccl-xml", text)


def test_processors_and_numa_nodes_are_offered() -> None:
    draft, _ = read("nccl-xml", DUMP)
    cpu = draft.single("cpu")
    assert [value(cpu, name) for name in ("arch", "vendor", "family", "model")] == ["x86_64", "GenuineIntel", 6, 143]
    assert value(draft.numa(0), "cpus") == "0-15,32-35"
    assert value(draft.numa(1), "cpus") is None


def test_gpus_are_offered_with_their_place_and_links() -> None:
    draft, _ = read("nccl-xml", DUMP)
    gpu = draft.gpu(index=0)
    assert gpu.keys == {"index": 0, "bus_id": "0000:19:00.0"}
    assert (value(gpu, "sm"), value(gpu, "numa"), place(gpu, "sm")[0]) == (90, 0, 5)
    links = [gpu.child("nvlink", number) for number in range(18)]
    assert {value(link, "state") for link in links} == {"active"}
    assert {value(link, "remote_type") for link in links} == {"switch"}
    assert [value(links[number], "remote_bus_id") for number in (9, 10)] == ["0000:07:00.0", "0000:08:00.0"]
    assert place(links[10], "state") == (7, '<nvlink target="0000:08:00.0" count="8" tclass="0x068000"/>')
    peer = draft.gpu(index=1).child("nvlink", 1)
    assert (value(peer, "remote_type"), value(peer, "remote_bus_id")) == ("gpu", "0000:19:00.0")


def test_a_file_of_2_31_names_all_switches_by_one_target_and_gpus_by_the_class_from_nvml() -> None:
    """xml.cc: NVML says whether a switch or a GPU is at the far end; a switch has no place of its own there."""
    text = DUMP.replace(
        """<nvlink target="0000:07:00.0" count="10" tclass="0x068000"/>
          <nvlink target="0000:08:00.0" count="8" tclass="0x068000"/>""",
        """<nvlink target="fffffff:ffff:ff" tclass="0x068000" count="18"/>""",
    ).replace('count="2" tclass="0x030200"', 'tclass="0x03" count="2"')
    draft, parsed = read("nccl-xml", text)
    assert not parsed.unread
    links = [draft.gpu(index=0).child("nvlink", number) for number in range(18)]
    assert {(value(link, "state"), value(link, "remote_type")) for link in links} == {("active", "switch")}
    peer = draft.gpu(index=1).child("nvlink", 1)
    assert (value(peer, "remote_type"), value(peer, "remote_bus_id")) == ("gpu", "0000:19:00.0")


def test_links_of_pci_are_abilities_and_never_trained_values() -> None:
    draft, _ = read("nccl-xml", DUMP)
    function = draft.pci("0000:19:00.0")
    wanted = {
        "class_code": 0x030200, "vendor": 0x10DE, "device": 0x2330, "numa": 0, "parent": "0000:15:01.0",
        "slot_max_gen": 5, "slot_max_width": 16,
    }  # fmt: skip
    assert {name: value(function, name) for name in wanted} == wanted
    assert not {"gen", "width", "max_gen", "max_width"} & function.offers.keys()


def test_networks_are_nics_or_interfaces_by_name_and_port() -> None:
    draft, _ = read("nccl-xml", DUMP)
    nic = draft.nic(rdma="mlx5_0")
    assert nic.keys["bus_id"] == "0000:1a:00.0"
    assert (value(nic.child("port", 1), "rate_gbps"), value(nic.child("port", 1), "state")) == (400.0, None)
    assert value(draft.netdev("eth0"), "speed_mbps") == 10000
    assert [entity.keys.get("rdma") for entity in draft.entities("nic")] == ["mlx5_0"]


def test_a_nic_merged_of_two_is_both() -> None:
    draft, _ = read("nccl-xml", DUMP.replace('"mlx5_0"', '"mlx5_0+mlx5_1"').replace("400000", "800000"))
    rates = {str(nic.keys["rdma"]): value(nic.child("port", 1), "rate_gbps") for nic in draft.entities("nic")}
    assert rates == {"mlx5_0": 400.0, "mlx5_1": 400.0}


def test_c2c_is_the_sum_of_its_links() -> None:
    draft, _ = read("nccl-xml", DUMP.replace("</gpu>", '<c2c bw="44712" count="10"/></gpu>', 1))
    gpu = draft.gpu(index=0)
    assert (value(gpu, "c2c"), value(gpu, "c2c_gbs")) == (True, 447.12)


@examples("mask", "cpus")
def test_masks_are_read_from_the_lowest_group(mask: str, cpus: str) -> None:
    assert fold_numbers(parse_cpumask(mask) or ()) == cpus


def diagnosed(tmp_path: Path, text: str) -> Result:
    file = tmp_path / "topo.xml"
    file.write_text(text, encoding="utf-8")
    return topodiag.diagnose([str(file)])


def node_of(tmp_path: Path, text: str) -> Node:
    return diagnosed(tmp_path, text).nodes[0]


def test_a_file_alone_makes_a_node_with_nccls_paths(tmp_path: Path) -> None:
    node = node_of(tmp_path, DUMP)
    assert node.host == "topo"
    first = node.gpus[0]
    assert (first.label, first.bus_id, first.name.value) == ("GPU0", "0000:19:00.0", "H100 80GB HBM3")
    assert node.paths["GPU0", "mlx5_0"].type is PathType.PIX
    assert node.paths["GPU0", "GPU1"].type is PathType.NVL
    assert node.paths["GPU1", "mlx5_0"].type in (PathType.PHB, PathType.PXN)
    assert node.nccl_file is not None
    assert node.nccl_file.tree.children[0].get("numaid") == "0"


def test_a_refused_file_still_makes_a_node(tmp_path: Path) -> None:
    node = node_of(tmp_path, '<?xml version="1.0"?>\n' + DUMP)
    assert len(node.gpus) == 2
    assert node.nccl_file is not None
    assert node.nccl_file.refusal(28) is not None


def test_a_dump_of_several_hosts_is_the_node_of_the_first(tmp_path: Path) -> None:
    second = DUMP[DUMP.index("  <cpu") : DUMP.index("</system>")].replace('"0x1"', '"0x2"')
    node = node_of(tmp_path, DUMP.replace("</system>", second + "</system>"))
    assert len(node.gpus) == 2
    assert node.nccl_file is not None
    assert len(node.nccl_file.tree.children) == 4
    assert any("1 more hosts" in gap.what for gap in node.not_observed)


def test_a_capability_that_contradicts_the_pci_id_names_no_product(tmp_path: Path) -> None:
    node = node_of(tmp_path, DUMP.replace('sm="90"', 'sm="80"'))
    assert {gpu.name.value for gpu in node.gpus} == {None}


def test_a_gpu_without_index_gets_one_by_bus_id(tmp_path: Path) -> None:
    node = node_of(tmp_path, DUMP.replace(' dev="0" sm', " sm").replace(' dev="1" sm', " sm"))
    assert [gpu.bus_id for gpu in node.gpus] == ["0000:19:00.0", "0000:2a:00.0"]


def test_a_file_that_names_places_alone_has_gpus_and_nics_without_names(tmp_path: Path) -> None:
    # As clouds ship them for their virtual machines.
    text = """<system version="1">
  <cpu numaid="0" affinity="00ffffff" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">
      <pci busid="0003:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
      <pci busid="0103:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
    </pci>
  </cpu>
</system>
"""
    result = diagnosed(tmp_path, text)
    node = result.nodes[0]
    assert [(gpu.label, gpu.bus_id, gpu.numa.value) for gpu in node.gpus] == [("GPU0", "0003:00:00.0", 0)]
    assert [nic.name for nic in node.nics] == ["0103:00:00.0"]
    assert node.paths["GPU0", "0103:00:00.0"].type is PathType.PIX
    assert result.findings == ()


def test_in_a_capture_the_file_is_kept_and_tells_no_devices() -> None:
    # It is what NCCL was given, which may be another machine's.
    source = registry.source("nccl-xml")
    assert source is not None
    draft = NodeDraft()
    blob = Blob("files/topo.xml", DUMP.encode(), Item("nccl-topo-file", "nccl-xml", "files/topo.xml"))
    source.read(blob, draft)
    assert draft.nccl_file is not None
    assert list(draft.entities("gpu")) == []


def test_a_hostile_file_costs_a_capture_one_line_and_a_scan_its_input(tmp_path: Path) -> None:
    deep = '<system version="1"><cpu numaid="0">' + "<pci>" * 10_000
    source = registry.source("nccl-xml")
    assert source is not None
    parsed = source.parse(Blob("files/topo.xml", deep.encode(), Item("nccl-topo-file", "nccl-xml", "files/topo.xml")))
    assert (parsed.records, parsed.unread_count) == ([], 1)
    with pytest.raises(InputError, match="nests deeper"):
        diagnosed(tmp_path, deep)


@pytest.mark.skipif(not FILES, reason=f"the corpus of topology files is not at {CORPUS}")
@pytest.mark.parametrize("file", ASKED, ids=lambda file: file.stem)
def test_a_file_of_the_corpus_raises_only_alarms_that_it_deserves(file: Path) -> None:
    result = topodiag.diagnose([str(file)])
    errors = {finding.id for finding in result.findings if finding.severity is Severity.ERROR}
    names = {name for name in errors if not name.startswith("TOP")}
    assert names == DESERVED.get(file.stem, set())
    if "x_" not in file.stem:
        assert result.nodes[0].gpus


@given(st.integers(0, len(DUMP)), st.integers(0, 40), st.text("<>/='\" \n0x9-", max_size=6))
def test_a_file_changed_anywhere_breaks_nothing(at: int, removed: int, added: str) -> None:
    text = DUMP[:at] + added + DUMP[at + removed :]
    draft, parsed = read("nccl-xml", text)
    assert len(parsed.records) == 1
    assert draft.nccl_file is parsed.records[0]
