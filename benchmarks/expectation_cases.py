"""The public cases about bandwidth: the model beside what the threads found (bandwidth_cases.toml)."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from healthy_rows import CORPUS, HERE

from topodiag.evidence.nccl_tests.read import read_file
from topodiag.expect.expect import expected, verdict_of
from topodiag.expect.fit import fit_run
from topodiag.expect.hypotheses import explain
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Hypothesis, Timing

LARGE = 8 << 30
NAMED = 3
"""Causes that a reader looks at."""


def table() -> None:
    """Prints one line per case, and the agreement."""
    cases = tomllib.loads((HERE / "bandwidth_cases.toml").read_text(encoding="utf-8"))["case"]
    print(f"{'case':4} {'measured':>8} {'expected':>8} {'verdict':10} {'thread':8} cause named (likelihood)")
    right = causes = asked = 0
    for case in cases:
        run = _run(case)
        made = expected(run, **_options(case))
        verdict = verdict_of(run, made.expectation, made.why)
        agrees = verdict.word == case["verdict"]
        right += agrees
        said = ""
        if case.get("cause") and verdict.word == "low":
            asked += 1
            found = explain(run, made, verdict, fit=fit_run(run)).causes
            place = _place(found, case["cause"])
            causes += place is not None
            first = f"{found[0].cause} ({found[0].likelihood:.0%})" if found else "none"
            said = f"{first}; /{case['cause']}/ {f'is number {place}' if place else 'is not among the first three'}"
        gbs = f"{verdict.measured_gbs:8.1f}" if verdict.measured_gbs is not None else " " * 8
        want = f"{verdict.expected_gbs:8.1f}" if verdict.expected_gbs is not None else " " * 8
        mark = " " if agrees else "!"
        print(
            f"{case['case']:4} {gbs} {want} {verdict.word:10}{mark}{case['verdict']:8} {said or case.get('note', '')}"
        )
        if not agrees:
            print(f"       {verdict.why}")
    print(f"verdict agrees in {right} of {len(cases)} cases; cause among the first {NAMED} in {causes} of {asked} low")
    low = [case for case in cases if case["verdict"] == "normal"]
    print(f"({len(low)} of the cases are healthy after all)")


def _place(found: tuple[Hypothesis, ...], pattern: str) -> int | None:
    for place, each in enumerate(found[:NAMED], 1):
        if re.search(pattern, each.cause, re.IGNORECASE):
            return place
    return None


def _run(case: dict[str, Any]) -> BenchRun:
    if "input" in case:
        data = json.loads((CORPUS / "cases" / f"{case['case']}.json").read_text(encoding="utf-8"))
        runs = read_file(data["inputs"][case["input"]]["text"].encode(), f"case {case['case']}").runs
        return runs[0]
    ranks, nodes = case["ranks"], case["nodes"]
    devices: tuple[BenchDevice, ...] = ()
    if "gpu" in case:
        each = ranks // nodes
        devices = tuple(BenchDevice(rank, f"node{rank // each}", rank % each, case["gpu"]) for rank in range(ranks))
    row = BenchRow(case.get("size", LARGE), out_of_place=Timing(busbw_gbs=float(case["busbw"])))
    return BenchRun(case.get("collective", "all_reduce"), (row,), devices, ranks, nccl=case.get("version", ""))


def _options(case: dict[str, Any]) -> dict[str, Any]:
    made = {key: case[key] for key in ("system", "env", "network") if key in case}
    if "input" not in case and "gpu" not in case:
        made["nodes"] = case["nodes"]
    if "nics" in case:
        made["nics"] = (case["nics"][0], float(case["nics"][1]))
    return made


if __name__ == "__main__":
    table()
