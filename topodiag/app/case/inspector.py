"""Records of NCCL's Inspector among the evidence, set beside the job that they are of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from topodiag.app.case.ras import Readings, attached, owner_of
from topodiag.evidence.intake.pieces import Intake, blocks_of, spooled
from topodiag.evidence.kinds import Kind
from topodiag.evidence.nccl_log.input.streams import Reading
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.inspector import Inspection, InspectorCommunicator, MadeOf
from topodiag.model.job import Job
from topodiag.model.provenance import NotObserved
from topodiag.words.hosts import short_name
from topodiag.words.joined import Sets
from topodiag.words.own_data import own_data
from topodiag.words.units import few, grouped, percent, plural

ALONE = "Inspector"
"""The name of a job of which there is nothing but the Inspector's records."""
PART = "part of the Inspector's records"
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
    return Readings((inspection,), tuple(inputs), (*gaps, *_gaps(inspection)))


def _gaps(inspection: Inspection) -> Iterator[NotObserved]:
    """What the records do not hold, by inspector.toml."""
    comms, records = inspection.communicators, inspection.records + inspection.missing
    lacking = [comm.nranks - len(comm.members) for comm in comms if comm.made_of is MadeOf.CALLS]
    silent, cut = sum(lacking), sum(ranks > 0 for ranks in lacking)
    added = {
        "always": "yes",
        "several": few(list(dict.fromkeys(comm.name for comm in comms if not comm.is_one)), 3),
        "lost": percent(inspection.missing / records) if inspection.missing > LITTLE * records else "",
        "silent": f"{plural(silent, 'rank')} of {plural(cut, 'communicator')}" if silent else "",
        "kept": str(inspection.one_in) if inspection.one_in > 1 else "",
        "one_hour": "yes" if len(inspection.hours) == 1 and inspection.records > 100_000 else "",
    }
    for gap in own_data("app/case/inspector")["gap"]:
        of, noun = gap["of"], gap.get("noun")
        there: Any = added[of] if of in added else getattr(inspection, of)
        if there:
            yield NotObserved(gap.get("what", PART), gap["why"].format(plural(there, *noun) if noun else there))


def with_inspection(jobs: Sequence[Job], inspection: Inspection | None) -> tuple[Job, ...]:
    """The records at the job whose communicators or processes they name, or as a job of their own. Records of several
    jobs are those of each: what one of them reaches is no measure of another."""
    if inspection is None:
        return tuple(jobs)
    placed = grouped((_job_of(jobs, part), part) for part in _components(inspection.communicators))
    unplaced = sorted(placed.pop(-1, []), key=lambda part: min(communicator.hash for communicator in part))
    parts = [*((at, list(chain(*own))) for at, own in placed.items()), *((-1, part) for part in unplaced)]
    if len(parts) < 2:
        return _at(jobs, _job_of(jobs, inspection.communicators), inspection)
    updated = tuple(jobs)
    for at, part in parts:
        updated = _at(updated, at, replace(inspection, communicators=tuple(part)))
    return updated


def _at(jobs: Sequence[Job], at: int, inspection: Inspection) -> tuple[Job, ...]:
    size = max((communicator.nranks for communicator in inspection.communicators), default=0)
    members = (member for communicator in inspection.communicators for member in communicator.members.values())
    hosts = tuple(dict.fromkeys(member.host for member in members if member.host))
    named = sum(job.name.startswith(ALONE) for job in jobs)
    name = f"{ALONE} {named + 1}" if named else ALONE
    return attached(jobs, at, name, size, hosts, inspection=inspection)


def _components(communicators: Sequence[InspectorCommunicator]) -> list[list[InspectorCommunicator]]:
    """The communicators that share processes, directly or through others: those of one job, or of a part of it. Metrics
    name no process: their communicators are one."""
    sets = Sets[tuple[str, int]]()
    first_of = []
    for communicator in communicators:
        members = communicator.members.values()
        processes = [(member.host, member.pid) if member.pid >= 0 else ("", -1) for member in members]
        first, *others = {sets.root(process) for process in processes}
        for other in others:
            sets.join(other, first)
        first_of.append((first, communicator))
    return list(grouped((sets.root(first), communicator) for first, communicator in first_of).values())


def _job_of(jobs: Sequence[Job], communicators: Sequence[InspectorCommunicator]) -> int:
    """The number of the last job with one of the communicators, else of one with all their processes; -1 for none."""
    hashes = {communicator.hash for communicator in communicators}
    pids = {member.pid for communicator in communicators for member in communicator.members.values()}
    at = owner_of(jobs, hashes, pids)
    if at >= 0:
        return at
    hosts = {short_name(member.host) for communicator in communicators for member in communicator.members.values()}
    if pids and max(pids) < 0 and len(jobs) == 1 and hosts <= {short_name(host) for host in jobs[0].hosts}:
        return 0  # metrics name no process
    return -1
