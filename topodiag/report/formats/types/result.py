"""The document of `scan`, `logs`, `bench`, `topo check` and `diagnose`: inputs, facts, findings and gaps."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from topodiag.report.formats.types.bench import Benchmark
from topodiag.report.formats.types.common import Count, Coverage, Finding, Input, NotObserved, Tool, Version
from topodiag.report.formats.types.job import Job
from topodiag.report.formats.types.node import Node


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


class Unexplained(Struct, frozen=True, kw_only=True):
    """A line that says by itself that something is wrong, and that no finding explains."""

    what: Annotated[str, Meta(description="The kind of line: NCCL WARN, return code, Xid, ...")]
    text: str
    subject: Annotated[str, Meta(description="The job, or the node's host.")]
    source: str | None
    line: int | None
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
    unread_count: Count
    unread: list[Unread]
