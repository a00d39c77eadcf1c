"""All cores of this machine: a process pool whose results are reduced as they come, in memory that stays bounded."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from typing import Any

import pyarrow as pa

from topodiag.evidence.nccl_log.sources import Span
from topodiag.evidence.nccl_log.streams import Piece
from topodiag.fleet.work import Part, Tree, extract_piece, packed, run_task
from topodiag.model.errors import TopodiagError

OUTSTANDING = 2
"""Tasks per worker that are handed out at once: one in work, one waiting."""
_POLL_S = 0.2
STDIN_FILE = 0
"""Standard input is the first of all files: its text is there before the others are looked at."""

_read: Any = None
"""In a worker: the shared count of raw bytes that all workers have read."""


def cpus() -> int:
    """CPUs that this process may use, which a batch system often limits."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_pool(
    tasks: Iterable[tuple[Span, ...]],
    workers: int,
    chunk: int,
    on_bytes: Callable[[int], None],
    pieces: Iterable[Piece] = (),
) -> Tree:
    """Parts of all tasks, and of pieces of standard input as they come. `on_bytes` gets all raw bytes read so far.

    Ctrl-C and errors end the workers at once. Raises TopodiagError when a worker dies.
    """
    # Spawned, not forked: Arrow has threads, and a forked copy of their locks hangs.
    context = multiprocessing.get_context("spawn")
    counter = context.Value("Q", 0)
    tree = Tree(spill=True)
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(counter,))
    try:
        waiting: set[Future[Part]] = set()
        for submit in _submissions(pool, tasks, chunk, pieces):
            with _workers_ignore_ctrl_c():
                waiting.add(submit())
            if len(waiting) >= workers * OUTSTANDING:
                waiting = _collect(waiting, tree, counter, on_bytes)
        while waiting:
            waiting = _collect(waiting, tree, counter, on_bytes)
        pool.shutdown()
    except BaseException as error:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        if isinstance(error, BrokenProcessPool):
            raise TopodiagError(
                "a worker process ended before its work was done",
                hint="it may have been killed for want of memory: try --workers 1, or a machine with more memory",
            ) from None
        raise
    return tree


def _submissions(
    pool: ProcessPoolExecutor,
    tasks: Iterable[tuple[Span, ...]],
    chunk: int,
    pieces: Iterable[Piece],
) -> Iterator[Callable[[], Future[Part]]]:
    for task in tasks:
        yield lambda task=task: pool.submit(_run, task, chunk)  # type: ignore[misc]
    for piece in pieces:
        yield lambda piece=piece: pool.submit(_run_piece, piece)  # type: ignore[misc]


def _collect(
    waiting: set[Future[Part]], tree: Tree, counter: Any, on_bytes: Callable[[int], None]
) -> set[Future[Part]]:
    """Wait for at least one result; say meanwhile how far the workers are."""
    while True:
        done, rest = wait(waiting, timeout=_POLL_S, return_when=FIRST_COMPLETED)
        on_bytes(counter.value)
        if done:
            for future in done:
                tree.add(future.result())
            return rest


@contextlib.contextmanager
def _workers_ignore_ctrl_c() -> Iterator[None]:
    """A worker started within inherits the mask: Ctrl-C is the parent's to handle, without a traceback per worker."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _begin(counter: Any) -> None:
    """First thing in a worker: know the counter, and end when the parent does, however that ends."""
    global _read  # noqa: PLW0603 - a worker has one
    _read = counter
    pa.set_cpu_count(1)  # the workers are the parallelism
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _count(raw: int) -> None:
    with _read.get_lock():
        _read.value += raw


def _run_piece(piece: Piece) -> Part:
    return packed(extract_piece(STDIN_FILE, piece))


def _run(task: tuple[Span, ...], chunk: int) -> Part:
    return run_task(task, chunk, _count)
