"""What a check is. Its docstring is the page that `topodiag explain ID` prints.

`observe` answers with the findings, each with its message, what was observed, expected, fix, cost and evidence
(`any_of`), or with why there is none: clean, not applicable, unknown.

Adding one is a class and a line in the catalogue; `python tools/new_check.py ID SUBJECT` lays out both.
The sections of the docstring, in this order: What it finds, Why it matters, Evidence it reads, When it stays silent,
How to confirm, How to fix, References.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NotRequired, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

from topodiag.lazy import dataclass
from topodiag.model.devices import ports_of
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity, Status, Where
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.words.own_data import own_data
from topodiag.words.units import few, runs, spell_run

if TYPE_CHECKING:
    from topodiag.model.bench import Benchmark
    from topodiag.model.fleet import Cohort
    from topodiag.model.history import NodeHistory
    from topodiag.model.job import Event, Job
    from topodiag.placement.audit import Audit


Judged: TypeAlias = "Node | Job | Benchmark | Audit | Cohort | NodeHistory"
"""What checks judge."""

J = TypeVar("J", bound=Judged)
"""The kind of thing that a check judges."""

MAX_EVIDENCE = 8
"""Evidence lines kept per finding: enough to convince, few enough to read."""

MAX_OBSERVED = 300
"""Characters of a line that a finding quotes as what was observed."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What is said of a finding beside what was seen: an entry of `checks/advice/`."""

    severity: Severity = Severity.WARNING
    confidence: Confidence = Confidence.HIGH
    expected: str = ""
    fix: tuple[str, ...] = ()
    cost: Cost = Cost()


def advice_of(entry: Mapping[str, Any], **words: object) -> Advice:
    """An entry of data as advice, with these words in its sentences."""

    def filled(text: str) -> str:
        return text.format(**words) if words else text

    return Advice(
        Severity[entry.get("severity", "warning").upper()],
        Confidence[entry.get("confidence", "high").upper()],
        filled(entry.get("expected", "")),
        tuple(map(filled, entry.get("fix", ()))),
        Cost(share=entry.get("share"), text=filled(entry.get("cost", ""))),
    )


class HasOrigin(Protocol):
    """A fact, an event, a setting, a device: what was read somewhere."""

    @property
    def origin(self) -> Origin | None: ...


class FindingParts(TypedDict):
    """The parts of a finding beside its message. What was observed is the first line of its evidence where nothing else
    is said to be. `evidence` takes what was read, or where; what stands nowhere is dropped. How bad and how sure it is,
    what should be, what to do, what it costs: those of its advice where they do not stand here. `sure` is False where
    it is one step less bad, and one less sure, than its advice says."""

    observed: NotRequired[str]
    severity: NotRequired[Severity]
    expected: NotRequired[str]
    fix: NotRequired[Sequence[str]]
    cost: NotRequired[Cost | str | None]
    evidence: NotRequired[Iterable[Origin | HasOrigin | None]]
    coverage: NotRequired[Coverage | None]
    confidence: NotRequired[Confidence]
    sure: NotRequired[bool]
    settings: NotRequired[Sequence[tuple[str, str | None]]]
    confirm: NotRequired[Sequence[tuple[str, str]]]


class Check(ABC, Generic[J]):
    """One kind of fault, `class Name(NodeCheck, id="GPU001", unless=no_gpu)`. An id is never reused. `unless` says
    why the check does not apply to what is judged, or "" if it applies. The docstring of the class with the page
    begins with `ID: title`, one line in the present tense; without docstrings (python -OO) titles are empty."""

    id: ClassVar[str]
    title: ClassVar[str]
    unless: Callable[[J], str]

    def __init_subclass__(cls, *, id: str = "", unless: Callable[[J], str] = lambda judged: "") -> None:  # noqa: A002
        super().__init_subclass__()
        cls.id, cls.unless = id, staticmethod(unless)
        cls.title = (cls.__doc__ or "").partition("\n")[0].partition(": ")[2]

    @abstractmethod
    def observe(self, judged: J, peers: Sequence[J]) -> Outcome:
        """What is so with `judged`: findings, or why there are none (clean, not applicable or unknown). `peers` are the
        others of its kind in evidence. Never raises, whatever the evidence holds."""

    def judge(self, judged: J, peers: Sequence[J] = ()) -> Outcome:
        """The check's answer, also where there is nothing of its kind beside `judged`."""
        why = self.unless(judged)
        return self.not_applicable(judged, why) if why else self.observe(judged, peers)

    def any_of(
        self,
        judged: J,
        findings: Iterable[Finding | None],
        coverage: Coverage | None = None,
        clean: str = "",
        unknown: str = "",
    ) -> Outcome:
        """The outcome with these findings, None left out. Where none is left: unknown for this reason, clean, with the
        other one, where there is none. Findings that have no coverage get this one."""
        known = [finding for finding in findings if finding is not None]
        if not known:
            return self.unknown(judged, unknown, coverage) if unknown else self.clean(judged, clean, coverage)
        if coverage is not None:
            known = [finding if finding.coverage else replace(finding, coverage=coverage) for finding in known]
        return self.with_findings(judged, known, coverage)

    def with_findings(self, judged: J, findings: Iterable[Finding], coverage: Coverage | None = None) -> Outcome:
        return Outcome(self.id, Status.FINDING, name_of(judged), tuple(findings), coverage=coverage)

    def add_findings(self, outcome: Outcome, findings: Iterable[Finding]) -> Outcome:
        """An outcome with findings of another source before its own."""
        added = tuple(findings)
        both = (*added, *outcome.findings)
        return replace(outcome, status=Status.FINDING, findings=both, why="") if added else outcome

    def clean(self, judged: J, why: str = "", coverage: Coverage | None = None) -> Outcome:
        return Outcome(self.id, Status.CLEAN, name_of(judged), why=why, coverage=coverage)

    def not_applicable(self, judged: J, why: str) -> Outcome:
        return Outcome(self.id, Status.NOT_APPLICABLE, name_of(judged), why=why)

    def unknown(self, judged: J, why: str, coverage: Coverage | None = None) -> Outcome:
        return Outcome(self.id, Status.UNKNOWN, name_of(judged), why=why, coverage=coverage)

    def advice(self, name: str, **words: object) -> Advice:
        """The entry of this name in `checks/advice/`, in the file of the family, with these words in its sentences."""
        return advice_of(own_data(f"checks/advice/{self.id[:3].lower()}")[name], **words)

    def steps(self, *names: str, **words: object) -> tuple[str, ...]:
        """What to do: the sentences of these names in the table `steps` of the family's file of `checks/advice/`, with
        these words. An empty name is none."""
        steps = own_data(f"checks/advice/{self.id[:3].lower()}")["steps"]
        return tuple(text.format(**words) if words else text for name in names if name for text in steps[name])

    def where(
        self,
        nodes: Node | Sequence[str] = (),
        *,
        ranks: Sequence[int] = (),
        gpus: Sequence[str] = (),
        nics: Sequence[str] = (),
        links: Sequence[str] = (),
    ) -> Where:
        """The place of a finding: a node, or hosts and world ranks. A virtual NIC is named by its ports."""
        hosts = (nodes.host,) if isinstance(nodes, Node) else tuple(nodes)
        ports = tuple(port for nic in nics for port in ports_of(nic))
        return Where(hosts, tuple(gpus), ports, tuple(ranks), tuple(links))

    def finding(self, where: Where, named: str | Advice, message: str, **parts: Unpack[FindingParts]) -> Finding:
        """A finding with the advice of this name, or with one of its own."""
        advice = self.advice(named) if isinstance(named, str) else named
        shown, less = list(parts.get("evidence", ())), 0 if parts.get("sure", True) else 1
        evidence, cost = _origins(shown), parts.get("cost") or advice.cost
        text = next((getattr(item, "text", "") for item in shown if item is not None), "")
        return Finding(
            id=self.id,
            severity=parts.get("severity", Severity(advice.severity - less)),
            message=message,
            observed=parts.get("observed") or quoted(text or (evidence[0].text if evidence else ""), MAX_OBSERVED),
            expected=parts.get("expected") or advice.expected,
            fix=tuple(parts.get("fix") or advice.fix),
            where=where,
            cost=Cost(text=cost) if isinstance(cost, str) else cost,
            evidence=evidence,
            coverage=parts.get("coverage"),
            confidence=parts.get("confidence", Confidence(advice.confidence - less)),
            settings=tuple(parts.get("settings", ())),
            confirm=tuple(parts.get("confirm", ())),
        )


class NodeCheck(Check[Node]):
    """A check that judges one node; `peers` are the other nodes in evidence, for comparisons between peers."""


class JobCheck(Check["Job"]):
    """A check that judges one job by its logs."""

    def where_of(self, job: Job, processes: Sequence[int]) -> Where:
        """The hosts of some processes of a job, and the world ranks that ran in them."""
        wanted, hosts = set(processes), list(dict.fromkeys(job.processes[at].host for at in processes))
        return self.where(hosts, ranks=sorted(rank.rank for rank in job.ranks if rank.process in wanted))

    def of_events(
        self,
        events: Sequence[Event],
        advice: str | Advice,
        message: str,
        where: Where | None = None,
        **parts: Unpack[FindingParts],
    ) -> Finding:
        """A finding on the hosts and ranks that some lines name, or on another place. These lines are its evidence."""
        parts.setdefault("evidence", events)
        return self.finding(where or self.where(hosts_in(events), ranks=ranks_in(events)), advice, message, **parts)


class PlacementCheck(Check["Audit"]):
    """A check that judges a layout of ranks on a cluster, also one that does not run yet. An audit has its prices."""


class BenchCheck(Check["Benchmark"]):
    """A check that judges one measured run of a collective; `peers` are the other runs in evidence."""

    def judge(self, judged: Benchmark, peers: Sequence[Benchmark] = ()) -> Outcome:
        if judged.run.is_foreign:
            return self.not_applicable(judged, "it measured MPI")
        return super().judge(judged, peers)


class FleetCheck(Check["Cohort"]):
    """A check that judges nodes of one kind beside each other."""


def name_of(judged: Judged) -> str:
    """How an outcome names what was judged: the host, the job, the layout, or placement and collective of a run."""
    if isinstance(judged, Node):
        return judged.host
    # Neither module is imported here: a job needs numpy, and a scan knows nodes alone.
    run = getattr(judged, "run", None)
    if run is None:
        return str(getattr(judged, "name", ""))
    return " ".join(part for part in (run.placement or run.source, run.collective) if part)


def _origins(evidence: Iterable[Origin | HasOrigin | None]) -> tuple[Origin, ...]:
    """The distinct origins of what is given, at most MAX_EVIDENCE."""
    origins = [item if item is None or isinstance(item, Origin) else item.origin for item in evidence]
    return tuple(dict.fromkeys(origin for origin in origins if origin is not None))[:MAX_EVIDENCE]


class OfHost(Protocol):
    """An event, a process, a stack: its host, "" unknown."""

    @property
    def host(self) -> str: ...


class OfRank(Protocol):
    """An event, a stack: its rank, -1 unknown."""

    @property
    def rank(self) -> int: ...


def hosts_in(events: Iterable[OfHost]) -> list[str]:
    """The hosts that are named, in the order of the events."""
    return list(dict.fromkeys(event.host for event in events if event.host))


def ranks_in(events: Iterable[OfRank]) -> list[int]:
    """The ranks that are named, in order."""
    return sorted({event.rank for event in events if event.rank >= 0})


def spell_ranks(ranks: Iterable[int]) -> str:
    """World ranks with their runs folded: `0-7, 9`; at most MAX_NAMED runs."""
    return few([spell_run(low, high) for low, high in runs(ranks)])


def hosts_word(hosts: Sequence[str]) -> str:
    """`n0, n1, n2 and 61 more nodes`; `a node` where its name was taken off the log."""
    hosts = [host or "a node" for host in hosts]
    return few(hosts, 3) + ("" if len(hosts) <= 3 else " node" if len(hosts) == 4 else " nodes")


def rank_word(ranks: Sequence[int]) -> str:
    if not ranks:
        return "members of unknown rank"
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {spell_ranks(ranks)}"


def quoted(text: str, most: int = 160) -> str:
    """A line of the log on one line, at most `most` characters: cut between words, so that no number is left half."""
    words = " ".join(text.split())
    if len(words) <= most:
        return words
    end = words.rfind(" ", most // 2, most - 3)
    return f"{words[: end if end > 0 else most - 4]} ..."


def hosts_with(job: Job, ranks: Sequence[int]) -> list[str]:
    """Hosts of these world ranks, each once, in the order of the ranks."""
    by_rank = job.by_rank
    return list(dict.fromkeys(by_rank[rank].host for rank in ranks if rank in by_rank))


def processes_word(job: Job, processes: Sequence[int]) -> str:
    """Processes of a job by their world ranks and hosts."""
    wanted = set(processes)
    world = sorted(rank.rank for rank in job.ranks if rank.process in wanted)
    hosts = hosts_word(list(dict.fromkeys(job.processes[at].host for at in processes)))
    return f"{rank_word(world)} ({hosts})" if world else hosts


def look_at(job: Job, ranks: Sequence[int]) -> tuple[str, ...]:
    """What to run on the hosts of these world ranks while they hang; all of it only reads."""
    hosts = hosts_word(hosts_with(job, ranks))
    place = f"rank {spell_ranks(ranks)}" + (f" on {hosts}" if hosts else "")
    pids = [str(job.by_rank[rank].pid) for rank in ranks[:3] if rank in job.by_rank and job.by_rank[rank].pid > 0]
    there = f"`py-spy dump --pid {' '.join(pids[:1]) or 'PID'}; nvidia-smi dmon -s pu -c 3; dmesg -T | tail -50`"
    return (
        f"find out what {place} was doing: its own log, `py-spy dump`, dmesg",
        f"while it hangs, on {hosts or 'its node'}: {there} (all of them only read; a GPU that waits in a collective"
        " shows sm near 100 %, mem near 0 and little power, one that the rank does not use shows sm 0)",
    )
