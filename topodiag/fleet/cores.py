"""What of this machine the program may use."""

from __future__ import annotations

import os


def cpus() -> int:
    """CPUs that this process may use, which a batch system often limits."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_thread() -> None:
    """Before numpy is loaded: its threads do not start. They are for products of matrices, of which there are none
    here; they spin for a tenth of a second each, and a process that has them is not forked (`way_to_start`)."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
