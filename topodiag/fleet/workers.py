"""Processes that work for this one: how they start, and how they end with it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection
from multiprocessing.context import BaseContext
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from topodiag.fleet.cores import cpus
from topodiag.model.errors import TopodiagError

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
FEW = 24
"""Captures that one process has read before others would have started."""
CHUNK = 8
"""Captures that a worker takes at once."""
_END_S = 2.0
"""For the thread of a pool whose workers have ended; it takes milliseconds."""
_FORK_SAFE = frozenset({"jemalloc_bg_thd"})
"""Threads that end before a fork and start again behind it: those of jemalloc (its src/background_thread.c), which
pyarrow has."""


def by_all_cores(
    work: Callable[[_Item], _Made], items: Sequence[_Item], *, worth: bool, chunk: int = 0, workers: int | None = None
) -> Iterator[_Made]:
    """What comes of each item, in their order, by so many processes (None: all cores), each taking `chunk` items
    (0: CHUNK) at once; in this one where others are not `worth` it. Raises TopodiagError when a worker dies."""
    chunk = chunk or CHUNK
    wanted = min(workers or cpus(), -(-len(items) // chunk))
    if wanted < 2 or not worth:
        yield from map(work, items)
        return
    with pool_of(wanted, end_with_parent) as pool:
        with starting():
            results = pool.map(work, items, chunksize=chunk)
        yield from results


def way_to_start() -> BaseContext:
    """Forked where this process has one thread, which takes a hundredth of a second; else spawned, which takes a third
    of one: another thread may hold a lock, and whoever asks for the forked copy of it hangs."""
    return multiprocessing.get_context("fork" if _is_single_threaded() else "spawn")


def _is_single_threaded() -> bool:
    if sys.platform != "linux":
        return False
    threads = Path("/proc/self/task")
    try:
        names = [(path / "comm").read_text().strip() for path in threads.iterdir()]
    except OSError:
        return False
    return sum(name not in _FORK_SAFE for name in names) == 1


class Pool(ProcessPoolExecutor):
    """Processes that can be ended at once."""

    def __init__(self, workers: int, initializer: Callable[..., None], initargs: tuple[Any, ...]) -> None:
        self._before = set(multiprocessing.active_children())
        super().__init__(workers, mp_context=way_to_start(), initializer=initializer, initargs=initargs)

    def end(self) -> None:
        self.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - self._before:
            child.terminate()
        # The pool's own thread sees them end. It and the end of the program would both close its pipe, and one of them
        # would say so with a traceback.
        for thread in threading.enumerate():
            if type(thread).__module__ == ProcessPoolExecutor.__module__:
                thread.join(_END_S)


@contextmanager
def pool_of(workers: int, initializer: Callable[..., None], initargs: tuple[Any, ...] = ()) -> Iterator[Pool]:
    """So many workers. They end behind the block, once they have done all that was given to them, at once where it ends
    in an error or Ctrl-C. Raises TopodiagError when a worker dies."""
    pool = Pool(workers, initializer, initargs)
    try:
        yield pool
        pool.shutdown(wait=False)  # they end while what they found is joined
    except BaseException as error:
        pool.end()
        if isinstance(error, BrokenProcessPool):
            raise TopodiagError(
                "a worker process ended before its work was done",
                hint="it may have been killed for want of memory: fewer --workers, or a machine with more memory",
            ) from None
        raise


@contextmanager
def starting() -> Iterator[None]:
    """Around what starts workers: Ctrl-C is this process's to handle, without a traceback per worker.

    Workers inherit the mask. Here Ctrl-C waits for the end of the block: the mask alone does not hold it back, since
    another thread may take the signal, and a worker that is left half started says so with a traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    old = signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, old)
    if held and callable(old):
        old(*held[0])


def end_with_parent(folder: str = "") -> None:
    """In a worker, first of all: end when the parent does, however that ends; the folder ends with them."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel, folder), daemon=True).start()


def _end_with(sentinel: int, folder: str) -> None:
    connection.wait([sentinel])
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)
