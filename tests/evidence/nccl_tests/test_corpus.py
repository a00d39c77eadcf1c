"""nccl-tests output from public threads and repositories: rows, ranks and facts against what their pages say.

Files are judged by counting rows with a pattern of its own; the second line of each says what was counted when it was
collected. `pytest -s` prints the agreement.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from topodiag.evidence.nccl_tests import read_runs
from topodiag.model.bench import BenchRun

CORPUS = Path(__file__).resolve().parents[3].parent / "shared" / "corpus"
FILES = sorted((CORPUS / "nccl_tests").glob("*.txt")) if (CORPUS / "nccl_tests").is_dir() else []
CASES = sorted((CORPUS / "cases").glob("*.json")) if (CORPUS / "cases").is_dir() else []

pytestmark = pytest.mark.skipif(not FILES, reason=f"the corpus is not here: {CORPUS / 'nccl_tests'}")

_ROW = re.compile(r"\d+[ \t]+\d+[ \t]+(?:float|double|half|u?int8|u?int32|u?int64|bfloat16|f8e\w+|char|int)[ \t].*\d")
_STATED = re.compile(r"ranks (\d+); rows (\d+); style (\w+); collective (\S+)")
_NAMES = {"allgather": "all_gather", "allreduce": "all_reduce", "all2all": "alltoall", "reduce": "reduce"}
LISTED_RANKS_OF_LOG_LINES = {"071.txt": 2, "075.txt": 2, "072.txt": 1, "078.txt": 1}
"""Where `ranks` counted lines of NCCL's log as well, or the tables are those of builds without MPI."""
SHORTENED = {"042.txt": 1440, "066.txt": 16, "067.txt": 16}
"""Device lists of which most lines were left out: the last rank tells."""


def _runs(path: Path) -> tuple[BenchRun, ...]:
    return read_runs(path.read_bytes(), str(path))[0]


def _report(title: str, lines: list[str]) -> None:
    sys.stdout.write("\n".join([f"\n{title}", *("  " + line for line in lines), ""]))


def test_every_row_of_every_file_is_read() -> None:
    lines, wrong = [], []
    for path in FILES:
        text = path.read_text(errors="replace")
        there = sum(bool(_ROW.search(line)) for line in text.splitlines())
        read = sum(len(run.rows) for run in _runs(path))
        stated = _STATED.search(text)
        lines.append(f"{path.name}: rows {read}, in the text {there}, stated {stated[2] if stated else '-'}")
        if read != there or (stated and read < int(stated[2])):
            wrong.append(lines[-1])
    _report(f"rows: {len(FILES) - len(wrong)} of {len(FILES)} files agree", lines)
    assert not wrong


def test_ranks_are_those_of_the_device_list_or_of_the_bandwidths() -> None:
    lines, wrong, inferred = [], [], 0
    for path in FILES:
        stated = _STATED.search(path.read_text(errors="replace"))
        if stated is None:
            continue
        expected = LISTED_RANKS_OF_LOG_LINES.get(path.name) or SHORTENED.get(path.name) or int(stated[1])
        for run in _runs(path):
            if not expected:
                inferred += run.nranks is not None
                lines.append(f"{path.name}: no device list; {run.nranks} by {run.nranks_why or 'nothing'}")
            elif run.nranks != expected:
                wrong.append(f"{path.name}: {run.nranks} by {run.nranks_why}, expected {expected}")
    _report(f"ranks: {len(wrong)} disagree; {inferred} known from bandwidths alone", lines)
    assert not wrong


def test_the_collective_is_never_another_than_the_pages() -> None:
    said, wrong, unknown = 0, [], []
    for path in FILES:
        stated = _STATED.search(path.read_text(errors="replace"))
        name = _NAMES.get(stated[4], "") if stated else ""
        for run in _runs(path) if name else ():
            said += run.collective == name
            if run.collective not in {name, ""}:
                wrong.append(f"{path.name}: {run.collective}, the page says {name}")
            elif not run.collective:
                unknown.append(path.name)
    _report(f"collective: {said} agree, {len(set(unknown))} files not known from the columns", sorted(set(unknown)))
    assert not wrong


def _fact(name: str, value: Any, runs: tuple[BenchRun, ...]) -> bool | None:
    """Whether the runs say the same; None for a fact that is none of theirs."""
    rows = [row for run in runs for row in run.rows]
    bus = [t.busbw_gbs for row in rows for t in (row.out_of_place, row.in_place) if t.busbw_gbs is not None]
    names = [device.name for run in runs for device in run.devices]
    seen: dict[str, Any] = {
        "nranks": lambda: all(run.nranks == value for run in runs),
        "ngpus": lambda: all(run.nranks == value for run in runs),
        "rows": lambda: len(rows) == value,
        "collective": lambda: all(run.collective == value for run in runs),
        "gpu_model": lambda: value in names,
        "busbw": lambda: any(abs(each - value) < 0.06 for each in bus),
        "busbw_max": lambda: abs(max(bus) - value) < 1,
        "busbw_inplace": lambda: any(row.in_place.busbw_gbs == value for row in rows),
        "busbw_pascal": lambda: value in bus,
        "avg": lambda: any(run.average_gbs == value for run in runs),
        "avg_busbw": lambda: any(run.average_gbs == value for run in runs),
        "nccl": lambda: any(value.startswith(run.nccl) and run.nccl for run in runs),
        "nccl_code": lambda: any(_code(run.nccl) == value for run in runs),
        "size": lambda: any(row.size == value for row in rows),
        "nthread": lambda: any(run.parameters.get("nThread") == str(value) for run in runs),
        "file": lambda: any(value in error for run in runs for error in run.errors),
        "error": lambda: any(value in error for run in runs for error in run.errors),
    }
    return seen[name]() if name in seen else None


def _code(version: str) -> int:
    major, minor, patch = (int(part) for part in version.split("."))
    return major * 10000 + minor * 100 + patch


def test_facts_of_the_cases_are_recovered() -> None:
    lines, wrong, agreed = [], [], 0
    for path in CASES:
        case = json.loads(path.read_text())
        texts = [piece["text"] for piece in case.get("inputs") or [] if piece.get("kind") == "nccl_tests"]
        if not texts:
            continue
        runs = read_runs("\n".join(texts).encode(), path.name)[0]
        for name, value in case["facts"].items():
            same = _fact(name, value, runs)
            agreed += same is True
            lines.append(f"{path.stem} {name} = {value}: {'not of this output' if same is None else same}")
            wrong += [lines[-1]] if same is False else []
    _report(f"facts: {agreed} agree, {len(wrong)} do not", lines)
    assert not wrong


def test_no_line_of_nccl_tests_itself_is_left_unread() -> None:
    code = re.compile(r"^#(?! http| prov).*[a-z]|busbw|^\s*\d+\s+\d+\s+\w+\s")
    left = [
        f"{path.name}:{line.line}: {line.text}"
        for path in FILES
        for line in read_runs(path.read_bytes(), path.name)[1]
        if code.search(line.text)
    ]
    assert not left


def test_every_row_between_lines_of_a_log_is_read() -> None:
    begins = re.compile(
        r"(?:^|[>\]:] ?)\s*\d+[ \t]+\d+[ \t]+(?:float|double|half|u?int\d+|bfloat16)[ \t]+(?:sum|none|prod|max|min)",
        re.M,
    )
    lines, wrong = [], []
    for path in sorted((CORPUS / "logs").glob("*.txt")):
        text = path.read_text(errors="replace")
        there = len(begins.findall(text))
        runs = _runs(path) if there else ()
        if there:
            cut = sum(row.cut for run in runs for row in run.rows)
            lines.append(
                f"{path.name}: {len(runs)} runs, {sum(len(run.rows) for run in runs)} rows of {there}, {cut} cut"
            )
            wrong += [lines[-1]] if sum(len(run.rows) for run in runs) != there else []
    _report(f"rows in logs: {len(lines) - len(wrong)} of {len(lines)} files agree", lines)
    assert not wrong
