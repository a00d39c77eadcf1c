"""Text output of nccl-tests: every version's columns, launchers' labels, rows in pieces, several runs, failures."""

# ruff: noqa: E501 - rows as wide as nccl-tests prints them

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples, parts
from topodiag.evidence.nccl_tests import read_file, read_runs
from topodiag.evidence.nccl_tests.read import NO_MPI, ONE_RANK
from topodiag.model.bench import BenchRun

HEAD = "# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0\n"
USING = "#\n# Using devices\n"
TITLE = (
    "#                                                              out-of-place                       in-place          \n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n"
)
FOOT = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 252.041 \n#\n"


def device(rank: int, host: str = "gpu-a01", at: int | None = None) -> str:
    local = rank % 8 if at is None else at
    return (
        f"#  Rank {rank:2d} Group  0 Pid {120311 + rank} on {host:>10s} device {local:2d}"
        f" [0000:{0x18 + 4 * local:02x}:00] NVIDIA H100 80GB HBM3\n"
    )


def row(size: int, time: float, ranks: int = 8, wrong: str = "0", end: str = "\n") -> str:
    alg = size / time / 1e3
    block = f"  {time:7.2f}  {alg:6.2f}  {alg * 2 * (ranks - 1) / ranks:6.2f}  {wrong:>6s}"
    return f"{size:12d}  {size // 4:12d}  {'float':>8s}  {'sum':>6s}  {-1:6d}{block}{block}{end}"


DEVICES = "".join(device(rank) for rank in range(8))
WHOLE = HEAD + USING + DEVICES + "#\n" + TITLE + row(1 << 20, 52.41) + row(1 << 30, 4520.1) + FOOT


def only(text: str, name: str = "out.log") -> BenchRun:
    runs, _ = read_runs(text.encode(), name)
    assert len(runs) == 1
    return runs[0]


def test_a_run_is_read_with_its_devices_parameters_and_rows() -> None:
    run = only(
        "# nccl-tests version 2.17.8 nccl-headers=22809 nccl-library=22809\n# Collective test starting: all_reduce_perf\n"
        + WHOLE
    )
    assert (run.collective, run.version, run.nccl, run.nranks) == ("all_reduce", "2.17.8", "2.28.9", 8)
    assert [r.size for r in run.rows] == [1 << 20, 1 << 30]
    assert run.rows[1].out_of_place.time_us == 4520.1
    assert run.rows[1].in_place.busbw_gbs == 415.71
    assert run.rows[1].origin is not None
    assert run.rows[1].origin.line == 19
    assert run.devices[1].bus_id == "0000:1c:00.0"
    assert run.hosts == ("gpu-a01",)
    assert run.parameters["nGpus"] == "1"
    assert run.parameters["warmup iters"] == "1"
    assert (run.average_gbs, run.out_of_bounds, run.complete) == (252.041, 0, True)


def test_a_parameter_is_a_number_or_a_word_and_no_token_behind_the_header() -> None:
    parameters = only(WHOLE.replace("graph: 0\n", "graph: 0 direction: H2D glpat-7hUq2Lx9VbN4mT1cRz8K\n")).parameters
    assert (parameters["step"], parameters["graph"], parameters["direction"]) == ("2(factor)", "0", "H2D")
    assert "glpat" not in parameters


def test_nothing_of_a_whole_run_is_left_unread() -> None:
    assert read_file(WHOLE.encode(), "out.log").unread == []


def test_wrong_elements_are_counted_also_in_scientific_notation() -> None:
    run = only(TITLE + row(1 << 20, 50.0, wrong="1.04858e+06"))
    assert run.rows[0].out_of_place.wrong == 1048580


@examples("label")
def test_what_launchers_put_in_front_of_lines_is_taken_off(label: str) -> None:
    run = only("".join(label + line + "\n" for line in WHOLE.splitlines()))
    assert (len(run.rows), run.nranks, run.collective, run.average_gbs) == (2, 8, "all_reduce", 252.041)


def test_the_hash_may_have_been_stripped() -> None:
    run = only(WHOLE.replace("#", ""))
    assert (len(run.rows), run.nranks, run.average_gbs) == (2, 8, 252.041)


def test_a_row_broken_by_records_of_nccl_is_joined() -> None:
    log = "gpu-a01:4242:4250 [0] NCCL INFO Connected all rings\n"
    first = row(1 << 20, 52.41, end="")
    broken = first[:56] + log + "gpu-a02:17:18 [3] NCCL INFO comm 0x1 rank 3\n" + first[56:88] + log + first[88:] + "\n"
    run = only(HEAD + USING + DEVICES + TITLE + broken + row(1 << 30, 4520.1) + FOOT)
    assert [(r.size, r.cut, r.out_of_place.time_us, r.in_place.time_us) for r in run.rows] == [
        (1 << 20, False, 52.41, 52.41),
        (1 << 30, False, 4520.1, 4520.1),
    ]


def test_an_aborted_run_keeps_its_rows_and_the_last_one_is_cut() -> None:
    broken = (
        row(1 << 30, 4520.1)[:90]
        + "\ngpu-a01: Test NCCL failure common.cu:1023 'remote process exited or there was a network error / '\n .. gpu-a01 pid 120311: Test failure common.cu:401\n"
    )
    run = only(HEAD + USING + DEVICES + TITLE + row(1 << 20, 52.41) + broken)
    assert [r.cut for r in run.rows] == [False, True]
    assert not run.complete
    assert len(run.errors) == 2


@pytest.mark.parametrize(("bounds", "runs"), [("2 FAILED", 1), ("0 OK", 2)])
def test_the_exit_code_behind_wrong_values_is_no_run_that_failed(bounds: str, runs: int) -> None:
    text = WHOLE.replace("0 OK", bounds) + "srun: error: mw012: tasks 8-15: Exited with exit code 1\n"
    assert len(read_runs(text.encode(), "out.log")[0]) == runs


def test_several_runs_in_one_file_stay_apart_also_when_one_was_killed() -> None:
    killed = HEAD + USING + DEVICES + TITLE + row(1 << 20, 52.41)
    runs, _ = read_runs((WHOLE + killed + WHOLE).encode(), "sweep.log")
    assert [(len(run.rows), run.complete) for run in runs] == [(2, True), (1, False), (2, True)]


def test_the_command_above_a_table_names_its_collective() -> None:
    text = (
        "+ mpirun -np 8 ./build/reduce_scatter_perf -b 8\n"
        + WHOLE
        + "+ mpirun -np 8 ./build/all_reduce_perf -b 8\n"
        + WHOLE
    )
    runs, _ = read_runs(text.encode(), "x")
    assert [run.collective for run in runs] == ["reduce_scatter", "all_reduce"]


@pytest.mark.parametrize(
    ("above", "env"),
    [
        ("+ export NCCL_PROTO=LL\n+ export NCCL_PROTO=Simple\n", {"NCCL_PROTO": "Simple"}),
        ("+ export NCCL_PROTO=LL\n+ unset NCCL_PROTO\n", {}),
        ("set NCCL_PROTO=LL if it is slow\n", {}),
        ("+ export NCCL_PROTO=LL\nx1:7:7 [0] NCCL INFO NCCL_PROTO set by environment to Simple\n",
         {"NCCL_PROTO": "Simple"}),
    ],
    ids=["the later command", "an unset one", "advice", "what NCCL prints"],
)  # fmt: skip
def test_of_several_values_above_a_table_the_one_in_force_counts(above: str, env: dict[str, str]) -> None:
    assert dict(only(above + WHOLE).env) == env


def test_runs_of_several_processes_with_labels_are_told_apart() -> None:
    lines = [f"[1,{rank}]<stdout>:{line}\n" for line in WHOLE.splitlines() for rank in range(2)]
    runs, _ = read_runs("".join(lines).encode(), "x")
    assert [len(run.rows) for run in runs] == [2, 2]


def test_a_build_without_mpi_prints_one_rank_tables_and_measures_nothing() -> None:
    one = [HEAD, "# Using devices\n", TITLE, row(8, 5.0, 1), row(16, 5.0, 1), row(1 << 20, 5.0, 1), FOOT]
    own = [device(0), device(0, "gpu-a02")]
    mixed = (
        one[0] * 2
        + one[1] * 2
        + own[0]
        + own[1]
        + one[2] * 2
        + one[3]
        + one[4]
        + one[3]
        + one[5]
        + one[4]
        + one[5]
        + FOOT * 2
    )
    runs, _ = read_runs(mixed.encode(), "x")
    assert [[r.size for r in run.rows] for run in runs] == [[8, 16, 1 << 20]] * 2
    assert all(run.nranks == 1 and NO_MPI.format(count=2) in run.notes for run in runs)


def test_interleaved_one_rank_tables_without_headers_are_one_run_of_one_rank() -> None:
    sizes = [8, 16, 8, 32, 16, 1 << 20, 32, 1 << 20]
    run = only(TITLE + "".join(row(size, 5.0, 1) for size in sizes))
    assert [r.size for r in run.rows] == sizes
    assert (run.nranks, run.nranks_why) == (1, "every bus bandwidth is 0")
    assert ONE_RANK in run.notes


def test_one_gpu_alone_is_no_mistake_of_the_build() -> None:
    run = only(HEAD + USING + device(0) + TITLE + row(1 << 20, 5.0, 1) + FOOT)
    assert ONE_RANK in run.notes


def test_ranks_come_from_the_bandwidths_where_the_device_list_is_missing() -> None:
    run = only(TITLE + row(1 << 20, 50.0, 24) + row(1 << 30, 9000.0, 24))
    assert (run.nranks, run.nranks_why) == (24, "busbw / algbw")


def test_a_device_list_of_another_run_is_noticed() -> None:
    run = only(HEAD + USING + DEVICES + TITLE.replace("#", "# all_reduce_perf\n#", 1) + row(1 << 30, 4520.1, 16) + FOOT)
    assert run.nranks == 8
    assert any("says 16 ranks, the device list 8" in note for note in run.notes)


def test_a_shortened_device_list_still_counts_the_ranks() -> None:
    run = only(HEAD + USING + device(0) + device(15, "gpu-a02", 7) + TITLE + row(1 << 30, 9000.0, 16) + FOOT)
    assert (run.nranks, len(run.devices)) == (16, 2)


def test_all_to_all_and_send_receive_are_known_by_what_cannot_be_checked_in_place() -> None:
    shared = "  1073741824      33554432     float    none      -1   3000.0  357.91  313.17       0   3000.0  357.91  313.17     N/A\n"
    ring = "  1073741824     268435456     float     sum      -1  20000.0   53.69   53.69       0  20000.0   53.69   53.69     N/A\n"
    assert only(TITLE + shared).collective == "alltoall"
    assert only(HEAD + USING + DEVICES + TITLE + ring).collective == "sendrecv"


@examples("text", "run")
def test_a_run_has_what_its_text_says(text: str, run: dict[str, Any]) -> None:
    assert parts(only(text), run) == run


def test_nccls_version_and_settings_come_from_the_log_in_the_same_file() -> None:
    log = "gpu-a01:1:2 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\nNCCL version 2.27.5+cuda12.9\n"
    run = only(HEAD + USING + DEVICES + log + TITLE + row(1 << 20, 52.41) + FOOT)
    assert (run.nccl, dict(run.env)) == ("2.27.5", {"NCCL_IB_DISABLE": "1"})


def test_lines_of_other_programs_are_told_by_shape() -> None:
    _, unread = read_runs((WHOLE + "fabric 1 is odd\nfabric 2 is odd\nfabric 3 is odd\n").encode(), "x")
    assert [(line.text, line.why) for line in unread] == [
        ("fabric 1 is odd", "no line of the test, with 2 more like it")
    ]


def test_a_type_that_nobody_knows_yet_is_read_all_the_same() -> None:
    run = only(TITLE + row(1 << 20, 52.41).replace("   float", "  f4e2m1"))
    assert run.rows[0].dtype == "f4e2m1"


PIECES = st.sampled_from(
    [
        *WHOLE.splitlines(keepends=True),
        "gpu-a01:1:2 [0] NCCL INFO x\n",
        "[1,0]<stdout>:",
        "\r",
        "1" * 30,
        " -1 ",
        "\x00",
    ]
)


@given(st.lists(PIECES, max_size=40))
def test_any_mixture_of_its_lines_is_read_without_a_complaint(pieces: list[str]) -> None:
    runs, _ = read_runs("".join(pieces).encode(), "x")
    assert all(row.size >= 0 for run in runs for row in run.rows)


@given(st.integers(0, len(WHOLE)))
def test_a_text_cut_anywhere_loses_nothing_before_the_cut(at: int) -> None:
    runs, _ = read_runs(WHOLE[:at].encode(), "x")
    whole = [line for line in WHOLE[:at].splitlines(keepends=True) if line.endswith("0\n") and "float" in line]
    assert sum(not r.cut and r.in_place.wrong == 0 for run in runs for r in run.rows) >= len(whole)
