"""Records of NCCL's Inspector among the evidence, set beside the job that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.app.case.attach import Readings, attached, hashes_of, job_of, last_with
from topodiag.evidence.intake.pieces import Intake
from topodiag.evidence.intake.reading import blocks_of
from topodiag.evidence.intake.spool import spooled
from topodiag.evidence.kinds import Kind
from topodiag.evidence.nccl_log.input.streams import Reading
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.inspector import Inspection, InspectorCommunicator, InspectorMember, MadeOf
from topodiag.model.job import Job
from topodiag.model.provenance import NotObserved
from topodiag.words.fold import few, plural
from topodiag.words.hosts import short_name
from topodiag.words.units import percent

ALONE = "Inspector"
"""The name of a job of which there is nothing but the Inspector's records."""
PART = "part of the Inspector's records"
BLIND = "what the Inspector cannot see"
LITTLE = 0.02
"""Share of calls that may be missing without a word: a file ends while the job runs."""


def inspected(intake: Intake) -> Readings[Inspection]:
    """The records of all pieces, none where they tell of nothing. One bad file costs itself."""
    pieces = intake.of(Kind.INSPECTOR)
    if not pieces:
        return Readings()
    from topodiag.evidence.live.inspector import InspectorReader  # noqa: PLC0415 - numpy, which only jobs need

    reader = InspectorReader()
    inputs: list[Input] = []
    gaps: list[NotObserved] = []
    with spooled(intake, lambda piece: Kind.INSPECTOR in piece.kinds) as plain:
        for piece in plain.of(Kind.INSPECTOR):
            reading = Reading()
            try:
                with blocks_of(plain, piece, reading) as blocks:
                    size = reader.read(blocks, piece.name)
            except InputError as error:
                gaps.append(NotObserved(PART, str(error)))
                continue
            gaps += [NotObserved(PART, f"{piece.name}: {note}") for note in reading.notes]
            inputs.append(Input(piece.name, Kind.INSPECTOR.value, records=size))
    inspection = reader.found()
    if not inspection.communicators and not inspection.unclocked and not inspection.transfers:
        return Readings((), tuple(inputs), tuple(gaps))
    return Readings(((ALONE, (inspection,)),), tuple(inputs), (*gaps, *_gaps(inspection)))


def _gaps(inspection: Inspection) -> list[NotObserved]:
    """What the records do not hold, which is never taken for health."""
    records = inspection.records + inspection.missing
    counted = [communicator for communicator in inspection.communicators if communicator.made_of is MadeOf.CALLS]
    silent_ranks = sum(communicator.nranks - len(communicator.members) for communicator in counted)
    cut = sum(communicator.nranks > len(communicator.members) for communicator in counted)
    lines = (
        (
            True, BLIND,
            "operations below NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES (8192 unless set), and sends and receives unless"
            " NCCL_INSPECTOR_ENABLE_P2P=1",
        ),
        (inspection.unread, PART, f"{plural(inspection.unread, 'line')} without a record that can be read"),
        *_not_in_metrics(inspection),
        (
            inspection.missing > LITTLE * records, PART,
            f"{percent(inspection.missing / max(records, 1))} of the sequence numbers have no record: too small,"
            " without the GPU's time, or overwritten in the ring between two dumps"
            " (NCCL_INSPECTOR_DUMP_COLL_RING_SIZE)",
        ),
        (
            inspection.untimed, PART,
            f"{plural(inspection.untimed, 'record')} timed by the CPU: not used, such a time holds the queue of the"
            " stream as well",
        ),
        (
            inspection.transfers, PART,
            f"{plural(inspection.transfers, 'send or receive', 'sends and receives')}: counted, not judged",
        ),
        (
            silent_ranks, PART,
            f"{plural(silent_ranks, 'rank')} of {plural(cut, 'communicator')} without a record: their files are not"
            " here",
        ),
        (
            inspection.one_in > 1, PART,
            f"one in {inspection.one_in} calls was kept: all of them exceed the memory",
        ),
        (
            len(inspection.hours) == 1 and inspection.records > 100_000, "which hours were slow",
            "all records were dumped within one hour: NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=60000000",
        ),
    )  # fmt: skip
    return [NotObserved(what, why) for lacks, what, why in lines if lacks]


def _not_in_metrics(inspection: Inspection) -> tuple[tuple[object, str, str], ...]:
    """What Prometheus' metrics of the Inspector do not tell: whether something lacks, what, and why."""
    several = list(dict.fromkeys(comm.name for comm in inspection.communicators if not comm.is_one))
    return (
        (
            inspection.samples, BLIND,
            "single calls: a sample of Prometheus is the mean of a GPU's calls since the dump before it",
        ),
        (
            inspection.rates, PART,
            f"{plural(inspection.rates, 'sample')} of bandwidth without a time: the times are those of the smallest"
            " message of the size label at that bandwidth, the true ones are as long or longer; ask for"
            " nccl_collective_exec_time_microseconds as well",
        ),
        (
            inspection.unclocked, PART,
            f"{plural(inspection.unclocked, 'sample')} of NCCL 2.29, whose text does not say whose clock timed them:"
            " not judged; its JSON lines say so (without NCCL_INSPECTOR_PROM_DUMP)",
        ),
        (
            several, "who comes last, and which communicator is slow",
            f"{few(several, 3)}: not as many GPUs as one communicator of the name has ranks, and metrics do not say"
            " which belong together; JSON lines do (without NCCL_INSPECTOR_PROM_DUMP)",
        ),
        (
            inspection.other_jobs, PART,
            f"samples of {plural(inspection.other_jobs, 'other job')}: select one by its label slurm_job_id",
        ),
        (
            inspection.others, "metrics of other exporters",
            f"{plural(inspection.others, 'sample')} that are not NCCL's: topodiag diagnose reads those of DCGM and of"
            " RDMA ports",
        ),
        (
            inspection.full, PART,
            "more samples than are kept: take a longer step of the query, or fewer days",
        ),
    )  # fmt: skip


def with_inspection(jobs: Sequence[Job], inspection: Inspection | None) -> tuple[Job, ...]:
    """The records at the job whose communicators or processes they name, or as a job of their own. Records of several
    jobs are those of each: what one of them reaches is no measure of another."""
    if inspection is None:
        return tuple(jobs)
    parts: dict[int, list[InspectorCommunicator]] = {}
    communicators: list[list[InspectorCommunicator]] = []
    for part in _components(inspection.communicators):
        at = _job_of(jobs, part)
        communicators += [part] if at < 0 else []
        parts.setdefault(at, []).extend(part if at >= 0 else [])
    if len(parts) < 2 and len(communicators) < 2:
        return _at(jobs, _job_of(jobs, inspection.communicators), inspection)
    updated = tuple(jobs)
    for at, part in (*parts.items(), *((-1, part) for part in sorted(communicators, key=_first_hash))):
        updated = _at(updated, at, replace(inspection, communicators=tuple(part))) if part else updated
    return updated


def _at(jobs: Sequence[Job], at: int, inspection: Inspection) -> tuple[Job, ...]:
    if at >= 0:
        return attached(jobs, at, inspection=inspection)
    size = max((communicator.nranks for communicator in inspection.communicators), default=0)
    members = (member for communicator in inspection.communicators for member in communicator.members.values())
    hosts = tuple(dict.fromkeys(member.host for member in members if member.host))
    named = sum(job.name.startswith(ALONE) for job in jobs)
    name = f"{ALONE} {named + 1}" if named else ALONE
    return (*jobs, job_of(name, size, hosts, inspection=inspection))


def _components(communicators: Sequence[InspectorCommunicator]) -> list[list[InspectorCommunicator]]:
    """The communicators that share processes, directly or through others: those of one job, or of a part of it. Metrics
    name no process: their communicators are one."""
    group_of: dict[tuple[str, int], int] = {}
    processes: dict[int, set[tuple[str, int]]] = {}
    groups: dict[int, list[InspectorCommunicator]] = {}
    for number, communicator in enumerate(communicators):
        groups[number] = [communicator]
        processes[number] = {_process(member) for member in communicator.members.values()}
        joined = {number, *(group_of[process] for process in processes[number] if process in group_of)}
        keeps = max(joined, key=lambda group: len(processes[group]))  # the others are renamed: few
        for other in sorted(joined - {keeps}):
            groups[keeps] += groups.pop(other)
            group_of.update(dict.fromkeys(processes[other], keeps))
            processes[keeps] |= processes.pop(other)
        group_of.update(dict.fromkeys(processes[keeps] if keeps == number else (), keeps))
    return list(groups.values())


def _first_hash(communicators: Sequence[InspectorCommunicator]) -> int:
    return min(communicator.hash for communicator in communicators)


def _process(member: InspectorMember) -> tuple[str, int]:
    return (member.host, member.pid) if member.pid >= 0 else ("", -1)


def _job_of(jobs: Sequence[Job], communicators: Sequence[InspectorCommunicator]) -> int:
    """The number of the last job with one of the communicators, else of one with all their processes; -1 for none."""
    hashes = {communicator.hash for communicator in communicators}
    pids = {member.pid for communicator in communicators for member in communicator.members.values()}
    at = last_with(jobs, lambda job: bool(hashes & hashes_of(job)))
    if at < 0:
        at = last_with(
            jobs, lambda job: pids <= {process.pid for process in job.processes} or pids <= _pids_of_ras(job)
        )
    if at >= 0:
        return at
    hosts = {short_name(member.host) for communicator in communicators for member in communicator.members.values()}
    if pids and max(pids) < 0 and len(jobs) == 1 and hosts <= {short_name(host) for host in jobs[0].hosts}:
        return 0  # metrics name no process
    return -1


def _pids_of_ras(job: Job) -> set[int]:
    members = (member for answer in job.ras for comm in answer.communicators for member in comm.members)
    return {member.process.pid for member in members if member.process is not None}
