"""AMD's evidence is spoken of in AMD's words, in every output: no tool, counter or module that only NVIDIA has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.field import FOLDER
from benchmarks.rccl_agreement import CORPUS, OF_NVIDIA, own_words
from topodiag.api import diagnose
from topodiag.cli import cli
from topodiag.cli.errors import Outcome
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
FIXTURES = ("nodes/mi300x-healthy", "nodes/mi300x-gpu1-gpu5-no-xgmi", "jobs/rccl-healthy", "jobs/rccl-gdr-off")
ONLY_NVIDIAS = re.compile(
    OF_NVIDIA.pattern + r"|\bnvbandwidth\b|\bNVLS\b|\bpeermem\b|CUDA_VISIBLE|\bIMEX\b|\bGSP\b|nccl-tests|\bncclras\b"
    r"|\bHopper\b|\bBlackwell\b|\bAmpere\b",
    re.IGNORECASE,
)
ROOT = FOLDER.parent
TEXTS = sorted((CORPUS / "texts").iterdir()) if CORPUS.is_dir() else []
MODELS = sorted((CORPUS / "models").glob("*.xml"))[::4] if CORPUS.is_dir() else []


def answer(path: Path) -> dict[str, Any]:
    try:
        made: dict[str, Any] = json.loads(diagnose((str(path),)).to_json())
    except TopodiagError as error:
        return {"refused": str(error)}
    return made


def words(answered: object) -> list[str]:
    """NVIDIA's words in what the program says by itself."""
    return sorted({found[0] for found in ONLY_NVIDIAS.finditer(json.dumps(own_words(answered), ensure_ascii=False))})


@pytest.mark.parametrize("name", FIELD)
def test_texts_of_the_field_that_are_amds(name: str, tmp_path: Path) -> None:
    for number, given in enumerate(json.loads((FOLDER / f"{name}.json").read_text())["inputs"]):
        (tmp_path / f"{number}.txt").write_text(given["text"])
    assert words(answer(tmp_path)) == []


@pytest.mark.parametrize(
    "name", ["nodes/mi300x-healthy", "nodes/mi300x-gpu1-gpu5-no-xgmi", "jobs/rccl-healthy", "jobs/rccl-gdr-off"]
)
def test_every_output_of_the_fixtures(name: str, tmp_path: Path) -> None:
    path = ROOT / name / ("logs" if name.startswith("jobs") else "")
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(cli, ["diagnose", str(path), "-v", "--html", str(page)], obj=Outcome()).stdout
    assert shown
    html = re.sub(r"<style>.*?</style>|<script.*?</script>|<[^>]*>", " ", page.read_text(), flags=re.DOTALL)
    for text in (shown, html):
        assert sorted({found[0] for found in ONLY_NVIDIAS.finditer(text)}) == []
    assert words(answer(path)) == []


@pytest.mark.skipif(not TEXTS, reason="the corpus is not beside the checkout")
@pytest.mark.parametrize("path", [*(path for path in TEXTS if path.suffix != ".tsv"), *MODELS], ids=lambda at: at.name)
def test_texts_of_rccl_and_rocm(path: Path) -> None:
    assert words(answer(path)) == []
