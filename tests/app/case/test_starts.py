"""Where the first lines of a text stand in it again: a program was started into it once more."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import program
from tests.tables import examples
from topodiag.app.case.starts import Starts, ranks_behind
from topodiag.evidence.signatures.literals import AHEAD, BLOCK, windows

HEAD = ["loading the environment of the job", "the model has 7 billion parameters", "reading the data set"]
BODY = [f"saved shard {n}" for n in range(30)]
WARNED = ["a.py:3: FutureWarning: this goes away", "  warnings.warn(that)", "ok"]
FELL = ["Traceback (most recent call last):", '  File "train.py", line 9, in main', "    fetch(url)", "KeyError: 'x'"]
MADE = [f"compiled kernel {n}" for n in range(30)]
RANK = ["loading the environment", "reading the data set"]
"""What each rank of a job prints when it comes up, without its number."""
TABLE = ["+------------+------------+", "| GPU  Name  | Persistence-M  |", "| 0  NVIDIA H100  | On  |"]


NAMED = {
    "HEAD": HEAD, "BODY": BODY, "WARNED": WARNED, "FELL": FELL, "TABLE": TABLE, "MADE": MADE, "RANK": RANK,
    "TWO": HEAD[:2], "ONE": HEAD[:1], "THREE OF THE BODY": BODY[:3], "TWENTY": HEAD[:2] * 10,
    "ENDED": ["Fatal Python error: Segmentation fault"],
    "LOST": ["ERROR: Lost atoms: original 4000 current 3999 (src/thermo.cpp:494)"],
}  # fmt: skip
"""Parts of a text by the names that rows have for them."""


def _text(parts: list[str]) -> str:
    return "\n".join([*(line for part in parts for line in NAMED.get(part, [part])), ""])


def _last(text: bytes, size: int) -> int:
    starts = Starts()
    own = list(windows(text[at : at + size] for at in range(0, len(text), size)))
    assert list(starts.seen(own)) == own
    return starts.last([21])


@examples("lines", "last")
def test_the_last_place_of_a_head_that_stands_again(lines: list[str], last: int) -> None:
    assert _last(_text(lines).encode(), 1 << 16) == last


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 200))
def test_a_head_is_found_at_the_edge_of_a_window(short: int) -> None:
    filled = "\n".join([*HEAD, ""]).ljust(BLOCK - AHEAD - short, "\n")
    text = filled + "\n".join([*HEAD, *BODY, ""]).ljust(BLOCK, "\n")
    assert _last(text.encode(), BLOCK) == filled.count("\n") + 1


def test_an_end_above_a_later_start_is_of_an_earlier_run(tmp_path: Path) -> None:
    text = "\n".join([*HEAD, *BODY, *FELL, *HEAD, *BODY, ""])
    (tmp_path / "train.log").write_text(text, encoding="utf-8")
    done = program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path)
    assert done.stdout.startswith("? UNKNOWN")
    (tmp_path / "train.log").write_text(text + "\n".join([*FELL, ""]), encoding="utf-8")
    done = program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path)
    assert "train.log:74" in done.stdout
    assert done.stdout.startswith("✖ FAILED")


@examples("launches", "state")
def test_ranks_of_one_launch_come_up_one_after_the_other(launches: list[list[str]], state: str, tmp_path: Path) -> None:
    lines = [line for launch in launches for line in (*launch, "MADE")]
    (tmp_path / "train.log").write_text(_text(lines), encoding="utf-8")
    assert state in program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path).stdout.split("next")[0]


# --- ranks that printed one line less than all others when the job was ended from outside ---------------------

STEPS = ["running step 1/2", "running step 2/2", "COMPLETE!"]


def _said(rank: int, *words: str) -> list[str]:
    return [f"{rank}: RANK {rank}: {line}" for line in words]


def _all(words: str, ranks: int = 8) -> list[str]:
    return [line for rank in range(ranks) for line in _said(rank, words)]


TRIAL = [line for words in STEPS for line in _all(words)]
LIMIT = "0: slurmstepd: error: *** STEP 88.0 ON n1 CANCELLED AT 2026-07-21T09:14:02 DUE TO TIME LIMIT ***"
BEHIND = [line for line in _all(STEPS[0]) if not line.startswith(("0:", "5:"))]


SAID = {
    "TRIAL": TRIAL, "BEHIND": BEHIND, "THREE": BEHIND[:3], "LIMIT": [LIMIT], "LOADED": _all("the model is loaded"),
    "STEP 1": _all(STEPS[0]), "STEP 2": _all(STEPS[1]), "STEP 7": _all("step 7"), "STEP 8 OF SEVEN": _all("step 8", 7),
    "BARE": [line.partition(": ")[2] for line in (*TRIAL, *BEHIND)],
}  # fmt: skip


@examples("parts", "ranks", "lacks")
def test_who_lacks_the_last_line_of_all_others(parts: list[str], ranks: tuple[int, ...], lacks: str) -> None:
    """A part of the text is one of SAID or a line."""
    lines = [line for part in parts for line in SAID.get(part, [part])]
    assert ranks_behind({line: number for number, line in enumerate(lines, 1)}) == (ranks, lacks)


@examples("end", "is_said")
def test_who_was_behind_is_said_of_a_job_that_was_ended_from_outside(end: str, is_said: bool, tmp_path: Path) -> None:
    (tmp_path / "job.out").write_text("\n".join([*TRIAL, *BEHIND, end, ""]), encoding="utf-8")
    done = program.run("diagnose", "job.out", "--width", "250", cwd=tmp_path)
    assert ("ranks 0, 5 had not printed 'RANK 0: running step 1/2', which all others had" in done.stdout) is is_said
