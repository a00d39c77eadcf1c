"""Tables of every diagnosis: findings, what the checks came to, what was read, and what was not seen."""

from __future__ import annotations

from topodiag.api.tables.interface import Table, columns, parts
from topodiag.report.gaps import gaps_of

FINDING = columns("""
    id text: Check that found it; `topodiag explain ID` prints its page.
    severity text: info, warning or error.
    confidence text: low, medium or high.
    message text: The fault in one line.
    nodes text = where.nodes: Nodes, parted by blanks.
    gpus text = where.gpus: GPUs, as GPU3.
    nics text = where.nics: NICs, as mlx5_0.
    ranks text = where.ranks: Ranks of the job.
    links names = where.links: Links, parted by commas.
    jobs names = where.jobs: Jobs, where there are several.
    observed text: What was seen.
    expected text: What was to be expected.
    gbs_lost number GB/s = cost.gbs_lost: Bandwidth lost at the narrowest place, in one direction.
    share number 0..1 = cost.share: Part of that bandwidth that is lost.
    cost text = cost.text: What the loss means.
    fix list: What to do, step by step.
    source text = evidence.0.source: File of the first piece of evidence.
    line whole = evidence.0.line: Its line.
""")
FINDINGS = Table("Faults, worst first.", FINDING, lambda result: result.findings)
OUTCOMES = Table(
    "What each check came to, on each node or job.",
    columns("""
        check text: The check.
        status text: finding, clean, not_applicable or unknown.
        node text: The node or the job.
        findings whole: Number of findings.
        why text: Why it says so, where it found nothing.
        seen whole = coverage.seen: How much of what should be judged was seen.
        total whole = coverage.total: How much there is to judge.
    """),
    lambda result: result.outcomes,
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
    lambda result: result.inputs,
)
NOT_OBSERVED = Table(
    "What could not be seen.",
    columns("""
        what text: What is missing.
        why text: Why.
        needs_root truth: Whether root would see it.
    """),
    gaps_of,
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
    lambda result: parts("result.Unexplained", result.unexplained),
)
UNREAD = Table(
    "Lines that no reader understood.",
    columns("""
        source text: File.
        line whole: Line.
        text text: The line.
        why text: Why it was left.
    """),
    lambda result: result.unread,
)
