"""Verdicts: what a check found, what it costs, on what evidence, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum

from topodiag.lazy import dataclass
from topodiag.model.busid import normalise_bus_id
from topodiag.model.provenance import Origin
from topodiag.words.units import grouped


class Severity(IntEnum):
    """How bad, in ascending order so that `max` is the worst."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    def __str__(self) -> str:
        return self.name.lower()


class Confidence(IntEnum):
    """How sure: HIGH was read off the hardware, MEDIUM is inferred from parts, LOW is a hint."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Where:
    """The place, as narrow as the evidence allows. Labels: `GPU3`, `mlx5_0`, `GPU3 link 6`, `0000:1a:01.0`. `jobs` are
    named where there are several."""

    nodes: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    nics: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    links: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """What the fault costs: bandwidth lost on the narrowest place, in GB/s, and how it was reckoned.

    `share` is the part lost, 0 to 1, `step_share` the part of a training step, where the check knows what a step does.
    None where the cost cannot be derived from the evidence; `text` then says why it matters.
    """

    gbs_lost: float | None = None
    share: float | None = None
    text: str = ""
    step_share: float | None = None
    communication_share: float | None = None
    """The part of the communication of a step, where the check knows what is said and not how long a step computes."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what should be judged was seen: 61 of 64."""

    seen: int
    total: int
    what: str = ""

    def __str__(self) -> str:
        return f"{self.seen} of {self.total} {self.what}".rstrip()


@dataclass(frozen=True, slots=True)
class Follows:
    """The finding that another one follows from: its check, its message, and how it leads there, in a sentence."""

    check: str
    message: str
    why: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: one line for a reader (`message`), then what was seen beside what was to be expected."""

    id: str
    severity: Severity
    message: str
    observed: str
    expected: str
    fix: tuple[str, ...]
    where: Where = Where()
    cost: Cost = Cost()
    evidence: tuple[Origin, ...] = ()
    coverage: Coverage | None = None
    confidence: Confidence = Confidence.HIGH
    settings: tuple[tuple[str, str | None], ...] = ()
    """What the fix means for NCCL's settings: a name with the value to give it, None to take it out."""
    confirm: tuple[tuple[str, str], ...] = ()
    """What stands in the commands of its check's page for this finding's own values: `LOW`, `32M`."""
    follows: Follows | None = None
    """The finding that explains this one, None where none does. The rules of the verdict fill it."""

    @property
    def docs(self) -> str:
        """The command that prints the page of its check."""
        return f"topodiag explain {self.id}"


class Status(Enum):
    """What came of a check on one node."""

    FINDING = "finding"
    CLEAN = "clean"
    NOT_APPLICABLE = "not_applicable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A check's answer for one node: findings, or why there are none."""

    check: str
    status: Status
    node: str = ""
    findings: tuple[Finding, ...] = ()
    why: str = ""
    coverage: Coverage | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """One piece of evidence as it was read."""

    path: str
    kind: str
    sha256: str = ""
    lines: int = 0
    records: int = 0
    unparsed: int = 0


class Marks:
    """An index of findings by device label (`GPU3`, `mlx5_0`) and by bus id."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._by_name = grouped((name, finding) for finding in findings for name in _names(finding))

    def on(self, *names: str | None) -> list[Finding]:
        """The findings on any of these, worst first, each once."""
        findings = {id(f): f for name in names if name for f in self._by_name.get(name, ())}
        return sorted(findings.values(), key=lambda finding: (-finding.severity, finding.id))

    def about(self, family: str, *names: str | None) -> list[Finding]:
        """Those whose id begins with `family`."""
        return [finding for finding in self.on(*names) if finding.id.startswith(family)]


def _names(finding: Finding) -> set[str]:
    names = {*finding.where.gpus, *finding.where.nics}
    for label in finding.where.links:
        names.add(normalise_bus_id(label) or label)
        first, space, rest = label.partition(" ")
        if space and rest.startswith(("link ", "port ")):
            names.add(first)
    return names
