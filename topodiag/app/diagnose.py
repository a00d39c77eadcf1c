"""The wiring: from paths, or the live node, to a Result. The only place that knows all stages.

>>> import topodiag
>>> result = topodiag.diagnose(["fixture:dgx-h100-gpu3-12of18-nvlink"])
>>> [finding.id for finding in result.findings]
['NVL001']
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.evidence.intake.bundle import MANIFEST, from_memory, open_evidence
from topodiag.evidence.intake.reader import ReadNode, read_node
from topodiag.model.errors import InputError
from topodiag.model.finding import Outcome, Status
from topodiag.model.nccl_versions import assumption, is_newer
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Result
from topodiag.writing import check_new_folder, check_writable, replacing

if TYPE_CHECKING:
    from topodiag.model.job import FlightRecord, Job
    from topodiag.model.layout import Layout
    from topodiag_probes.bundle import Bundle

Progress = Callable[[str, str, float], None]
"""Called from several threads with `start` or `done`, a probe's name, and its seconds."""

Read = Callable[[int, int], None]
"""Called with the bytes of logs that were read so far, and with those there are (0: not known)."""

FIXTURE_PREFIX = "fixture:"
ARCHIVE = (".tar.gz", ".tgz")
"""Names by which a bundle is saved as one file; any other is a folder."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to look at a live node. Times in seconds; `save` is where the bundle goes (`.tar.gz`, else a folder)."""

    deadline_s: float = 20.0
    sample_s: float = 0.0
    save: str | None = None
    redact: bool = False


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How to read logs. `workers`: processes (None: all cores); `dask`: a scheduler's address, `local` or `slurm`;
    `chunk`: bytes per shard (None: the usual). `layout` is the declared layout of the job, None where it is not
    declared. `flight` are dumps of torch's flight recorder; `save` is where the facts go (Parquet)."""

    workers: int | None = None
    dask: str | None = None
    chunk: int | None = None
    layout: Layout | None = None
    flight: tuple[str, ...] = ()
    save: str | None = None


def diagnose(paths: Sequence[str], *, options: Options | None = None) -> Result:
    """Diagnose captured evidence: bundles, folders, files, `fixture:NAME`, `-`. Raises InputError."""
    if options is not None and options.save is not None:
        raise InputError(options.save, "only a live scan can be saved", hint="leave --from or --save out")
    made = []
    for path in paths:
        evidence = open_evidence(resolve(path), stdin() if path == "-" else None)
        made.append(read_node(evidence))
    return _judge(made)


def live(*, options: Options | None = None, on_progress: Progress | None = None) -> Result:
    """Diagnose this machine: the same code as for a bundle, on a capture that stays in memory. Raises InputError."""
    from topodiag_probes.capture import capture  # noqa: PLC0415 - a captured bundle needs no collector
    from topodiag_probes.redact import Redactor  # noqa: PLC0415

    chosen = options or Options()
    if chosen.save is not None:
        _check_save(chosen.save)
    bundle = capture(
        deadline_s=chosen.deadline_s,
        sample_s=chosen.sample_s,
        redactor=Redactor() if chosen.redact else None,
        on_progress=on_progress,
    )
    if chosen.save is not None:
        _save(bundle, chosen.save)
    evidence = from_memory("live", bundle.manifest, bundle.files)
    return _judge([read_node(evidence)])


def diagnose_logs(
    paths: Sequence[str], *, options: LogOptions | None = None, on_progress: Read | None = None
) -> Result:
    """Rebuild jobs from NCCL logs (files, folders, globs, `-`, saved facts) and diagnose them. Raises InputError."""
    from topodiag.evidence.flight.flight_recorder import read_flight  # noqa: PLC0415
    from topodiag.evidence.nccl_log.input.sources import CHUNK_BYTES  # noqa: PLC0415
    from topodiag.evidence.nccl_log.rebuild.apart import noted  # noqa: PLC0415
    from topodiag.evidence.nccl_log.rebuild.rebuild import rebuild  # noqa: PLC0415
    from topodiag.evidence.nccl_log.rebuild.roles import descriptions  # noqa: PLC0415
    from topodiag.evidence.nccl_log.tables.facts import empty  # noqa: PLC0415
    from topodiag.evidence.nccl_log.tables.saved import save  # noqa: PLC0415
    from topodiag.fleet.ingest import ingest  # noqa: PLC0415

    chosen = options or LogOptions()
    if chosen.save is not None:
        check_writable(chosen.save)
    found = ingest(
        paths,
        workers=chosen.workers,
        dask=chosen.dask,
        chunk=chosen.chunk or CHUNK_BYTES,
        on_progress=on_progress,
        stdin=stdin() if "-" in paths else None,
    )
    if chosen.save is not None:
        with replacing(chosen.save) as stream:
            save(stream, found.facts, found.files)
    gaps = [NotObserved("part of the input", note) for note in found.notes]
    records, problems = read_flight(tuple(dict.fromkeys((*found.flight, *chosen.flight))))
    gaps += [NotObserved("part of the flight recorder", problem) for problem in problems]
    jobs = noted(_with_flight(rebuild(found.facts, found.files, chosen.layout, descriptions(records)), records))
    found = replace(found, facts=empty())  # their memory is better used by the checks
    outcomes = run(Subject.JOB, jobs)
    return Result(
        inputs=found.inputs,
        outcomes=outcomes,
        findings=fold(outcomes),
        not_observed=tuple(dict.fromkeys((*gaps, *_not_logged(jobs, outcomes)))),
        unread=found.unread,
        jobs=jobs,
    )


def fixtures() -> tuple[str, ...]:
    """Names of the captured machines that ship with the program, for `fixture:NAME`."""
    return tuple(sorted(place.name for place in _fixture_root().glob("*") if (place / MANIFEST).is_file()))


def fixture_path(name: str) -> Path:
    """Where a shipped fixture lies."""
    if name not in fixtures():
        near = ", ".join(fixtures()) or "none is installed"
        raise InputError(FIXTURE_PREFIX + name, "no such fixture", hint=f"there are: {near}")
    return _fixture_root() / name


_CONTENT: ContextVar[BinaryIO | None] = ContextVar("what is read in place of standard input", default=None)


@contextmanager
def standard_input(content: BinaryIO) -> Iterator[None]:
    """Within it `-` is this content: how Python users give bytes."""
    token = _CONTENT.set(content)
    try:
        yield
    finally:
        _CONTENT.reset(token)


def stdin() -> BinaryIO:
    """What `-` reads. Raises InputError where there is no standard input."""
    given = _CONTENT.get()
    if given is not None:
        return given
    if sys.stdin is None:
        raise InputError("<stdin>", "is closed", hint="give it a file: topodiag scan --from - < FILE")
    return sys.stdin.buffer


def _fixture_root() -> Path:
    """Inside an installed wheel, or beside the package in a checkout."""
    package = Path(__file__).parents[1]
    shipped = package / "fixtures" / "nodes"
    return shipped if shipped.is_dir() else package.parent / "fixtures" / "nodes"


def resolve(path: str) -> str:
    return str(fixture_path(path.removeprefix(FIXTURE_PREFIX))) if path.startswith(FIXTURE_PREFIX) else path


def _check_save(path: str) -> None:
    if path.endswith(ARCHIVE):
        check_writable(path)
    else:
        check_new_folder(path)


def _save(bundle: Bundle, path: str) -> None:
    from topodiag_probes.bundle import write_folder, write_tar  # noqa: PLC0415

    if path.endswith(ARCHIVE):
        with replacing(path) as file:
            write_tar(bundle, file)
        return
    try:
        write_folder(bundle, path)
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror or error}", hint="it is not whole") from None


def _with_flight(jobs: tuple[Job, ...], records: tuple[FlightRecord, ...]) -> tuple[Job, ...]:
    """The records at the last job that has such ranks: dumps are of the run that died. Without logs they are a job."""
    from topodiag.model.connections import no_connections  # noqa: PLC0415
    from topodiag.model.job import Job  # noqa: PLC0415

    if not records:
        return jobs
    most = max(record.rank for record in records)
    at = next((number for number in reversed(range(len(jobs))) if jobs[number].world_size > most), None)
    if at is not None:
        return (*jobs[:at], replace(jobs[at], flight=records), *jobs[at + 1 :])
    size = max(most + 1, *(len(ranks) for record in records for ranks in record.groups.values()), 0)
    return (*jobs, Job("flight recorder", size, (), (), (), no_connections(), (), flight=records))


ONCE = ("INIT", "ENV", "NET", "GRAPH", "TUNING")
"""Subsystems that print something in every run that has them on, so that silence says that they were off."""


def _not_logged(jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> list[NotObserved]:
    """What no line tells because its subsystem was off, and what to set next time."""
    from topodiag.model.debug_settings import HANG, SUBSYSTEMS, subsystems_for  # noqa: PLC0415

    versions = sorted({version for job in jobs for version in job.nccl_versions if is_newer(version)})
    made = [NotObserved(f"what is new in NCCL {version}", assumption(version)) for version in versions]
    for job in jobs:
        if not job.processes:
            continue
        hang = any(o.check == "JOB006" and o.status is Status.UNKNOWN and o.node == job.name for o in outcomes)
        wanted = subsystems_for("full" if hang and job.events and HANG not in job.subsystems else "recommended")
        why = f"not logged: set NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS={wanted} next time (topodiag env prints all of it)"
        made += [NotObserved(f"{name}: {SUBSYSTEMS[name]}", why) for name in ONCE if name not in job.subsystems]
        if wanted.endswith(HANG):
            made.append(NotObserved(f"{HANG}: which rank entered which operation", why))
    return made


def _judge(read: Sequence[ReadNode]) -> Result:
    nodes = tuple(each.node for each in read)
    outcomes = run(Subject.NODE, nodes)
    return Result(
        inputs=tuple(item for each in read for item in each.inputs),
        nodes=nodes,
        outcomes=outcomes,
        findings=fold(outcomes),
        not_observed=tuple(dict.fromkeys(item for node in nodes for item in node.not_observed)),
        unread=tuple(line for each in read for line in each.unread),
    )


__all__ = ["LogOptions", "Options", "diagnose", "diagnose_logs", "fixture_path", "fixtures", "live"]
