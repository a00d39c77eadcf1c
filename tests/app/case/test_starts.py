"""Where the first lines of a text stand in it again: a program was started into it once more."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import program
from topodiag.app.case.starts import Starts
from topodiag.evidence.signatures.windows import AHEAD, BLOCK, windows

HEAD = ["loading the environment of the job", "the model has 7 billion parameters", "reading the data set"]
BODY = [f"saved shard {n}" for n in range(30)]
WARNED = ["a.py:3: FutureWarning: this goes away", "  warnings.warn(that)", "ok"]
FELL = ["Traceback (most recent call last):", '  File "train.py", line 9, in main', "    fetch(url)", "KeyError: 'x'"]
TABLE = ["+------------+------------+", "| GPU  Name  | Persistence-M  |", "| 0  NVIDIA H100  | On  |"]


def _last(text: bytes, size: int) -> int:
    starts = Starts()
    own = list(windows(text[at : at + size] for at in range(0, len(text), size)))
    assert list(starts.seen(own)) == own
    return starts.last([21])


@pytest.mark.parametrize(
    ("lines", "last"),
    [
        ([*HEAD, *BODY], 0),
        ([*HEAD, *BODY, *HEAD, "more"], 34),
        ([*HEAD, *BODY, *HEAD, *BODY, *HEAD], 67),
        ([*HEAD, *BODY, HEAD[0], "another line"], 0),
        ([HEAD[0], *BODY[:3], *HEAD, *BODY], 0),
        ([*HEAD[:2] * 10, *BODY, *HEAD[:2], *BODY], 0),
        ([*HEAD, *FELL, *HEAD, *BODY], 8),
        ([*HEAD, *HEAD, *FELL, *HEAD, *BODY], 0),
        ([*WARNED, *BODY, *WARNED], 0),
        ([*TABLE, *BODY, *TABLE], 0),
        (["Mon 10:11:12 on the node gpu-7", HEAD[0], *BODY, "Tue 00:01:02 on the node gpu-7", HEAD[0]], 0),
        (["2026-01-05 10:11:12 on the node", HEAD[0], *BODY, "2026-01-06 00:01:02 on the node", HEAD[0]], 33),
        ([], 0),
    ],
    ids=["once", "twice", "three times", "one line of the two", "among the first lines", "twice among the first lines",
         "below a traceback among the first lines", "twice above a traceback",
         "a warning", "a table",
         "another day by its name", "another time", "nothing"],
)  # fmt: skip
def test_the_last_place_of_a_head_that_stands_again(lines: list[str], last: int) -> None:
    assert _last("\n".join([*lines, ""]).encode(), 1 << 16) == last


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


RANK = ["loading the environment", "reading the data set"]
"""What each rank of a job prints when it comes up, without its number."""
ENDED = "Fatal Python error: Segmentation fault"
LOST = "ERROR: Lost atoms: original 4000 current 3999 (src/thermo.cpp:494)"
MADE = [f"compiled kernel {n}" for n in range(30)]


@pytest.mark.parametrize(
    ("launches", "state"),
    [
        ([[*RANK, *MADE, *RANK, ENDED, *MADE, *RANK]], "FAILED"),
        ([[*RANK, *MADE, *RANK, *MADE, *RANK], [ENDED], [*RANK, *RANK, *MADE, *RANK]], "UNKNOWN"),
        ([[*RANK, *MADE, *RANK, ENDED], [*RANK, *MADE, *RANK, *RANK]], "UNKNOWN"),
        ([[*RANK, *MADE, ENDED], [*RANK, *MADE, ENDED], [*RANK, *MADE]], "UNKNOWN"),
        ([[*RANK, *MADE, *RANK, *MADE, *RANK], [ENDED], [*RANK, *MADE, *RANK, LOST, *RANK]], "Lost atoms"),
    ],
    ids=["a rank that comes up late", "three ranks, started again", "more ranks than came up before",
         "one process, started twice again", "a rank that comes up late, started again"],
)  # fmt: skip
def test_ranks_of_one_launch_come_up_one_after_the_other(launches: list[list[str]], state: str, tmp_path: Path) -> None:
    lines = [line for launch in launches for line in (*launch, *MADE)]
    (tmp_path / "train.log").write_text("\n".join([*lines, ""]), encoding="utf-8")
    assert state in program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path).stdout.split("next")[0]
