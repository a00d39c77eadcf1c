"""The same facts whatever reads the logs: any pieces, any workers, any order, a pool or a cluster."""

import gzip
import io
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evidence.nccl_log.scan_compare import same_facts
from tests.files import filed
from tests.fleet.ingested import ingest_part, rank_log, same
from topodiag.evidence.nccl_log.input.streams import Span, TextPiece
from topodiag.evidence.nccl_log.tables import resolve, saved
from topodiag.evidence.nccl_log.tables.facts import SCHEMAS, empty
from topodiag.evidence.nccl_log.tables.saved import save
from topodiag.fleet import dask_engine, pool, work
from topodiag.fleet import ingest as ingest_module
from topodiag.fleet.dask_engine import map_dask
from topodiag.fleet.ingest import Ingested, ingest
from topodiag.fleet.nodes import read_fleet
from topodiag.fleet.work import Tree
from topodiag.model.errors import InputError, TopodiagError

NODES = Path(__file__).parents[2] / "fixtures" / "nodes"


def test_every_record_is_counted_and_every_file_named(job: Path, expected: Ingested) -> None:
    assert [Path(file.path).name for file in expected.inputs] == [
        "rank0.log", "rank1.log", "rank2.log.gz", "rank3.log.zst",
    ]  # fmt: skip
    assert {file.records for file in expected.inputs} == {35}
    assert {file.lines for file in expected.inputs} == {36}
    assert all(file.kind == "nccl_log" and len(file.sha256) == 64 for file in expected.inputs)
    assert [file.size for file in expected.files] == [len(rank_log(rank)) for rank in range(4)]


def test_what_was_not_understood_is_folded_by_shape(expected: Ingested) -> None:
    (unread,) = expected.unread
    assert unread.source.endswith("rank0.log")
    assert unread.line == 15
    assert unread.why.startswith("not understood, 4 times: ")
    assert sum(file.unparsed for file in expected.inputs) == 4


@given(st.integers(200, 5000))
@settings(max_examples=12)
def test_any_chunk_gives_the_same_facts(job: Path, expected: Ingested, chunk: int) -> None:
    assert same(ingest([str(job)], workers=1, chunk=chunk), expected)


@given(st.permutations(range(4)), st.sets(st.integers(0, 3)))
@settings(max_examples=10)
def test_any_order_and_any_grouping_give_the_same_facts(
    job: Path, expected: Ingested, order: list[int], once_more: set[int]
) -> None:
    files = sorted(str(path) for path in job.iterdir())
    assert same(ingest([files[number] for number in order], workers=1, chunk=700), expected)
    parts = [ingest_part(files, number) for number in order]
    tree = Tree()
    for part in parts:
        tree.add(part)
    for number in sorted(once_more):
        tree.add(tree.result())
        tree.add(work.Part(empty(), (work.Measure(number),)))
    assert same_facts(resolve.resolve(tree.result().facts), expected.facts)


def test_a_pool_gives_the_same_facts(job: Path, expected: Ingested) -> None:
    seen: list[tuple[int, int]] = []
    got = ingest([str(job)], workers=2, chunk=900, on_progress=lambda done, total: seen.append((done, total)))
    assert same(got, expected)
    total = sum(path.stat().st_size for path in job.iterdir())
    assert seen[-1] == (total, total)
    assert seen == sorted(seen)


def test_a_cluster_gives_the_same_facts_and_the_same_fleet(
    job: Path, expected: Ingested, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        monkeypatch.setattr(dask_engine, "_client", lambda *_: nullcontext(client))
        seen: list[int] = []
        got = ingest([str(job)], dask="local", chunk=300, on_progress=lambda done, total: seen.append(done))
        nodes = [str(NODES / name) for name in ("rtx4090-pair", "t4-box", "no-gpu")]
        monkeypatch.setattr("topodiag.fleet.nodes._DASK_CHUNK", 2)
        fleet = read_fleet(nodes, dask=cluster.scheduler_address)
        with pytest.raises(TopodiagError, match="a worker of the cluster failed: ValueError"):
            list(map_dask(int, ["1", "one"], "local", 1))
    assert same(got, expected)
    assert fleet == read_fleet(nodes, workers=1)
    assert seen[-1] == sum(path.stat().st_size for path in job.iterdir())


def test_without_a_scheduler_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_engine, "_CONNECT_S", 1)
    with pytest.raises(TopodiagError, match="no dask scheduler answers at tcp"):
        list(map_dask(str, [], "tcp://127.0.0.1:9", 1))
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(TopodiagError, match="pip install dask-jobqueue"):
        list(map_dask(str, [], "slurm", 1))
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(TopodiagError, match=r"pip install 'topodiag\[fleet\]'"):
        list(map_dask(str, [], "local", 1))


def test_workers_that_are_killed_while_they_start_are_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: object) -> None:
        raise RuntimeError("Nanny failed to start.")  # as distributed says it after a SIGKILL

    monkeypatch.setattr("distributed.LocalCluster", fails)
    with pytest.raises(TopodiagError, match="did not start: Nanny failed to start") as error:
        list(map_dask(str, [], "local", 1))
    assert "--workers N asks for fewer" in error.value.hint


def test_standard_input_is_read_as_a_file_is(job: Path) -> None:
    text = rank_log(0)
    file = ingest([str(job / "rank0.log")], workers=1)
    for raw in (text, gzip.compress(text), zstandard.compress(text)):
        for chunk in (500, 1 << 20):
            got = ingest(["-"], workers=1, chunk=chunk, stdin=io.BytesIO(raw))
            for name in SCHEMAS:
                assert repr(got.facts[name].rows()) == repr(file.facts[name].rows())
            assert got.inputs[0].path == "<stdin>"
            assert got.inputs[0].sha256 == file.inputs[0].sha256
            assert got.inputs[0].records == 35


def test_standard_input_goes_through_the_pool_in_pieces(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingested = ingest(["-", str(job)], workers=1, stdin=io.BytesIO(rank_log(0) * 3))
    monkeypatch.setattr("topodiag.fleet.ingest.LITTLE_BYTES", 1000)
    assert same(ingest(["-", str(job)], workers=2, chunk=900, stdin=io.BytesIO(rank_log(0) * 3)), ingested)


def test_saved_facts_go_on_where_the_logs_left(tmp_path: Path, job: Path, expected: Ingested) -> None:
    with (tmp_path / "job.facts").open("wb") as stream:
        save(stream, expected.facts, expected.files)
    again = ingest([str(tmp_path / "job.facts")])
    assert same(again, expected)
    (tmp_path / "a.log").write_bytes(rank_log(1))
    both = ingest([str(tmp_path / "job.facts"), str(tmp_path / "a.log")], workers=1)
    assert [Path(file.path).name for file in both.files][:2] == ["a.log", "rank0.log"]
    assert both.files[2].note == f"left out: same content as {tmp_path}/a.log"
    assert sum(file.records for file in both.inputs) == 5 * 35
    assert len(both.facts["shards"]) == 4


TORCH = (
    b"[rank1]:[E1121 10:00:00.000000000 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout"
    b": WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600005 milliseconds "
    b"before timing out.\n"
)


def test_saved_facts_of_what_only_an_application_said_are_evidence_still(tmp_path: Path) -> None:
    read = ingest([str(filed(tmp_path, "a.log", TORCH))])
    assert read.facts["event"].values("level") == ["APP"]
    with (tmp_path / "job.facts").open("wb") as stream:
        save(stream, read.facts, read.files)
    assert same(ingest([str(tmp_path / "job.facts")]), read)


def test_saved_facts_that_are_joined_or_lose_a_copy_on_disk_are_the_same(
    tmp_path: Path, job: Path, expected: Ingested, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.log").write_bytes(rank_log(1))  # a copy of one that was saved
    (tmp_path / "b.log").write_bytes(rank_log(5) + TORCH)
    for name, one in (("job", expected), ("more", ingest([str(tmp_path / "b.log")]))):
        with (tmp_path / f"{name}.facts").open("wb") as stream:
            save(stream, one.facts, one.files)
    inputs = [str(tmp_path / name) for name in ("a.log", "more.facts", "job.facts")]
    in_memory = ingest(inputs, workers=1)
    assert not in_memory.facts.maps
    assert len(in_memory.files) == 6
    for module in (saved, ingest_module):
        monkeypatch.setattr(module, "MOST_BYTES", 0)
    monkeypatch.setattr(saved, "SMALL_TABLE", 0)
    on_disk = ingest(inputs, workers=1)
    assert on_disk.facts.maps
    assert same(on_disk, in_memory)
    on_disk.facts.rest()
    assert same(on_disk, in_memory)


def test_the_same_log_twice_counts_once_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(rank_log(0))
    once = ingest([str(tmp_path)])
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(rank_log(0)))
    got = ingest([str(tmp_path)])
    assert [file.note for file in got.files] == ["", f"left out: same content as {tmp_path}/a.log"]
    for name in once.facts.tables:
        assert str(got.facts[name].rows()) == str(once.facts[name].rows()), name


@pytest.mark.parametrize("name", ["b.log", "b.log.gz"])
def test_without_sums_they_are_taken_only_of_what_may_be_a_copy(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.log").write_bytes(rank_log(0))
    (alone,) = ingest([str(tmp_path)], sums=False).files
    (tmp_path / name).write_bytes(gzip.compress(rank_log(0)) if name.endswith("gz") else rank_log(0))
    (tmp_path / "c.log").write_bytes(rank_log(1) + rank_log(1))
    got = ingest([str(tmp_path)], sums=False).files
    assert alone.sha256 == ""
    assert [file.note for file in got] == ["", f"left out: same content as {tmp_path}/a.log", ""]
    assert bool(got[2].sha256) == name.endswith("gz")


def test_a_cut_archive_counts_and_says_so(tmp_path: Path) -> None:
    text = b"".join(rank_log(rank % 4) for rank in range(200))
    packed = gzip.compress(text)
    got = ingest([str(filed(tmp_path, "a.log.gz", packed[: len(packed) * 3 // 4]))], chunk=5000)
    assert got.inputs[0].records > 100
    assert got.damaged == (f"{tmp_path}/a.log.gz: the archive is cut short: what was readable counts",)
    assert got.files[0].note == "the archive is cut short: what was readable counts"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "is empty"),
        (b"hello\nworld\n", "holds no NCCL record .*NCCL_DEBUG=INFO"),
        (b"+---+\n| NVIDIA-SMI 550.54 |\n", "looks like nvidia-smi output .*topodiag scan "),
        (b"# nThread 1 nGpus 8 minBytes 8\n", "looks like an nccl-tests table"),
        (b"\x7fELF" + bytes(100), "a program or a core file"),
    ],
)
def test_the_wrong_file_is_named_in_one_line(tmp_path: Path, text: bytes, says: str) -> None:
    path = filed(tmp_path, "x", text)
    for inputs, stdin in (([str(path)], None), (["-"], io.BytesIO(text)), ([str(path), str(path)], None)):
        with pytest.raises(InputError, match=says) as caught:
            ingest(inputs, stdin=stdin)
        assert "\n" not in str(caught.value)


def test_a_wrong_file_among_good_ones_is_a_note(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).write_text("hello\n")
    (tmp_path / "z").write_bytes(rank_log(0))
    got = ingest([str(tmp_path / "x"), str(tmp_path / "z")])
    assert len(got.notes) == 1
    assert "x: holds no NCCL record" in got.notes[0]
    assert len(ingest([str(tmp_path)]).inputs) == 1
    assert "2 files without any NCCL record" in ingest([str(tmp_path)]).notes[0]


def test_a_file_that_goes_away_costs_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in range(2):
        (tmp_path / f"rank{rank}.log").write_bytes(rank_log(rank))
    real = work.reads_of

    def gone(span: Any, *others: Any) -> Any:
        if span.path.endswith("rank1.log"):
            Path(span.path).unlink()
        return real(span, *others)

    monkeypatch.setattr(work, "reads_of", gone)
    got = ingest([str(tmp_path)], workers=1)
    assert [file.records for file in got.inputs] == [35]
    assert any("rank1.log: cannot be opened" in note for note in got.notes)


CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "jobs"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real logs is not here")
@pytest.mark.parametrize("name", ["g_tp8_scatter", "v2.18.6-1_a_h100_1node"])
def test_real_logs_give_the_same_facts_in_pieces_of_two_kibibytes(name: str) -> None:
    folder = [str(CORPUS / name / "logs")]
    assert same(ingest(folder, workers=1, chunk=2000), ingest(folder, workers=1))


# --- Logs are read by several processes, in memory that stays bounded, and whatever ends the program ends them


def test_the_tree_holds_few_parts_however_many_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "YOUNG_BYTES", 100_000)
    one = work.extract_pieces([work.Read(0, TextPiece(0, rank_log(0)))])
    tree = Tree()
    for number in range(500):
        tree.add(work.Part(empty(), (work.Measure(number % 3, records=1),)))
        tree.add(replace(one, measures=()))
        assert len(tree.young) < work.GROUP
        assert not tree.old  # the same facts again take no more room
    result = tree.result()
    assert sum(measure.records for measure in result.measures) == 500
    assert sum(resolve.resolve(result.facts)["conn"].values("count")) == 500 * 4


def test_facts_that_share_nothing_wait_for_the_end_unjoined(
    job: Path, expected: Ingested, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(str(path) for path in job.iterdir())
    monkeypatch.setattr(work, "YOUNG_BYTES", 1)
    tree = Tree()
    parts = [ingest_part(files, number) for number in range(4)]
    for part in parts:
        tree.add(part)
    assert len(tree.old) == 4
    result = tree.result(threads=2)
    assert result.normal
    assert same_facts(resolve.resolve(result.facts), expected.facts)


@pytest.mark.parametrize("names", [["rank0.log", "rank1.log"], ["rank0.log", "rank2.log.gz", "rank3.log.zst"]])
def test_the_process_that_hands_out_tasks_reads_too_where_they_are_short(
    job: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    here: list[tuple[Span, ...]] = []

    def seen(task: tuple[Span, ...], *more: Any) -> Iterator[work.Part]:
        here.append(task)
        return work.parts_of(task, *more)

    paths = [str(job / name) for name in names]
    ingested = ingest(paths, workers=1, chunk=400)
    monkeypatch.setattr(pool, "parts_of", seen)
    monkeypatch.setattr(pool, "OUTSTANDING", 1)
    assert same(ingest(paths, workers=2, chunk=400), ingested)
    assert bool(here) == (len(names) == 2)  # each worker has an archive, which takes as long as it takes


@pytest.mark.parametrize("name", ["rank2.log.gz", "rank3.log.zst"])
def test_what_is_in_one_archive_is_handed_to_all_workers(job: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    handed: list[object] = []

    def seen(executor: ProcessPoolExecutor, call: Any, given: Any, chunk: int) -> Any:
        handed.append(given)
        return submit(executor, call, given, chunk)

    submit = ProcessPoolExecutor.submit
    monkeypatch.setattr(ProcessPoolExecutor, "submit", seen)
    ingested = ingest([str(job / name)], workers=1, chunk=400)
    assert not handed
    assert same(ingest([str(job / name)], workers=2, chunk=400), ingested)
    assert handed
    assert all(isinstance(given, work.Read) for given in handed)


@pytest.mark.parametrize("most", [0, 8_000, 1 << 30])
def test_facts_that_wait_on_disk_are_the_same(
    job: Path, expected: Ingested, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(work, "YOUNG_BYTES", 2_000)
    monkeypatch.setattr(work, "MOST_BYTES", most)
    monkeypatch.setattr(work, "JOINED_BYTES", most)
    monkeypatch.setattr(saved, "SMALL_TABLE", 500)
    monkeypatch.setattr(resolve, "RANGE_ROWS", 5)
    got = ingest([str(job)], workers=1, chunk=700)
    assert bool(got.facts.maps) == (most < 1 << 30)
    assert same(got, expected)
    got.facts.rest()
    assert same(got, expected)


def test_a_full_disk_is_told_in_one_line(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "YOUNG_BYTES", 2_000)
    monkeypatch.setattr(work, "MOST_BYTES", 0)
    monkeypatch.setattr(saved, "SMALL_TABLE", 500)

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(TopodiagError, match=r"No space left on device.*set TMPDIR"):
        ingest([str(job)], workers=1, chunk=700)


def _die(*_: Any) -> None:
    os._exit(9)


def test_a_worker_that_dies_is_told_clearly(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_run", _die)
    with pytest.raises(TopodiagError, match="a worker process ended before its work was done"):
        ingest([str(job)], workers=2, chunk=900)
