"""Bundles of many nodes, read by all cores: a capture takes a tenth of a second, and a cluster has thousands."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection

from topodiag.evidence.cluster_bundles import NodeSeen, read_or_why
from topodiag.model.errors import TopodiagError

FEW = 24
"""Bundles that one process has read before others would have started."""
_CHUNK = 8
"""Bundles that a worker takes at once."""


def read_many(paths: Sequence[str]) -> Iterator[NodeSeen | str]:
    """What each bundle says of its node, or why it cannot be read, in the order of the paths. Raises TopodiagError when
    a worker dies."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(paths) <= FEW or cores < 2:
        yield from map(read_or_why, paths)
        return
    before = set(multiprocessing.active_children())
    workers = min(cores, -(-len(paths) // _CHUNK))
    # Spawned, not forked: libraries of the parent may have threads, and a forked copy of their locks hangs.
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
    try:
        yield from _submitted(pool, paths)
        pool.shutdown()
    except BaseException as error:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        if isinstance(error, BrokenProcessPool):
            hint = "it may have been killed for want of memory"
            raise TopodiagError("a worker process ended before its work was done", hint=hint) from None
        raise


def _submitted(pool: ProcessPoolExecutor, paths: Sequence[str]) -> Iterator[NodeSeen | str]:
    """Workers start with Ctrl-C blocked: it is the parent's to handle, without a traceback per worker."""
    if threading.current_thread() is not threading.main_thread():
        return pool.map(read_or_why, paths, chunksize=_CHUNK)
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.map(read_or_why, paths, chunksize=_CHUNK)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _begin() -> None:
    """First thing in a worker: end when the parent does, however that ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
