"""Captures read and judged, by all cores where there are many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.intake.captures import Capture as Place
from topodiag.evidence.intake.captures import evidence_of
from topodiag.evidence.intake.collected import changed
from topodiag.evidence.intake.pieces import STDIN, Intake
from topodiag.evidence.intake.reader import read_node
from topodiag.fleet.history.capture import capture_of
from topodiag.fleet.workers import FEW, by_all_cores
from topodiag.model.errors import InputError
from topodiag.model.history import Capture


def read_captures(places: Sequence[Place], intake: Intake) -> Iterator[Capture | str]:
    """Each capture with its facts and its errors, or why it cannot be read, in the order of the places. Raises
    TopodiagError when a worker dies."""
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
