from pathlib import Path

import pytest

from benchmarks.rccl_agreement import CORPUS
from tests.nccl.rccl.machines import mi300x
from tests.topologies import clean
from topodiag.emit.nccl_xml import to_text
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.nccl_tree import of_rccl
from topodiag.words.dialect import Maker

MODELS = sorted((CORPUS / "models").glob("*.xml")) if CORPUS.is_dir() else []


def test_a_file_of_rccl_is_taken_by_its_rules() -> None:
    file = read_file(mi300x(), "n.xml")
    assert file.maker is Maker.AMD
    assert file.refusals == ()
    assert file.notes == ()
    assert of_rccl(file.tree)


def test_rccl_refuses_version_1() -> None:
    (refusal,) = read_file(mi300x(version="1"), "n.xml").refusals
    assert refusal.words == "XML Topology has wrong version 1, 2 needed"


def test_a_file_without_xgmi_and_architecture_is_nccls() -> None:
    plain = b'<system version="1"><cpu numaid="0" affinity="1" arch="x86_64"/></system>'
    assert read_file(plain, "n.xml").maker is None


def test_a_tree_is_written_as_rccl_reads_it() -> None:
    tree = clean(read_file(mi300x(), "n.xml").tree, 21).tree
    text = to_text(tree, 21)
    assert text.startswith('<system version="2">')
    assert "<xgmi " in text
    assert "<nvlink" not in text
    assert 'gcn="gfx942"' in text
    assert read_file(text.encode(), "n.xml").tree == tree


@pytest.mark.skipif(not MODELS, reason="the corpus is not beside the checkout")
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_amds_own_models_are_taken(path: Path) -> None:
    assert read_file(path.read_bytes(), path.name).refusals == ()
