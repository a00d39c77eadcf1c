"""The short texts of a case as they stand, and what they are like."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.evidence.intake.kinds import Kind
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece
from topodiag.evidence.intake.reading import read_piece
from topodiag.evidence.intake.rewound import Rewound
from topodiag.evidence.interface import Blob
from topodiag.evidence.likeness.table import HARMLESS, ORDINARY, Table, table
from topodiag.evidence.likeness.tokens import PAIR, STOOD_IN, tokens
from topodiag.model.errors import InputError
from topodiag.model.likeness import Likely, Likeness
from topodiag.model.provenance import MAX_QUOTE, Origin

MOST_TEXTS, MOST_BYTES = 4, 1 << 16
"""The table learned from excerpts of some sixty lines: what a long log is like, its words do not say."""
LIKENED = frozenset({
    Kind.NODE_TEXT, Kind.NCCL_LOG, Kind.JOB_OUTPUT, Kind.NCCL_TESTS, Kind.STEPS, Kind.STACKS, Kind.PODS, Kind.TEXT,
    Kind.JSON,
})  # fmt: skip
"""Kinds that people paste excerpts of."""
MOST_CAUSES, MOST_WORDS, MOST_LINES = 3, 4, 2
LEAST_WORDS = 12
"""Known words below which a text says nothing by its words."""
LEAST = -0.8
"""Score below which the first cause was more often wrong than right, on texts that the table had not learned from."""
FAR = 0.2
"""A text tells of no cluster where its words say so by this much more than they speak for any cause: of ordinary
documents that the table had not learned from, 19 of 20 do so by more than twice as much."""
LEAST_OF_OTHERS = -1.0
"""Score of a second and third cause below which nothing in a text speaks for them."""
_SAYS_NOTHING = frozenset({
    "the", "and", "for", "that", "this", "with", "from", "not", "are", "was", "has", "have",
    "mon", "tue", "wed", "thu", "fri", "sat", "sun", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep",
    "oct", "nov", "dec",
})  # fmt: skip
_SHORTEST = 3
"""Letters of a word that is shown; the shorter ones count and say nothing to a reader."""


def short_texts(intake: Intake) -> tuple[tuple[Blob, ...], Intake]:
    """The texts where they are few, short, and all that is given; else none. Standard input is put back: the intake to
    read from is returned."""
    pieces = intake.pieces
    sizes = [piece.size for piece in pieces if piece.size > 0]
    if not 0 < len(pieces) <= MOST_TEXTS or sum(sizes) > MOST_BYTES or not all(map(_is_pasted, pieces)):
        return (), intake
    made = []
    for piece in pieces:
        source = intake
        if piece.path == STDIN and intake.stdin is not None:
            head = intake.stdin.read(MOST_BYTES + 1)
            intake = replace(intake, stdin=io.BufferedReader(Rewound(head, intake.stdin)))
            source = replace(intake, stdin=io.BytesIO(head))
        try:
            made.append(read_piece(source, piece, MOST_BYTES))
        except InputError:  # whoever judges it says so
            return (), intake
    return tuple(made), intake


def _is_pasted(piece: Piece) -> bool:
    return piece.is_any(LIKENED) and Kind.BUNDLE not in piece.kinds


def likeness_of(texts: Sequence[Blob], learned: Table | None = None) -> Likeness | None:
    """What these texts are like, taken as one; None where they are like nothing that was ever about a cluster."""
    known = learned if learned is not None else table()
    shares = known.weighed(word for text in texts for word in tokens(text.text))
    if sum(PAIR not in word for word in shares) < LEAST_WORDS:
        return None
    scores = known.scores_of(shares)
    best = sorted(scores, key=lambda name: -scores[name])
    checks = [name for name in best if name not in (HARMLESS, ORDINARY)][:MOST_CAUSES]
    first = scores[checks[0]]
    if first < LEAST or scores[ORDINARY] > first + FAR:
        return None
    harmless = scores[HARMLESS] > first
    checks = [name for name in checks if scores[name] >= LEAST_OF_OTHERS]
    return Likeness(tuple(_likely(name, scores[name], shares, texts, known) for name in checks), harmless)


def _likely(check: str, score: float, shares: dict[str, float], texts: Sequence[Blob], known: Table) -> Likely:
    """A cause with the words that speak for it most, and the lines that hold most of them."""
    for_it = {word: share * weight for word, share in shares.items() if (weight := known.weight(word, check)) > 0}
    words = _shown(sorted(for_it, key=lambda word: (-for_it[word], word)))
    return Likely(check, score, words, tuple(_lines_with(for_it, texts)))


def _shown(words: Sequence[str]) -> tuple[str, ...]:
    """The first words that say something to a reader, of a pair and its own words the one that comes first."""
    chosen: list[str] = []
    met: set[str] = set()
    for word in words:
        parts = word.split(PAIR)
        speaks = any(len(part) >= _SHORTEST and part not in _SAYS_NOTHING for part in parts)
        if speaks and met.isdisjoint(parts) and STOOD_IN.isdisjoint(parts):
            chosen.append(word)
            met.update(parts)
    return tuple(chosen[:MOST_WORDS])


def _lines_with(weights: Mapping[str, float], texts: Sequence[Blob]) -> list[Origin]:
    """The lines that hold most of what these words weigh, in their order; of lines of the same words the first."""
    best: dict[frozenset[str], tuple[float, int, Origin]] = {}
    place = 0
    for text in texts:
        for at, line in enumerate(text.text.splitlines(), start=1):
            words = frozenset(word for word in tokens(line) if word in weights)
            if words and words not in best:
                told = Origin(text.name, at, line.strip()[:MAX_QUOTE])
                best[words] = (sum(weights[word] for word in sorted(words)), place, told)
            place += 1
    chosen = sorted(best.values(), key=lambda each: (-each[0], each[1]))[:MOST_LINES]
    return [told for _, _, told in sorted(chosen, key=lambda each: each[1])]
