"""What the pool hands out, all of the text, once; what workers hand back, and how they start."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.nccl_log.input.streams import Span, TextPiece, text_of
from topodiag.evidence.nccl_log.tables.resolve import resolve
from topodiag.fleet import pool, work
from topodiag.fleet.cores import one_thread
from topodiag.fleet.work import Part


@given(st.lists(st.integers(0, 9_000), max_size=12), st.integers(2, 4), st.integers(1, 3000))
def test_the_last_tasks_are_cut_finer_and_none_is_lost(sizes: list[int], workers: int, least: int) -> None:
    tasks = [(Span(number, f"{number}.log", 100, 100 + size),) for number, size in enumerate(sizes) if size]
    packed = (Span(98, "a.gz", 0, 9_000, ("gzip",)),)
    several = (Span(99, "a.log", 0, 5), Span(100, "b.log", 0, 9_000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "_LEAST_BYTES", least)
        got = list(pool._finer([*tasks, packed, several], workers))
    assert got[-2:] == [packed, several]
    whole = {span.file: [span.start, span.end] for (span,) in tasks}
    for (span,) in got[:-2]:
        assert span.start == whole[span.file][0]
        whole[span.file][0] = span.end
        assert span.end > span.start
    assert all(start == end for start, end in whole.values())
    assert all(len([one for (one,) in got[:-2] if one.file == number]) <= pool._FINE for number in whole)


def found() -> Part:
    """Facts of some connections."""
    text = "".join(
        f"node-a:41:52 [0] NCCL INFO Channel 00/0 : {rank}[0] -> {rank + 1}[1] via P2P/CUMEM/read\n"
        for rank in range(3000)
    )
    return work.extract_pieces([work.Read(0, TextPiece(0, text.encode()))])


def rows(part: Part) -> list[object]:
    facts = resolve(part.facts)
    return [facts[name].rows() for name in facts.tables]


def test_what_a_worker_found_is_handed_over_in_a_file_that_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_folder", str(tmp_path))
    monkeypatch.setattr(pool, "_PIPE_BYTES", 1000)
    left = pool._left(found())
    assert [str(path) for path in tmp_path.iterdir()] == [left]
    taken = pool._part(left)
    assert rows(taken) == rows(found())
    assert taken.measures == found().measures
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", ["", "/nowhere/at/all"])
def test_without_room_it_goes_through_the_pipe(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_folder", folder)
    monkeypatch.setattr(pool, "_PIPE_BYTES", 1000)
    part = found()
    assert pool._left(part) is part
    assert pool._part(part) is part


def test_no_folder_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pool, "scratch_folder", full)
    with pool._room() as folder:
        assert folder == ""


def test_of_a_span_no_byte_is_read_that_is_none_of_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, blocks = tmp_path / "a.log", list[bytes]()
    text = b"".join(b"%0*d\n" % (1 + n % 90, n) for n in range(20_000)) + b"unfinished"
    path.write_bytes(text)

    def watched(stream: BinaryIO, *more: Any) -> Iterator[bytes]:
        for block in text_of(stream, *more):
            blocks.append(block)
            yield block

    monkeypatch.setattr(work, "text_of", watched)
    spans = [Span(0, str(path), at, min(at + 100_001, len(text))) for at in range(0, len(text), 100_001)]
    got = [read.piece.data for span in spans for read in work.reads_of(span, 1 << 20) if isinstance(read, work.Read)]
    assert blocks == got
    assert b"".join(got) == text


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are always spawned")


def way(before: str) -> str:
    """How a new process that did this would start its workers."""
    code = f"{before}\nfrom topodiag.fleet.workers import way_to_start\nprint(way_to_start().get_start_method())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@LINUX
def test_a_process_of_one_thread_is_forked() -> None:
    assert way("") == "fork"


@LINUX
def test_what_reading_loads_leaves_one_thread() -> None:
    start = "from topodiag.fleet.cores import one_thread\none_thread()"
    loaded = f"{start}\nimport topodiag.fleet.ingest, zstandard"
    assert way(loaded) == "fork"


def test_a_process_with_another_thread_is_not() -> None:
    assert way("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()") == "spawn"


def test_elsewhere_it_is_not() -> None:
    assert way("import sys\nsys.platform = 'darwin'") == "spawn"


def test_whoever_sets_the_threads_of_numpy_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    one_thread()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"
