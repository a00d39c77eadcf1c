"""`bench` and `diagnose` of the same evidence: one case, one judge. What bench adds is its view of the runs."""

import json
import shutil
from pathlib import Path

import pytest

from tests.app.test_bench import printed
from tests.depth import some_of
from topodiag.app.bench import bench
from topodiag.app.diagnose import diagnose
from topodiag.app.judge.runs import BenchOptions
from topodiag.model.result import Result
from topodiag.verdict.headline import causes_of

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
