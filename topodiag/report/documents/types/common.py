"""What every document of `--format json` shares: the tool, the inputs, the findings, and what was not observed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from topodiag.report.documents.from_model import Of

SCHEMA_VERSION = "1.0"
"""major.minor of every document but a diagnosis: a minor adds keys, a major may change or remove them."""

DIAGNOSIS_VERSION = "2.0"
"""That of the document of `diagnose`: major 2 has no `verdict.leads`."""

Version = Annotated[str, Meta(pattern=r"^1\.[0-9]+$")]
Count = Annotated[int, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[float, Meta(ge=0)]
Level = Literal["low", "medium", "high"]


class Tool(Struct, frozen=True, kw_only=True):
    """The program that wrote the document."""

    name: Literal["topodiag"]
    version: str


class Input(Struct, frozen=True, kw_only=True):
    """One piece of evidence as it was read."""

    path: str
    kind: str
    sha256: str
    lines: Count
    records: Count
    unparsed: Count


class Origin(Struct, frozen=True, kw_only=True):
    """Where a value comes from: file and line, or the command that printed it."""

    source: str
    line: int | None
    text: str
    command: str


class Place(Struct, frozen=True, kw_only=True):
    """Where a finding is, as narrow as the evidence allows."""

    nodes: list[str]
    gpus: list[str]
    nics: list[str]
    ranks: list[int]
    links: list[str]
    jobs: Annotated[
        list[str],
        Meta(description="Where there are several jobs: those that this finding is of, as facts.jobs names them."),
    ]


class Cost(Struct, frozen=True, kw_only=True):
    """What a fault costs at the narrowest place; null where the evidence does not tell."""

    gbs_lost: Annotated[float | None, Meta(description="GB/s lost, in one direction.")]
    share: Annotated[float | None, Meta(description="Part lost, 0 to 1.")]
    text: str


class Coverage(Struct, frozen=True, kw_only=True):
    """How much of what should be judged was seen."""

    seen: Count
    total: Count
    what: str


class Follows(Struct, frozen=True, kw_only=True):
    """The finding that another one follows from: its check and its message, and how it leads there."""

    check: Annotated[str, Meta(pattern="^[A-Z0-9]{3}[0-9]{3}$")]
    message: str
    why: str


class Finding(Struct, frozen=True, kw_only=True):
    """One fault. `topodiag explain ID` says more of its check."""

    id: Annotated[str, Meta(pattern="^[A-Z0-9]{3}[0-9]{3}$")]
    severity: Literal["info", "warning", "error"]
    confidence: Level
    message: str
    where: Place
    observed: str
    expected: str
    cost: Cost
    evidence: list[Origin]
    coverage: Coverage | None
    fix: list[str]
    follows_from: Annotated[
        Follows | None,
        Of("follows"),
        Meta(description="The finding above this one that explains it; null for a cause."),
    ]
    docs: Annotated[str, Meta(description="The command that prints the page of this check.")]


class NotObserved(Struct, frozen=True, kw_only=True):
    """What could not be seen, and why."""

    what: str
    why: str
    needs_root: bool
