"""Measured runs as jobs: a run of nccl-tests is one, and its list of devices names ranks that NCCL's lines leave out.

A run completes the job whose log stands with it (the same processes, or the same file); one without a log is a job of
its own. Nothing that NCCL itself says is replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from topodiag.model.bench import BenchRun
from topodiag.model.connections import no_connections
from topodiag.model.job import Job, Rank


def with_runs(jobs: Sequence[Job], runs: Sequence[BenchRun]) -> list[Job]:
    """The jobs of the logs, then the runs that no log stands with."""
    completed = [_with_ranks(job, job.stated.ranks) for job in jobs]
    own_jobs: list[BenchRun] = []
    in_file = Counter(run.source for run in runs)
    for run in runs:
        if not run.hosts or not all(run.hosts):
            continue
        place = _place(run, jobs, lone=in_file[run.source] == 1)
        if place is None:
            own_jobs.append(run)
        else:
            completed[place] = _with_run(completed[place], run)
    several = len(completed) + len(own_jobs) > 1
    names = (f"run {number}" if several else "job" for number in range(len(own_jobs)))
    of_runs = (Job(name, 0, (), (), (), no_connections(), ()) for name in names)
    return [*completed, *map(_with_run, of_runs, own_jobs)]


def _place(run: BenchRun, jobs: Sequence[Job], *, lone: bool) -> int | None:
    """The job that this run is, by its processes; else the only job of its file, where the file holds no other run."""
    own = {(device.host, device.pid) for device in run.devices}
    for place, job in enumerate(jobs):
        processes = ((process.host, process.pid) for process in job.processes)
        if own & {*processes, *((rank.host, rank.pid) for rank in (*job.ranks, *job.stated.ranks))}:
            return place
    of_file = [place for place, job in enumerate(jobs) if run.source in job.files]
    if not lone or len(of_file) != 1:
        return None
    hosts = set(jobs[of_file[0]].hosts)
    return of_file[0] if not hosts or hosts & set(run.hosts) else None


def _with_run(job: Job, run: BenchRun) -> Job:
    listed = [
        Rank(device.rank, device.host, device.pid or -1, cuda_dev=device.device, bus_id=device.bus_id)
        for device in run.devices
    ]
    # What the bandwidths tell of the number of ranks stands with the run: no line states it.
    is_stated = run.nranks == len(run.devices) and job.stated.size <= 0
    stated = replace(job.stated, size=len(run.devices)) if is_stated else job.stated
    versions = job.nccl_versions or ((run.nccl,) if run.nccl else ())
    return _with_ranks(replace(job, stated=stated, nccl_versions=versions), listed)


def _with_ranks(job: Job, listed: Sequence[Rank]) -> Job:
    """The job with the ranks of a list of devices, and what this says more of those that the job has."""
    if not listed:
        return job
    ranks, hosts = dict(job.by_rank), dict.fromkeys(job.hosts)
    for rank in listed:
        hosts[rank.host] = None
        known = ranks.setdefault(rank.rank, rank)
        fits = known.pid in {-1, rank.pid} and known.cuda_dev in {-1, rank.cuda_dev}
        if known.host == rank.host and fits:
            bus_id = known.bus_id or rank.bus_id
            ranks[rank.rank] = replace(known, pid=rank.pid, cuda_dev=rank.cuda_dev, bus_id=bus_id)
    return replace(job, hosts=tuple(hosts), ranks=tuple(ranks[number] for number in sorted(ranks)))
