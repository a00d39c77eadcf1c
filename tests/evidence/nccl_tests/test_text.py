"""Text output of nccl-tests: every version's columns, launchers' labels, rows in pieces, several runs, failures."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples, parts, texts, with_texts
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind
from topodiag.evidence.nccl_tests import read_file
from topodiag.evidence.nccl_tests.read import NO_MPI, load
from topodiag.model.bench import BenchRun

TEXTS = texts(__file__)
HEAD, USING, DEVICES, TITLE, FOOT = (TEXTS[name] for name in ("HEAD", "USING", "DEVICES", "TITLE", "FOOT"))
WHOLE = with_texts(TEXTS["WHOLE"], __file__)


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


def only(text: str, name: str = "out.log") -> BenchRun:
    runs = read_file(text.encode(), name).runs
    assert len(runs) == 1
    return runs[0]


def test_nothing_of_a_whole_run_is_left_unread() -> None:
    assert read_file(WHOLE.encode(), "out.log").unread == []


@examples("label")
def test_what_launchers_put_in_front_of_lines_is_taken_off(label: str) -> None:
    run = only("".join(label + line + "\n" for line in WHOLE.splitlines()))
    assert (len(run.rows), run.nranks, run.collective, run.average_gbs) == (2, 8, "all_reduce", 252.041)


@pytest.mark.parametrize(("bounds", "runs"), [("2 FAILED", 1), ("0 OK", 2)])
def test_the_exit_code_behind_wrong_values_is_no_run_that_failed(bounds: str, runs: int) -> None:
    text = WHOLE.replace("0 OK", bounds) + "srun: error: mw012: tasks 8-15: Exited with exit code 1\n"
    assert len(read_file(text.encode(), "out.log").runs) == runs


@examples("text", "rows")
def test_summary_lines_without_a_table_are_a_run_only_where_no_other_has_rows(text: str, rows: list[int]) -> None:
    runs = read_file(with_texts(text, __file__).encode(), "page.md").runs
    assert [len(run.rows) for run in runs] == rows


def test_several_runs_in_one_file_stay_apart_also_when_one_was_killed() -> None:
    killed = HEAD + USING + DEVICES + TITLE + row(1 << 20, 52.41)
    runs = read_file((WHOLE + killed + WHOLE).encode(), "sweep.log").runs
    assert [(len(run.rows), run.complete) for run in runs] == [(2, True), (1, False), (2, True)]


def test_the_command_above_a_table_names_its_collective() -> None:
    text = (
        "+ mpirun -np 8 ./build/reduce_scatter_perf -b 8\n"
        + WHOLE
        + "+ mpirun -np 8 ./build/all_reduce_perf -b 8\n"
        + WHOLE
    )
    runs = read_file(text.encode(), "x").runs
    assert [run.collective for run in runs] == ["reduce_scatter", "all_reduce"]


def test_runs_of_several_processes_with_labels_are_told_apart() -> None:
    lines = [f"[1,{rank}]<stdout>:{line}\n" for line in WHOLE.splitlines() for rank in range(2)]
    runs = read_file("".join(lines).encode(), "x").runs
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
    runs = read_file(mixed.encode(), "x").runs
    assert [[r.size for r in run.rows] for run in runs] == [[8, 16, 1 << 20]] * 2
    assert all(run.nranks == 1 and NO_MPI.format(count=2) in run.notes for run in runs)


@examples("text", "run")
def test_a_run_has_what_its_text_says(text: str, run: dict[str, Any]) -> None:
    assert parts(only(with_texts(text, __file__)), run) == run


def test_lines_of_other_programs_are_told_by_shape() -> None:
    unread = read_file((WHOLE + "fabric 1 is odd\nfabric 2 is odd\nfabric 3 is odd\n").encode(), "x").unread
    assert [(line.text, line.why) for line in unread] == [
        ("fabric 1 is odd", "no line of the test, with 2 more like it")
    ]


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
    runs = read_file("".join(pieces).encode(), "x").runs
    assert all(row.size >= 0 for run in runs for row in run.rows)


@given(st.integers(0, len(WHOLE)))
def test_a_text_cut_anywhere_loses_nothing_before_the_cut(at: int) -> None:
    runs = read_file(WHOLE[:at].encode(), "x").runs
    whole = [line for line in WHOLE[:at].splitlines(keepends=True) if line.endswith("0\n") and "float" in line]
    assert sum(not r.cut and r.in_place.wrong == 0 for run in runs for r in run.rows) >= len(whole)


# --- output of nccl-tests is known by any one line of its own: a row, the averages, an error, behind any label


@examples("text")
def test_one_line_is_enough(text: str) -> None:
    assert kind_of_file((text + "\n").encode()).kind is Kind.NCCL_TESTS


@examples("text")
def test_other_text_is_not_taken_for_it(text: str) -> None:
    assert Kind.NCCL_TESTS not in kind_of_file(text.encode()).kinds


def test_no_text_makes_it_slow() -> None:
    for text in (b"1 " * 30_000, b"1\t1\tfloat\t" * 6_000, b"# size count " * 5_000, b" " * 65_000):
        start = time.monotonic()
        kind_of_file(text)
        assert time.monotonic() - start < 5


# --- The JSON of `-J`: its versions and quirks, cut off anywhere, and what is not kept of it


DOCUMENT = texts(__file__)["document"]


def document() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(DOCUMENT)
    return answer


def only_of(answer: dict[str, Any]) -> BenchRun:
    runs = read_file(json.dumps(answer).encode(), "out.json").runs
    assert len(runs) == 1
    return runs[0]


@examples("text", "replaced", "run")
def test_a_run_has_what_its_document_says(
    text: str | None, replaced: dict[str, str] | None, run: dict[str, Any] | None
) -> None:
    text = text or DOCUMENT
    for old, new in (replaced or {}).items():
        assert old in text
        text = text.replace(old, new)
    runs = read_file(text.encode(), "out.json").runs
    assert [parts(made, run) for made in runs] == ([] if run is None else [run])


def test_processes_of_several_gpus_list_only_their_first_one() -> None:
    answer = document()
    answer["config"]["ngpus"] = 4
    answer["config"]["devices"] = [answer["config"]["devices"][0] | {"rank": rank, "hostname": host}
                                 for rank, host in ((0, "a"), (4, "b"))]  # fmt: skip
    run = only_of(answer)
    assert (run.nranks, run.ranks_per_host, run.hosts) == (8, 4, ("a", "b"))
    assert [device.device for device in run.devices[:4]] == [0, 1, 2, 3]
    assert run.devices[1].bus_id == ""


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_a_file_that_a_crash_cut_off_keeps_its_whole_rows(share: float) -> None:
    text = json.dumps(document())
    runs = read_file(text[: int(len(text) * share)].encode(), "out.json").runs
    assert len(runs) == 1
    assert not runs[0].complete
    assert any("cut off" in note for note in runs[0].notes)
    assert len(runs[0].rows) == (0 if share == 0.5 else 2)


def test_a_row_without_its_second_block_was_cut() -> None:
    text = json.dumps(document())
    runs = read_file(text[: text.rindex('"in_place"')].encode(), "out.json").runs
    assert [row.cut for row in runs[0].rows] == [False, True]


PLAIN = json.dumps(document())


@given(st.integers(PLAIN.index("}") + 1, len(PLAIN)))
def test_a_document_cut_anywhere_behind_its_first_object_can_be_closed(at: int) -> None:
    value, closed, why = load(PLAIN[:at])
    assert isinstance(value, dict)
    assert not why
    assert closed or at == len(PLAIN)


@pytest.mark.parametrize("text", ["", "{", PLAIN[: PLAIN.index("}")], '{"a": "}'])
def test_what_has_no_whole_object_is_no_document(text: str) -> None:
    value, closed, why = load(text)
    assert (value, closed) == (None, False)
    assert why


@given(st.recursive(st.none() | st.text(max_size=5) | st.floats() | st.integers(), lambda x: st.lists(x, max_size=4)
                    | st.dictionaries(st.sampled_from(["results", "config", "size", "devices", "rank", "root",
                                                       "out_of_place", "time", "env", "args"]), x, max_size=5),
                    max_leaves=20))  # fmt: skip
def test_any_values_in_any_place_are_read_without_a_complaint(value: Any) -> None:
    read_file(json.dumps({"results": value, "config": value, "errors": value, "args": value}).encode(), "x")
