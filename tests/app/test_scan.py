"""One front door for nodes, jobs and topologies: any mix, nothing merged, foreign files named with their command."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.small_log import log
from topodiag.app.case.nodes import one_node
from topodiag.app.diagnose import diagnose
from topodiag.app.logs import logs
from topodiag.app.scan import scan
from topodiag.app.topo import check_topology
from topodiag.evidence.intake.collected import fixture_path
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity
from topodiag.report.places import Places

WELL, SICK = "dgx-h100-healthy", "dgx-h100-gpu3-12of18-nvlink"


def two_nodes(place: Path, first: str, second: str) -> Path:
    shutil.copytree(fixture_path(first), place / "one")
    shutil.copytree(fixture_path(second), place / "two")
    return place


@pytest.mark.parametrize("order", [(WELL, SICK), (SICK, WELL)])
def test_two_nodes_in_one_folder_are_two_and_the_sick_one_is_named(tmp_path: Path, order: tuple[str, str]) -> None:
    result = scan([str(two_nodes(tmp_path, *order))])
    assert {node.host for node in result.nodes} == {"dgx-017", "dgx-018"}
    assert result.worst is Severity.ERROR
    assert {finding.where.nodes for finding in result.findings} == {("dgx-018",)}
    read = [file.path for file in result.inputs]
    assert len(set(read)) == len(read), "each file of a bundle is named with its node"
    assert {text.partition("/")[0] for text in read} == {"dgx-017", "dgx-018"}
    quoted = result.findings[0]
    assert Places(result).spell(quoted.evidence[0], quoted).startswith("dgx-018/")


def test_what_belongs_to_no_node_is_named_with_its_command(tmp_path: Path) -> None:
    two_nodes(tmp_path, WELL, SICK)
    (tmp_path / "job.log").write_text(log())
    (tmp_path / "hosts").write_text("gpu001 slots=8\n")
    texts = [gap.why for gap in scan([str(tmp_path)]).not_observed if gap.what == "part of the input"]
    assert f"{tmp_path}/job.log: not read, it is an NCCL log; topodiag logs {tmp_path}/job.log reads it" in texts
    assert any("a hostfile; topodiag place audit" in why for why in texts)


def test_a_broken_bundle_among_good_ones_is_said_and_alone_is_an_error(tmp_path: Path) -> None:
    two_nodes(tmp_path, WELL, SICK)
    (tmp_path / "one" / "manifest.json").write_text('{"schema": "9.0", "tool": "topodiag-probe 9", "items": []}')
    result = scan([str(tmp_path)])
    assert [node.host for node in result.nodes] == ["dgx-018"]
    assert any("newer than this program" in gap.why for gap in result.not_observed)
    with pytest.raises(InputError, match="newer than this program"):
        scan([str(tmp_path / "one")])


def test_a_log_alone_is_no_node_and_the_command_for_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(log())
    with pytest.raises(InputError, match=r"it is an NCCL log \(topodiag logs .*job\.log reads it\)"):
        scan([str(tmp_path / "job.log")])


def test_a_question_about_one_node_names_the_nodes_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds 2 nodes: dgx-017, dgx-018"):
        one_node(str(two_nodes(tmp_path, WELL, SICK)))


def test_dumps_of_the_flight_recorder_alone_are_a_job(tmp_path: Path) -> None:
    for rank in range(2):
        dump = {"version": "2.4", "rank": rank, "pg_config": {"0": {"name": "0", "ranks": "[0, 1]"}}, "entries": []}
        (tmp_path / f"trace_{rank}").write_text(json.dumps(dump))
    (job,) = logs([str(tmp_path)]).jobs
    assert len(job.flight) == 2


def test_a_bundle_stands_for_the_topology_that_nccl_would_detect() -> None:
    assert check_topology(f"fixture:{WELL}").worst is None
    result = check_topology(f"fixture:{SICK}")
    assert {finding.id for finding in result.findings} == {"NVL001", "TOP004"}
    assert any("no topology file is given" in gap.why for gap in result.not_observed)


def test_the_whole_diagnosis_takes_nodes_and_jobs_together(tmp_path: Path) -> None:
    two_nodes(tmp_path, WELL, SICK)
    (tmp_path / "job.log").write_text(log())
    result = diagnose([str(tmp_path)])
    assert (len(result.nodes), len(result.jobs)) == (2, 1)
    assert "NVL001" in {finding.id for finding in result.findings}
    assert not any("job.log" in gap.why for gap in result.not_observed if gap.what == "part of the input")
