"""All cores of this machine: a process pool whose results are reduced as they come, in memory that stays bounded."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa

from topodiag.evidence.nccl_log.streams import Piece, Span
from topodiag.fleet.work import Part, Tree, extract_piece, packed, parts_of, run_task
from topodiag.fleet.workers import end_with_parent, pool_of, starting, way_to_start

OUTSTANDING = 2
"""Tasks per worker that are handed out at once: one in work, one waiting."""
_LAST = 1
"""Tasks per worker, the last ones, that are cut in FINE, so that the workers come to their end together."""
_FINE = 4
_LEAST_BYTES = 1 << 20
"""A span that is not cut."""
_POLL_S = 0.2
STDIN_FILE = 0
"""Standard input is the first of all files: its text is there before the others are looked at."""

_PIPE_BYTES = 1 << 16
"""Facts above this are handed over in a file: a pipe holds so much, and who reads it is busy with other things."""

_read: Any = None
"""In a worker: the shared count of raw bytes that all workers have read."""
_folder = ""
"""In a worker: where it leaves what it found."""


def run_pool(
    tasks: Sequence[tuple[Span, ...]],
    workers: int,
    chunk: int,
    on_bytes: Callable[[int], None],
    pieces: Iterable[Piece] | None = None,
) -> Tree:
    """Parts of all tasks, and of pieces of standard input as they come. `on_bytes` gets all raw bytes read so far.

    This process is one of the workers: it reads while the others start, and whenever they have enough to do; not where
    there are archives, which take so long that the others would wait for their next task. Ctrl-C and errors end the
    workers at once. Raises TopodiagError when a worker dies.
    """
    reads = not any(span.coding for task in tasks for span in task)
    finer = list(_finer(tasks, workers))
    others = (workers if pieces is not None else min(workers, max(len(finer), 2))) - reads
    counter = way_to_start().Value("Q", 0)
    tree = Tree(spill=True)
    waiting: set[Future[Part | str]] = set()

    def on_raw(raw: int) -> None:
        with counter.get_lock():
            counter.value += raw
        on_bytes(counter.value)

    with _room() as folder, pool_of(others, _begin, (counter, folder)) as pool:
        jobs: Iterator[tuple[Span, ...] | Piece] = chain(finer, pieces or ())
        for job in jobs:
            while not reads and len(waiting) >= others * OUTSTANDING:
                waiting = _collect(waiting, tree, _POLL_S)
                on_bytes(counter.value)
            if len(waiting) < others * OUTSTANDING:
                with starting():
                    waiting.add(_submit(pool, job, chunk))
                continue
            for part in [_piece(job)] if isinstance(job, Piece) else parts_of(job, chunk, on_raw):
                tree.add(part)
            waiting = _collect(waiting, tree)
        while waiting:
            waiting = _collect(waiting, tree, _POLL_S)
            on_bytes(counter.value)
    return tree


def _finer(tasks: Sequence[tuple[Span, ...]], workers: int) -> Iterator[tuple[Span, ...]]:
    """The tasks, the last of them cut finer: a span may be cut anywhere."""
    whole = max(len(tasks) - workers * _LAST, 0)
    yield from tasks[:whole]
    for task in tasks[whole:]:
        span = task[0]
        step = max((span.end - span.start) // _FINE + 1, _LEAST_BYTES)
        if len(task) > 1 or span.coding:
            yield task
            continue
        for start in range(span.start, span.end, step):
            yield (replace(span, start=start, end=min(start + step, span.end)),)


def _submit(pool: ProcessPoolExecutor, job: tuple[Span, ...] | Piece, chunk: int) -> Future[Part | str]:
    if isinstance(job, Piece):
        return pool.submit(_run_piece, job)
    return pool.submit(_run, job, chunk)


def _collect(waiting: set[Future[Part | str]], tree: Tree, seconds: float = 0) -> set[Future[Part | str]]:
    """Take the results that are there, or come in this time; returns those that are still waited for."""
    done, rest = wait(waiting, timeout=seconds, return_when=FIRST_COMPLETED)
    for future in done:
        tree.add(_taken(future.result()))
    return rest


@contextmanager
def _room() -> Iterator[str]:
    """A folder that nobody else may look into, for what workers hand over; "" where there is no room for one."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="topodiag-", ignore_cleanup_errors=True)
    except OSError:
        yield ""
        return
    with folder as name:
        yield name


def _left(part: Part) -> Part | str:
    """In a worker: the file that holds the part now; the part itself where it is small, or there is no room."""
    if not _folder or part.facts.nbytes < _PIPE_BYTES:
        return part
    try:
        handle, name = tempfile.mkstemp(dir=_folder)
        with open(handle, "wb") as file:
            pickle.dump(part, file, pickle.HIGHEST_PROTOCOL)
    except OSError:
        return part
    return name


def _taken(left: Part | str) -> Part:
    if isinstance(left, Part):
        return left
    with open(left, "rb") as file:
        part: Part = pickle.load(file)  # noqa: S301 - from our own worker, as what comes through a pool's pipes
    os.unlink(left)
    return part


def _begin(counter: Any, folder: str) -> None:
    """First thing in a worker: know the counter and the folder, and end when the parent does, however that ends."""
    global _read, _folder
    _read, _folder = counter, folder
    pa.set_cpu_count(1)  # the workers are the parallelism
    end_with_parent(folder)


def _count(raw: int) -> None:
    with _read.get_lock():
        _read.value += raw


def _run_piece(piece: Piece) -> Part | str:
    return _left(_piece(piece))


def _piece(piece: Piece) -> Part:
    return packed(extract_piece(STDIN_FILE, piece))


def _run(task: tuple[Span, ...], chunk: int) -> Part | str:
    return _left(run_task(task, chunk, _count))
