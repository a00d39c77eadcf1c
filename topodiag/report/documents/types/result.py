"""The document of `scan`, `logs`, `bench`, `topo check` and `diagnose`: inputs, facts, findings and gaps."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from topodiag.report.documents.from_model import Of
from topodiag.report.documents.types.bench import Benchmark
from topodiag.report.documents.types.common import Count, Coverage, Finding, Input, NotObserved, Tool, Version
from topodiag.report.documents.types.job import Job
from topodiag.report.documents.types.node import Node


class Facts(Struct, frozen=True, kw_only=True):
    """What is known, before any verdict."""

    nodes: list[Node]
    jobs: list[Job]
    benchmarks: list[Benchmark]


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of a check on one node or job."""

    check: str
    status: Literal["finding", "clean", "not_applicable", "unknown"]
    node: str
    findings: Count
    why: str
    coverage: Coverage | None


class Unread(Struct, frozen=True, kw_only=True):
    """A line that no reader understood."""

    source: str
    line: int | None
    text: str
    why: str


class Progress(Struct, frozen=True, kw_only=True):
    """Lines of one kind that tell that something advanced."""

    kind: Annotated[str, Meta(description="What advances: progress.step, progress.request, progress.size, ...")]
    number: Count
    source: Annotated[str, Of("first.source")]
    first_line: Annotated[int | None, Of("first.line")]
    last_line: Annotated[int | None, Of("last.line")]
    first_s: Annotated[float | None, Meta(description="Seconds since the epoch; null where the lines have no clock.")]
    last_s: float | None
    longest_gap_s: Annotated[float | None, Meta(description="Longest time between two neighbours.")]
    host: str
    rank: int | None


class Unexplained(Struct, frozen=True, kw_only=True):
    """A line that says by itself that something is wrong, and that no finding explains."""

    what: Annotated[str, Meta(description="The kind of line: NCCL WARN, return code, Xid, ...")]
    text: str
    subject: Annotated[str, Meta(description="The job, or the node's host.")]
    source: Annotated[str | None, Of("origin.source")]
    line: Annotated[int | None, Of("origin.line")]
    count: Count
    harmless: Annotated[str, Meta(description="Why it tells of no fault; empty where nothing of the kind is known.")]


class ResultDocument(Struct, frozen=True, kw_only=True):
    """The result of a diagnosis."""

    schema_version: Version
    tool: Tool
    inputs: list[Input]
    facts: Facts
    findings: Annotated[list[Finding], Meta(description="Worst first, in a stable order.")]
    outcomes: list[Outcome]
    not_observed: list[NotObserved]
    unexplained: Annotated[list[Unexplained], Meta(description="Lines of trouble that no finding explains.")]
    progress: Annotated[list[Progress], Meta(description="What still ran while the texts were written.")]
    unread_count: Count
    unread: list[Unread]
