"""The wiring of `topodiag bench`: from output of nccl-tests to runs, their fits, what was to be expected, and findings.

>>> from topodiag.app.bench import bench
>>> result = bench(["out.log"])  # doctest: +SKIP
>>> result.benchmarks[0].verdict  # doctest: +SKIP
'normal'
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, BinaryIO

from topodiag.app.bench_log import network_of, node_of_print
from topodiag.app.diagnose import resolve, stdin
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.cost.tiers import UnknownSystemError, find_system
from topodiag.evidence.intake.bundle import open_evidence
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.kinds import Kind, command_for
from topodiag.evidence.intake.looks import HEAD_BYTES, looks, words_of
from topodiag.evidence.intake.pieces import STDIN, STDIN_NAME
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.nccl_log.input.sources import plan_of
from topodiag.evidence.nccl_log.input.streams import Reading, text_of
from topodiag.evidence.nccl_tests import Read, read_file
from topodiag.evidence.nccl_tests.read import WITHOUT_MPI
from topodiag.expect.expect import Expected, expected
from topodiag.expect.fit import fit_run
from topodiag.expect.hypotheses import hypotheses
from topodiag.expect.verdict import verdict_of
from topodiag.hardware.amd import amd_system_by_name
from topodiag.model.bench import Benchmark, BenchRun
from topodiag.model.errors import InputError
from topodiag.model.finding import Confidence, Input, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Result
from topodiag.nccl.topo.changes import nets_of
from topodiag.nccl.topo.detect import LackingError, tree_of

if TYPE_CHECKING:
    from topodiag.model.job import Job

MAX_BYTES = 512 << 20
"""Text of one file that is read, unpacked: a table has kilobytes, and NCCL's log of a large job beside it far less."""
MIN_RECORDS = 3
"""Records of NCCL in the same file from which it is worth rebuilding a job from them."""
HINT = "it takes what *_perf of nccl-tests printed, or its -J FILE"


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What is known besides the output. `machine` is a bundle, a topology file or an NCCL log, `system` a system's
    name, `nics` those of a node (count, Gb/s) where neither tells; `nccl` and `env` add to what the output says.
    `by_file`: each file is another placement of the same job."""

    machine: str | None = None
    system: str | None = None
    nics: tuple[int, float] | None = None
    nodes: int | None = None
    nccl: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    by_file: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """What is known of the nodes besides a run's own words: a node, or what NCCL's log tells of them."""

    jobs: tuple[Job, ...] = ()
    node: Node | None = None
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    read: Read
    sha256: str
    notes: tuple[str, ...]
    jobs: tuple[Job, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


def bench(paths: Sequence[str], *, options: BenchOptions | None = None) -> Result:
    """Judge output of nccl-tests: files, folders, patterns, `-`; packed with gzip or zstd or not. Raises InputError,
    also where none of them holds a run."""
    chosen = options or BenchOptions()
    if chosen.system is not None:
        chosen = replace(chosen, system=_system(chosen.system))
    machine = _machine(chosen.machine) if chosen.machine is not None else Machine()
    files: list[_File] = []
    gaps: list[NotObserved] = []
    for path, data, notes in _contents(paths, gaps):
        read = read_file(data, path)
        if not read.runs:
            gaps.append(NotObserved(path, _no_run(path, data, read)))
            continue
        jobs, outcomes = _log(path, data) if read.records >= MIN_RECORDS else ((), ())
        files.append(_File(path, read, hashlib.sha256(data).hexdigest(), notes, jobs, outcomes))
    if not files:
        first = gaps[0] if gaps else NotObserved(paths[0], "is empty")
        raise InputError(first.what, first.why, hint=HINT)
    made = [_judged(run, file, machine, chosen) for file in files for run in file.read.runs]
    logged = (outcome for file in files for outcome in file.outcomes if _is_sick(outcome))
    outcomes = (*run(Subject.BENCH, made), *logged)
    return Result(
        inputs=tuple(_input(file) for file in files),
        nodes=(),
        outcomes=outcomes,
        findings=fold(outcomes),
        not_observed=tuple(dict.fromkeys((*gaps, *_gaps(files, made, chosen)))),
        unread=tuple(line for file in files for line in file.read.unread),
        jobs=tuple(job for file in files for job in file.jobs),
        benchmarks=tuple(made),
    )


def _judged(run: BenchRun, file: _File, machine: Machine, chosen: BenchOptions) -> Benchmark:
    """A run with its fit, its expectation and the verdict. What the user says beats what the output says."""
    if chosen.by_file:
        run = replace(run, placement=PurePath(file.path).stem)
    fit = fit_run(run)
    own = machine if chosen.machine is not None else Machine(file.jobs)
    made = _expected(run, own, chosen)
    found = verdict_of(run, made.expectation, made.why)
    causes = hypotheses(run, made, found, fit=fit, outcomes=(*machine.outcomes, *file.outcomes))
    # A build without MPI looks like runs of one rank, and is told as what it is.
    why = next((note for note in run.notes if WITHOUT_MPI in note), "")
    return Benchmark(run, fit, made.expectation, found.word, why or found.why, causes)


def _expected(run: BenchRun, machine: Machine, chosen: BenchOptions) -> Expected:
    """The expectation of the machine as it should be. The NICs of a log stand in where the machine is only guessed, but
    fewer of them than it is built with are no reason to expect less."""

    node = machine.node or (node_of_print(machine.jobs, run) if chosen.nics is None else None)
    logged, network = network_of(machine.jobs)

    def reckon(nics: tuple[int, float] | None) -> Expected:
        return expected(
            run,
            node,
            system=chosen.system,
            nics=nics,
            nodes=chosen.nodes,
            version=chosen.nccl or run.nccl or None,
            env={**run.env, **chosen.env},
            network=network,
        )

    made = reckon(chosen.nics)
    if chosen.nics is not None:
        return made
    guessed = made.expectation is None or made.expectation.confidence is Confidence.LOW
    if logged is None or not guessed:
        return made
    built = len(nets_of(made.setup.tree)) if made.setup is not None else 0
    if logged[0] < built:
        return made
    other = reckon(logged)
    return made if other.expectation is None else other


# -- inputs --


def _machine(path: str) -> Machine:
    """A bundle, a topology file, or NCCL's log. Raises InputError."""
    try:
        node = read_node(open_evidence(resolve(path), stdin() if path == "-" else None)).node
    except InputError as error:
        from topodiag.app.diagnose import diagnose_logs  # noqa: PLC0415 - numpy and pyarrow, which only a log needs

        if path == "-":
            raise
        try:
            jobs = diagnose_logs([path]).jobs
        except InputError:
            raise error from None
        return Machine(jobs, outcomes=run(Subject.JOB, jobs))
    try:
        tree_of(node, {setting.name: setting.value for setting in node.settings})
    except LackingError as lacking:
        hint = "it takes a bundle (topodiag scan --save node.tar.gz), a topology file, or NCCL's log; or --system"
        raise InputError(path, f"is not enough of a machine: {lacking}", hint=hint) from None
    return Machine(node=node, outcomes=run(Subject.NODE, [node]))


def _system(name: str) -> str:
    """The full name of a system. Raises InputError with near names."""
    other = amd_system_by_name(name)
    if other is not None:
        return other.name
    try:
        return find_system(name).name
    except UnknownSystemError as unknown:
        hint = f"did you mean {' or '.join(unknown.near)}?" if unknown.near else "a name like dgx-h100"
        raise InputError("--system", str(unknown), hint=hint) from None


def _contents(paths: Sequence[str], gaps: list[NotObserved]) -> Iterator[tuple[str, bytes, tuple[str, ...]]]:
    """Name, text and notes of each file. What cannot be read is told in `gaps`."""
    try:
        intake = gather(paths, stdin=stdin() if STDIN in paths else None, quick=True)
        plan = plan_of(intake)
    except InputError as error:
        if "holds no log to read" not in error.message:
            raise
        raise InputError(error.path, "holds no file to read", hint=HINT) from None
    gaps += [NotObserved("part of the input", note) for note in plan.notes]
    gaps += [NotObserved(path, "not read: it holds no output of nccl-tests") for path in (*plan.saved, *plan.flight)]
    if intake.stdin is not None:
        coding = next((piece.coding for piece in intake.pieces if piece.path == STDIN), ())
        yield _content(STDIN_NAME, intake.stdin, coding)
    for source in plan.sources:
        try:
            with open(source.path, "rb") as stream:
                made = _content(source.path, stream, source.coding)
        except OSError as error:
            gaps.append(NotObserved(source.path, f"cannot be read: {error.strerror or error}"))
            continue
        yield made


def _content(name: str, stream: BinaryIO, coding: tuple[str, ...]) -> tuple[str, bytes, tuple[str, ...]]:
    reading = Reading()
    text = bytearray()
    for block in text_of(stream, coding, reading):
        text += block
        if len(text) > MAX_BYTES:
            del text[MAX_BYTES:]
            reading.notes.append(f"only the first {MAX_BYTES >> 20} MiB of text were read")
            break
    return name, bytes(text), tuple(reading.notes)


def _no_run(path: str, data: bytes, read: Read) -> str:
    """Why a file holds no run, and what else it may be."""
    seen = looks(data[:HEAD_BYTES])
    command = command_for(seen.kind, path)
    if read.records:
        return f"holds no table of nccl-tests, only NCCL's log ({command_for(Kind.NCCL_LOG, path)} reads it)"
    if command and seen.kind is not Kind.NCCL_TESTS:
        return f"holds no table of nccl-tests: it looks like {words_of(seen)} ({command} reads it)"
    if seen.kind is Kind.BLANK or not data:
        return "is empty"
    known = seen.kind not in (Kind.TEXT, Kind.JSON, Kind.NCCL_TESTS)
    return f"holds no table of nccl-tests{f': it looks like {words_of(seen)}' if known else ''}"


def _log(path: str, data: bytes) -> tuple[tuple[Job, ...], tuple[Outcome, ...]]:
    """The job that NCCL's log in the same file tells of, with what its checks say."""
    from topodiag.evidence.nccl_log.rebuild.rebuild import rebuild  # noqa: PLC0415 - numpy and pyarrow from here on
    from topodiag.fleet.ingest import ingest  # noqa: PLC0415

    try:
        found = ingest([STDIN], stdin=io.BytesIO(data)) if path == STDIN_NAME else ingest([path])
    except InputError:
        return (), ()
    jobs = rebuild(found.facts, found.files)
    return jobs, run(Subject.JOB, jobs)


def _is_sick(outcome: Outcome) -> bool:
    """Whether a check of the log in the same file found more than a remark; its silences do not matter here."""
    return any(finding.severity > Severity.INFO for finding in outcome.findings)


def _input(file: _File) -> Input:
    rows = sum(len(run.rows) for run in file.read.runs)
    return Input(file.path, "nccl-tests", file.sha256, file.read.lines, rows, file.read.left)


def _gaps(files: Sequence[_File], made: Sequence[Benchmark], chosen: BenchOptions) -> Iterator[NotObserved]:
    for file in files:
        for note in file.notes:
            yield NotObserved(file.path, note)
    if chosen.machine is not None and not any(benchmark.expected is not None for benchmark in made):
        yield NotObserved(chosen.machine, "the machine of these runs could not be told from it")
    elif any(each.expected is None and each.run.rows and (each.run.nranks or 0) > 1 for each in made):
        yield NotObserved(
            "what some runs should reach",
            "no machine is known for them: give --machine (a bundle, a topology file, NCCL's log), --system or --nics",
        )


__all__ = ["BenchOptions", "bench"]
