"""What an excerpt is like: causes of known texts that use the same words. A resemblance, and no evidence."""

from __future__ import annotations

from dataclasses import dataclass

from topodiag.model.provenance import Origin


@dataclass(frozen=True, slots=True)
class Likely:
    """One cause that texts with these words had. `check` is its id, `score` how far the words speak for it (above 0:
    more for it than for anything else; higher is more), `words` those that weigh most, `lines` where they stand."""

    check: str
    score: float
    words: tuple[str, ...]
    lines: tuple[Origin, ...]


@dataclass(frozen=True, slots=True)
class Likeness:
    """The causes that an excerpt may have, most like first. `harmless`: it is even more like texts in which nothing was
    wrong."""

    causes: tuple[Likely, ...]
    harmless: bool = False
