"""One front door for nodes, jobs and topologies, and one judge for bench and diagnose."""

import json
import shutil
from pathlib import Path

import pytest

from tests.app.test_bench import printed
from tests.cli.small_log import log
from tests.depth import some_of
from topodiag.app.bench import bench
from topodiag.app.case.nodes import one_node
from topodiag.app.diagnose import diagnose
from topodiag.app.judge.runs import BenchOptions
from topodiag.app.logs import logs
from topodiag.app.scan import scan
from topodiag.app.topo import check_topology
from topodiag.evidence.intake.collected import fixture_path
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity
from topodiag.model.result import Result
from topodiag.report.places import Places
from topodiag.verdict.headline import causes_of

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


# --- `bench` and `diagnose` of the same evidence: one case, one judge. What bench adds is its view of the runs


FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FOLDERS = [path for kind in ("incidents", "live", "tables") for path in sorted((FIXTURES / kind).iterdir())]
TEXTS = sorted((FIXTURES / "field").glob("*.json"))
SIGNS = ("busbw", "_perf")
"""What a text of nccl-tests has."""


def without_truth(case: Path, place: Path) -> Path:
    """The evidence of a fixture in a folder of its own."""
    folder = place / "case"
    if case.is_dir():
        return Path(shutil.copytree(case, folder, ignore=shutil.ignore_patterns("truth*", "README.md")))
    folder.mkdir()
    held = json.loads(case.read_text()).get("inputs") if case.parent.name == "field" else None
    for number, given in enumerate(held or ()):
        file = folder / (given.get("name") or f"{number}.txt")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(given["text"])
    if held is None:
        shutil.copy(case, folder)
    return folder


def judged(result: Result) -> tuple[object, ...]:
    """What a verdict establishes, and by which words."""
    verdict = result.verdict
    assert verdict is not None
    causes = [(cause.finding.id, cause.finding.message, cause.status, cause.price) for cause in verdict.causes]
    return verdict.state, verdict.headline, causes, verdict.ruled_out


def has_table(path: Path) -> bool:
    texts = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return any(sign.encode() in text.read_bytes() for text in texts for sign in SIGNS)


TABLES = [path for path in (*FOLDERS, *TEXTS) if has_table(path)]


@pytest.mark.parametrize("case", some_of(TABLES, "judged alike"), ids=lambda path: path.stem)
def test_a_table_is_judged_alike_by_both(case: Path, tmp_path: Path) -> None:
    paths = [str(without_truth(case, tmp_path))]
    whole = diagnose(paths)
    if whole.benchmarks:
        assert judged(bench(paths)) == judged(whole)


def test_the_first_cause_of_a_run_is_that_of_the_diagnosis(tmp_path: Path) -> None:
    paths = [str(without_truth(FIXTURES / "incidents" / "slot-at-four-lanes", tmp_path))]
    result = bench(paths)
    (benchmark,) = result.benchmarks
    assert causes_of(benchmark, result)[0].finding.message == "GPU6 trained at x4 instead of x16"
    assert not benchmark.hypotheses  # what the numbers suggest gives way to what is seen
    assert benchmark.gate is not None
    assert benchmark.gate.why.endswith("; established: GPU6 trained at x4 instead of x16")


def test_a_named_machine_is_judged_as_one_beside_the_table(tmp_path: Path) -> None:
    table, capture = tmp_path / "out.log", "fixture:dgx-h100-gpu3-12of18-nvlink"
    table.write_text(printed(180))
    named = bench([str(table)], options=BenchOptions(machine=(capture,)))
    assert judged(named) == judged(diagnose([str(table), capture]))


def test_an_error_is_a_run_only_where_the_text_tells_of_nccl_tests(tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text(printed(270))
    (tmp_path / "other.log").write_text("srun: error: n1: task 0: Exited with exit code 1\n")
    result = bench([str(tmp_path)])
    assert [Path(benchmark.run.source).name for benchmark in result.benchmarks] == ["out.log"]
