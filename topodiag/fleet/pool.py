"""All cores of this machine: a process pool whose results are reduced as they come, in memory that stays bounded."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

from topodiag.fleet.read_ahead import ReadAhead
from topodiag.fleet.work import Part, Read, Task, Tree, extract_pieces, parts_of, reads_of, run_task
from topodiag.fleet.workers import end_with_parent, pool_of, starting, way_to_start
from topodiag.writing import scratch_folder

OUTSTANDING = 2
"""Tasks per worker that are handed out at once: one in work, one waiting."""
_FINE = 4
"""Parts of each of the last tasks, one a worker, so that the workers come to their end together."""
_LEAST_BYTES = 1 << 20
"""A span that is not cut."""
_POLL_S = 0.2
_PIPE_BYTES = 1 << 16
"""Facts above this are handed over in a file: a pipe holds so much, and who reads it is busy with other things."""

_read: Any = None
"""In a worker: the shared count of raw bytes that all workers have read."""
_folder = ""
"""In a worker: where it leaves what it found."""


def run_pool(
    tasks: Sequence[Task],
    workers: int,
    chunk: int,
    on_bytes: Callable[[int], None],
    streamed: Iterable[Part | Read] | None = None,
    *,
    ahead: ReadAhead[Any] | None = None,
) -> Tree:
    """Parts of all tasks, and of what is read of standard input as it comes. `on_bytes` gets all raw bytes read so far.

    This process is one of the workers: it reads while the others start, and whenever they have enough to do. It unpacks
    archives for all to read, unless there is one for each worker: then each takes one after the other, and this process
    only collects, since an archive takes so long that the others would wait for their next task. Ctrl-C and errors end
    the workers at once. What is done `ahead` begins as they come to their end. Raises TopodiagError when a worker dies.
    """
    archives = sum(map(_is_archive, tasks))
    reads = archives < workers
    finer = list(_finer(tasks, workers))
    streams = streamed is not None or (reads and archives)
    others = (workers if streams else min(workers, max(len(finer), 2))) - reads
    counter = way_to_start().Value("Q", 0)
    tree = Tree()
    waiting: set[Future[Part | str]] = set()

    def on_raw(raw: int) -> None:
        with counter.get_lock():
            counter.value += raw
        on_bytes(counter.value)

    with _room() as folder, pool_of(others, _begin, (counter, folder)) as pool:
        given = _unpacked(finer, chunk, on_raw) if reads else iter(finer)
        for job in chain(given, streamed or ()):
            if isinstance(job, Part):
                tree.add(job)
                continue
            while not reads and len(waiting) >= others * OUTSTANDING:
                waiting = _collect(waiting, tree, _POLL_S)
                on_bytes(counter.value)
            if len(waiting) < others * OUTSTANDING:
                with starting():
                    waiting.add(pool.submit(_run, job, chunk))
                continue
            for part in [extract_pieces([job])] if isinstance(job, Read) else parts_of(job, chunk, on_raw):
                tree.add(part)
            waiting = _collect(waiting, tree)
        if ahead is not None:
            with starting():
                ahead.begin(pool)
        while waiting:
            waiting = _collect(waiting, tree, _POLL_S)
            on_bytes(counter.value)
    return tree


def _is_archive(task: Task) -> bool:
    return len(task) == 1 and bool(task[0].coding)


def _unpacked(tasks: Iterable[Task], chunk: int, on_raw: Callable[[int], None]) -> Iterator[Task | Read | Part]:
    """The tasks, of archives what is in them."""
    for task in tasks:
        if _is_archive(task):
            yield from reads_of(task[0], chunk, on_raw)
        else:
            yield task


def _finer(tasks: Sequence[Task], workers: int) -> Iterator[Task]:
    """The tasks, the last of them cut finer: a span may be cut anywhere."""
    whole = max(len(tasks) - workers, 0)
    yield from tasks[:whole]
    for task in tasks[whole:]:
        span = task[0]
        step = max((span.end - span.start) // _FINE + 1, _LEAST_BYTES)
        if len(task) > 1 or span.coding:
            yield task
            continue
        for start in range(span.start, span.end, step):
            yield (replace(span, start=start, end=min(start + step, span.end)),)


def _collect(waiting: set[Future[Part | str]], tree: Tree, seconds: float = 0) -> set[Future[Part | str]]:
    """Take the results that are there, or come in this time; returns those that are still waited for."""
    done, rest = wait(waiting, timeout=seconds, return_when=FIRST_COMPLETED)
    for future in done:
        tree.add(_part(future.result()))
    return rest


@contextmanager
def _room() -> Iterator[str]:
    """A folder that nobody else may look into, for what workers hand over; "" where there is no room for one."""
    with ExitStack() as stack:
        try:
            name = stack.enter_context(scratch_folder())
        except OSError:
            name = ""
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


def _part(left: Part | str) -> Part:
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
    end_with_parent(folder)


def _count(raw: int) -> None:
    with _read.get_lock():
        _read.value += raw


def _run(job: Task | Read, chunk: int) -> Part | str:
    return _left(extract_pieces([job]).resolved() if isinstance(job, Read) else run_task(job, chunk, _count))
