"""Every situation of every check: what fires it, each reason to stay silent, what leaves it unknown."""

import json
from pathlib import Path
from typing import Any

import pytest

from fixtures.generate.cases import CaseError, materialise, standing
from tests.shown import ROOT
from topodiag.checks import registry
from topodiag.checks.interface import NodeCheck
from topodiag.checks.run import run
from topodiag.evidence.intake.bundle import open_evidence
from topodiag.evidence.intake.reader import read_node

FILES = sorted((ROOT / "fixtures" / "checks").glob("*/cases.json"))
CASES = [
    pytest.param(file.parent.name, case, id=f"{file.parent.name}-{case['name']}")
    for file in FILES
    for case in json.loads(file.read_text(encoding="utf-8"))
]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bases")


@pytest.mark.parametrize(("check", "case"), CASES)
def test_the_check_answers_as_the_situation_was_made(check: str, case: dict[str, Any], bases: Path) -> None:
    with standing(case, bases) as node:
        items = json.loads((node / "manifest.json").read_text(encoding="utf-8"))["items"]
        assert all((node / item["file"]).is_file() for item in items if item["status"] == "ok")
        read = read_node(open_evidence(str(node))).node
    outcome = run(registry.Subject.NODE, [read], (check,))[-1]
    assert case["why"]
    assert outcome.status.value == case["expect"], f"{case['why']}; the check says: {outcome.why}"


def test_each_check_of_nodes_has_its_cases() -> None:
    judges = {name for name in registry.ids() for each in registry.check_classes(name) if issubclass(each, NodeCheck)}
    assert judges <= {file.parent.name for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_each_check_fires_stays_silent_and_admits_not_to_know(file: Path) -> None:
    cases = json.loads(file.read_text(encoding="utf-8"))
    assert len({case["name"] for case in cases}) == len(cases)
    assert {"finding", "unknown"} <= {case["expect"] for case in cases}
    assert {"clean", "not_applicable"} & {case["expect"] for case in cases}


def case_of(*edits: dict[str, Any]) -> dict[str, Any]:
    return {"name": "made", "base": "no-gpu", "edits": list(edits), "expect": "clean", "why": "made"}


MISFIT = {"file": "trees/sys-pci.tree", "replace": "text that is nowhere", "with": "", "count": 1}


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (MISFIT, "found 0 times instead of 1"),
        ({"file": "commands/gone.txt", "delete": True}, "has no commands/gone"),
        ({"manifest_item": "gone", "set": {"status": "timeout"}}, "0 items gone"),
    ],
)
def test_an_edit_of_what_is_not_there_is_refused(tmp_path: Path, edit: dict[str, Any], says: str) -> None:
    with pytest.raises(CaseError, match=says):
        materialise(case_of(edit), tmp_path / "node")


def test_edits_change_the_copy_and_leave_the_base(tmp_path: Path) -> None:
    base = ROOT / "fixtures" / "nodes" / "no-gpu"
    before = (base / "manifest.json").read_bytes()
    edits = [{"manifest_item": "nvml", "set": {"status": "timeout"}}, {"file": "json/nvml.json", "append": "\n"}]
    path = materialise(case_of(*edits), tmp_path / "node")
    items = json.loads((path / "manifest.json").read_text(encoding="utf-8"))["items"]
    assert [item["status"] for item in items if item["id"] == "nvml"] == ["timeout"]
    assert (path / "json" / "nvml.json").read_text().endswith("\n\n")
    assert (base / "manifest.json").read_bytes() == before


def test_a_case_that_stands_for_a_while_is_the_copy_with_its_edits_and_then_the_base_again(tmp_path: Path) -> None:
    edits = [
        {"manifest_item": "nvml", "set": {"status": "timeout"}},
        {"manifest_item": "nvml", "set": {"why": "made"}},
        {"file": "json/nvml.json", "delete": True},
        {"file": "made/new.txt", "append": "new\n"},
    ]
    case = case_of(*edits)

    def files(folder: Path) -> dict[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    with standing(case_of(), tmp_path / "bases") as node:
        base = files(node)
    with standing(case, tmp_path / "bases") as node:
        assert files(node) == files(materialise(case, tmp_path / "copy")) != base
    assert files(node) == base
    with pytest.raises(CaseError, match="found 0 times"), standing(case_of(*edits, MISFIT), tmp_path / "bases"):
        pass
    assert files(node) == base
