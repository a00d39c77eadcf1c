"""nccl-tests output from public threads and repositories: rows, ranks and facts against what their pages say.

Files are judged by counting rows with a pattern of its own; the second line of each says what was counted when it was
collected.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from topodiag.evidence.nccl_tests import read_file
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
    return read_file(path.read_bytes(), str(path)).runs


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rows_ranks_and_collective_of_a_file_are_those_that_were_counted(path: Path) -> None:
    """Ranks by the list of devices or the bandwidths; a collective that the columns do not tell is none."""
    text, runs = path.read_text(errors="replace"), _runs(path)
    read = sum(len(run.rows) for run in runs)
    assert read == sum(bool(_ROW.search(line)) for line in text.splitlines())
    if (stated := _STATED.search(text)) is not None:
        assert read >= int(stated[2])
        ranks = LISTED_RANKS_OF_LOG_LINES.get(path.name) or SHORTENED.get(path.name) or int(stated[1])
        assert not ranks or {run.nranks for run in runs} <= {ranks}
        name = _NAMES.get(stated[4], "")
        assert not name or {run.collective for run in runs} <= {name, ""}


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
    same: dict[str, bool] = {}
    for path in CASES:
        case = json.loads(path.read_text())
        texts = [piece["text"] for piece in case.get("inputs") or [] if piece.get("kind") == "nccl_tests"]
        runs = read_file("\n".join(texts).encode(), path.name).runs if texts else ()
        for name, value in case["facts"].items() if texts else ():
            said = _fact(name, value, runs)
            same |= {f"{path.stem} {name} = {value}": said} if said is not None else {}
    assert same
    assert [fact for fact, said in same.items() if not said] == []


def test_no_line_of_nccl_tests_itself_is_left_unread() -> None:
    code = re.compile(r"^#(?! http| prov).*[a-z]|busbw|^\s*\d+\s+\d+\s+\w+\s")
    left = [
        f"{path.name}:{line.line}: {line.text}"
        for path in FILES
        for line in read_file(path.read_bytes(), path.name).unread
        if code.search(line.text)
    ]
    assert not left


def test_every_row_between_lines_of_a_log_is_read() -> None:
    begins = re.compile(
        r"(?:^|[>\]:] ?)\s*\d+[ \t]+\d+[ \t]+(?:float|double|half|u?int\d+|bfloat16)[ \t]+(?:sum|none|prod|max|min)",
        re.M,
    )
    for path in sorted((CORPUS / "logs").glob("*.txt")):
        there = len(begins.findall(path.read_text(errors="replace")))
        assert not there or sum(len(run.rows) for run in _runs(path)) == there, path.name
