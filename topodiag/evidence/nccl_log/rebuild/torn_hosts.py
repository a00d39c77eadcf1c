"""Hosts that exist only because a pipe tore a line: `0x5f9d550ebgpu-a` is the end of one line and the host `gpu-a`.

Processes that share a pipe interleave at any byte, and the rest of a torn line runs into the next head without a blank;
so do the columns of nccl-tests, which flushes them one by one (`sumgpu-a`, `-1gpu-a`, `0gpu-a`). What stands there
looks like a host of its own, with a process id that the real host has as well. Where the beginning of a head is what
was torn off, the end of a real host's name is left, `n0` of `x3207c0s25b1n0`; where its middle was, both ends,
`x3207c0sn0`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.tables.facts import BATCH_ROWS, ROW_TABLES, Facts, table

_MANY = 4
"""Times as many lines that the process has under its real host. Two real hosts, one named like the end of the other and
with equal process ids (containers), say about as much."""


def whole_hosts(facts: Facts) -> Facts:
    """The same facts, torn hosts named as the real ones of the same file and process id."""
    threads = facts["threads"]
    hosts = threads.values("host")
    if len(set(hosts)) < 2:
        return facts
    files, pids, tids = (threads.values(name) for name in ("file", "pid", "tid"))
    counts = _lines_by_thread(facts, len(hosts))
    by_process: dict[tuple[int, int], dict[str, int]] = {}
    by_thread: dict[tuple[int, int, int], dict[str, int]] = {}
    for file, host, pid, tid, count in zip(files, hosts, pids, tids, counts.tolist(), strict=True):
        for lines in (by_process.setdefault((file, pid), {}), by_thread.setdefault((file, pid, tid), {})):
            lines[host] = lines.get(host, 0) + count
    renamed = [
        _full_name(host, by_process[file, pid], by_thread[file, pid, tid])
        for file, host, pid, tid in zip(files, hosts, pids, tids, strict=True)
    ]
    if renamed == hosts:
        return facts
    columns = {name: threads.values(name) for name in threads.columns} | {"host": renamed}
    return replace(facts, tables={**facts.tables, "threads": table("threads", columns)})


def _lines_by_thread(facts: Facts, threads: int) -> npt.NDArray[Any]:
    counts = np.zeros(threads, np.float64)
    for name in ROW_TABLES:
        if name == "tail":
            continue  # the lines of `op` once more
        for rows in facts[name].batches(BATCH_ROWS):
            counts += np.bincount(rows["thread"], rows["count"], minlength=threads)
        facts.rest()
    return counts.astype(np.int64)


def _full_name(host: str, of_process: dict[str, int], of_thread: dict[str, int]) -> str:
    """Lines by host of this one's process id, and of its thread: a head that lost its beginning still has both."""
    total = max(of_process[host], 1)
    likely = [
        other
        for other, count in of_process.items()
        if other and other != host and host.endswith(other) and count >= _MANY * total
    ]
    likely += [
        other
        for other, count in of_thread.items()
        if host and other != host and count >= _MANY * total and (other.endswith(host) or _without_middle(host, other))
    ]
    return max(likely, key=lambda other: (of_process[other], other), default=host)


def _without_middle(host: str, other: str) -> bool:
    """Whether `host` is the beginning and the end of `other`. One character less may well be another host's name."""
    return len(other) - len(host) > 1 and any(
        other.startswith(host[:cut]) and other.endswith(host[cut:]) for cut in range(1, len(host))
    )
