"""Settings that job scripts and launchers give to a job whose log is another file, where its own lines say none."""

from __future__ import annotations

from dataclasses import replace

from topodiag.evidence.assignments import COMMANDED, Scope, assigned, stated_in
from topodiag.evidence.intake.pieces import STDIN, Intake, read_piece
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.lazy import regex
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.job import GivenSetting
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.model.result import Case
from topodiag.words.units import grouped

MAX_BYTES = 1 << 20
"""A script has kilobytes."""

_OF_SHELL = regex(r"(?m)^(?:PATH|HOME|PWD|USER|SHLVL|HOSTNAME)=")
"""`.deepspeed_env`, `nccl.env` and files of exports have none of these."""


def with_scripts(case: Case, intake: Intake) -> Case:
    """The case, with what scripts set for its job where it has one alone: of several nobody knows which one they start.
    Files that disagree about a variable say nothing of it, and what NCCL's lines or commands among them say comes
    first."""
    if len(case.jobs) != 1:
        return case
    givens: list[GivenSetting] = []
    for piece in intake.of(Kind.TEXT, Kind.PROGRAM, Kind.NODE_TEXT):
        if piece.path == STDIN or piece.size > MAX_BYTES or (piece.sources and piece.sources != ("settings",)):
            continue
        try:
            givens += _settings(read_piece(intake, piece, MAX_BYTES))
        except InputError:
            continue  # said where all that is left out is
    by_name = grouped((given.name, given) for given in givens)
    agreed = {name: own[-1] for name, own in by_name.items() if own[-1].value and len({one.value for one in own}) == 1}
    sources = dict.fromkeys(value.origin.source for value in agreed.values() if value.origin is not None)
    known = {item.path for item in case.inputs}
    inputs = tuple(Input(source, Kind.TEXT.value, records=1) for source in sources if source not in known)
    processes = tuple(replace(process, settings={**agreed, **process.settings}) for process in case.jobs[0].processes)
    job = replace(case.jobs[0], processes=processes)
    return replace(case, jobs=(job,), inputs=(*case.inputs, *inputs)) if agreed else case


def _settings(blob: Blob) -> list[GivenSetting]:
    """What a text sets. In one that is no script a sentence may advise a setting: only its commands count. Of an
    environment that a shell on a node printed nobody knows that a job had it."""
    if _OF_SHELL.search(blob.text) is not None:
        return []
    read, above = [], ""
    script = blob.data.startswith(b"#!")
    for number, line in blob.lines():
        row = stated_in(line, above)
        settings = list(assigned(line, above)) if script else row[2] if row and row[0] is not Scope.ECHO else []
        read += [
            GivenSetting(name, value, COMMANDED, Origin(blob.name, number, line[:MAX_QUOTE]))
            for name, value in settings
        ]
        above = line
    return read
