"""Jobs as plain values for the machine-readable result. Unknown numbers are null."""

from __future__ import annotations

import numpy as np

from topodiag.model.job import Communicator, Job
from topodiag.model.nccl_versions import number_of
from topodiag.model.step_pace import Pace, value_of
from topodiag.report.documents.from_model import Document, from_model
from topodiag.report.job.words import algorithms_of, gdr_of, median, name_of, slowest_s, transports_by

MAX_EVENTS = 1000


def job_facts(job: Job) -> Document:
    """One job. A communicator's `parent` is an index into `communicators`, its `ranks` are those of the world."""
    return from_model(
        "result.Job",
        job,
        nccl_version=number_of(job.nccl_versions[0]) if job.nccl_versions else None,
        world_size=(job.world_size if job.size_told and job.world_size > 0 else None) or job.stated.size,
        hosts=sorted({*job.hosts, *job.stated.hosts}),
        communicators=[_communicator(communicator) for communicator in job.communicators]
        or [_communicator(Communicator(0, size, np.full(size, -1))) for size in job.stated.comm_sizes],
        networks=sorted({process.network for process in job.processes if process.network}),
        settings={
            name: {value: len(numbers) for value, numbers in sorted(values.items())}
            for name, values in sorted(job.settings().items())
        },
        subsystems=sorted(job.subsystems),
        events=job.events[:MAX_EVENTS],
        steps=[_pace(pace) for pace in job.paces],
    )


def _communicator(comm: Communicator) -> Document:
    return from_model(
        "result.Communicator",
        comm,
        name=name_of(comm),
        ranks=[int(rank) for rank in comm.ranks],
        nodes=comm.nodes if comm.nodes > 0 else len(comm.hosts) or None,
        transports=transports_by(comm.transports),
        gdr=gdr_of(comm),
        algorithms=algorithms_of(comm),
        init_s=(median(comm.init_s), slowest_s(comm)),
    )


def _pace(pace: Pace) -> Document:
    steps, unit = pace.series.steps, pace.series.unit
    return from_model(
        "result.StepPace",
        pace,
        last=steps[-1].number,
        levels=[from_model("result.StepLevel", level, typical=value_of(level.cost, unit)) for level in pace.levels],
        slow=pace.slow[:MAX_EVENTS],
        every=pace.period or None,
    )
