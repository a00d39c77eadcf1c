"""All cores of this machine: a process pool whose results are reduced as they come, in memory that stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
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

_read: Any = None
"""In a worker: the shared count of raw bytes that all workers have read."""


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
    waiting: set[Future[Part]] = set()

    def on_raw(raw: int) -> None:
        with counter.get_lock():
            counter.value += raw
        on_bytes(counter.value)

    with pool_of(others, _begin, (counter,)) as pool:
        jobs: Iterator[tuple[Span, ...] | Piece] = chain(finer, pieces or ())
        for job in jobs:
            while not reads and len(waiting) >= others * OUTSTANDING:
                waiting = _collect(waiting, tree, _POLL_S)
                on_bytes(counter.value)
            if len(waiting) < others * OUTSTANDING:
                with starting():
                    waiting.add(_submit(pool, job, chunk))
                continue
            for part in [_run_piece(job)] if isinstance(job, Piece) else parts_of(job, chunk, on_raw):
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


def _submit(pool: ProcessPoolExecutor, job: tuple[Span, ...] | Piece, chunk: int) -> Future[Part]:
    if isinstance(job, Piece):
        return pool.submit(_run_piece, job)
    return pool.submit(_run, job, chunk)


def _collect(waiting: set[Future[Part]], tree: Tree, seconds: float = 0) -> set[Future[Part]]:
    """Take the results that are there, or come in this time; returns those that are still waited for."""
    done, rest = wait(waiting, timeout=seconds, return_when=FIRST_COMPLETED)
    for future in done:
        tree.add(future.result())
    return rest


def _begin(counter: Any) -> None:
    """First thing in a worker: know the counter, and end when the parent does, however that ends."""
    global _read  # noqa: PLW0603 - a worker has one
    _read = counter
    pa.set_cpu_count(1)  # the workers are the parallelism
    end_with_parent()


def _count(raw: int) -> None:
    with _read.get_lock():
        _read.value += raw


def _run_piece(piece: Piece) -> Part:
    return packed(extract_piece(STDIN_FILE, piece))


def _run(task: tuple[Span, ...], chunk: int) -> Part:
    return run_task(task, chunk, _count)
