"""A job as plain values for the machine-readable result. Unknown numbers are null."""

from __future__ import annotations

import numpy as np

from topodiag.model.job import Communicator, Event, Job, Rank
from topodiag.model.nccl_versions import number_of
from topodiag.model.step_pace import Pace, value_of
from topodiag.report.documents.parts import LEVEL
from topodiag.report.documents.types import job as shape
from topodiag.report.job.words import algorithms_of, gdr_of, median, name_of, transports_by

MAX_EVENTS = 1000


def job_facts(job: Job) -> shape.Job:
    """One job. A communicator's `parent` is an index into `communicators`, its `ranks` are those of the world."""
    return shape.Job(
        name=job.name,
        nccl_version=number_of(job.nccl_versions[0]) if job.nccl_versions else None,
        nccl_versions=list(job.nccl_versions),
        world_size=(_known(job.world_size) if job.size_told else None) or _known(job.stated.size),
        hosts=sorted({*job.hosts, *job.stated.hosts}),
        ranks=[rank_facts(rank) for rank in job.ranks],
        communicators=[_communicator(each) for each in job.communicators]
        or [_communicator(Communicator(0, size, np.full(size, -1))) for size in job.stated.comm_sizes],
        networks=sorted({process.network for process in job.processes if process.network}),
        settings={
            name: {value: len(numbers) for value, numbers in sorted(values.items())}
            for name, values in sorted(job.settings().items())
        },
        subsystems=sorted(job.subsystems),
        notes=list(job.notes),
        events=[_event(each) for each in job.events[:MAX_EVENTS]],
        steps=[_pace(each) for each in job.paces],
    )


def rank_facts(rank: Rank) -> shape.Rank:
    return shape.Rank(
        rank=rank.rank,
        host=rank.host,
        pid=_known(rank.pid),
        cuda_dev=_known(rank.cuda_dev),
        nvml_dev=_known(rank.nvml_dev),
        bus_id=rank.bus_id or None,
    )


def _communicator(comm: Communicator) -> shape.Communicator:
    middle = median(comm.init_s)
    return shape.Communicator(
        name=name_of(comm),
        role=comm.role.value,
        role_confidence=LEVEL[comm.role_sure],
        role_why=comm.role_why,
        nranks=comm.nranks,
        ranks=[int(rank) if rank >= 0 else None for rank in comm.ranks],
        hosts=list(comm.hosts),
        nodes=comm.nodes if comm.nodes > 0 else len(comm.hosts) or None,
        parent=_known(comm.parent),
        color=_known(comm.color),
        channels=shape.CommChannels(
            coll=_known(comm.channels.coll),
            collnet=_known(comm.channels.collnet),
            nvls=_known(comm.channels.nvls),
            p2p=_known(comm.channels.p2p),
        ),
        transports=transports_by(comm.transports),
        gdr=gdr_of(comm),
        algorithms=list(algorithms_of(comm)),
        choices=[
            shape.LoggedChoice(collective=each.collective, bytes=each.bytes, algorithm=each.algorithm,
             protocol=each.protocol, count=each.count)
            for each in comm.choices
        ],
        init_complete=comm.init_complete,
        init_s=shape.InitSeconds(
            median=middle if np.isfinite(middle) else None,
            max=float(np.nanmax(comm.init_s)) if np.isfinite(comm.init_s).any() else None,
        ),
    )  # fmt: skip


def _event(event: Event) -> shape.Event:
    return shape.Event(
        kind=event.kind,
        text=event.text,
        host=event.host,
        rank=_known(event.rank),
        time_s=event.ts,
        count=event.count,
        secondary=event.secondary,
        source=event.origin.source if event.origin else None,
        line=event.origin.line if event.origin else None,
    )


def _pace(pace: Pace) -> shape.StepPace:
    series = pace.series
    return shape.StepPace(
        source=series.source,
        rank=_known(series.rank),
        host=series.host or None,
        unit=series.unit,
        start=pace.start,
        starts=pace.starts,
        lines=len(series.steps),
        first=series.steps[0].number,
        last=series.steps[-1].number,
        typical=pace.typical,
        low=pace.low,
        high=pace.high,
        levels=[
            shape.StepLevel(
                first=each.first,
                last=each.last,
                count=each.count,
                typical=value_of(each.cost, series.unit),
                time_s=each.time,
            )
            for each in pace.levels
        ],
        drift=pace.drift,
        slow=list(pace.slow[:MAX_EVENTS]),
        every=pace.every or None,
        resized=_known(pace.resized),
    )


def _known(value: int) -> int | None:
    return int(value) if value >= 0 else None
