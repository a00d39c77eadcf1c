"""AMD's evidence is spoken of in AMD's words: no tool, counter or module that only NVIDIA has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.field import FOLDER
from benchmarks.rccl_agreement import CORPUS, nvidia_words
from topodiag.api import diagnose
from topodiag.model.errors import TopodiagError

FIELD = (
    "032-rccl-mi100-iommu-pt",
    "048-mi300x-sclk-60mhz",
    "319-numa-balancing-rccl-warns",
    "420-amdgpu-scheduler-does-not-answer",
    "458-mi50-athub-hardware-error",
    "481-mi50-fatal-error-at-init",
    "557-rccl-misses-iommu-pt",
    "1332-mi50-ras-fatal",
)
"""Texts of the field that name AMD's driver, library or product."""
UNTOLD = {
    "ionic_eight.log": "eight NICs of AMD, and no line that tells whose GPUs or whose library it is",
    "scratch_reclaim.log": "RCCL's message names no library, and no line before it does",
}
TEXTS = sorted((CORPUS / "texts").iterdir()) if CORPUS.is_dir() else []


def answer(path: Path) -> dict[str, Any]:
    try:
        made: dict[str, Any] = json.loads(diagnose((str(path),)).to_json())
    except TopodiagError as error:
        return {"refused": str(error)}
    return made


@pytest.mark.parametrize("name", FIELD)
def test_texts_of_the_field_that_are_amds(name: str, tmp_path: Path) -> None:
    for number, given in enumerate(json.loads((FOLDER / f"{name}.json").read_text())["inputs"]):
        (tmp_path / f"{number}.txt").write_text(given["text"])
    assert nvidia_words(answer(tmp_path)) == []


@pytest.mark.skipif(not TEXTS, reason="the corpus is not beside the checkout")
@pytest.mark.parametrize("path", [path for path in TEXTS if path.suffix != ".tsv"], ids=lambda path: path.name)
def test_texts_of_rccl_and_rocm(path: Path) -> None:
    words = nvidia_words(answer(path))
    assert words == [] or path.name in UNTOLD, UNTOLD.get(path.name)
