"""Ranks that printed one line less than all others when the job was ended from outside."""

from pathlib import Path

import pytest

from tests import program
from tests.tables import examples
from topodiag.app.case.behind import ranks_behind

STEPS = ["running step 1/2", "running step 2/2", "COMPLETE!"]


def _said(rank: int, *words: str) -> list[str]:
    return [f"{rank}: RANK {rank}: {line}" for line in words]


def _all(words: str, ranks: int = 8) -> list[str]:
    return [line for rank in range(ranks) for line in _said(rank, words)]


TRIAL = [line for words in STEPS for line in _all(words)]
LIMIT = "0: slurmstepd: error: *** STEP 88.0 ON n1 CANCELLED AT 2026-07-21T09:14:02 DUE TO TIME LIMIT ***"
BEHIND = [line for line in _all(STEPS[0]) if not line.startswith(("0:", "5:"))]


@pytest.mark.parametrize(
    ("lines", "ranks", "lacks"),
    [
        ([*TRIAL, *BEHIND], (0, 5), "RANK 0: running step 1/2"),
        ([*TRIAL, *BEHIND, LIMIT], (0, 5), "RANK 0: running step 1/2"),
        ([*TRIAL, *_all("step 7"), *_all("step 8", 7)], (7,), "RANK 7: step 8"),
        ([*TRIAL, *_all(STEPS[0])], (), ""),
        ([*TRIAL, *BEHIND[:3]], (), ""),
        ([*TRIAL, *_all(STEPS[0]), *_all(STEPS[1]), *_said(3, STEPS[2])], (), ""),
        ([*_all("the model is loaded"), *BEHIND], (), ""),
        ([*TRIAL, *_all("step 7"), *_said(3, "step 8")], (), ""),
        ([*TRIAL, *BEHIND, *_said(5, "out of tokens")], (), ""),
        ([line.partition(": ")[2] for line in (*TRIAL, *BEHIND)], (), ""),
        ([], (), ""),
    ],
    ids=["two of eight", "with the scheduler's own word", "one step behind", "nobody", "while they print",
         "one that is ahead in the same round", "a line that they never print", "one step ahead", "other words",
         "without a label", "nothing"],
)  # fmt: skip
def test_who_lacks_the_last_line_of_all_others(lines: list[str], ranks: tuple[int, ...], lacks: str) -> None:
    assert ranks_behind({line: number for number, line in enumerate(lines, 1)}) == (ranks, lacks)


@examples("end", "is_said")
def test_who_was_behind_is_said_of_a_job_that_was_ended_from_outside(end: str, is_said: bool, tmp_path: Path) -> None:
    (tmp_path / "job.out").write_text("\n".join([*TRIAL, *BEHIND, end, ""]), encoding="utf-8")
    done = program.run("diagnose", "job.out", "--width", "250", cwd=tmp_path)
    assert ("ranks 0, 5 had not printed 'RANK 0: running step 1/2', which all others had" in done.stdout) is is_said
