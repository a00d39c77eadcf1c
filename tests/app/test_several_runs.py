"""Several benchmarks in one file are several runs, also when one died before its table; `bench` and `diagnose` say the
same of one file."""

from itertools import combinations
from pathlib import Path

import pytest

from tests.evidence.network.test_rdma import TEST
from tests.files import filed
from tests.tables import examples
from topodiag.api import diagnose
from topodiag.app.bench import bench
from topodiag.app.judge.runs import BenchOptions

DIED = "n1: Test NCCL failure common.cu:1185 'unhandled system error (run with NCCL_DEBUG=INFO for details) / '\n"
LIMIT = "slurmstepd: error: *** STEP 12.1 ON n1 CANCELLED AT 2026-04-07T11:53:05 DUE TO TIME LIMIT ***\n"
COLUMNS = """\
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""


def run(program: str, gbs: float, factor: float, redop: str, root: int = -1, *, end: str = "") -> str:
    """The output of one program on two hosts of eight GPUs, up to a table whose last row reaches `gbs`, or to `end`."""
    devices = "".join(
        f"#  Rank {rank:2} Group  0 Pid {41000 + rank:6} on  n{1 + rank // 8} device {rank % 8:2}"
        f" [0x{0x19 + 0x11 * (rank % 8):02x}] NVIDIA H100 80GB HBM3\n"
        for rank in range(16)
    )
    head = f"$ mpirun -np 16 {program} -b 8M -e 512M -f 4\n# nThread 1 nGpus 1 minBytes 8388608\n#\n# Using devices\n"
    if end:
        return head + devices + end
    rows = ""
    for number, share in enumerate((0.55, 0.8, 0.95, 1.0)):
        size = 8388608 * 4**number
        block = f"{size * factor / (gbs * share * 1e3):10.1f} {gbs * share / factor:7.2f} {gbs * share:7.2f}      0"
        rows += f"{size:12}  {size // 4:12}     float  {redop:>6}    {root:4} {block} {block}\n"
    return f"{head}{devices}{COLUMNS}{rows}# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {gbs}\n#\n"


GOOD = run("all_reduce_perf", 360.0, 1.875, "sum")
BROADCAST = run("broadcast_perf", 355.0, 1.0, "none", 0)


@pytest.mark.parametrize(
    ("text", "verdicts", "state"),
    [
        (GOOD + BROADCAST, ["normal", "normal"], "healthy"),
        (GOOD + run("alltoall_perf", 0, 1, "none", end=DIED) + BROADCAST, ["normal", "unknown", "normal"], "failed"),
        (GOOD + run("alltoall_perf", 0, 1, "none", end=LIMIT), ["normal", "unknown"], "unknown"),
        (run("alltoall_perf", 0, 1, "none", end="Segmentation fault (core dumped)\n"), ["unknown"], "failed"),
    ],
    ids=["both good", "one died between two", "the last met its limit", "its program crashed"],
)
def test_runs_of_one_file_are_told_apart_and_judged_alike(
    tmp_path: Path, text: str, verdicts: list[str], state: str
) -> None:
    path = filed(tmp_path, "runs.txt", text)
    result, joined = bench([str(path)]), diagnose(str(path))
    assert [benchmark.verdict for benchmark in result.benchmarks] == verdicts
    assert [benchmark.verdict for benchmark in joined.benchmarks] == verdicts
    assert joined.verdict.state.value == state
    assert {finding.id for finding in result.findings} <= {finding.id for finding in joined.findings}


def test_a_broadcast_at_line_rate_rules_out_what_would_halve_the_rate(tmp_path: Path) -> None:
    path = filed(tmp_path, "runs.txt", run("all_reduce_perf", 180.0, 1.875, "sum") + BROADCAST)
    slow = bench([str(path)], options=BenchOptions(system="dgx-h100")).benchmarks[0]
    assert slow.verdict == "low"
    assert any("broadcast on the same nodes" in str(reason) for reason in slow.ruled_out)


EMPTY = (
    "# Using devices\n#   Rank  0 uses device  0 [0x02] Tesla P100-PCIE-16GB\n"
    "#   Rank  1 uses device  1 [0x03] Tesla P100-PCIE-16GB\n\n"
    "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res\n"
)
RETRY = (
    "n1:1:2 [0] transport/net_ib.cu:788 NCCL WARN NET/IB : Got completion with error 4, opcode 1, len 2, vendor err 81"
)


def test_a_run_that_reached_something_stands_before_one_without_a_row(tmp_path: Path) -> None:
    verdict = diagnose(str(filed(tmp_path, "runs.txt", EMPTY + run("all_reduce_perf", 180.0, 1.875, "sum")))).verdict
    assert "reaches" in verdict.headline


@pytest.mark.parametrize(("end", "state"), [("", "unknown"), (f"\n{RETRY}\n", "failed")])
def test_a_run_without_a_row_failed_where_an_error_of_the_network_ended_it(
    tmp_path: Path, end: str, state: str
) -> None:
    verdict = diagnose(str(filed(tmp_path, "run.txt", EMPTY + end))).verdict
    assert verdict.state.value == state


def test_a_table_of_nccl_tests_1_without_a_row_is_as_unknown_to_diagnose_as_to_bench(tmp_path: Path) -> None:
    path = filed(tmp_path, "run.txt", EMPTY)
    [benchmark], joined = bench([str(path)]).benchmarks, diagnose(str(path))
    assert (benchmark.verdict, benchmark.why) == ("unknown", "no row has a bandwidth")
    assert [(benchmark.verdict, benchmark.why) for benchmark in joined.benchmarks] == [
        (benchmark.verdict, benchmark.why)
    ]
    assert benchmark.why in joined.verdict.headline


# --- A folder of tests of perftest, one a pair of nodes, is judged as a folder of nccl-tests is: by pair and by node


NODES = ("g01", "g02", "g03", "g04", "g05")


def folder(tmp_path: Path, slow: set[tuple[str, str]]) -> str:
    for pair in combinations(NODES, 2):
        rate = "98.10" if pair in slow else "391.84"
        tmp_path.joinpath(f"{'-'.join(pair)}.txt").write_text(TEST.format(a="", b="", rate=rate))
    return str(tmp_path)


@examples("slow", "named")
def test_what_slow_pairs_share_is_named(
    tmp_path: Path, slow: set[tuple[str, str]], named: set[tuple[str, ...]]
) -> None:
    path = folder(tmp_path, slow)
    verdict = diagnose(path).verdict
    texts = {finding.where.nodes for finding in bench([path]).findings if finding.id == "BEN005"}
    assert texts == named == {cause.finding.where.nodes for cause in verdict.causes}
