"""The nodes of a case: one for each capture in what was gathered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from topodiag.app.case.opening import gathered
from topodiag.evidence.intake.captures import captures, evidence_of
from topodiag.evidence.intake.pieces import Intake, SkippedFile, folded, refusal
from topodiag.evidence.intake.reader import ReadNode, read_node
from topodiag.evidence.kinds import NODE_KINDS
from topodiag.lazy import regex
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.provenance import PART, NotObserved
from topodiag.model.result import Case
from topodiag.words.units import first_of

_BUNDLED = regex(r"(?:json|trees|commands|files|text)/[^/]{1,200}\Z")
"""A file of a bundle by its name inside."""


def node_case(intake: Intake) -> Case:
    """The nodes in what was gathered, one for each capture. A capture that cannot be read is left aside where there are
    others. Raises InputError where there is none."""
    captured = captures(intake)
    aside = list(captured.aside)
    read: list[ReadNode] = []
    broken: list[InputError] = []
    for capture in captured.captures:
        try:
            read.append(read_node(evidence_of(capture, intake)))
        except InputError as error:
            broken.append(error)
            why = error.message.removeprefix(f"{capture.name}: ")
            aside.append(SkippedFile(capture.name, why, hint=error.hint, unreadable=True))
    if not read:
        raise broken[0] if broken else refusal(intake, NODE_KINDS, "evidence of a node", captured.aside)
    case = case_of(read)
    gaps = [*(NotObserved(PART, note) for note in captured.notes), *left_out(aside)]
    return replace(case, not_observed=tuple(dict.fromkeys((*gaps, *case.not_observed))))


def left_out(aside: Iterable[SkippedFile]) -> list[NotObserved]:
    """What of the input was not read, in a line for each reason."""
    by_kind = {broken: [skipped for skipped in aside if skipped.unreadable is broken] for broken in (False, True)}
    return [NotObserved(PART, note, unreadable=broken) for broken, own in by_kind.items() for note in folded(own)]


def one_node(path: str) -> ReadNode:
    """The only node at a path. Raises InputError where there is none, or more than one."""
    intake = gathered([path])
    captured = captures(intake)
    if not captured.captures:
        raise refusal(intake, NODE_KINDS, "evidence of a node", captured.aside)
    if len(captured.captures) > 1:
        names = first_of([one.label or one.host or one.name for one in captured.captures], 4)
        first = captured.captures[0].name
        raise InputError(path, f"holds {len(captured.captures)} nodes: {names}", hint=f"give one of them, as {first}")
    return read_node(evidence_of(captured.captures[0], intake))


def case_of(read: Sequence[ReadNode]) -> Case:
    """Nodes that were read, as a case."""
    nodes = tuple(node.node for node in read)
    several = len(nodes) > 1
    return Case(
        nodes=nodes,
        inputs=tuple(_of_node(item, node.node.host) if several else item for node in read for item in node.inputs),
        not_observed=tuple(dict.fromkeys(item for node in nodes for item in node.not_observed)),
        unread=tuple(line for node in read for line in node.unread),
    )


def _of_node(item: Input, host: str) -> Input:
    """An input of one of several nodes: a file of a bundle has the node before it, as every bundle has such a file."""
    return replace(item, path=f"{host}/{item.path}") if host and _BUNDLED.match(item.path) else item
