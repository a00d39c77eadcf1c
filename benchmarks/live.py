"""Prints how well jobs with a known fault on a real GPU are judged: which cause comes first, and each miss.

    python benchmarks/live.py [--all] [--case NAME]       --all prints right cases too

`fixtures/live/README.md` says how they were made. The files of a folder are judged together.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.field import FIRST, LOUD, draw_line
from topodiag.api import diagnose
from topodiag.model.errors import TopodiagError

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "live"


@dataclass(frozen=True)
class Score:
    """What was said of one job. `ids` are its causes in order, or its findings where it has none; `refused` why
    nobody judged it."""

    name: str
    truth: str
    first: tuple[str, ...]
    ids: tuple[str, ...] = ()
    loud: tuple[str, ...] = ()
    headline: str = ""
    refused: str = ""

    @property
    def right(self) -> bool:
        """The cause comes first; nothing is called faulty where nothing is, or nothing of it can be seen."""
        return bool(self.ids) and self.ids[0] in self.first if self.first else not self.loud

    @property
    def in_three(self) -> bool:
        return not set(self.ids[:FIRST]).isdisjoint(self.first)


def names() -> list[str]:
    return list(tomllib.loads((FOLDER / "truths.toml").read_text()))


def score(name: str) -> Score:
    truth = tomllib.loads((FOLDER / "truths.toml").read_text())[name]
    made = Score(name, truth["truth"], tuple(truth["first"]))
    try:
        said = json.loads(diagnose(str(FOLDER / name)).to_json())
    except TopodiagError as error:
        return Score(name, made.truth, made.first, refused=str(error))
    findings, verdict = said["findings"], said["verdict"]
    return Score(
        name,
        made.truth,
        made.first,
        tuple(each["check"] for each in verdict["causes"]) or tuple(each["id"] for each in findings),
        tuple(each["id"] for each in findings if each["severity"] in LOUD),
        verdict["headline"],
    )


def draw(scores: list[Score], every: bool) -> None:
    for each in scores:
        if every or not each.right:
            wanted = "|".join(each.first) or "nothing"
            print(f"{'ok  ' if each.right else 'miss'}  {each.name}: {each.truth}")
            print(f"      wanted {wanted}, said {' '.join(each.ids) or each.refused or '-'}: {each.headline:.100}")
    faulty = [each for each in scores if each.first]
    quiet = [each for each in scores if not each.first]
    print(f"\n{'jobs':44}{len(scores):5}  ({len(faulty)} with a fault that shows)")
    for what, count, of in (
        ("cause first", sum(each.right for each in faulty), len(faulty)),
        (f"cause among the first {FIRST}", sum(each.in_three for each in faulty), len(faulty)),
        ("nothing found although the fault shows", sum(not each.ids for each in faulty), len(faulty)),
        ("quiet where nothing shows", sum(each.right for each in quiet), len(quiet)),
    ):
        draw_line(what, count, of)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--all", action="store_true")
    asked.add_argument("--case", default="")
    chosen = asked.parse_args()
    draw([score(each) for each in names() if each.startswith(chosen.case)], chosen.all)


if __name__ == "__main__":
    main()
