"""What still ran while a job's output was written, and where a program was started into it once more."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import program
from tests.tables import examples, with_texts
from topodiag.app import diagnose
from topodiag.app.case.jobs import LogOptions
from topodiag.app.case.starts import Starts, ranks_behind
from topodiag.app.logs import logs
from topodiag.cli import cli
from topodiag.cli.errors import Outcome
from topodiag.evidence.intake.pieces import Intake, Piece, blocks_of
from topodiag.evidence.nccl_log.input.streams import Reading
from topodiag.evidence.signatures.literals import AHEAD, BLOCK, windows

STEP = "[2026-03-01 11:00:{:02d}] iteration {:8d}/  500000 | consumed samples: {:12d} | lm loss: 2.3E+00 |"
ENDED = "[rank0]: torch.OutOfMemoryError: CUDA out of memory."
SERVED = 'INFO:     10.0.0.1:1234 - "POST /v1/completions HTTP/1.1" {} OK'


def _progress(tmp_path: Path, lines: list[str]) -> list[dict[str, object]]:
    path = tmp_path / "job.out"
    path.write_text("\n".join([*lines, ENDED, ""]), encoding="utf-8")
    done = CliRunner().invoke(cli, ["diagnose", str(path), "--format", "json"], obj=Outcome())
    progress: list[dict[str, object]] = json.loads(done.stdout)["progress"]
    return progress


def test_steps_are_counted_with_their_first_and_last_line_and_the_longest_gap(tmp_path: Path) -> None:
    lines = [STEP.format(at, number, number * 256) for number, at in ((1, 1), (2, 4), (3, 30), (4, 33))]
    (steps,) = _progress(tmp_path, lines)
    assert (steps["kind"], steps["number"]) == ("progress.step", 4)
    assert (steps["first_line"], steps["last_line"], steps["longest_gap_s"]) == (1, 4, 26.0)


def test_a_text_of_which_nothing_else_is_known_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, opened = tmp_path / "out.log", list[str]()
    file.write_text("[1,     2] loss: 2.200\nTraceback (most recent call last):\nkilled\n", encoding="utf-8")

    def counted(intake: Intake, piece: Piece, reading: Reading) -> AbstractContextManager[Iterator[bytes]]:
        opened.append(piece.name)
        return blocks_of(intake, piece, reading)

    monkeypatch.setattr("topodiag.app.case.text_read.blocks_of", counted)
    diagnose.diagnose([str(file)])
    assert opened == [str(file)]


def test_requests_that_failed_are_no_progress(tmp_path: Path) -> None:
    lines = [STEP.format(1, 1, 1), STEP.format(2, 2, 2), STEP.format(3, 3, 3), SERVED.format(200), SERVED.format(503)]
    document = {str(record["kind"]): record["number"] for record in _progress(tmp_path, lines)}
    assert document == {"progress.step": 3, "progress.request": 1}


def test_each_rank_has_its_own_count(tmp_path: Path) -> None:
    line = "[rank{}]: {{'loss': 1.2, 'grad_norm': 0.3, 'learning_rate': 1e-05, 'epoch': 0.{}}}"
    ranks = [(0, 1), (0, 2), (1, 1), (0, 3)]
    records = _progress(
        tmp_path, [line.format(*rank) for rank in ranks] + [STEP.format(at, at, at) for at in (1, 2, 3)]
    )
    assert {record["rank"]: record["number"] for record in records} == {0: 3, 1: 1, None: 3}


def test_several_processes_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in range(3):
        lines = [*(STEP.format(at, at, at) for at in range(1, 5 + rank)), *TRACEBACK.splitlines(), ENDED]
        (tmp_path / f"rank{rank}.log").write_text("\n".join(lines), encoding="utf-8")
    found = []
    for size in (1 << 20, 0):
        monkeypatch.setattr("topodiag.fleet.read_ahead.MUCH_BYTES", size)
        (job,) = logs([str(tmp_path)], options=LogOptions(workers=2)).jobs
        found.append((job.progress, job.events, job.cut_logs))
    assert found[0] == found[1]
    assert [line.number for line in found[0][0]] == [4, 5, 6]


@examples("line", "says")
def test_a_training_without_a_line_of_nccl_is_unknown_and_no_error(line: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"{line.format(n=n)}\n" for n in range(1, 5)), encoding="utf-8")
    done = program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path)
    assert done.returncode == 0
    assert says in done.stdout
    assert done.stdout.startswith("? UNKNOWN")


@examples("text", "says")
def test_a_systems_log_without_a_line_of_interest_is_named_and_not_judged(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "messages").write_text(f"a line that rotation may have cut\n{text}", encoding="utf-8")
    done = program.run("diagnose", "messages", "--width", "200", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("? UNKNOWN")
    assert says in done.stdout


TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 9, in main\n    fetch(url)\n'


@examples("above", "error", "below", "says")
def test_a_process_that_ends_with_a_traceback_failed_and_one_that_goes_on_did_not(
    above: str, error: str, below: str, says: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "train.log").write_text(f"{above}\n{TRACEBACK}{error}\n{below}\n", encoding="utf-8")
    done = program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path)
    assert all(part in done.stdout for part in says)
    assert done.returncode == (says[0] == "FAILED")


LONG = {
    "STEPS": "step {}00 loss 2.31",
    "TOOK": "step {} took 1.0 s",
    "LATER": "step {} took 9.0 s",
    "STEPPED": "step {}0 | loss 0.{} | 200 tokens/s",
    "BARS": "{}%|## | {}0/200 [00:10<00:10,  1.00s/it]",
    "SHORT": "step {}0/2000 | loss 0.{}",
    "ROWS": "row {} of the table of graphs was read and written",
    "BATCHES": "generated a batch for the next index",
}
"""Lines that stand many times in a text."""


def text_of(lines: list[str]) -> str:
    """The text of a row: lines with `texts` in braces, or so many of a LONG one: `STEPS 9-18`."""
    whole = []
    for line in lines:
        name, _, count = line.partition(" ")
        first, _, last = count.rpartition("-")
        whole += (
            [LONG[name].format(n, n) for n in range(int(first or 0) + 1, int(last) + 1)] if name in LONG else [line]
        )
    return with_texts("\n".join([*whole, ""]), __file__)


@examples("lines", "says", "lacks")
def test_the_last_launch_of_a_log_says_how_the_job_is(
    lines: list[str], says: list[str] | None, lacks: list[str] | None, tmp_path: Path
) -> None:
    (tmp_path / "train.log").write_text(text_of(lines), encoding="utf-8")
    out = program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path).stdout
    assert [part for part in says or () if part not in out] == []
    assert [part for part in lacks or () if part in out] == []


def test_a_start_below_an_end_is_a_later_launch_in_logs_of_several_ranks(tmp_path: Path) -> None:
    start = "I0301 11:00:01.123456 4711 tcp_utils.cc:130] Successfully connected to 10.0.0.1:39256"
    end = ["Traceback (most recent call last):", '  File "train.py", line 3, in main', "KeyError: 'eval'"]
    for rank in range(2):
        text = "\n".join([start, *end, start, "the model is loaded", ""])
        (tmp_path / f"workerlog.{rank}").write_text(text, encoding="utf-8")
    done = program.run("diagnose", ".", "--width", "200", cwd=tmp_path)
    assert done.stdout.startswith("? UNKNOWN")
    assert "an earlier run failed" in done.stdout


# --- where the first lines of a text stand in it again: a program was started into it once more


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
