"""AMD's evidence is spoken of in AMD's words, in every output: no tool, counter or module that only NVIDIA has."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.field import FOLDER
from benchmarks.rccl_agreement import CORPUS, OF_NVIDIA, own_words
from fixtures.generate.cases import standing
from tests import pasted
from topodiag.cli import cli
from topodiag.cli.errors import Outcome
from topodiag.model.errors import TopodiagError

FIXTURES_ROOT = FOLDER.parent
FIXTURES = sorted([*FIXTURES_ROOT.glob("nodes/mi300x*"), *FIXTURES_ROOT.glob("*/rccl-*")])
OF_AMD = re.compile(r"\bamdgpu\b|(?i:rocm|rccl)|XGMI|\bInstinct\b|\bMI[0-9]{2,3}[AX]?\b|\bby GPU node-\d")
OF_BOTH = re.compile(r"nvidia|NVRM|\bcuda[ _]|Tesla|GeForce|\b[AH]100\b", re.IGNORECASE)
ONLY_NVIDIAS = re.compile(
    OF_NVIDIA.pattern + r"|\bnvbandwidth\b|\bNVLS\b|\bpeermem\b|CUDA_VISIBLE|\bIMEX\b|\bGSP\b|nccl-tests|\bncclras\b"
    r"|\bHopper\b|\bBlackwell\b|\bAmpere\b",
    re.IGNORECASE,
)
TEXTS = [path for path in sorted((CORPUS / "texts").glob("*")) if path.suffix != ".tsv"]
MODELS = sorted((CORPUS / "models").glob("*.xml"))
CASES = [
    pytest.param(case, id=f"{file.parent.name}-{case['name']}")
    for file in sorted(FIXTURES_ROOT.glob("checks/*/cases.json"))
    for case in json.loads(file.read_text(encoding="utf-8"))
    if case["base"].startswith("mi300x")
]


def answer(path: Path) -> dict[str, Any]:
    try:
        return pasted.answer(path)
    except TopodiagError as error:
        return {"refused": str(error)}


def words(answered: object) -> list[str]:
    """NVIDIA's words in what the program says by itself."""
    return sorted({match[0] for match in ONLY_NVIDIAS.finditer(json.dumps(own_words(answered), ensure_ascii=False))})


def texts_of_the_field() -> list[Path]:
    """Those that name AMD's driver, library, runtime, links or products, and nothing of NVIDIA."""
    texts = {path: json.loads(path.read_text(encoding="utf-8"))["inputs"] for path in sorted(FOLDER.glob("*.json"))}
    joined = {path: "\n".join(given["text"] for given in inputs) for path, inputs in texts.items()}
    return [path for path, text in joined.items() if OF_AMD.search(text) and not OF_BOTH.search(text)]


def words_everywhere(path: Path, tmp_path: Path) -> list[str]:
    """NVIDIA's words in the JSON, on the terminal and on the page."""
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(cli, ["diagnose", str(path), "-v", "--html", str(page)], obj=Outcome()).stdout
    html = page.read_text(encoding="utf-8") if page.exists() else ""
    html = re.sub(r"<style>.*?</style>|<script.*?</script>|<[^>]*>", " ", html, flags=re.DOTALL)
    return words(answer(path)) + sorted({match[0] for match in ONLY_NVIDIAS.finditer(shown + html)})


def test_there_is_something_to_ask() -> None:
    assert len(texts_of_the_field()) >= 36
    assert len(FIXTURES) >= 6
    assert len(CASES) >= 34


@pytest.mark.parametrize("path", texts_of_the_field(), ids=lambda at: at.stem)
def test_texts_of_the_field_that_are_amds(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    for number, given in enumerate(json.loads(path.read_text(encoding="utf-8"))["inputs"]):
        (folder / f"{number}.txt").write_text(given["text"], encoding="utf-8")
    assert words_everywhere(folder, tmp_path) == []


@pytest.mark.parametrize("path", FIXTURES, ids=lambda at: at.name)
def test_every_output_of_the_fixtures(path: Path, tmp_path: Path) -> None:
    assert words_everywhere(path / "logs" if path.parent.name == "jobs" else path, tmp_path) == []


@pytest.mark.parametrize("case", CASES)
def test_machines_of_the_checks(case: dict[str, Any], tmp_path: Path) -> None:
    with standing(case, tmp_path) as bundle:
        assert words(answer(bundle)) == []


@pytest.mark.skipif(not TEXTS, reason="the corpus is not beside the checkout")
@pytest.mark.parametrize("path", TEXTS, ids=lambda at: at.name)
def test_texts_of_rccl_and_rocm(path: Path, tmp_path: Path) -> None:
    assert words_everywhere(path, tmp_path) == []


@pytest.mark.skipif(not MODELS, reason="the corpus is not beside the checkout")
@pytest.mark.parametrize("path", MODELS, ids=lambda at: at.stem)
def test_machines_of_rccl(path: Path) -> None:
    assert words(answer(path)) == []
