"""A topology file as evidence of a node: which facts it gives, from which lines, and what it leaves unknown."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topodiag
from tests.depth import some_of
from tests.evidence.filled import read, text_of
from tests.tables import examples
from topodiag.evidence import registry
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.nccl_xml import read_file
from topodiag.evidence.nccl_xml.file import read_tolerantly
from topodiag.model.cpulist import parse_cpumask
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.result import Result
from topodiag.words.units import fold_numbers

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

DUMP = text_of("nccl-xml", "DUMP")


@examples("mask", "cpus")
def test_masks_are_read_from_the_lowest_group(mask: str, cpus: str) -> None:
    assert fold_numbers(parse_cpumask(mask) or ()) == cpus


def diagnosed(tmp_path: Path, text: str) -> Result:
    file = tmp_path / "topo.xml"
    file.write_text(text, encoding="utf-8")
    return topodiag.diagnose([str(file)])


def node_of(tmp_path: Path, text: str) -> Node:
    return diagnosed(tmp_path, text).nodes[0]


def test_a_file_alone_makes_a_node_of_its_name_that_keeps_the_file(tmp_path: Path) -> None:
    node = node_of(tmp_path, DUMP)
    assert node.host == "topo"
    assert node.nccl_file.tree.children[0].get("numaid") == "0"


def test_a_refused_file_still_makes_a_node(tmp_path: Path) -> None:
    node = node_of(tmp_path, '<?xml version="1.0"?>\n' + DUMP)
    assert len(node.gpus) == 2
    assert node.nccl_file.refusal(28) is not None


def test_a_dump_of_several_hosts_is_the_node_of_the_first(tmp_path: Path) -> None:
    second = DUMP[DUMP.index("  <cpu") : DUMP.index("</system>")].replace('"0x1"', '"0x2"')
    node = node_of(tmp_path, DUMP.replace("</system>", second + "</system>"))
    assert len(node.gpus) == 2
    assert len(node.nccl_file.tree.children) == 4
    assert any("1 more hosts" in gap.what for gap in node.not_observed)


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
    draft = NodeDraft()
    blob = Blob("files/topo.xml", DUMP.encode(), Item("nccl-topo-file", "nccl-xml", "files/topo.xml"))
    source.read(blob, draft)
    assert draft.nccl_file is not None
    assert list(draft.entities("gpu")) == []


def test_a_hostile_file_costs_a_capture_one_line_and_a_scan_its_input(tmp_path: Path) -> None:
    deep = '<system version="1"><cpu numaid="0">' + "<pci>" * 10_000
    source = registry.source("nccl-xml")
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


DUMPS = sorted(file for file in (CORPUS / "jobs").glob("*/*.xml") if not file.name.startswith("graph"))


@pytest.mark.skipif(not FILES, reason=f"the corpus of topology files is not at {CORPUS}")
@pytest.mark.parametrize("file", DUMPS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_files_that_jobs_ran_with_are_taken_by_every_version(file: Path) -> None:
    read = read_file(file.read_bytes(), file.name)
    assert read.refusals == ()
    assert {note.rule for note in read.notes} <= {"ignored-element", "doubled-busid"}
    assert read_tolerantly(file.read_bytes(), file.name) == read.tree
