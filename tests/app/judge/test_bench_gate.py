"""`bench --gate`: a file passes only where its bandwidth is normal and nothing failed; page and findings agree."""

from pathlib import Path

from tests.app.test_bench import SIZES, printed
from tests.tables import examples
from topodiag.app.bench import bench
from topodiag.app.judge.runs import BenchOptions, gates
from topodiag.model.bench import GateState
from topodiag.model.finding import Severity
from topodiag.report.bench.words import sign_of, verdict_word

ERROR = "node00: Test NCCL failure common.cu:959 'unhandled system error / '\n"


def slow_row(text: str) -> str:
    """The row of 64 MiB at a fiftieth of its bandwidth."""
    size = str(1 << 26)
    lines = [line if line.split()[:1] != [size] else _slower(line) for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def _slower(line: str) -> str:
    cells = line.split()
    for at in (5, 9):
        cells[at : at + 3] = [str(float(cells[at]) * 50), *(str(float(cell) / 50) for cell in cells[at + 1 : at + 3])]
    return " ".join(cells)


TEXTS = {
    "healthy": printed(270),
    "far-below": printed(50),
    "one-row": slow_row(printed(270)),
    "crashed": printed(270).partition("# Out of bounds")[0] + ERROR,
    "wrong": printed(270).replace("values : 0 OK", "values : 4 FAILED"),
    "half": printed(136, ranks=16, hosts=2),
}
assert 1 << 26 in SIZES


@examples("name", "state")
def test_each_file_passes_fails_or_is_not_judged(tmp_path: Path, name: str, state: GateState) -> None:
    place = tmp_path / f"{name}.txt"
    place.write_text(TEXTS[name])
    result = bench([str(place)])
    (gate,) = gates(result, [str(place)])
    assert gate.state is state
    assert gate.bar_gbs is not None
    assert (gate.why != "") or state is GateState.PASS
    (benchmark,) = result.benchmarks
    worst = max((finding.severity for finding in result.findings), default=Severity.INFO)
    assert (worst is Severity.ERROR) is (state is GateState.FAIL)
    assert (sign_of(benchmark)[0] == "✖") is (state is GateState.FAIL)
    assert (verdict_word(benchmark) == "normal") is (state is GateState.PASS)


def test_a_file_without_a_table_does_not_pass(tmp_path: Path) -> None:
    good, empty = tmp_path / "good.txt", tmp_path / "empty.txt"
    good.write_text(TEXTS["healthy"])
    empty.write_text("nothing here\n")
    paths = [str(good), str(empty)]
    made = gates(bench(paths, options=BenchOptions()), paths)
    assert [gate.state for gate in made] == [GateState.PASS, GateState.UNKNOWN]
    assert "holds no table" in made[1].why
