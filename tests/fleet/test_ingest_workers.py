"""Logs are read by several processes, in memory that stays bounded, and whatever ends the program ends them."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.evidence.nccl_log.scan_compare import same_facts
from tests.fleet.ingested import ingest_part, rank_log, same
from topodiag.evidence.nccl_log.input.streams import Span, TextPiece
from topodiag.evidence.nccl_log.tables import resolve, saved
from topodiag.evidence.nccl_log.tables.facts import empty
from topodiag.fleet import pool, work
from topodiag.fleet.ingest import Ingested, ingest
from topodiag.fleet.work import Tree
from topodiag.model.errors import TopodiagError


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


def test_ctrl_c_ends_the_workers_promptly(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "0.log").write_bytes(rank_log(0) * 5_000)
    for number in range(1, 60):  # work for a quarter of a minute: never done before the signal comes
        (logs / f"{number}.log").hardlink_to(logs / "0.log")
    program = tmp_path / "run.py"
    program.write_text(
        textwrap.dedent(
            """
            import sys
            from topodiag.fleet.ingest import ingest
            if __name__ == "__main__":
                try:
                    ingest([sys.argv[1]], workers=2, chunk=1 << 20, on_progress=lambda *_: print("on", flush=True))
                except KeyboardInterrupt:
                    print("interrupted")
            """
        )
    )
    child = subprocess.Popen(
        [sys.executable, str(program), str(logs)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert child.stdout.readline() == b"on\n"
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert out.decode().splitlines()[-1] == "interrupted"
    assert b"Traceback" not in err
    deadline = time.monotonic() + 10
    while _group_lives(child.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _group_lives(child.pid)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
