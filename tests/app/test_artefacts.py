"""Files that apply the fixes of a verdict: each is of the machine as it is, and what cannot be made says why."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.checks import nodes
from tests.verdict.judged import seen
from topodiag.app.artefacts import CHECKS, artefacts, checks_text, write_artefacts
from topodiag.model.errors import InputError
from topodiag.model.finding import Finding
from topodiag.model.result import Result
from topodiag.model.verdict import Cause, CauseStatus, State, Verdict


def diagnosed(*findings: Finding) -> Result:
    causes = tuple(Cause(finding, CauseStatus.ESTABLISHED, confirm=("nvidia-smi -L",)) for finding in findings)
    return Result(
        nodes=(replace(nodes.hgx_h100(), host="n0"),),
        findings=findings,
        verdict=Verdict(State.SLOW, "slow", causes=causes),
    )


def test_a_stale_topology_file_is_replaced_by_that_of_the_machine_as_it_is() -> None:
    [artefact] = artefacts(diagnosed(seen("TOP002")), ())
    assert not artefact.why
    assert artefact.name == "n0.topo.xml"
    assert artefact.text.count("<gpu ") == 8
    assert artefact.check == "topodiag topo check n0.topo.xml"


def test_a_host_without_a_capture_has_no_file_and_says_what_to_collect() -> None:
    [artefact] = artefacts(diagnosed(seen("TOP002", nodes=("n7",))), ())
    assert "topodiag scan --save" in artefact.why


def test_a_layout_that_cannot_be_solved_says_why() -> None:
    [artefact] = artefacts(diagnosed(seen("PLC001")), ("no-such-layout",))
    assert artefact.why


def test_a_cause_that_no_file_mends_is_in_the_checks_alone() -> None:
    result = diagnosed(replace(seen("NVL001", message="GPU3 has 12 links"), fix=("reset the GPUs",)))
    assert not artefacts(result, ())
    text = checks_text(result, [])
    assert "1. NVL001 n0: GPU3 has 12 links (established)" in text
    assert "   no file applies this fix\n   do     reset the GPUs\n   check  nvidia-smi -L" in text


def test_a_verdict_without_causes_has_nothing_to_write_and_says_so(tmp_path: Path) -> None:
    assert write_artefacts(str(tmp_path / "fix"), diagnosed(), []) == [CHECKS]
    assert "there is nothing to write" in (tmp_path / "fix" / CHECKS).read_text()


@pytest.mark.parametrize("target", ["gone/there", "fix"])
def test_a_link_to_nothing_is_no_folder_to_write_to(target: str, tmp_path: Path) -> None:
    (tmp_path / "fix").symlink_to(target)
    with pytest.raises(InputError, match="a link to nothing"):
        write_artefacts(str(tmp_path / "fix"), diagnosed(), [])


def test_the_name_of_a_host_is_no_path() -> None:
    evil = replace(nodes.hgx_h100(), host="../../etc/x")
    result = replace(diagnosed(seen("TOP002", nodes=("../../etc/x",))), nodes=(evil,))
    [artefact] = artefacts(result, ())
    assert not artefact.why
    assert "/" not in artefact.name
