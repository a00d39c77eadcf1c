"""Learns which words go with which cause, and writes topodiag/evidence/likeness/words.tsv.

    python tools/learn_likeness.py [--ordinary FOLDER...]        needs scikit-learn: pip install -e '.[learn]'

Texts with a known cause are those of fixtures/field and fixtures/excerpts. Ordinary texts, which tell of no machine,
are a sample of the documents and sources of this machine's packages. benchmarks/likeness.py says how well it does on
texts that it did not learn from.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from topodiag.evidence.likeness.table import FILE, HARMLESS, ORDINARY, Table, Word, tokens, written

ROOT = Path(__file__).resolve().parents[1]
ORDINARY_TEXTS, ORDINARY_CHARS = 900, 20_000
FOLDERS = (Path("/usr/share/doc"), Path("/etc"), Path("/usr/share/perl"), Path(sysconfig.get_paths()["purelib"]))
LEAST_TEXTS = 3
"""A word of one or two texts says little of the next one, and most pairs are such."""
LEAST_WEIGHT = 0.05
"""Weights below say little and are most of the file."""
PENALTY = 1.0


@dataclass(frozen=True)
class Text:
    """A text and the classes under which it may be named."""

    name: str
    words: tuple[str, ...]
    classes: tuple[str, ...]


def field_texts() -> list[Text]:
    made = []
    for path in sorted((ROOT / "fixtures" / "field").glob("*.json")):
        held = json.loads(path.read_text())
        whole = "\n".join(each["text"] for each in held["inputs"])
        made.append(Text(path.stem, tuple(tokens(whole)), tuple(held["first"]) or (HARMLESS,)))
    return made


def excerpts() -> list[Text]:
    return [
        Text(each["name"], tuple(tokens(each["text"])), tuple(each["first"]) or (HARMLESS,))
        for path in sorted((ROOT / "fixtures" / "excerpts").glob("*.json"))
        for each in json.loads(path.read_text())
    ]


def ordinary(folders: Sequence[Path]) -> list[Text]:
    paths = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    random.Random(1).shuffle(paths)
    made: list[Text] = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")[:ORDINARY_CHARS]
        except (OSError, UnicodeError):
            continue
        if len(text) > 200:
            made.append(Text(str(path), tuple(tokens(text)), (ORDINARY,)))
        if len(made) == ORDINARY_TEXTS:
            break
    return made


def learn(known: Sequence[Text], others: Iterable[Text]) -> Table:
    """One separator for each class. A text of several classes counts as a part of each."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC

    vectors = TfidfVectorizer(analyzer=lambda words: words, min_df=LEAST_TEXTS, sublinear_tf=True)
    vectors.fit([each.words for each in known])
    texts = [*known, *others]
    rows = vectors.transform([each.words for each in texts])
    places = [at for at, each in enumerate(texts) for _ in each.classes]
    named = [name for each in texts for name in each.classes]
    shares = np.array([1 / len(each.classes) for each in texts for _ in each.classes])
    fitted = LinearSVC(C=PENALTY).fit(rows[places], named, sample_weight=shares)
    words = {}
    for word, column in vectors.vocabulary_.items():
        weights = fitted.coef_[:, column]
        kept = tuple((int(at), round(float(weights[at]), 2)) for at in np.flatnonzero(abs(weights) >= LEAST_WEIGHT))
        words[word] = Word(round(float(vectors.idf_[column]), 2), kept)
    return Table(tuple(fitted.classes_), tuple(round(float(each), 2) for each in fitted.intercept_), words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ordinary", type=Path, nargs="+", default=FOLDERS)
    given = parser.parse_args()
    known = [*field_texts(), *excerpts()]
    others = ordinary(given.ordinary)
    made = learn(known, others)
    head = f"# Written by tools/learn_likeness.py from {len(known)} texts with a known cause and {len(others)} others."
    FILE.write_text("\n".join([head, "# word, idf in hundredths, class:weight in hundredths", *written(made)]) + "\n")
    print(
        f"{FILE.relative_to(ROOT)}: {len(made.words)} words, {len(made.classes)} classes, {FILE.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main()
