"""Prints what is said of the corpus' whole logs and small faulty inputs against what is true of them, a line a miss.

    python benchmarks/corpus_claims.py [--only NAME] [--all]      --all prints right ones too

Of each case: whether the first cause, the state and the exit code are acceptable, whether nothing is said that must not
be, and whether all is said that must. The corpus stands beside the checkout; without it nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from topodiag.api import diagnose
from topodiag.model.errors import TopodiagError

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
OTHER_COMMANDS = ("topo predict", "redact", "scan ", "logs ", "bench ")
"""Commands of cases that `diagnose` does not answer: their words are held by tests of those commands."""


@dataclass(frozen=True)
class Claim:
    """One case. `truth` has the keys of `expected.json`."""

    name: str
    place: Path
    truth: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    name: str
    causes: tuple[str, ...]
    state: str
    text: str
    misses: tuple[str, ...]


def claims() -> Iterator[Claim]:
    for truth in sorted((CORPUS / "whole").glob("*.truth.json")):
        name = truth.name.removesuffix(".truth.json")
        yield Claim(f"whole/{name}", truth.parent / name, json.loads(truth.read_text()))
    for truth in sorted((CORPUS / "faults").glob("*/expected.json")):
        held = json.loads(truth.read_text())
        if not any(word in str(held.get("command", "")) for word in OTHER_COMMANDS):
            yield Claim(f"faults/{truth.parent.name}", truth.parent, held)


def judge(claim: Claim) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        place = _evidence(claim, Path(folder))
        try:
            result = diagnose(str(place))
            document = json.loads(result.to_json())
        except TopodiagError as error:
            return _answer(claim, (), "unknown", str(error))
        verdict = document["verdict"]
        causes = tuple(cause["check"] for cause in verdict["causes"])
        return _answer(claim, causes, verdict["state"], f"{verdict['headline']} {result}")


def _evidence(claim: Claim, folder: Path) -> Path:
    """The evidence where it stands, or as `make.py` of the case writes it."""
    maker = claim.place / "make.py"
    if not maker.exists():
        return claim.place / "in" if (claim.place / "in").exists() else claim.place
    subprocess.run(["cp", "-r", str(claim.place), str(folder / "case")], check=True)
    subprocess.run(
        [sys.executable, str(folder / "case" / "make.py"), str(claim.place)],
        cwd=folder / "case", capture_output=True, check=False,
    )  # fmt: skip
    return folder / "case" / "in"


def _answer(claim: Claim, causes: tuple[str, ...], state: str, text: str) -> Answer:
    truth, misses = claim.truth, []
    first = truth.get("first")
    if first is not None and (causes[0] not in first if causes and first else bool(causes) and not first):
        misses.append(f"first {causes[0]}, wanted {'|'.join(first) or 'none'}")
    elif first and not causes:
        misses.append(f"no cause, wanted {'|'.join(first)}")
    states = truth.get("state") or []
    if states and state not in ([states] if isinstance(states, str) else states):
        misses.append(f"state {state}, wanted {states if isinstance(states, str) else '|'.join(states)}")
    if state in truth.get("must_not_state", ()):
        misses.append(f"state {state} must not be")
    misses += [f"{check} must not be a cause" for check in truth.get("must_not", ()) if check in causes]
    plain = re.sub(r"\s+", " ", text)
    misses += [f"says {word!r}" for word in truth.get("must_not_say", ()) if word.lower() in plain.lower()]
    misses += [f"lacks {word!r}" for word in truth.get("must_say", ()) if word.lower() not in plain.lower()]
    return Answer(claim.name, causes, state, plain, tuple(misses))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="beginning of a name, such as whole/ or faults/torn")
    parser.add_argument("--all", action="store_true", help="print right ones too")
    options = parser.parse_args()
    chosen = [claim for claim in claims() if claim.name.startswith(options.only)]
    if not chosen:
        print("the corpus does not stand beside this checkout, or holds no such case")
        return 2
    with multiprocessing.Pool() as pool:
        answers = pool.map(judge, chosen, chunksize=4)
    right = Counter(answer.name.partition("/")[0] for answer in answers if not answer.misses)
    for answer in answers:
        if answer.misses or options.all:
            mark = "miss" if answer.misses else "ok  "
            print(f"{mark}  {answer.name}: {answer.state} {' '.join(answer.causes) or '-'}; {'; '.join(answer.misses)}")
    for part, count in Counter(claim.name.partition("/")[0] for claim in chosen).items():
        print(f"{part}: {right[part]} of {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
