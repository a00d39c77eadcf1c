"""Ranks that printed one line less than all others when the job was ended from outside."""

from pathlib import Path

from tests import program
from tests.tables import examples
from topodiag.app.case.starts import ranks_behind

STEPS = ["running step 1/2", "running step 2/2", "COMPLETE!"]


def _said(rank: int, *words: str) -> list[str]:
    return [f"{rank}: RANK {rank}: {line}" for line in words]


def _all(words: str, ranks: int = 8) -> list[str]:
    return [line for rank in range(ranks) for line in _said(rank, words)]


TRIAL = [line for words in STEPS for line in _all(words)]
LIMIT = "0: slurmstepd: error: *** STEP 88.0 ON n1 CANCELLED AT 2026-07-21T09:14:02 DUE TO TIME LIMIT ***"
BEHIND = [line for line in _all(STEPS[0]) if not line.startswith(("0:", "5:"))]


NAMED = {
    "TRIAL": TRIAL, "BEHIND": BEHIND, "THREE": BEHIND[:3], "LIMIT": [LIMIT], "LOADED": _all("the model is loaded"),
    "STEP 1": _all(STEPS[0]), "STEP 2": _all(STEPS[1]), "STEP 7": _all("step 7"), "STEP 8 OF SEVEN": _all("step 8", 7),
    "BARE": [line.partition(": ")[2] for line in (*TRIAL, *BEHIND)],
}  # fmt: skip


@examples("parts", "ranks", "lacks")
def test_who_lacks_the_last_line_of_all_others(parts: list[str], ranks: tuple[int, ...], lacks: str) -> None:
    """A part of the text is one of NAMED or a line."""
    lines = [line for part in parts for line in NAMED.get(part, [part])]
    assert ranks_behind({line: number for number, line in enumerate(lines, 1)}) == (ranks, lacks)


@examples("end", "is_said")
def test_who_was_behind_is_said_of_a_job_that_was_ended_from_outside(end: str, is_said: bool, tmp_path: Path) -> None:
    (tmp_path / "job.out").write_text("\n".join([*TRIAL, *BEHIND, end, ""]), encoding="utf-8")
    done = program.run("diagnose", "job.out", "--width", "250", cwd=tmp_path)
    assert ("ranks 0, 5 had not printed 'RANK 0: running step 1/2', which all others had" in done.stdout) is is_said
