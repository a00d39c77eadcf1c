"""Every topology file of fixtures/topo replays to exactly what it was made for: findings, versions, silence, doubt."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.scanned import node_at
from topodiag.app.topo import check_topology
from topodiag.checks.topo.file import FileRefused
from topodiag.model.finding import Status
from topodiag.model.nccl_versions import NEWEST, OLDEST, spell_versions
from topodiag.model.result import Result

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "topo"
NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def expected(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / name / "expected.json").read_text())
    return loaded


def refusing(name: str) -> list[int]:
    """The versions that refuse the file; without a last one, up to the newest that is known."""
    first, last = expected(name)["refused"] or (0, -1)
    return list(range(first, (NEWEST if last is None else last) + 1))


def file_of(name: str) -> Path:
    return FOLDER / name / "topo.xml"


@cache
def checked(name: str) -> Result:
    against = expected(name)["against"]
    if against is not None:
        against = str(file_of(against.removeprefix("topo:"))) if against.startswith("topo:") else f"fixture:{against}"
    return check_topology(str(file_of(name)), against=against)


def test_the_known_traps_are_there() -> None:
    assert {"gpu-without-nvlink", "h200-slower-file"} <= set(NAMES)
    assert len(NAMES) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_findings_are_exactly_the_expected_ones(name: str) -> None:
    records: list[dict[str, object]] = [
        {"id": f.id, "severity": str(f.severity), "gpus": list(f.where.gpus), "nics": list(f.where.nics)}
        for f in checked(name).findings
    ]
    wanted = expected(name)["findings"]

    def key(entry: dict[str, object]) -> str:
        return json.dumps(entry, sort_keys=True)

    assert sorted(records, key=key) == sorted(wanted, key=key)


@pytest.mark.parametrize("name", NAMES)
def test_checks_are_silent_or_in_doubt_where_the_file_was_made_so(name: str) -> None:
    statuses = {outcome.check: outcome for outcome in checked(name).outcomes}
    for check in expected(name)["silent"]:
        assert statuses[check].status in {Status.CLEAN, Status.NOT_APPLICABLE}, statuses[check]
    for check in expected(name)["unknown"]:
        assert statuses[check].status is Status.UNKNOWN, statuses[check]


@pytest.mark.parametrize("name", NAMES)
def test_no_check_failed_on_it(name: str) -> None:
    assert [outcome.why for outcome in checked(name).outcomes if "the check failed" in outcome.why] == []


@pytest.mark.parametrize("name", [name for name in NAMES if expected(name)["against"] is None])
def test_it_is_refused_by_exactly_the_versions_that_it_was_made_for(name: str) -> None:
    node = node_at(str(file_of(name)))
    file = node.nccl_file
    assert file is not None
    refused = []
    for minor in range(OLDEST, NEWEST + 1):
        outcome = FileRefused().judge(replace(node, nccl_file=replace(file, asked=(minor,))), ())
        if outcome.status is Status.FINDING:
            refused.append(minor)
    assert refused == refusing(name)


@pytest.mark.parametrize("name", [name for name in NAMES if refusing(name)])
def test_without_a_version_all_are_asked_and_those_that_refuse_are_named(name: str) -> None:
    (finding,) = [finding for finding in checked(name).findings if finding.id == "TOP001"]
    assert finding.message.startswith(f"NCCL {spell_versions(refusing(name))} refuse ")


@pytest.mark.parametrize("name", [name for name in NAMES if expected(name)["lines"]])
def test_the_finding_names_the_line_at_fault(name: str) -> None:
    lines = file_of(name).read_text().splitlines()
    first = expected(name)["findings"][0]["id"]
    (finding,) = [finding for finding in checked(name).findings if finding.id == first]
    named = [lines[origin.line - 1] for origin in finding.evidence if origin.line is not None]
    for wanted in expected(name)["lines"]:
        assert any(wanted in line for line in named), named


def test_a_gpu_without_nvlink_is_told_with_the_loss_and_the_repairing_file() -> None:
    (finding,) = [finding for finding in checked("gpu-without-nvlink").findings if finding.id == "TOP004"]
    assert finding.cost.share > 0.5
    assert "collapses, without a warning" in finding.message
    assert any("--repair" in step for step in finding.fix)


def test_a_file_that_slows_the_node_down_is_told_with_what_no_file_would_give() -> None:
    (finding,) = checked("h200-slower-file").findings
    assert "slower than no file" in finding.message
    assert finding.cost.gbs_lost > 100


def test_a_nic_at_a_wrong_place_is_named_beside_the_gpu_that_lacks_it() -> None:
    (finding,) = checked("misplaced-nic").findings
    assert finding.fix[0].startswith("in the file mlx5_0 stands below no GPU's switch")


@pytest.mark.parametrize("name", NAMES)
def test_a_fixture_folder_is_complete(name: str) -> None:
    assert (FOLDER / name / "about.txt").read_text().strip()
