"""Prints how well texts from the field are judged: what they state, which cause comes first, and each miss.

    python benchmarks/field.py [FOLDER] [--all] [--case NNN]      default: fixtures/field; --all prints right cases too

A case is a text that shows its cause, and what the thread it comes from settled on. `fixtures/field/README.md`
describes its form. All inputs of a case are judged together, as `topodiag diagnose` would judge a folder with them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from topodiag.api import diagnose
from topodiag.evidence.kinds import Kind
from topodiag.model.errors import TopodiagError
from topodiag.report.documents.from_model import plain
from topodiag.report.formats.json import document

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "field"
LOUD = ("error", "warning")
"""Severities that call a machine or a job faulty."""
FIRST = 3


@dataclass(frozen=True)
class Case:
    """One text of the field, and what is true of it."""

    name: str
    address: str
    cause: int | None
    inputs: tuple[tuple[str, str], ...]
    facts: Mapping[str, Any]
    first: tuple[str, ...]
    also: tuple[str, ...]
    must_not: tuple[str, ...]
    folder: Path = FOLDER

    @property
    def healthy(self) -> bool:
        return not self.first


@dataclass(frozen=True)
class Score:
    """What the program said of a case. `ids` are its findings in order, `loud` those that call something faulty.
    `refused` says why nobody judged the text."""

    case: Case
    ids: tuple[str, ...]
    loud: tuple[str, ...]
    stated: int
    read: int
    unread: tuple[str, ...]
    refused: str

    @property
    def is_first(self) -> bool:
        if self.case.healthy:
            return not self.refused and not self.loud
        return bool(self.ids) and self.ids[0] in self.case.first

    @property
    def in_three(self) -> bool:
        if self.case.healthy:
            return self.is_first
        return bool(set(self.ids[:FIRST]) & set(self.case.first))

    @property
    def silent(self) -> bool:
        """No finding at all where a fault stands in the text."""
        return not self.case.healthy and not self.ids

    @property
    def false(self) -> tuple[str, ...]:
        """Findings that the case says are not true of it."""
        wrong = [each for each in self.ids if each in self.case.must_not]
        if "*" in self.case.must_not:
            wrong += [each for each in self.loud if each not in {*self.case.first, *self.case.also}]
        return tuple(dict.fromkeys(wrong))

    @property
    def right(self) -> bool:
        return self.is_first and not self.false and self.stated == self.read


def cases(folder: Path = FOLDER) -> list[Case]:
    return [_case(path) for path in sorted(folder.glob("*.json"))]


def _case(path: Path) -> Case:
    held = json.loads(path.read_text())
    return Case(
        name=path.stem,
        address=held["address"],
        cause=held["cause"],
        inputs=tuple((each["name"], each["text"]) for each in held["inputs"]),
        facts=held.get("facts") or {},
        first=tuple(held["first"]),
        also=tuple(held.get("also", ())),
        must_not=tuple(held.get("must_not", ())),
        folder=path.parent,
    )


def score(case: Case) -> Score:
    """Judge the inputs of a case, which stand in a folder of their own."""
    with tempfile.TemporaryDirectory() as place:
        for name, text in case.inputs:
            path = Path(place, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        stated = list(leaves(case.facts))
        try:
            said = plain(document(diagnose(place).result))
        except TopodiagError as error:
            return Score(case, (), (), len(stated), 0, tuple(way for way, _ in stated), str(error))
    findings = said["findings"]
    judged = any(each["kind"] != Kind.TEXT.value for each in said["inputs"])
    unread = tuple(missing(case.facts, said["facts"]))
    return Score(
        case,
        tuple(each["id"] for each in findings),
        tuple(each["id"] for each in findings if each["severity"] in LOUD),
        len(stated),
        len(stated) - len(unread),
        unread,
        "" if judged else "is of no kind that topodiag knows",
    )


def leaves(wanted: object, way: str = "") -> Iterator[tuple[str, object]]:
    """Each single fact of a fragment, with the way to it."""
    if isinstance(wanted, Mapping):
        for key, value in wanted.items():
            yield from leaves(value, f"{way}.{key}" if way else str(key))
    elif isinstance(wanted, list):
        for index, value in enumerate(wanted):
            yield from leaves(value, f"{way}[{index}]")
    else:
        yield way, wanted


def missing(wanted: object, said: object, way: str = "") -> list[str]:
    """The facts of a fragment that a document lacks. A member of a list is compared with the one that lacks least."""
    if isinstance(wanted, Mapping):
        held = said if isinstance(said, Mapping) else {}
        return [
            lost
            for key, value in wanted.items()
            for lost in missing(value, held.get(key), f"{way}.{key}" if way else str(key))
        ]
    if isinstance(wanted, list):
        return _missing_members(wanted, list(said) if isinstance(said, list) else [], way)
    return [] if _equal(wanted, said) else [f"{way} = {wanted!r}"]


def _missing_members(wanted: Sequence[object], left: list[object], way: str) -> list[str]:
    lost: list[str] = []
    for index, value in enumerate(wanted):
        tried = [(missing(value, each, f"{way}[{index}]"), place) for place, each in enumerate(left)]
        if not tried:
            lost += missing(value, None, f"{way}[{index}]")
            continue
        least, place = min(tried, key=lambda each: (len(each[0]), each[1]))
        if len(least) < len(list(leaves(value))):
            del left[place]
        lost += least
    return lost


def _equal(wanted: object, said: object) -> bool:
    if isinstance(wanted, float) and isinstance(said, (int, float)):
        return abs(wanted - said) <= 0.01 * abs(wanted)
    return wanted == said


def draw(scores: Sequence[Score], every: bool) -> None:
    faulty = [each for each in scores if not each.case.healthy]
    healthy = [each for each in scores if each.case.healthy]
    stated, read = sum(each.stated for each in scores), sum(each.read for each in scores)
    for each in scores:
        if every or not each.right:
            _draw(each)
    print()
    print(f"{'texts':44}{len(scores):5}  ({len(faulty)} with a fault, {len(healthy)} healthy or benign)")
    draw_line("facts that the texts state and that were read", read, stated)
    draw_line("cause first", sum(each.is_first for each in faulty), len(faulty))
    draw_line(f"cause among the first {FIRST}", sum(each.in_three for each in faulty), len(faulty))
    draw_line("healthy texts without a false alarm", sum(each.is_first for each in healthy), len(healthy))
    draw_line("texts with a false statement", sum(bool(each.false) for each in scores), len(scores))
    draw_line("nothing found although the fault is shown", sum(each.silent for each in faulty), len(faulty))
    draw_line("refused as unreadable", sum(bool(each.refused) for each in scores), len(scores))


def _draw(each: Score) -> None:
    case = each.case
    mark = "ok  " if each.right else "miss"
    wanted = "|".join(case.first) or "nothing"
    print(f"{mark}  {case.name:44} cause {case.cause or '-':>2}  wanted {wanted:16} said {' '.join(each.ids) or '-'}")
    if each.false:
        print(f"      false: {' '.join(each.false)}")
    if each.refused:
        print(f"      refused: {each.refused.splitlines()[0]:.140}")
    for lost in each.unread if not each.refused else ():
        print(f"      not read: {lost}")


def draw_line(what: str, count: int, of: int) -> None:
    print(f"{what:44}{count:5} of {of}" + (f"  {100 * count / of:5.1f} %" if of else ""))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    asked.add_argument("--all", action="store_true", help="print right cases too")
    asked.add_argument("--case", default="", help="cases whose name begins so")
    chosen = asked.parse_args()
    found = [each for each in cases(chosen.folder) if each.name.startswith(tuple(chosen.case.split(",")))]
    if not found:
        print(f"{chosen.folder} holds no case")
        return 2
    draw([score(each) for each in found], chosen.all)
    return 0


if __name__ == "__main__":
    sys.exit(main())
