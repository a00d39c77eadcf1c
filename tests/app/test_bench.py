"""From output of nccl-tests to verdicts, also of several runs in a file: what is known of the machine and beside it."""

import gzip
import io
import shutil
import tarfile
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.cli.small_log import log
from tests.evidence.network.test_rdma import TEST
from tests.files import filed, laid
from tests.nccl_tests import table
from tests.tables import examples
from topodiag.api import diagnose as diagnose_by_api
from topodiag.app.bench import bench
from topodiag.app.case.opening import standard_input
from topodiag.app.diagnose import diagnose
from topodiag.app.judge.runs import BenchOptions
from topodiag.evidence.intake.collected import fixture_path
from topodiag.model.errors import InputError
from topodiag.model.finding import Confidence
from topodiag.model.verdict import CauseStatus
from topodiag.verdict.headline import causes_of

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
SIZES = [1 << power for power in range(20, 34)]


def printed(beta: float, **more: Any) -> str:
    return table(beta, **{"alpha": 40.0, "host": "node0", "powers": range(20, 34), **more})


def judged(tmp_path: Path, text: str, options: BenchOptions | None = None):  # type: ignore[no-untyped-def]
    return bench([str(filed(tmp_path, "out.log", text))], options=options)


@pytest.mark.parametrize(
    ("gpu", "given", "says"),
    [
        ("NVIDIA H100 80GB HBM3", {"system": "dgx-b200"}, "the table names H100, DGX B200 has B200: wrong --system?"),
        ("NVIDIA H20", {"system": "dgx-h200"}, "the table names H20, DGX H200 has H200: wrong --system?"),
        ("NVIDIA A100-SXM4-40GB", {"system": "a2-ultragpu-8g"}, ""),  # the same but for its memory
        (
            "NVIDIA H100 80GB HBM3",
            {"machine": (str(fixture_path("hgx-b200")),)},
            "b200-011 has other GPUs than the table names: wrong --machine?",
        ),
    ],
)
def test_a_machine_with_other_gpus_than_the_table_names_is_not_judged(
    gpu: str, given: dict[str, str], says: str, tmp_path: Path
) -> None:
    (tmp_path / "out.txt").write_text(printed(200.0, gpu=gpu))
    [benchmark] = bench([str(tmp_path / "out.txt")], options=BenchOptions(**given)).benchmarks  # type: ignore[arg-type]
    assert (benchmark.verdict == "unknown") is bool(says)
    assert not says or benchmark.why == says


@examples("gbs", "table", "options", "verdict", "confidence", "gap")
def test_a_run_is_judged_by_what_is_known_of_its_machine(
    tmp_path: Path,
    *,
    gbs: float,
    table: dict[str, Any] | None,
    options: dict[str, Any] | None,
    verdict: str,
    confidence: Confidence | None,
    gap: str | None,
) -> None:
    result = judged(tmp_path, printed(gbs, **(table or {})), BenchOptions(**(options or {})))
    (made,) = result.benchmarks
    assert (made.verdict, made.expected and made.expected.confidence) == (verdict, confidence)
    assert made.why or verdict != "unknown"
    assert made.hypotheses or verdict != "low"
    assert sum(hypothesis.likelihood for hypothesis in made.hypotheses) <= 1
    assert any((gap or "") in each.why for each in result.not_observed) or gap is None


def test_packed_files_and_folders_are_read(tmp_path: Path) -> None:
    result = bench([str(laid(tmp_path, {"a.log.gz": gzip.compress(printed(270).encode()), "b.log": printed(271)}))])
    assert [Path(piece.path).name for piece in result.inputs] == ["a.log.gz", "b.log"]
    assert all(piece.kind == "nccl-tests" and piece.records == len(SIZES) for piece in result.inputs)


def test_files_can_be_placements_of_one_job(tmp_path: Path) -> None:
    for name in ("packed", "spread"):
        (tmp_path / f"{name}.log").write_text(printed(270))
    benchmarks = bench([str(tmp_path)], options=BenchOptions(by_file=True)).benchmarks
    assert [benchmark.run.placement for benchmark in benchmarks] == ["packed", "spread"]


def test_a_file_without_a_run_among_others_is_a_gap_and_alone_an_error(tmp_path: Path) -> None:
    other = filed(tmp_path, "notes.txt", "nothing\n")
    with pytest.raises(InputError, match="holds no table"):
        bench([str(other)])
    assert any(gap.what == str(other) for gap in bench([str(laid(tmp_path, {"b.log": printed(271)}))]).not_observed)


def test_settings_of_the_run_count(tmp_path: Path) -> None:
    log = "node00:1:2 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.\n"
    (made,) = judged(tmp_path, log + printed(270), BenchOptions(system="dgx-h100")).benchmarks
    assert made.run.env["NCCL_P2P_DISABLE"] == "1"
    assert any("NCCL_P2P_DISABLE" in "".join(term) for term in made.expected.terms)


def test_a_build_without_mpi_is_told_as_what_it_is(tmp_path: Path) -> None:
    text = printed(2000, ranks=1)
    head, _, rows = text.partition("#       size")
    twice = head + head.replace("Pid 100", "Pid 101") + ("#       size" + rows) * 2
    result = judged(tmp_path, twice)
    assert [benchmark.verdict for benchmark in result.benchmarks] == ["unknown"] * 2
    assert all("built without MPI" in benchmark.why for benchmark in result.benchmarks)


def test_placements_far_apart_are_compared(tmp_path: Path) -> None:
    laid(tmp_path, {"packed.log": printed(250, ranks=16, hosts=2), "spread.log": printed(100, ranks=16, hosts=2)})
    result = bench([str(tmp_path)], options=BenchOptions(by_file=True, system="dgx-h100"))
    assert "BEN005" in {finding.id for finding in result.findings}


def test_a_bundle_beside_the_table_is_the_machine(tmp_path: Path) -> None:
    beside = bench([str(laid(tmp_path, {"out.log": printed(120)})), "fixture:dgx-h100-healthy"])
    named = bench([str(tmp_path)], options=BenchOptions(machine=("fixture:dgx-h100-healthy",)))
    assert beside.benchmarks[0].expected == named.benchmarks[0].expected
    assert beside.benchmarks[0].expected.confidence is Confidence.HIGH


def test_the_order_of_paths_does_not_matter(tmp_path: Path) -> None:
    place = filed(tmp_path, "out.log", printed(120))
    paths = [str(place), "fixture:dgx-h100-healthy", "fixture:dgx-h100-gpu3-12of18-nvlink"]
    assert bench(paths) == bench(paths[::-1])


def test_a_bundle_in_the_folder_of_the_tables_is_the_machine(tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text(printed(270))
    shutil.copytree(fixture_path("dgx-h100-healthy"), tmp_path / "node")
    result = bench([str(tmp_path)])
    assert result.benchmarks[0].expected.machine == "dgx-017"
    assert result.not_observed == diagnose([str(tmp_path)]).not_observed


def test_an_archive_of_all_of_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text(printed(270))
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "out.log", "results/out.log")
        archive.add(fixture_path("dgx-h100-healthy"), "node")
    (benchmark,) = bench([str(tmp_path / "all.tar.gz")]).benchmarks
    assert benchmark.run.source.endswith("all.tar.gz/results/out.log")
    assert benchmark.expected.machine == "dgx-017"


def test_named_nodes_and_nodes_beside_the_runs_are_told_apart_alike(tmp_path: Path) -> None:
    place = filed(tmp_path, "out.log", printed(80, gpu="", ranks=8))
    for name in ("dgx-h100-healthy", "hgx-a100"):
        shutil.copytree(fixture_path(name), tmp_path / "nodes" / name)
    named = bench([str(place)], options=BenchOptions(machine=(str(tmp_path / "nodes"),)))
    beside = bench([str(place), str(tmp_path / "nodes")])
    assert "2 kinds" in next(gap.why for gap in named.not_observed if gap.what == "one machine for all nodes")
    assert named.benchmarks == beside.benchmarks


def test_a_log_in_an_archive_is_read_beside_the_table_and_as_the_machine(tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text(log(size=8) + printed(270))
    with tarfile.open(tmp_path / "all.tgz", "w:gz") as archive:
        archive.add(tmp_path / "out.log", "results/out.log")
    plain, packed = bench([str(tmp_path / "out.log")]), bench([str(tmp_path / "all.tgz")])
    assert [job.hosts for job in packed.jobs] == [job.hosts for job in plain.jobs] == [("node-a",)]
    assert "all.tgz/results/out.log" in repr(packed.jobs)
    named = bench([str(tmp_path / "out.log")], options=BenchOptions(machine=(str(tmp_path / "all.tgz"),)))
    assert named.benchmarks[0].verdict == packed.benchmarks[0].verdict


def test_faults_of_any_node_are_causes_of_a_slow_run(tmp_path: Path) -> None:
    place = filed(tmp_path, "out.log", printed(180))
    (benchmark,) = bench([str(place), "fixture:dgx-h100-healthy", "fixture:dgx-h100-gpu3-12of18-nvlink"]).benchmarks
    assert benchmark.verdict == "low"
    assert "NVL001" in {hypothesis.check for hypothesis in benchmark.hypotheses}


def test_nodes_of_two_kinds_are_told_and_the_weakest_speaks(tmp_path: Path) -> None:
    place = filed(tmp_path, "out.log", printed(80, gpu="", ranks=8))
    slow, fast = "fixture:hgx-a100", "fixture:dgx-h100-healthy"
    result = bench([str(place), fast, slow])
    answer = bench([str(place), slow])
    assert result.benchmarks[0].expected == answer.benchmarks[0].expected
    (told,) = [gap.why for gap in result.not_observed if gap.what == "one machine for all nodes"]
    assert "2 kinds" in told
    assert "the least is expected of" in told


def test_a_node_with_other_gpus_than_the_run_is_left_out_and_told(tmp_path: Path) -> None:
    result = bench([str(filed(tmp_path, "out.log", printed(270))), "fixture:dgx-h100-healthy", "fixture:hgx-a100"])
    assert result.benchmarks[0].verdict == "normal"
    assert any(gap.why.startswith("a100-207 left out") for gap in result.not_observed)


def test_a_hostfile_beside_the_table_is_evidence_as_for_a_diagnosis(tmp_path: Path) -> None:
    result = bench([str(laid(tmp_path, {"out.log": printed(270), "hosts": "gpu01 slots=8\ngpu02 slots=8\n"}))])
    assert [Path(piece.path).name for piece in result.inputs] == ["hosts", "out.log"]
    assert result.not_observed == diagnose([str(tmp_path)]).not_observed


def test_a_bundle_alone_names_the_command_that_reads_it() -> None:
    with pytest.raises(InputError, match="a bundle of a node; topodiag scan"):
        bench(["fixture:dgx-h100-healthy"])


@pytest.mark.skipif(not (CORPUS / "jobs").is_dir(), reason=f"the corpus is not here: {CORPUS / 'jobs'}")
class TestWithALogInTheSameFile:
    def text(self, name: str, beta: float) -> str:
        log = gzip.decompress((CORPUS / "jobs" / name / "logs" / "rank000.log.gz").read_bytes()).decode()
        return log + printed(beta, ranks=16, hosts=2)

    def test_the_machine_is_what_nccl_printed_wherever_its_log_is_given(self, tmp_path: Path) -> None:
        logs, text = str(CORPUS / "jobs" / "b_h100_2node" / "logs"), self.text("b_h100_2node", 180)
        table = str(filed(tmp_path, "table.log", printed(180, ranks=16, hosts=2)))
        result = judged(tmp_path, text)
        assert len(result.jobs) == 1
        assert result.benchmarks[0].expected.confidence is Confidence.HIGH
        with standard_input(io.BytesIO(text.encode())):
            answers = [result, bench(["-"])]
        answers += [bench([table], options=BenchOptions(machine=(logs,))), bench([table, logs])]
        machines = [benchmark.expected.machine for answer in answers for benchmark in answer.benchmarks]
        assert machines == ["node00 (from NCCL's log)"] * 4

    def test_a_node_with_one_nic_of_eight_is_expected_to_be_slower(self, tmp_path: Path) -> None:
        (whole,) = judged(tmp_path, self.text("b_h100_2node", 180)).benchmarks
        (single,) = judged(tmp_path, self.text("f_h100_2node_1nic", 20)).benchmarks
        assert single.expected.busbw_gbs < whole.expected.busbw_gbs / 3

    def test_a_log_of_other_hosts_is_not_the_machine(self, tmp_path: Path) -> None:
        (tmp_path / "out.log").write_text(printed(180, ranks=16, hosts=2).replace("node0", "gpu0"))
        (benchmark,) = bench([str(tmp_path), str(CORPUS / "jobs" / "b_h100_2node" / "logs")]).benchmarks
        assert benchmark.expected.machine != "node00 (from NCCL's log)"


# --- Tables of known incidents, by themselves and with the bundles beside them: the cause first, nothing false


INCIDENTS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus" / "incidents"

needs_incidents = pytest.mark.skipif(not INCIDENTS.exists(), reason=f"no incidents at {INCIDENTS}")


@needs_incidents
@examples("name", "verdict")
def test_a_table_alone_is_not_called_low_where_another_machine_would_explain_it(name: str, verdict: str) -> None:
    (benchmark,) = bench([str(INCIDENTS / name / "nccl-tests")]).benchmarks
    assert benchmark.verdict == verdict


@needs_incidents
@examples("name", "check")
def test_what_the_bundles_show_is_the_first_cause(name: str, check: str) -> None:
    result = bench([str(INCIDENTS / name / part) for part in ("nccl-tests", "bundles", "logs")])
    (benchmark,) = result.benchmarks
    (first, *_) = causes_of(benchmark, result)
    assert (first.finding.id, first.status) == (check, CauseStatus.ESTABLISHED)
    assert not benchmark.hypotheses


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
    result, joined = bench([str(path)]), diagnose_by_api(str(path))
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
    verdict = diagnose_by_api(
        str(filed(tmp_path, "runs.txt", EMPTY + run("all_reduce_perf", 180.0, 1.875, "sum")))
    ).verdict
    assert "reaches" in verdict.headline


@pytest.mark.parametrize(("end", "state"), [("", "unknown"), (f"\n{RETRY}\n", "failed")])
def test_a_run_without_a_row_failed_where_an_error_of_the_network_ended_it(
    tmp_path: Path, end: str, state: str
) -> None:
    verdict = diagnose_by_api(str(filed(tmp_path, "run.txt", EMPTY + end))).verdict
    assert verdict.state.value == state


def test_a_table_of_nccl_tests_1_without_a_row_is_as_unknown_to_diagnose_as_to_bench(tmp_path: Path) -> None:
    path = filed(tmp_path, "run.txt", EMPTY)
    [benchmark], joined = bench([str(path)]).benchmarks, diagnose_by_api(str(path))
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
    verdict = diagnose_by_api(path).verdict
    texts = {finding.where.nodes for finding in bench([path]).findings if finding.id == "BEN005"}
    assert texts == named == {cause.finding.where.nodes for cause in verdict.causes}
