"""Tables of every diagnosis: findings, what the checks came to, what was read, and what was not seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from topodiag.api.tables.interface import Row, Table, columns, joined
from topodiag.model.finding import Finding
from topodiag.model.result import Result
from topodiag.report.gaps import gaps_of

FINDING = columns("""
    id text: Check that found it; `topodiag explain ID` prints its page.
    severity text: info, warning or error.
    confidence text: low, medium or high.
    message text: The fault in one line.
    nodes text: Nodes, parted by blanks.
    gpus text: GPUs, as GPU3.
    nics text: NICs, as mlx5_0.
    ranks text: Ranks of the job.
    links text: Links, parted by commas.
    jobs text: Jobs, where there are several.
    observed text: What was seen.
    expected text: What was to be expected.
    gbs_lost number GB/s: Bandwidth lost at the narrowest place, in one direction.
    share number 0..1: Part of that bandwidth that is lost.
    cost text: What the loss means.
    fix list: What to do, step by step.
    source text: File of the first piece of evidence.
    line whole: Its line.
""")


def finding_rows(findings: Iterable[Finding]) -> Iterator[Row]:
    for f in findings:
        where, place = f.where, f.evidence[0] if f.evidence else None
        yield (
            f.id, str(f.severity), str(f.confidence), f.message, joined(where.nodes), joined(where.gpus),
            joined(where.nics), joined(where.ranks), joined(where.links, ", "), joined(where.jobs, ", "), f.observed,
            f.expected, f.cost.gbs_lost, f.cost.share, f.cost.text, list(f.fix),
            place.source if place else None, place.line if place else None,
        )  # fmt: skip


def _outcomes(result: Result) -> Iterator[Row]:
    for o in result.outcomes:
        seen, total = (o.coverage.seen, o.coverage.total) if o.coverage is not None else (None, None)
        yield o.check, o.status.value, o.node, len(o.findings), o.why, seen, total


def _inputs(result: Result) -> Iterator[Row]:
    for i in result.inputs:
        yield i.path, i.kind, i.sha256, i.lines, i.records, i.unparsed


FINDINGS = Table("Faults, worst first.", FINDING, lambda result: finding_rows(result.findings))
OUTCOMES = Table(
    "What each check came to, on each node or job.",
    columns("""
        check text: The check.
        status text: finding, clean, not_applicable or unknown.
        node text: The node or the job.
        findings whole: Number of findings.
        why text: Why it says so, where it found nothing.
        seen whole: How much of what should be judged was seen.
        total whole: How much there is to judge.
    """),
    _outcomes,
)
INPUTS = Table(
    "Pieces of evidence that were read.",
    columns("""
        path text: File, or name in its bundle.
        kind text: What it is.
        sha256 text: Of the content.
        lines whole: Lines.
        records whole: Records that were understood.
        unparsed whole: Lines that were not understood.
    """),
    _inputs,
)
NOT_OBSERVED = Table(
    "What could not be seen.",
    columns("""
        what text: What is missing.
        why text: Why.
        needs_root truth: Whether root would see it.
    """),
    lambda result: ((gap.what, gap.why, gap.needs_root) for gap in gaps_of(result)),
)
UNEXPLAINED = Table(
    "Lines that say that something is wrong, and that no finding explains.",
    columns("""
        what text: The kind of line, as NCCL WARN or Xid.
        text text: The line.
        subject text: The job, or the node's host.
        source text: File.
        line whole: Line.
        count whole: How many lines say so.
        harmless text: Why it tells of no fault; empty where nothing of the kind is known.
    """),
    lambda result: (
        (each.what, each.text, each.subject, each.origin.source if each.origin else None,
         each.origin.line if each.origin else None, each.count, each.harmless)
        for each in result.unexplained
    ),
)  # fmt: skip
UNREAD = Table(
    "Lines that no reader understood.",
    columns("""
        source text: File.
        line whole: Line.
        text text: The line.
        why text: Why it was left.
    """),
    lambda result: ((each.source, each.line, each.text, each.why) for each in result.unread),
)
