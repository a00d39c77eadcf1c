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
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from topodiag.app.bench_gate import gate_of
from topodiag.app.bench_log import known_of, network_of, node_of_print
from topodiag.app.machine import (
    MOST_SORTS,
    Machine,
    contradicts,
    is_machine,
    machine_of,
    named_machine,
    only,
    sorts_of,
)
from topodiag.app.opening import stream_for
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.cost.tiers import UnknownSystemError, find_system
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.kinds import Kind, command_for
from topodiag.evidence.intake.pieces import STDIN, Aside, Intake, Piece, left_aside
from topodiag.evidence.intake.spool import spooled
from topodiag.evidence.nccl_log.input.streams import Reading, text_of
from topodiag.evidence.nccl_tests import Read, read_file
from topodiag.evidence.nccl_tests.read import WITHOUT_MPI
from topodiag.expect.expect import Expected, expected
from topodiag.expect.fit import fit_run
from topodiag.expect.hypotheses import explain
from topodiag.expect.verdict import is_severe, verdict_of
from topodiag.hardware.amd import amd_system_by_name
from topodiag.model.bench import Benchmark, BenchRun
from topodiag.model.case import Case
from topodiag.model.errors import InputError
from topodiag.model.finding import Confidence, Input, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Result
from topodiag.nccl.topo.changes import nets_of
from topodiag.verdict.order import arranged
from topodiag.words.units import in_gbs, spell_bytes

if TYPE_CHECKING:
    from topodiag.model.job import Job

MAX_BYTES = 512 << 20
"""Text of one file that is read, unpacked: a table has kilobytes, and NCCL's log of a large job beside it far less."""
MIN_RECORDS = 1
"""Records of NCCL in the same file from which a job is rebuilt from them: one line can be the verdict."""
LOG_RECORDS = 3
"""Records from which a file without a table is taken for a log of the run beside it."""
ALIKE = 0.005
"""Share by which expectations of nodes differ that are the same."""
HINT = "it takes what *_perf of nccl-tests printed, or its -J FILE"


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What is known besides the output. `machine` are bundles, topology files and NCCL logs of the nodes, `system` a
    system's name, `nics` those of a node (count, Gb/s) where neither tells; `nccl` and `env` add to what the output
    says. `by_file`: each file is another placement of the same job."""

    machine: tuple[str, ...] = ()
    system: str | None = None
    nics: tuple[int, float] | None = None
    nodes: int | None = None
    nccl: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    by_file: bool = False


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    read: Read
    sha256: str
    notes: tuple[str, ...]
    jobs: tuple[Job, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """What the paths hold: files with runs, the machine that lies beside them, and what was left aside or unread."""

    files: list[_File] = field(default_factory=list)
    gaps: list[NotObserved] = field(default_factory=list)
    machine: Machine = field(default_factory=Machine)

    @property
    def runs(self) -> tuple[BenchRun, ...]:
        return tuple(run for file in self.files for run in file.read.runs)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs of NCCL's logs in the files of the runs."""
        return tuple(job for file in self.files for job in file.jobs)


def bench(paths: Sequence[str], *, options: BenchOptions | None = None) -> Result:
    """Judge output of nccl-tests: files, folders, archives, patterns, `-`; packed with gzip or zstd or not. Bundles,
    topology files and NCCL logs among them are the machine. Raises InputError, also where none of them holds a run."""
    return judged(gather(paths, stdin=stream_for(paths)), options)


def judged(intake: Intake, options: BenchOptions | None = None, beside: Machine | None = None) -> Result:
    """The same of what was gathered. `beside` are nodes that were read and judged already. Raises InputError."""
    return judged_runs(read_runs(intake), options, beside)


def judged_runs(given: Given, options: BenchOptions | None = None, beside: Machine | None = None) -> Result:
    """The same of what was read. Raises InputError for options that do not fit."""
    chosen = options or BenchOptions()
    if chosen.system is not None:
        chosen = replace(chosen, system=_system(chosen.system))
    named = named_machine(chosen.machine)
    if beside is not None:
        given = replace(given, machine=given.machine + beside)
    gaps = given.gaps
    made = [_judged(run, file, named, given.machine, chosen, gaps) for file in given.files for run in file.read.runs]
    logged = (outcome for file in given.files for outcome in file.outcomes if _is_sick(outcome))
    of_runs = run(Subject.BENCH, made)
    made = [replace(each, gate=gate_of(each, of_runs)) for each in made]
    outcomes = (*of_runs, *logged)
    return Result(
        inputs=tuple(_input(file) for file in given.files),
        nodes=(),
        outcomes=outcomes,
        findings=arranged(fold(outcomes), Case(jobs=tuple(job for file in given.files for job in file.jobs))),
        not_observed=tuple(dict.fromkeys((*gaps, *_gaps(given, named, made)))),
        unread=tuple(line for file in given.files for line in file.read.unread),
        jobs=tuple(job for file in given.files for job in file.jobs),
        benchmarks=tuple(made),
    )


def _judged(  # noqa: PLR0917 - a run, and all that is known beside it
    run: BenchRun, file: _File, named: Machine, beside: Machine, chosen: BenchOptions, gaps: list[NotObserved]
) -> Benchmark:
    """A run with its fit, its expectation and the verdict. What the user says beats what the output says."""
    if chosen.by_file:
        run = replace(run, placement=PurePath(file.path).stem)
    fit = fit_run(run)
    machine = _machine_of(run, file, named, beside, chosen)
    made = expected_of(run, machine, chosen, gaps)
    found = verdict_of(run, made.expectation, made.why)
    known = known_of(run, machine, file.jobs, file.outcomes)
    explained = explain(run, made, found, fit=fit, known=known)
    # A build without MPI looks like runs of one rank, and is told as what it is.
    why = next((note for note in run.notes if WITHOUT_MPI in note), "")
    return Benchmark(
        run=run,
        fit=fit,
        expected=made.expectation,
        verdict=found.word,
        why=why or found.why,
        hypotheses=explained.causes,
        severe=is_severe(found, shown=bool(explained.causes) and explained.causes[0].shown),
        found=known.findings if run.errors else (),
        ruled_out=explained.ruled_out,
    )


def _machine_of(run: BenchRun, file: _File, named: Machine, beside: Machine, chosen: BenchOptions) -> Machine:
    """The machine of a run: what --machine names, else the nodes beside it, else NCCL's log in its own file, else the
    logs beside it that name its hosts. With --system or --nics nodes are no machine, but what checks say of them
    counts."""
    if named.paths:
        near = named.for_run(run)
        return replace(near, jobs=() if near.nodes else near.jobs or named.jobs)
    near = beside.for_run(run)
    jobs = file.jobs or near.jobs
    nodes = () if chosen.system is not None or chosen.nics is not None else near.nodes
    return replace(near, nodes=nodes, jobs=() if nodes else jobs)


def expected_of(run: BenchRun, machine: Machine, chosen: BenchOptions, gaps: list[NotObserved]) -> Expected:
    """The expectation of the machine as it should be. Of nodes that differ it is the one of which the least is to be
    expected: a collective is as fast as its slowest node."""
    if not machine.nodes:
        return _reckoned(run, node_of_print(machine.jobs, run) if chosen.nics is None else None, machine.jobs, chosen)
    foreign = [node for node in machine.nodes if contradicts(node, run)]
    nodes_of_run = [node for node in machine.nodes if node not in foreign]
    if foreign and nodes_of_run:
        why = f"{_hosts(foreign)} left out: its GPUs are another product than those of the run"
        gaps.append(NotObserved("one machine for all nodes", why))
    sorts = sorts_of(nodes_of_run or machine.nodes)
    made = [(_reckoned(run, each[0], machine.jobs, chosen), each) for each in sorts[:MOST_SORTS]]
    told = [(each.expectation.busbw_gbs, each, nodes) for each, nodes in made if each.expectation is not None]
    if len(sorts) == 1 or not told:
        return made[0][0]
    why = _kinds(told) + (f"; {len(sorts) - MOST_SORTS} further kinds were not reckoned" if sorts[MOST_SORTS:] else "")
    gaps.append(NotObserved("one machine for all nodes", f"{why} (topodiag topo diff compares two)"))
    return min(told, key=lambda each: each[0])[1]


def _kinds(told: Sequence[tuple[float, Expected, list[Node]]]) -> str:
    """The kinds of nodes, and of which the least is expected (GB/s)."""
    least, _, nodes = min(told, key=lambda each: each[0])
    most = max(gbs for gbs, _, _ in told)
    kinds = f"the nodes are of {len(told)} kinds: {'; '.join(_hosts(each) for _, _, each in told)}"
    if most - least < ALIKE * most:
        return f"{kinds}; the same is expected of all"
    others = "; ".join(f"{in_gbs(gbs)} of {_hosts(others)}" for gbs, _, others in told if others is not nodes)
    return f"{kinds}; the least is expected of {_hosts(nodes)}, {in_gbs(least)}, and so of all ({others})"


def _hosts(nodes: Sequence[Node]) -> str:
    """The first hosts of nodes that are alike."""
    names = [node.host or "a node without a name" for node in nodes]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _reckoned(run: BenchRun, node: Node | None, jobs: Sequence[Job], chosen: BenchOptions) -> Expected:
    """The expectation of one node. The NICs of a log stand in where the machine is only guessed, but fewer of them than
    it is built with are no reason to expect less."""
    logged, network = network_of(jobs)

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


_TABLES = (Kind.NCCL_TESTS, Kind.NCCL_LOG, Kind.JOB_OUTPUT, Kind.NODE_TEXT, Kind.TEXT, Kind.JSON)
"""Kinds of text in which a table may stand further down than the bytes by which a file is recognised."""


def read_runs(packed: Intake) -> Given:
    """The runs in what was gathered and the machine beside them. Raises InputError where nothing holds a run."""
    with spooled(packed, lambda piece: piece.is_any(_TABLES)) as intake:
        return _read_plain(intake)


def _read_plain(intake: Intake) -> Given:
    given = Given()
    given.gaps.extend(NotObserved("part of the input", note) for note in intake.notes)
    rest: list[tuple[Piece, NotObserved]] = []
    logs: list[Piece] = []
    for piece in intake.pieces:
        if not piece.is_any(_TABLES):
            continue
        try:
            text, notes = _text(piece, intake)
        except OSError as error:
            given.gaps.append(NotObserved(piece.name, f"cannot be read: {error.strerror or error}"))
            continue
        read = read_file(text, piece.name)
        if read.runs:
            speaks = read.records >= MIN_RECORDS or piece.is_any((Kind.JOB_OUTPUT,))
            jobs, outcomes = _log(intake, piece, text) if speaks else ((), ())
            digest = hashlib.sha256(text).hexdigest()
            given.files.append(_File(piece.name, read, digest, notes, jobs, outcomes))
        else:
            if read.records >= LOG_RECORDS and piece.path != STDIN:
                logs.append(piece)
            rest.append((piece, NotObserved(piece.name, _no_run(piece, text, read))))
    if not given.files:
        _refuse(intake, given.gaps, [gap for _, gap in sorted(rest, key=lambda each: not each[0].command)])
    return _with_machine(given, intake, rest, logs)


def _refuse(intake: Intake, gaps: Sequence[NotObserved], rest: Sequence[NotObserved]) -> NoReturn:
    """Nothing holds a run: the first file that was given says why."""
    left = [NotObserved(each.path, each.why) for each in intake.aside]
    others = [each for piece in intake.pieces if not piece.is_any(_TABLES) for each in [_aside(left_aside(piece))]]
    for first in (*rest, *left, *others, *gaps):
        raise InputError(first.what, first.why, hint=HINT)
    raise InputError(intake.paths[0], "holds no file to read", hint=HINT)


def _with_machine(
    given: Given, intake: Intake, rest: Sequence[tuple[Piece, NotObserved]], logs: Sequence[Piece]
) -> Given:
    """The nodes and logs that lie beside the runs; what is neither is left aside with the command that reads it."""
    tried = {piece.name for piece, _ in rest}
    read = {file.path for file in given.files}
    pieces = [each for each in intake.pieces if is_machine(each) and each.name not in read and each.path != STDIN]
    machine, aside = machine_of(intake, pieces, logs)
    used = {piece.name for piece in pieces} | ({piece.name for piece in logs} if machine.jobs else set())
    given.gaps.extend(gap for piece, gap in rest if piece.name not in used)
    others = [piece for piece in intake.pieces if piece.name not in used | read | tried]
    given.gaps.extend(_aside(each) for each in (*aside, *map(left_aside, others), *intake.aside))
    return replace(given, machine=machine)


def _aside(each: Aside) -> NotObserved:
    return NotObserved(each.path, each.why + (f"; {each.command} reads it" if each.command else ""))


def _text(piece: Piece, intake: Intake) -> tuple[bytes, tuple[str, ...]]:
    """The text of a piece, unpacked, and what there is to say about that. Raises OSError."""
    if piece.path == STDIN:
        assert intake.stdin is not None  # noqa: S101 - a piece of standard input has its stream
        return _content(intake.stdin, piece.coding)
    with open(piece.file, "rb") as stream:
        return _content(stream, piece.coding)


def _content(stream: BinaryIO, coding: tuple[str, ...]) -> tuple[bytes, tuple[str, ...]]:
    reading = Reading()
    text = bytearray()
    for block in text_of(stream, coding, reading):
        text += block
        if len(text) > MAX_BYTES:
            del text[MAX_BYTES:]
            reading.notes.append(f"only the first {spell_bytes(MAX_BYTES)} of text were read")
            break
    return bytes(text), tuple(reading.notes)


def _no_run(piece: Piece, text: bytes, read: Read) -> str:
    """Why a file holds no run, and what else it may be."""
    if read.records:
        command = command_for(Kind.NCCL_LOG, piece.path)
        return f"holds no table of nccl-tests, only NCCL's log ({command} reads it)"
    if piece.command and piece.kind is not Kind.NCCL_TESTS:
        return f"holds no table of nccl-tests: it looks like {piece.words} ({piece.command} reads it)"
    return "holds no table of nccl-tests" if text.strip() else "is empty"


def _log(intake: Intake, piece: Piece, data: bytes) -> tuple[tuple[Job, ...], tuple[Outcome, ...]]:
    """The job that NCCL's log in the same file tells of, with what its checks say."""
    from topodiag.evidence.nccl_log.rebuild.rebuild import rebuild  # noqa: PLC0415 - numpy and pyarrow from here on
    from topodiag.fleet.ingest import ingest  # noqa: PLC0415

    try:
        is_read = piece.path == STDIN  # and can be read only once
        found = ingest([STDIN], stdin=io.BytesIO(data)) if is_read else ingest(only(intake, [piece]))
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


def _gaps(given: Given, named: Machine, made: Sequence[Benchmark]) -> Iterator[NotObserved]:
    for file in given.files:
        for note in file.notes:
            yield NotObserved(file.path, note)
    paths = named.paths or given.machine.paths
    if paths and not any(benchmark.expected is not None for benchmark in made):
        yield NotObserved(paths[0], "the machine of these runs could not be told from it")
    elif any(each.expected is None and each.run.rows and (each.run.nranks or 0) > 1 for each in made):
        yield NotObserved(
            "what some runs should reach",
            "no machine is known for them: give a bundle, a topology file or NCCL's log beside them (or as --machine),"
            " --system or --nics",
        )


__all__ = ["BenchOptions", "Given", "bench", "judged", "judged_runs", "read_runs"]
