"""Captures whose texts are read once in the suite become the nodes that the program reads from an empty start."""

import pytest

from tests import read_once
from topodiag.evidence.intake import reader
from topodiag.evidence.intake.bundle import open_evidence
from topodiag.evidence.intake.collected import fixture_path, fixtures


@pytest.mark.parametrize("name", fixtures())
def test_a_node_of_texts_that_are_kept_is_the_node_that_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = open_evidence(str(fixture_path(name)))
    if int(name.encode().hex(), 16) % 2:
        evidence.blobs.reverse()
    reader.read_node(evidence)
    kept = reader.read_node(evidence)
    monkeypatch.setattr(reader, "_read_with", read_once.plainly)
    assert kept == reader.read_node(evidence)
    assert kept.node.gpus or kept.node.nics or name == "no-gpu"
