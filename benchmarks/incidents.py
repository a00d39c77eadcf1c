"""Prints how well incidents are judged: which cause comes first, which are missed, and what is said that is not true.

    python benchmarks/incidents.py [FOLDER...] [--all] [--case NAME]

Default: fixtures/incidents; --all prints right ones too. An incident is a folder with the evidence of one event and
`truth.json`; `fixtures/incidents/README.md` describes its form, which is that of the incidents of the corpus. The truth
itself is never handed over.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import topodiag
from topodiag.model.errors import TopodiagError
from topodiag.model.finding import Finding, Severity
from topodiag.model.verdict import Price, State, Verdict
from topodiag.verdict.pricing.agreement import TOLERANCE

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "incidents"
_CHECK = re.compile(r"[A-Z][A-Z0-9]{2}[0-9]{3}\Z")
_LATER = {"gpu-off-the-bus": "GPU001"}
"""The check of a root cause that had none when the truth was written."""
_STRENGTH = ("unknown", "hypothesis", "likely", "established")


@dataclass(frozen=True)
class Root:
    """A cause of the truth: the ids of which any one counts, and where it is. `gpus` and `ranks` may be empty."""

    checks: frozenset[str]
    hosts: frozenset[str]
    gpus: frozenset[str]
    ranks: frozenset[int]
    what: str


@dataclass(frozen=True)
class Incident:
    """One folder with its truth."""

    path: Path
    roots: tuple[Root, ...]
    consequences: frozenset[str]
    unrelated: frozenset[str]
    must_not: frozenset[str]
    identity: Mapping[str, str | None]
    status_at_most: str
    truth: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def evidence(self) -> list[str]:
        """All of the folder but the truth."""
        return [str(path) for path in sorted(self.path.iterdir()) if path.name != "truth.json"]


@dataclass(frozen=True)
class Score:
    """What was said of an incident. `causes` are the ids of the causes of the verdict, the dearest first."""

    incident: Incident
    causes: tuple[str, ...]
    misses: tuple[str, ...]
    seconds: float
    compared: tuple[Price, ...] = ()
    """What was measured beside what its causes predict; causes that share a measurement are compared as one."""

    @property
    def right(self) -> bool:
        return not self.misses


def incidents(folder: Path = FOLDER) -> list[Incident]:
    return [_incident(path.parent) for path in sorted(folder.glob("*/truth.json"))]


def _incident(path: Path) -> Incident:
    truth: dict[str, Any] = json.loads((path / "truth.json").read_text())
    return Incident(
        path,
        tuple(
            Root(
                frozenset(check or _LATER.get(path.name, "") for check in root["check_ids"]) - {""},
                frozenset(short(host) for host in root["hosts"]),
                frozenset(f"GPU{gpu}" for gpu in root["gpus"]),
                frozenset(root["ranks"]),
                root["what"],
            )
            for root in truth["root_causes"]
        ),
        frozenset(check for each in truth["consequences"] for check in each["check_ids"] if check),
        frozenset(truth["unrelated"]),
        frozenset(claim for claim in truth["must_not"] if _CHECK.match(claim)),
        truth["identity"],
        truth.get("status_at_most", "established"),
        truth,
    )


def short(host: str) -> str:
    return host.partition(".")[0].lower()


def score(incident: Incident) -> Score:
    began = process_time()
    try:
        verdict = topodiag.diagnose(incident.evidence).result.verdict or Verdict()
    except TopodiagError as error:
        return Score(incident, (), (f"refused: {str(error).splitlines()[0]}",), process_time() - began)
    causes = tuple(each.finding for each in verdict.causes)
    misses = (*_missed(incident, causes), *_false(incident, causes), *_too_sure(incident, verdict))
    if not incident.roots and verdict.state not in (State.HEALTHY, State.AT_RISK):
        misses = (*misses, f"{verdict.state.value} in a healthy one")
    prices = {each.price.says: each.price for each in verdict.causes if each.price.measured and each.price.predicted}
    ids = tuple(each.id for each in causes)
    return Score(incident, ids, misses, process_time() - began, tuple(prices.values()))


def _missed(incident: Incident, causes: Sequence[Finding]) -> Iterator[str]:
    """Roots that are not told, or not as a cause, or at the wrong place; and the dearest that does not come first."""
    if not incident.roots:
        return
    first = incident.roots[0]
    if not causes:
        yield f"silent, and it is {'|'.join(sorted(first.checks))}"
        return
    if causes[0].id not in first.checks:
        yield f"first is {causes[0].id}, and it is {'|'.join(sorted(first.checks))}"
    for root in incident.roots:
        named = [each for each in causes if each.id in root.checks]
        if not named:
            yield f"no cause {'|'.join(sorted(root.checks))}: {root.what}"
        elif not any(_is_there(root, each) for each in named):
            where = named[0].where
            yield f"{named[0].id} at {' '.join((*where.nodes, *where.gpus)) or where.ranks}, and it is {root.what}"


def _is_there(root: Root, finding: Finding) -> bool:
    """Whether a finding is about the part that the truth names. What the finding leaves open does not speak against."""
    where = finding.where
    nodes = {short(node) for node in where.nodes}
    if root.hosts and nodes and not nodes & root.hosts:
        return bool(set(where.ranks) & root.ranks)
    named = {gpu.split()[0] for gpu in where.gpus if gpu.startswith("GPU")}
    return not (root.gpus and named) or bool(named & root.gpus)


def _false(incident: Incident, causes: Sequence[Finding]) -> Iterator[str]:
    """What is told as a cause and is none: a consequence beside its cause, a claim that is not true, a stray error."""
    roots = frozenset(check for root in incident.roots for check in root.checks)
    for each in dict.fromkeys((cause.id, cause.severity) for cause in causes):
        check, severity = each
        if check in roots or check in incident.unrelated:
            continue
        if not incident.roots:
            if severity is Severity.ERROR or check in incident.must_not:
                yield f"{check} in a healthy one"
        elif check in incident.must_not:
            yield f"{check} is told as a cause and is none"
        elif check in incident.consequences:
            yield f"{check} beside the cause it follows from"
        elif severity is Severity.ERROR:
            yield f"{check} is told as an error and is none"


def _too_sure(incident: Incident, verdict: Verdict) -> Iterator[str]:
    """A status that the evidence does not bear."""
    causes = verdict.causes
    if incident.roots and causes and causes[0].finding.id in incident.roots[0].checks:
        said = causes[0].status.value
        if _STRENGTH.index(said) > _STRENGTH.index(incident.status_at_most):
            yield f"{causes[0].finding.id} is called {said}, the evidence allows {incident.status_at_most}"


def draw(scores: Sequence[Score], every: bool) -> None:
    for each in scores:
        if every or not each.right:
            wanted = " ".join("|".join(sorted(root.checks)) for root in each.incident.roots) or "healthy"
            head = f"{'ok  ' if each.right else 'miss'}  {each.incident.name:34} wanted {wanted:22}"
            print(head, "said", " ".join(each.causes) or "-")
            for miss in each.misses:
                print(f"      {miss}")
    faulty = [each for each in scores if each.incident.roots]
    healthy = [each for each in scores if not each.incident.roots]
    print()
    print(f"{'incidents':38}{len(scores):4}  ({len(faulty)} with a cause, {len(healthy)} healthy)")
    _line("right in all", sum(each.right for each in scores), len(scores))
    first = [
        each for each in faulty if not any(miss.startswith(("first is", "silent", "refused")) for miss in each.misses)
    ]
    _line("root cause first", len(first), len(faulty))
    of = sum(len(each.incident.roots) for each in faulty)
    _line(
        "root causes found as causes",
        of - sum(miss.startswith(("no cause", "silent", "refused")) for each in faulty for miss in each.misses),
        of,
    )
    false = ("is told as", "beside the cause", "in a healthy one")
    _line(
        "with a false cause",
        sum(any(word in miss for miss in each.misses for word in false) for each in scores),
        len(scores),
    )
    _line("healthy without a false alarm", sum(each.right for each in healthy), len(healthy))
    print(f"{'CPU s':38}{sum(each.seconds for each in scores):6.1f}")
    _draw_prices(scores)


def _draw_prices(scores: Sequence[Score]) -> None:
    """What the causes predict beside what was measured, GB/s; the losses are shares of what is reached without them."""
    rows = [(each.incident.name, price) for each in scores for price in each.compared]
    if not rows:
        return
    print(f"\n{'predicted beside measured':38}{'whole':>7}{'pred.':>7}{'meas.':>7}{'ratio':>7}{'losses':>12}  said")
    near = alike = close = 0
    for name, price in rows:
        assert price.predicted is not None
        assert price.measured is not None
        made, found = price.predicted.value, price.measured.value
        whole = price.all_gone.value if price.all_gone is not None else made
        lost, missing = 1 - made / whole, 1 - found / whole
        near += abs(found / made - 1) <= TOLERANCE
        alike += abs(lost - missing) <= TOLERANCE * missing
        close += abs(lost - missing) <= TOLERANCE
        losses = f"{100 * lost:.0f} / {100 * missing:.0f} %"
        print(f"  {name:36}{whole:7.1f}{made:7.1f}{found:7.1f}{found / made:7.2f}{losses:>12}  {price.agreement.value}")
    _line("bandwidth within 15 %", near, len(rows))
    _line("loss within 15 % of the loss", alike, len(rows))
    _line("loss within 15 points", close, len(rows))


def _line(what: str, count: int, of: int) -> None:
    print(f"{what:38}{count:4} of {of}")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folders", nargs="*", type=Path)
    asked.add_argument("--all", action="store_true", help="print right ones too")
    asked.add_argument("--case", default="", help="incidents whose name begins so")
    chosen = asked.parse_args()
    for folder in chosen.folders or [FOLDER]:
        found = [each for each in incidents(folder) if each.name.startswith(chosen.case)]
        if not found:
            print(f"{folder} holds no incident")
            return 2
        print(f"{folder}\n")
        draw([score(each) for each in found], chosen.all)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
