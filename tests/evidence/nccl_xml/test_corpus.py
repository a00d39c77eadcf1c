"""NCCL's verdict on the files of the corpus: what its parser refused is refused in the same words, and nothing else."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from topodiag.evidence.nccl_xml import read_file
from topodiag.evidence.nccl_xml.file import read_tolerantly

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
FILES = sorted((CORPUS / "topo").glob("*.xml"))
DUMPS = sorted(file for file in (CORPUS / "jobs").glob("*/*.xml") if not file.name.startswith("graph"))
PARSER = ("XML ", "Error : value", "Error : name", "Error : XML")
"""How the parser's own warnings begin; others come from building the graph."""

pytestmark = pytest.mark.skipif(not FILES, reason=f"the corpus of topology files is not at {CORPUS}")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_parsers_verdict_is_nccls(file: Path) -> None:
    truth: dict[str, Any] = json.loads(gzip.decompress(file.with_suffix(".truth.json.gz").read_bytes()))
    read = read_file(file.read_bytes(), file.name)
    for version, by_nodes in truth.items():
        refusal = read.refusal(int(version.partition(".")[2]))
        for answer in by_nodes.values():
            said = next((warn for warn in answer.get("warn") or () if warn.startswith(PARSER)), None)
            assert (refusal is None) == (said is None)
            if refusal is not None and said is not None:
                # The log has the words up to the end of its line, and cuts long ones.
                assert refusal.words.startswith(said[:100])


@pytest.mark.parametrize("file", DUMPS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_files_that_jobs_ran_with_are_taken_by_every_version(file: Path) -> None:
    read = read_file(file.read_bytes(), file.name)
    assert read.refusals == ()
    assert {note.rule for note in read.notes} <= {"ignored-element", "doubled-busid"}
    assert read_tolerantly(file.read_bytes(), file.name) == read.tree
