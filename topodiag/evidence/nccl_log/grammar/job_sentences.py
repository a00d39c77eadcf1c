"""What the catalogue says of one line of a job's output: the fault that it names, and how a process ended."""

from __future__ import annotations

from topodiag.evidence.signatures.engine import of_job
from topodiag.evidence.signatures.entry import literals_of

WORDS = literals_of("process")
"""A line without any of these is none of theirs."""
CONTAINED = "contained"
"""CUDA's error 721: memory of a peer could not be reached over NVLink, by the peer's fault or the link's."""


def fault_of(text: str) -> str:
    """The fault of a device or limit that a line names (`fault.NAME` of the catalogue), "" where it names none."""
    return _first(text, "fault.")


def _first(text: str, kind: str) -> str:
    return next((said.removeprefix(kind) for taken in of_job(text) if (said := taken.entry.says).startswith(kind)), "")


__all__ = ["CONTAINED", "WORDS", "fault_of"]
