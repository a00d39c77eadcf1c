"""Documents and source files beside evidence: they speak of faults, and report none.

Only names tell a runbook from a report. So a paper is set aside where somebody hands over a folder or an archive that
holds evidence as well; a paper that is named by itself, or is all that there is, is read like any text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from topodiag.evidence.intake.pieces import Aside, Piece
from topodiag.evidence.kinds import Kind
from topodiag.lazy import regex

_PAPER = regex(
    r"(?:readme|change[-_ ]?log|changes|news|licen[cs]e|contributing|authors|runbook|todo)"
    r"(?:\.(?:txt|md|rst|adoc|html))?"
    r"|.{1,200}\.(?:md|rst|adoc|py|pyi|c|cc|cpp|cxx|h|hpp|cu|cuh|go|rs|java|js|ts)",
    re.IGNORECASE,
)
_OPEN = frozenset({Kind.TEXT, Kind.PROGRAM, Kind.JSON})
"""Kinds of which nobody knows whether they are evidence."""
WHY = "a document or source file beside evidence: not read"


def without_papers(pieces: Sequence[Piece]) -> tuple[list[Piece], list[Aside]]:
    """The pieces without papers, and the papers, where anything else is evidence."""
    papers = [piece for piece in pieces if not piece.named and _PAPER.fullmatch(_name(piece))]
    if not papers or all(piece in papers or set(piece.kinds) <= _OPEN for piece in pieces):
        return list(pieces), []
    aside = [Aside(piece.name, WHY, hint="give it by its name to read it") for piece in papers]
    return [piece for piece in pieces if piece not in papers], aside


def _name(piece: Piece) -> str:
    return (piece.member or piece.path).rpartition("/")[2]


__all__ = ["WHY", "without_papers"]
