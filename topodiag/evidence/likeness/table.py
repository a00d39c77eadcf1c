"""The table of words by cause, and what it says of a text.

`words.tsv` was learned by tools/learn_likeness.py from the texts under fixtures/field and fixtures/excerpts: one linear
separator for each cause over the words of a text, weighed by how often they stand in it and how rare they are (tf-idf:
(1 + ln n) * idf, then to length 1). Nothing of a text is kept in it but single words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from topodiag.evidence.likeness.tokens import tokens

FILE = Path(__file__).with_name("words.tsv")
HARMLESS, ORDINARY = "HARMLESS", "ORDINARY"
"""Classes beside the ids of checks: texts in which nothing was wrong, and texts that tell of no machine at all
(handbooks, source, settings of other programs)."""
UNIT = 100
"""Weights stand in the file in hundredths."""


@dataclass(frozen=True, slots=True)
class Word:
    """`idf`, and the weight of the word for each class that it speaks for or against (place in `Table.classes`)."""

    idf: float
    weights: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """`bias` is what speaks for a class before any word is read."""

    classes: tuple[str, ...]
    bias: tuple[float, ...]
    words: Mapping[str, Word]

    def scores(self, text: Iterable[str]) -> dict[str, float]:
        """By class, how far the words of a text speak for it; empty where the table knows none of them."""
        return self.scores_of(self.weighed(text))

    def scores_of(self, shares: Mapping[str, float]) -> dict[str, float]:
        """The same by the shares of the words (`weighed`)."""
        if not shares:
            return {}
        scores = list(self.bias)
        for word, share in shares.items():
            for place, weight in self.words[word].weights:
                scores[place] += share * weight
        return dict(zip(self.classes, scores, strict=True))

    def weighed(self, text: Iterable[str]) -> dict[str, float]:
        """The known words of a text with their share in it (the squares add up to 1)."""
        counts = Counter(word for word in text if word in self.words)
        raw = {word: (1 + math.log(count)) * self.words[word].idf for word, count in counts.items()}
        length = math.sqrt(sum(each * each for each in raw.values()))
        return {word: each / length for word, each in raw.items()}

    def weight(self, word: str, name: str) -> float:
        """What a word says of a class; 0 where the table does not know the word."""
        known = self.words.get(word)
        at = self.classes.index(name)
        return next((weight for place, weight in known.weights if place == at), 0.0) if known else 0.0


@cache
def table() -> Table:
    """The table that topodiag carries."""
    return parsed(FILE.read_text(encoding="utf-8").splitlines())


def parsed(lines: Sequence[str]) -> Table:
    """A table from its lines: comments (`#`), the classes, their bias, then one line for each word."""
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    classes, bias = rows[0][1:], rows[1][1:]
    words = {
        row[0]: Word(int(row[1]) / UNIT, tuple(_pair(each) for each in row[2].split(" ") if each)) for row in rows[2:]
    }
    return Table(tuple(classes), tuple(int(each) / UNIT for each in bias), words)


def _pair(text: str) -> tuple[int, float]:
    place, _, weight = text.partition(":")
    return int(place), int(weight) / UNIT


def written(made: Table) -> list[str]:
    """The lines of a table, without comments; the opposite of `parsed`."""
    rows = [["classes", *made.classes], ["bias", *(str(round(each * UNIT)) for each in made.bias)]]
    for name, word in sorted(made.words.items()):
        pairs = " ".join(f"{place}:{round(weight * UNIT)}" for place, weight in word.weights)
        rows.append([name, str(round(word.idf * UNIT)), pairs])
    return ["\t".join(row) for row in rows]


__all__ = ["HARMLESS", "ORDINARY", "Table", "Word", "parsed", "table", "tokens", "written"]
