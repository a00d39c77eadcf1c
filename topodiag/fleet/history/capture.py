"""A node that was read, as one capture of its history: whose it is, when it was made, what it holds, what is wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from topodiag.checks.fleet.growth import growth
from topodiag.fleet.facts import facts_of
from topodiag.model.clock_text import booted, captured
from topodiag.model.finding import Finding, Input, Severity
from topodiag.model.history import Capture, NodeHistory
from topodiag.model.node import Node
from topodiag.words.hosts import short_name


def capture_of(node: Node, source: str, inputs: Sequence[Input] = (), findings: Iterable[Finding] = ()) -> Capture:
    """The capture of a node with all its facts. `inputs` are the files of its evidence with their sha256: they make its
    id, so that a folder and an archive of it are one capture."""
    digest = hashlib.sha256(f"{node.host}\0{node.time.value}".encode("utf-8", "surrogateescape"))
    for digest_text in sorted(file.sha256 for file in inputs if file.sha256):
        digest.update(digest_text.encode())
    return Capture(
        id=digest.hexdigest(),
        host=node.host,
        time_s=captured(node),
        boot_s=booted(node),
        source=source,
        errors=failures(findings),
        facts=facts_of(node),
    )


def failures(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The findings at error level, each as `ID place`."""
    texts = []
    for finding in findings:
        if finding.severity is Severity.ERROR:
            where = finding.where
            texts.append(" ".join((finding.id, *where.gpus, *where.nics, *where.links))[:200])
    return tuple(dict.fromkeys(texts))


def pair(before: Capture, now: Capture, basis: str) -> NodeHistory:
    """Two captures of one node as its history."""
    return NodeHistory(now.host, now, before, basis, grown=growth((before, now)))


def same_host(one: str, other: str) -> bool:
    """Whether two names are of one host: with and without its domain."""
    return short_name(one).lower() == short_name(other).lower()
