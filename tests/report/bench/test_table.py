"""The report of measured runs: head, verdict, table, fit, causes, and one line each of many."""

import io
import json
from dataclasses import replace
from importlib.resources import files

from hypothesis import given
from hypothesis import strategies as st

from tests import printed
from topodiag.expect.fit import fit_run
from topodiag.model.bench import BenchDevice, Benchmark, BenchRow, BenchRun, Expectation, Hypothesis, Timing
from topodiag.model.finding import Confidence
from topodiag.model.provenance import Origin
from topodiag.model.result import Result
from topodiag.report.bench.json import write_bench_csv
from topodiag.report.bench.plot import series_of, title_of
from topodiag.report.bench.table import draw_bench

SCHEMA = json.loads((files("topodiag.report") / "schema" / "result-1.0.schema.json").read_text())
SIZES = [1 << step for step in range(10, 34, 2)]


def timing(size: int, wrong: float | None = 0) -> Timing:
    time = 20 + size / 100e3
    return Timing(time, size / time / 1e3, size / time / 1e3 * 1.75, wrong)


def run() -> BenchRun:
    return BenchRun(
        collective="all_reduce",
        rows=tuple(BenchRow(size, size // 4, "float", "sum", -1, timing(size), timing(size)) for size in SIZES),
        devices=tuple(BenchDevice(rank, "gpu-a01", rank, "NVIDIA H100 80GB HBM3") for rank in range(8)),
        nranks=8,
        nccl="2.28.9",
        version="2.17.8",
        source="/data/out.log",
        origin=Origin("/data/out.log", 7),
    )


def low() -> Benchmark:
    expectation = Expectation(
        machine="DGX H100",
        busbw_gbs=470.0,
        low_gbs=420.0,
        limit_gbs=480.0,
        confidence=Confidence.MEDIUM,
        busbw={size: 470.0 * size / (size + (1 << 20)) for size in SIZES},
        time_us={size: 10 + size / 270e3 for size in SIZES},
        terms=(("NVLS", "480 GB/s", "8 x 60"),),
    )
    causes = (
        Hypothesis("NVLS off", 360.0, 0.7, ("predicts 360.0",), ("NCCL_DEBUG=INFO: NVLS",), "NVL005"),
        Hypothesis("one NVLink missing", 440.0, 0.1),
    )
    bench_run = run()
    return Benchmark(bench_run, fit_run(bench_run), expectation, "low", "175 of 470 expected, 63 % short", causes)


def flat() -> Benchmark:
    """A run whose bandwidth never grew with the size."""
    rows = tuple(BenchRow(size, 1, "float", "sum", -1, Timing(9.0, 1, 1, 0)) for size in (8, 16, 32))
    flat_run = replace(run(), rows=rows)
    return Benchmark(flat_run, fit_run(flat_run))


def drawn(
    *benchmarks: Benchmark, width: int = 80, verbose: int = 0, quiet: bool = False, ascii_only: bool = False
) -> str:
    style = {"width": width, "verbose": verbose, "quiet": quiet, "ascii": ascii_only}
    return printed.drawn(draw_bench, Result(benchmarks=benchmarks), **style)


def test_wrong_results_and_cut_rows_are_marked() -> None:
    bench_run = run()
    rows = (*bench_run.rows[:-1], replace(bench_run.rows[-1], out_of_place=timing(SIZES[-1], 3), cut=True))
    text = drawn(Benchmark(replace(bench_run, rows=rows)), verbose=1)
    line = next(line for line in text.splitlines() if "cut off" in line)
    assert line.split()[-3:] == ["3", "cut", "off"]


def test_expected_curves_are_dashed_and_drawn_once() -> None:
    series, marks = series_of([low(), low()])
    assert [series.dashed for series in series] == [False, True, False]
    assert marks == []


def test_a_picture_on_its_own_names_runs_machines_and_files() -> None:
    one, _ = series_of([low()], single=True)
    assert [series.name.partition(":")[0] for series in one] == ["measured", "expected"]
    assert one[1].name.endswith(low().expected.machine)  # type: ignore[union-attr]
    several, _ = series_of([low(), low()], single=True)
    assert all(f"{low().run.nranks} ranks" in series.name for series in several if not series.dashed)
    assert title_of([low()] * 9) == "the first 6 of 9 runs"
    assert title_of([low()]).startswith("bus bandwidth of all_reduce, ")


def test_foreign_text_cannot_run_in_a_spreadsheet_or_a_terminal() -> None:
    bench_run = replace(run(), source="=cmd()\x1b[31m", placement="@sum")
    stream = io.StringIO()
    write_bench_csv(Result(benchmarks=(Benchmark(bench_run),)), stream)
    assert "'=cmd()" in stream.getvalue()
    assert "'@sum" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


@given(st.integers(40, 200), st.booleans(), st.text(max_size=60), st.integers(0, 1 << 62), st.floats(0, 1e15))
def test_no_line_is_longer_than_the_page(width: int, ascii_only: bool, words: str, size: int, time: float) -> None:
    rows = (BenchRow(size, 0, words[:8], words[8:12], 0, Timing(time, time, time, time)), *run().rows)
    bench_run = replace(run(), rows=rows, placement=words, notes=(words,), errors=(words,), collective=words)
    benchmark = replace(low(), run=bench_run, fit=fit_run(bench_run), why=words)
    for verbose in (0, 1):
        text = drawn(benchmark, *[benchmark] * (4 * (1 - verbose)), width=width, ascii_only=ascii_only, verbose=verbose)
        assert not ascii_only or text.isascii()
        if text.isascii():
            assert max(map(len, text.splitlines())) <= width
