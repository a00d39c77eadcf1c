"""Prints how often the words of a text alone name its cause, for texts that the table of words did not learn from.

    python benchmarks/likeness.py [--all]      needs scikit-learn: pip install -e '.[learn]'; --all prints each miss

The texts of fixtures/field are parted into blocks of neighbouring numbers (those of one round of gathering stand
together); each block is judged by a table that learned from all the others and from fixtures/excerpts. Half of the
ordinary texts are learned from, the other half is judged.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from learn_likeness import FOLDERS, excerpts, field_texts, learn, ordinary

from topodiag.evidence.likeness.table import HARMLESS, ORDINARY

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "field"
BLOCK = 50


def _block(name: str) -> int:
    """The block of a text by the number before its first dash."""
    return int(name.partition("-")[0]) // BLOCK


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--ordinary", type=Path, nargs="+", default=FOLDERS)
    given = parser.parse_args()
    texts, written, others = field_texts(), excerpts(), ordinary(given.ordinary)
    blocks = sorted({_block(each.name) for each in texts})
    faulty = first = three = healthy = known = 0
    false = 0
    for block in blocks:
        judged = [each for each in texts if _block(each.name) == block]
        rest = [each for each in texts if _block(each.name) != block]
        table = learn([*rest, *written], others[::2])
        for each in judged:
            scores = table.scores(each.words)
            best = sorted(scores, key=lambda name: -scores[name])
            if each.classes == (HARMLESS,):
                healthy += 1
                known += best[:1] == [HARMLESS]
                continue
            causes = [name for name in best if name not in (HARMLESS, ORDINARY)][:3]
            faulty += 1
            first += bool(causes) and causes[0] in each.classes
            three += not set(causes).isdisjoint(each.classes)
            held = json.loads((FOLDER / f"{each.name}.json").read_text())
            false += bool(causes) and causes[0] in held.get("must_not", ())
            if given.all and not (causes and causes[0] in each.classes):
                print(f"  {each.name:48} {' '.join(causes):24} wanted {' '.join(each.classes)}")
    last = learn([*texts, *written], others[::2])
    taken = sum(max(s, key=s.__getitem__) != ORDINARY for each in others[1::2] if (s := last.scores(each.words)))
    for what, count, of in (
        ("cause first by words alone", first, faulty),
        ("cause among the first three", three, faulty),
        ("first is false by the case's own list", false, faulty),
        ("known as nothing wrong", known, healthy),
        ("ordinary texts taken for trouble", taken, len(others[1::2])),
    ):
        print(f"{what:40} {count:4} of {of:4}  {count / of:6.1%}")


if __name__ == "__main__":
    main()
