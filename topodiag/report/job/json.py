"""Jobs as plain values for the machine-readable result. Unknown numbers are null.

A run of nccl-tests is a job, too: its list of devices names the ranks that NCCL's own lines may leave out. A run
completes the job whose log stands with it (the same processes, or the same file); one without a log is a job of its
own. Nothing that NCCL itself says is replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from topodiag.model.bench import BenchRun
from topodiag.model.connections import no_connections
from topodiag.model.job import Communicator, Job, Rank
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


def jobs_facts(jobs: Sequence[Job], runs: Sequence[BenchRun]) -> list[Document]:
    """The jobs of the logs, then the runs that no log stands with."""
    documents = [_completed(job_facts(job), job.stated.ranks) for job in jobs]
    bench_runs: list[BenchRun] = []
    in_file = Counter(run.source for run in runs)
    for run in runs:
        if not run.hosts or not all(run.hosts):
            continue
        place = _place(run, jobs, lone=in_file[run.source] == 1)
        if place is None:
            bench_runs.append(run)
        else:
            documents[place] = _with_run(documents[place], run)
    several = len(documents) + len(bench_runs) > 1
    documents += [
        _with_run(job_facts(Job(f"run {number}" if several else "job", 0, (), (), (), no_connections(), ())), run)
        for number, run in enumerate(bench_runs)
    ]
    return documents


def _place(run: BenchRun, jobs: Sequence[Job], *, lone: bool) -> int | None:
    """The job that this run is, by its processes; else the only job of its file, where the file holds no other run."""
    own = {(device.host, device.pid) for device in run.devices}
    for place, job in enumerate(jobs):
        ranks = (*job.ranks, *job.stated.ranks)
        if own & (
            {(process.host, process.pid) for process in job.processes} | {(rank.host, rank.pid) for rank in ranks}
        ):
            return place
    of_file = [place for place, job in enumerate(jobs) if run.source in job.files]
    if not lone or len(of_file) != 1:
        return None
    hosts = set(jobs[of_file[0]].hosts)
    return of_file[0] if not hosts or hosts & set(run.hosts) else None


def _with_run(job: Document, run: BenchRun) -> Document:
    listed = [
        Rank(device.rank, device.host, device.pid or -1, cuda_dev=device.device, bus_id=device.bus_id)
        for device in run.devices
    ]
    # What the bandwidths tell of the number of ranks stands with the run: no line states it.
    size = run.nranks if run.nranks == len(run.devices) else None
    return _completed(job, listed) | {
        "world_size": job["world_size"] or size,
        "nccl_version": job["nccl_version"] or run.nccl or None,
        "nccl_versions": job["nccl_versions"] or ([run.nccl] if run.nccl else []),
    }


def _completed(job: Document, listed: Sequence[Rank]) -> Document:
    """The job with the ranks of a list of devices, and what this says more of those that the job has."""
    if not listed:
        return job
    ranks = {rank["rank"]: rank for rank in job["ranks"]}
    for rank in (from_model("result.Rank", rank) for rank in listed):
        known = ranks.setdefault(rank["rank"], rank)
        if known["host"] == rank["host"] and all(known[key] in {None, rank[key]} for key in ("pid", "cuda_dev")):
            ranks[rank["rank"]] = known | {
                "pid": rank["pid"], "cuda_dev": rank["cuda_dev"], "bus_id": known["bus_id"] or rank["bus_id"]
            }  # fmt: skip
    hosts = sorted({*job["hosts"], *(rank.host for rank in listed)})
    return job | {"hosts": hosts, "ranks": [ranks[rank] for rank in sorted(ranks)]}
