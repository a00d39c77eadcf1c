"""Resolved facts as plain columns, for the steps of the reconstruction, torn hosts under their real names.

Hosts that exist only because a pipe tore a line: `0x5f9d550ebgpu-a` is the end of one line and the host `gpu-a`.
Processes that share a pipe interleave at any byte, and the rest of a torn line runs into the next head without a blank;
so do the columns of nccl-tests, which flushes them one by one (`sumgpu-a`, `-1gpu-a`, `0gpu-a`). What stands there
looks like another host, and its process id is one of the real host's. If the beginning of a head was torn off, the end
of a real host's name is left: `n0` of `x3207c0s25b1n0`. If the middle was, both ends are left: `x3207c0sn0`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.tables.facts import BATCH_ROWS, ROW_TABLES, Facts, SourceFile, Table, table
from topodiag.model.connections import unique_rows
from topodiag.model.provenance import Origin

Ints = npt.NDArray[np.int64]

_AT_ONCE = 1 << 16

SMALL_ROWS = 1 << 15
"""A table of more rows may be on disk."""


class Frame:
    """All tables but the connections, with the file of each thread at hand. Of connections there may be millions of
    rows: they come in batches."""

    def __init__(self, facts: Facts, files: Sequence[SourceFile]) -> None:
        self.facts = facts
        self.files = tuple(file.path for file in files)
        self.vias = tuple(facts["conn"].words["via"])
        """Words of the column `via` of connections."""
        threads = self["threads"]
        self.hosts = tuple(threads.values("host"))
        """Of each thread."""
        self._sources = tuple(
            self.files[file] if 0 <= file < len(self.files) else "" for file in threads["file"].tolist()
        )

    def __getitem__(self, name: str) -> Table:
        table = self.facts[name]
        if len(table) > SMALL_ROWS:
            self.facts.rest()
        return table

    def file_of(self, thread: int) -> str:
        return self._sources[thread]

    def origin(self, rows: Table, row: int, text: str = "") -> Origin:
        return Origin(self._sources[rows["thread"][row]], int(rows["line"][row]), text)

    @property
    def connection_rows(self) -> int:
        return len(self.facts["conn"])

    def connections(self) -> Iterator[Table]:
        """The connections in order of thread and offset; columns keep the width of their table."""
        for batch in self.facts["conn"].batches(BATCH_ROWS):
            yield batch
            self.facts.rest()

    @cached_property
    def connection_spans(self) -> Mapping[str, tuple[int, int]]:
        """Least and largest number of those columns of connections that the lines fill; 0 and 0 without any."""
        spans: dict[str, tuple[int, int]] = {}
        for name in ("rank", "peer", "conn", "direction", "net_dev", "proxy", "count"):
            values = self.facts["conn"][name]
            spans[name] = int(values.min(initial=0)), int(values.max(initial=0))
            self.facts.rest()
        return spans


def in_pieces(order: Ints, *columns: npt.NDArray[Any]) -> Iterator[tuple[int, ...]]:
    """Rows in this order, each with its values of these columns. As numbers of Python they take five times the memory:
    some at a time."""
    for first in range(0, len(order), _AT_ONCE):
        own = order[first : first + _AT_ONCE]
        yield from zip(own.tolist(), *(column[own].tolist() for column in columns), strict=True)


def by_owner(order: Ints, owner: Ints) -> tuple[Ints, Ints, Ints]:
    """The rows in this order that have an owner (`owner` is by row, -1 none), those of each one together; the different
    owners, ascending; and where the rows of each begin."""
    order = order[np.argsort(owner[order], kind="stable")]
    owner = owner[order]
    known = int(np.searchsorted(owner, 0))
    order, owner = order[known:], owner[known:]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    return order, owner[starts], starts


def once(order: Ints, columns: Sequence[npt.NDArray[Any]], counts: Ints) -> tuple[Ints, list[int]]:
    """Of the rows in this order, the first of those that are equal in these columns, and the sum of their counts."""
    first, which = unique_rows([column[order] for column in columns])
    sums = np.bincount(which, counts[order]).astype(np.int64)
    by_place = np.argsort(first)
    return order[first[by_place]], sums[by_place].tolist()


def groups(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """(key, rows in their order) for each key that is not negative."""
    order, values, starts = by_owner(np.arange(len(keys)), keys)
    yield from zip(values.tolist(), np.split(order, starts[1:]), strict=False)


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
    lines: dict[tuple[int, ...], Counter[str]] = defaultdict(Counter)
    for file, host, pid, tid, count in zip(files, hosts, pids, tids, counts.tolist(), strict=True):
        lines[file, pid][host] += count
        lines[file, pid, tid][host] += count
    renamed = [
        _full_name(host, lines[file, pid], lines[file, pid, tid])
        for file, host, pid, tid in zip(files, hosts, pids, tids, strict=True)
    ]
    if renamed == hosts:
        return facts
    columns = {name: threads.values(name) for name in threads.columns} | {"host": renamed}
    return replace(facts, tables={**facts.tables, "threads": table("threads", columns)})


def _lines_by_thread(facts: Facts, threads: int) -> npt.NDArray[Any]:
    counts = np.zeros(threads, np.float64)
    for name in set(ROW_TABLES) - {"tail"}:  # which has lines of `op` once more
        for rows in facts[name].batches(BATCH_ROWS):
            counts += np.bincount(rows["thread"], rows["count"], minlength=threads)
        facts.rest()
    return counts.astype(np.int64)


def _full_name(host: str, of_process: Mapping[str, int], of_thread: Mapping[str, int]) -> str:
    """Lines by host of this one's process id, and of its thread: a head that lost its beginning still has both."""
    total = max(of_process[host], 1)
    others = [other for other, count in of_process.items() if other and other != host and count >= _MANY * total]
    likely = [other for other in others if host.endswith(other)]
    if host:
        of_both = [other for other in others if of_thread.get(other, 0) >= _MANY * total]
        likely += [other for other in of_both if other.endswith(host) or _without_middle(host, other)]
    return max(likely, key=lambda other: (of_process[other], other), default=host)


def _without_middle(host: str, other: str) -> bool:
    """Whether `host` is the beginning and the end of `other`. One character less may well be another host's name."""
    return len(other) - len(host) > 1 and any(
        other.startswith(host[:cut]) and other.endswith(host[cut:]) for cut in range(1, len(host))
    )
