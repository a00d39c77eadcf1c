"""The rows of the tables of jobs, each by the name of its table, with its columns in tables.toml. Unknown numbers are
empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import numpy as np

from topodiag.model.connections import transport_label
from topodiag.model.job import Communicator, Job
from topodiag.model.result import Result
from topodiag.report import table_files
from topodiag.report.job.ranks import nics_by_rank
from topodiag.report.job.words import algorithms_of, gdr_of, name_of, slowest_s, transports_by


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _n(value: int) -> int | None:
    return value if value >= 0 else None


def ranks(result: Result) -> Iterator[table_files.Row]:
    for job in result.jobs:
        nics = nics_by_rank(job)
        for r in job.ranks:
            yield (job.name, r.rank, r.host, _n(r.pid), _n(r.cuda_dev), _n(r.nvml_dev), r.bus_id or None,
                   " ".join(nics.get(r.rank, ())))  # fmt: skip


def _communicators(result: Result) -> Iterator[tuple[Job, Communicator]]:
    return ((job, communicator) for job in result.jobs for communicator in job.communicators)


def comms(result: Result) -> Iterator[table_files.Row]:
    for job, c in _communicators(result):
        yield (
            job.name, c.index, name_of(c), c.role.value, str(c.role_sure), c.nranks, _n(c.nodes), _n(c.parent),
            _n(c.color), " ".join(str(rank) for rank in c.ranks.tolist()), " ".join(c.hosts),
            _n(c.channels.coll), _n(c.channels.collnet), _n(c.channels.nvls), _n(c.channels.p2p), gdr_of(c),
            " ".join(f"{k}={v}" for k, v in transports_by(c.transports).items()), " ".join(algorithms_of(c)),
            c.init_complete, _known(slowest_s(c)),
        )  # fmt: skip


_USES = {0: "collective", 1: "send/recv"}
_DIRECTIONS = {1: "send", 2: "receive"}


def connections(result: Result) -> Iterator[table_files.Row]:
    for job in result.jobs:
        hosts, files, vias = job.connections.hosts, job.connections.files, job.connections.vias
        labels = cache(transport_label)
        for c in job.connections.batches(table_files.ROWS_AT_ONCE):
            columns = (
                c.comm, c.rank, c.peer, c.world, c.world_peer, c.host, c.peer_host, c.channels, c.conn, c.direction,
                c.via, c.net_dev, c.proxy, c.count, c.file, c.line,
            )  # fmt: skip
            for (
                comm, rank, peer, world, world_peer, host, peer_host, channels, conn, direction, via, net_dev, proxy,
                count, file, line,
            ) in zip(*(column.tolist() for column in columns), strict=True):  # fmt: skip
                yield (
                    job.name, _n(comm), _n(rank), _n(peer), _n(world), _n(world_peer), _at(hosts, host),
                    _at(hosts, peer_host), f"{channels:#x}", _USES.get(conn), _DIRECTIONS.get(direction),
                    labels(vias[via], net_dev), _n(net_dev), _n(proxy), count, _at(files, file), line,
                )  # fmt: skip


def _at(names: tuple[str, ...], i: int) -> str | None:
    return names[i] if 0 <= i < len(names) else None


def rings(result: Result) -> Iterator[table_files.Row]:
    for job, c in _communicators(result):
        for channel, ring in sorted(c.rings.items()):
            for place, rank in enumerate(ring):
                world = int(c.ranks[rank]) if 0 <= rank < len(c.ranks) else -1
                yield job.name, c.index, channel, place, rank, _n(world)


def events(result: Result) -> Iterator[table_files.Row]:
    for job in result.jobs:
        for e in job.events:
            source, line = (e.origin.source, e.origin.line) if e.origin else (None, None)
            yield (job.name, e.ts, e.host, _n(e.pid), _n(e.rank), e.level, e.kind, e.secondary, e.count, e.text,
                   e.place, source, line)  # fmt: skip


def settings(result: Result) -> Iterator[table_files.Row]:
    for job in result.jobs:
        rank_of = {rank.process: rank.rank for rank in reversed(job.ranks)}
        for number, process in enumerate(job.processes):
            for given in process.settings.values():
                yield (job.name, process.host, _n(process.pid), rank_of.get(number), given.name, given.value, given.how)


def choices(result: Result) -> Iterator[table_files.Row]:
    for job, c in _communicators(result):
        for choice in c.choices:
            yield (job.name, c.index, choice.collective, choice.bytes, choice.algorithm, choice.protocol,
                   choice.count)  # fmt: skip


def steps(result: Result) -> Iterator[table_files.Row]:
    for job in result.jobs:
        starts: Counter[tuple[str, int, str]] = Counter()
        for series in job.steps:
            starts[series.source, series.rank, series.host] += 1
            start = starts[series.source, series.rank, series.host]
            for step in series.steps:
                yield (
                    job.name, _n(series.rank), series.host or None, start, step.number, step.value, series.unit,
                    step.time, step.work, series.source, step.origin.line if step.origin else None,
                )  # fmt: skip
