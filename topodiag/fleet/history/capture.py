"""One capture in the history of a node: its host, its time, its facts, and its faults.

Many captures are read and judged by all cores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from topodiag.checks.fleet.growth import growth
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.intake.captures import Capture as Place
from topodiag.evidence.intake.captures import evidence_of
from topodiag.evidence.intake.collected import changed
from topodiag.evidence.intake.pieces import STDIN, Intake
from topodiag.evidence.intake.reader import read_node
from topodiag.fleet.facts import facts_of
from topodiag.model.clock_text import booted, captured
from topodiag.model.errors import InputError
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
    return short_name(one) == short_name(other)


def read_captures(places: Sequence[Place], intake: Intake) -> Iterator[Capture | str]:
    """Each capture with its facts and its errors, or why it cannot be read, in the order of the places. Raises
    TopodiagError when a worker dies."""
    from topodiag.fleet.workers import FEW, by_all_cores  # noqa: PLC0415 - processes, which one capture does not need

    # Standard input can be read here alone; all else is opened where it is read.
    here = len(places) <= FEW or any(piece.path == STDIN for place in places for piece in place.pieces)
    read = partial(read_capture, intake=intake if here else Intake(intake.paths))
    return by_all_cores(read, places, worth=not here)


def read_capture(place: Place, intake: Intake) -> Capture | str:
    """One capture, judged by the checks of a node; or why it cannot be read."""
    if why := "; ".join(f"{piece.path}: {why}" for piece in place.pieces if (why := changed(piece.path))):
        return why
    try:
        # Captures of one host are told apart elsewhere; here they are its history.
        read = read_node(evidence_of(replace(place, label="") if place.host else place, intake))
    except InputError as error:
        return str(error)
    findings = [finding for outcome in run(Subject.NODE, [read.node]) for finding in outcome.findings]
    return capture_of(read.node, place.name, read.inputs, findings)
