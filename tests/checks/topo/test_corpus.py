"""The corpus' topology files: TOP001 refuses what NCCL refused, in its words, and nothing else raises a false alarm."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.nccl.corpus import is_bare
from tests.scanned import node_at
from topodiag.app.topo import check_topology
from topodiag.checks.topo.devices import DeviceTwiceInFile, GpuShortInFile
from topodiag.checks.topo.file import FileOfARack, FileRefused
from topodiag.model.finding import Severity, Status
from topodiag.model.nccl_versions import minor_of
from topodiag.model.node import Node

TOPO = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "topo"
NAMES = sorted(path.stem for path in TOPO.glob("*.xml"))

if not NAMES:
    pytest.skip(f"the corpus is not at {TOPO}: nothing was compared", allow_module_level=True)

NO_GPU = {name for name in NAMES if "<gpu" not in (TOPO / f"{name}.xml").read_text()}
"""NCCL takes these and fills them from the machine; the emulated one had nothing else, so that it ended for want of
GPUs, without a word on the file."""
SICK = ("nonvl", "12nvl", "gen014", "gen021", "gen024", "gen025", "gen035", "gen040")
"""Files in which some GPU has fewer links to the NVSwitches than others."""
TWICE = ("x_duplicate_busid", "dgx1v")
"""dgx1v's NIC has the bus id of a GPU."""


JOBS = TOPO.parent / "jobs"
FILES = sorted({path.name: path for path in JOBS.glob("*/*.xml") if path.name != "graph.xml"}.items())
FEWER_NICS = ("dgx_h100_7nics.xml",)


def node(name: str) -> Node:
    return node_at(str(TOPO / f"{name}.xml"))


def truth(name: str) -> Any:
    return json.loads(gzip.decompress((TOPO / f"{name}.truth.json.gz").read_bytes()))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NO_GPU])
def test_what_nccl_refused_is_refused_in_its_words_and_what_it_took_is_not(name: str) -> None:
    file = node(name).nccl_file
    assert file is not None
    for version, by_nodes in truth(name).items():
        wanted = by_nodes["1"]
        asked = replace(node(name), nccl_file=replace(file, asked=(minor_of(version),)))
        outcome = FileRefused().judge(asked, ())
        if is_bare(wanted):
            assert outcome.status is Status.CLEAN, (version, outcome)
            continue
        assert (outcome.status is Status.FINDING) == (not wanted["accepted"]), (version, outcome)
        assert outcome.status is not Status.UNKNOWN, version
        if outcome.findings and wanted["warn"]:
            text = outcome.findings[0].observed.partition(": ")[2].partition(" … ")[0]
            assert any(text[:60] in words or words in text for words in wanted["warn"]), (text, wanted["warn"])


@pytest.mark.parametrize("name", sorted(NO_GPU - {"x_empty_file"}))
def test_a_file_without_gpus_is_neither_called_valid_nor_refused(name: str) -> None:
    assert FileRefused().judge(node(name), ()).status is Status.UNKNOWN


@pytest.mark.parametrize("name", [name for name in NAMES if name != "x_empty_file"])
def test_only_files_made_sick_are_called_sick(name: str) -> None:
    short = GpuShortInFile().judge(node(name), ()).status
    assert (short in {Status.FINDING, Status.UNKNOWN}) == any(part in name for part in SICK)
    assert (DeviceTwiceInFile().judge(node(name), ()).status is Status.FINDING) == (name in TWICE)
    assert FileOfARack().judge(node(name), ()).status is not Status.FINDING


@pytest.mark.parametrize(("name", "path"), FILES, ids=[name for name, _ in FILES])
def test_files_of_jobs_raise_no_error_but_what_was_done_to_them(name: str, path: Path) -> None:
    texts = {f.id for f in check_topology(str(path)).findings if f.severity is Severity.ERROR}
    sick = {"TOP004", "NVL001"} if "12nvl" in name else {"NIC005"} if name in FEWER_NICS else set()
    assert texts == sick
