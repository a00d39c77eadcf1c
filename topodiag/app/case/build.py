"""The one case of a diagnosis: everything that intake finds, read once, with its hosts and times joined.

What no reader takes is left aside by name, with the command that reads it: nothing handed over is ignored in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from topodiag.app.case.opening import gathered, left_out, node_case
from topodiag.evidence.intake.captures import captures
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece, read_piece, refusal, spooled
from topodiag.evidence.intake.watched import watch
from topodiag.evidence.kinds import ANY_EVIDENCE, NODE_KINDS, Kind
from topodiag.model.errors import InputError, TopodiagError
from topodiag.model.finding import Input
from topodiag.model.layout import LayoutError
from topodiag.model.provenance import PART, NotObserved
from topodiag.model.result import Case
from topodiag.verdict import one_node, scheduled
from topodiag.verdict.contradictions import contradictions, with_ages
from topodiag.verdict.identity import identify
from topodiag.verdict.timeline import timeline
from topodiag.words.own_data import patterns
from topodiag.words.units import fold_hosts, plural

if TYPE_CHECKING:
    from topodiag.app.case.text_read import TextRead
    from topodiag.model.job import Job
    from topodiag.model.layout import Layout

LOGGED = frozenset({
    Kind.NCCL_LOG, Kind.JOB_OUTPUT, Kind.FLIGHT, Kind.PARQUET, Kind.SAVED_FACTS, Kind.RAS, Kind.STACKS, Kind.INSPECTOR,
    Kind.DIAGNOSTICS, Kind.TRACE, Kind.STEPS,
})  # fmt: skip
"""Kinds from which jobs are rebuilt."""
JUDGED = frozenset({*NODE_KINDS, *LOGGED, Kind.NCCL_TESTS})
"""Kinds that can be judged by themselves."""
LAYOUTS = {Kind.HOSTFILE: "hostfile", Kind.RANKFILE: "rankfile", Kind.RANK_MAP: "map"}
"""Kinds of files of where ranks sit, each with the option of `place` that reads it."""
_MAY_BE_TROUBLE = patterns("app/case/texts", "lines")["trouble"]
JOINED = frozenset({*LAYOUTS, Kind.PODS, Kind.CLUSTER, Kind.KUBERNETES, Kind.SIZES})
"""Kinds that say more of what the others show: who is who, what was meant to run where, how nodes are connected."""


_OF_PROGRAMS = frozenset({Kind.TEXT, Kind.STEPS, Kind.NCCL_LOG, Kind.JOB_OUTPUT})
"""Texts in which programs print how they work and end, with lines of NCCL's or without."""


def open_case(
    paths: Sequence[str],
    live: Callable[[Case], Case] = lambda case: case,
    *,
    sizes: Layout | None = None,
    measured: bool = False,
) -> Case:
    """All evidence at these paths, with what `live` adds to it before all is joined: answers of a job that runs.
    `sizes` are the parallel dimensions of the job; None for those that a file among the evidence declares. `measured`:
    runs are asked for and are looked for in all texts. Raises InputError where nothing of the paths can be judged, or
    no run is found that is asked for, and LayoutError where `sizes` do not make the job's ranks."""
    return _related(live(_read(paths, sizes, measured=measured) if paths else Case()))


def _read(paths: Sequence[str], sizes: Layout | None, *, measured: bool) -> Case:
    """All that the paths hold, by subject. Raises as `open_case` does."""
    intake = _without_environments(gathered(paths))
    watch().planned(intake.of(*JUDGED, *JOINED))
    if not (measured or intake.of(*JUDGED)):
        return _alive(intake)
    tables = [piece for piece in intake.pieces if _holds_table(piece, measured=measured)]
    logged = [piece for piece in intake.of(*LOGGED) if piece not in tables]
    case = _nodes(intake, bool(tables or logged))
    runs, case = _runs(intake, tables, case, needed=not (case.nodes or logged), wide=measured)
    declared, case = (sizes, case) if sizes is not None else _declared(intake, case)
    case = replace(case, sizes=declared)
    if logged:
        try:
            case = _with(case, _jobs(intake, logged, declared, must_fit=sizes is not None))
        except InputError as error:  # a text that only began like a log costs itself, where there is more to judge
            if not case.nodes and runs is None:
                if any(not set(piece.kinds) <= _OF_PROGRAMS for piece in logged):
                    raise
                return _alive(intake)
            case = _without(case, error)
        case = _with_texts(case, intake, logged)
    case = _with_descriptions(case, intake)
    case = _with(case, runs or Case())
    taken = {item.path for item in case.inputs}
    aside = [aside for aside in intake.beside(*JUDGED, *JOINED) if aside.path not in taken]
    case = _with(case, Case(not_observed=tuple(left_out(aside))))
    watch().judged()
    return _with_merged_nodes(case)


def _without_environments(intake: Intake) -> Intake:
    """The evidence, in which an environment that a shell printed is one more text where it lies among texts of programs
    and no tool shows the node: it captures no machine, and nobody knows that a job had it."""
    shown = intake.of(*NODE_KINDS)
    listed = [piece for piece in shown if piece.sources == ("settings",) and piece.path != STDIN]
    by_tools = [piece for piece in shown if piece not in listed and piece.sources != ("table",)]
    if by_tools or not listed or not any(piece.is_any(_OF_PROGRAMS) for piece in intake.pieces if piece not in shown):
        return intake
    from topodiag.evidence.host.settings import of_shell  # noqa: PLC0415 - only where settings lie among texts

    environments = [piece for piece in listed if of_shell(read_piece(intake, piece).text)]
    as_text = (replace(p, kinds=(Kind.TEXT,), sources=()) if p in environments else p for p in intake.pieces)
    return replace(intake, pieces=tuple(as_text))


def _holds_table(piece: Piece, *, measured: bool) -> bool:
    pairs = "rdma-perftest" in piece.sources and not piece.is_any(LOGGED)
    return measured if piece.path == STDIN else pairs or piece.is_any((Kind.NCCL_TESTS,))


def _alive(intake: Intake) -> Case:
    """Texts of which nothing can be judged but how they end, or where they show that a program worked: nobody waits
    there. Of a text that shows neither nothing is known. Raises InputError without a text of lines."""
    texts = [piece for piece in intake.of(*_OF_PROGRAMS) if not piece.what]
    if not texts:
        raise refusal(intake, JUDGED, "evidence that can be judged")
    from topodiag.app.case.progress import lone_job  # noqa: PLC0415 - the catalogue of sentences, for texts only

    progress, jobs, read = lone_job(intake, texts)
    gaps = (NotObserved(PART, _lacks(read, len(texts))), NotObserved(PART, ANY_EVIDENCE))
    inputs = tuple(Input(piece.name, piece.kind.value) for piece in texts)
    aside = left_out(intake.beside(*_OF_PROGRAMS))
    return Case(jobs=jobs, progress=progress, inputs=inputs, not_observed=(*gaps, *aside))


def _lacks(read: Sequence[TextRead], count: int) -> str:
    """What `count` texts lack to judge anything of them. An exception that a program caught, or a last line of
    an error, may be trouble."""
    quiet = not any(text.last or _MAY_BE_TROUBLE.search("\n".join(text.lines).lower()) for text in read)
    lacks = f"no line of NCCL, a GPU{', a link or known trouble' if quiet else ' or a link'}"
    if any(text.progress for text in read):
        return lacks
    hosts = [text.logs_of for text in read if text.logs_of]
    if len(hosts) == count:
        return f"{lacks} in the log of {fold_hosts(sorted(frozenset().union(*hosts)))}"
    return f"{plural(count, 'text')} without a line of NCCL, a GPU or a link"


def _with_merged_nodes(case: Case) -> Case:
    """The case with the parts of a machine in its capture: a kernel log may know its host by an address."""
    case = replace(case, nodes=one_node.merged(case.nodes))
    if len(case.nodes) > 1 and any(one_node.is_part(node) for node in case.nodes):
        case = replace(case, nodes=one_node.merged(case.nodes, identify(case).name))
    return case


def _related(case: Case) -> Case:
    """The case with its hosts, its jobs on their machines, what speaks against what, and when it all happened."""
    identity = with_ages(case, identify(case))
    case = replace(case, identity=identity, timeline=timeline(case, identity))
    case = scheduled.without_outlived(scheduled.of_the_jobs(case, identity.name))
    case = replace(case, jobs=tuple(_on_machines(job, case) for job in case.jobs))
    conflicts = (*identity.conflicts, *contradictions(case))
    return replace(case, identity=replace(identity, conflicts=conflicts)) if conflicts != identity.conflicts else case


def _nodes(intake: Intake, others: bool) -> Case:
    """The nodes, without a word about what other readers take."""
    if not captures(intake).captures:
        return Case()
    own = replace(intake, pieces=tuple(p for p in intake.pieces if p.is_any(NODE_KINDS) or p.kinds == (Kind.TEXT,)))
    try:
        return node_case(replace(own, aside=()))
    except InputError as error:  # one text that only looked like a tool's output costs itself, not the diagnosis
        if not others:
            raise
        return _without(Case(), error)


def _runs(intake: Intake, tables: Sequence[Piece], case: Case, *, needed: bool, wide: bool) -> tuple[Case | None, Case]:
    """The runs of the tables; `wide`: of all texts, as runs are asked for. Tables that cannot be read cost
    themselves, unless they are `needed` or asked for: then InputError."""
    if not (tables or wide):
        return None, case
    from topodiag.app.case.runs import SCRIPTS, TABLES, read_runs  # noqa: PLC0415 - numpy, which only runs need

    try:
        others = intake.of(*TABLES, *SCRIPTS) if wide else intake.of(*SCRIPTS)
        more = [piece for piece in others if piece.path != STDIN and piece not in tables]
        return read_runs(intake, tables, more), case
    except InputError as error:
        if needed or wide:
            raise
        return None, _without(case, error)


def _declared(intake: Intake, case: Case) -> tuple[Layout | None, Case]:
    """The sizes that a file declares of the job, where one file does and they can be read."""
    pieces = intake.of(Kind.SIZES)
    if len(pieces) != 1:
        why = "several files declare sizes, and none says of which job: none is used"
        return None, _with(case, Case(not_observed=(NotObserved(PART, why),))) if pieces else case
    from topodiag.evidence.layout.job_file import layout_of, read_job  # noqa: PLC0415 - only where there is one

    try:
        return layout_of(read_job(read_piece(intake, pieces[0]))), case
    except InputError as error:
        return None, _without(case, error)


def _jobs(intake: Intake, logged: Sequence[Piece], layout: Layout | None, *, must_fit: bool = False) -> Case:
    """The jobs of the logs. Sizes that do not make as many ranks as a job has are said, and not used, unless they
    `must_fit`: then LayoutError is raised."""
    from topodiag.app.case.jobs import LogOptions, job_case  # noqa: PLC0415 - numpy, for logs only

    watch().opened(*(piece.name for piece in logged))
    piped = any(piece.path == STDIN for piece in logged)
    paths = tuple(path for path in intake.paths if piped or path != STDIN)
    own = replace(intake, pieces=tuple(logged), aside=(), paths=paths)
    if layout is None:
        return job_case(own)
    try:
        return job_case(own, LogOptions(layout=layout))
    except LayoutError as error:
        if must_fit:
            raise
        return _without(job_case(own), error)


def _on_machines(job: Job, case: Case) -> Job:
    """The job with the captures of its hosts. A capture that shows another time than the job's is none of them."""
    stale = {host.name for host in case.identity.hosts if host.stale}
    # Of several captures of a host the one that tells most counts: the last one here.
    captures = sorted(case.nodes, key=lambda node: (len(node.gpus), len(node.nics)))
    by_name = {case.identity.name(node.host): node for node in captures}
    machines = {
        host: by_name[name] for host in job.hosts if (name := case.identity.name(host)) in by_name and name not in stale
    }
    if not machines and len(job.hosts) <= 1 == len(captures) and captures[0].nameless:
        # One host or none, and outputs that name none: as far as is said, they are its.
        machines = {next(iter(job.hosts), ""): captures[0]}
    return replace(job, machines=machines) if machines else job


def _with_texts(case: Case, intake: Intake, logged: Sequence[Piece]) -> Case:
    """The case with the progress and the ends that its logs show, and with what scripts set for its job."""
    from topodiag.app.case.jobs import with_scripts  # noqa: PLC0415 - numpy, which only jobs need
    from topodiag.app.case.progress import with_work  # noqa: PLC0415 - the catalogue of sentences, for logs only

    return with_scripts(with_work(case, intake, logged), intake)


# --- what says more of the rest -------------------------------------------------------------------------------------


def _with_descriptions(case: Case, intake: Intake) -> Case:
    """The case with pods, hostfiles, maps and descriptions of the cluster. One that cannot be read costs itself."""
    with spooled(intake, lambda piece: piece.is_any(JOINED)) as plain:
        for piece in plain.of(*JOINED):
            try:
                case = _with(case, _more(plain, piece))
            except TopodiagError as error:
                case = _without(case, error)
    return case


def _more(intake: Intake, piece: Piece) -> Case:
    blob = read_piece(intake, piece)
    case = Case()
    if piece.is_any((Kind.PODS,)):
        from topodiag.evidence.cluster.kubernetes import read_pods  # noqa: PLC0415 - only where there are pods

        case = replace(case, ties=read_pods(blob))
    if piece.is_any((Kind.CLUSTER, Kind.KUBERNETES)):
        from topodiag.evidence.cluster.files import read_cluster  # noqa: PLC0415 - numpy

        case = replace(case, clusters=(read_cluster(blob),))
    if piece.is_any(LAYOUTS):
        from topodiag.evidence.layout.rank_files import READERS  # noqa: PLC0415 - numpy

        option = next(option for kind, option in LAYOUTS.items() if piece.is_any((kind,)))
        case = replace(case, layouts=(READERS[option](blob),))
    size = len(case.ties) + len(case.layouts) + len(case.clusters) + piece.is_any((Kind.SIZES,))
    taken = Input(piece.name, piece.kind.value, lines=blob.data.count(b"\n") + 1, records=size)
    return replace(case, inputs=(taken,))


# --- parts ----------------------------------------------------------------------------------------------------------


def _with(case: Case, more: Case) -> Case:
    """The collections of both cases, in this order, and no input and no gap twice. Identity and timeline are left to
    the whole."""
    names = [part.name for part in fields(Case) if isinstance(part.default, tuple)]
    lists: dict[str, Any] = {name: (*getattr(case, name), *getattr(more, name)) for name in names}
    once = {name: tuple(dict.fromkeys(lists[name])) for name in ("inputs", "not_observed", "unread")}
    return Case(**{**lists, **once}, sizes=case.sizes or more.sizes)


def _without(case: Case, error: TopodiagError) -> Case:
    return _with(case, Case(not_observed=(NotObserved(PART, str(error)),)))
