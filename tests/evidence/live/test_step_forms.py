"""A line that is read by its form says what it says when it is read in full."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.live import step_forms
from topodiag.evidence.live.step_forms import MOST_LEARNT, Forms
from topodiag.evidence.live.step_lines import read_line

LINES = (
    "[2026-03-01 11:00:{a:02d}] iteration {n:8d}/  500000 | elapsed time per iteration (ms): {x:.1f} | loss: {y:.6E} |",
    "step: {n}  loss:  {y:.4f}  memory: 26.1GiB(32.9%)  tps: {k:,}  mfu: {x:.2f}%",
    "iter {n}: loss {y:.4f}, time {x:.2f}ms, mfu 41.20%",
    "completed step: {n}, seconds: {y:.3f}, TFLOP/s/device: {x:.3f}, Tokens/s/device: {k}, loss: {y:.3f}",
    "Epoch: [0][{n:4d}/5005] Time {y:6.3f} ({y:6.3f}) Data {y:6.3f} ({y:6.3f}) Loss {x:.4e}",
    "{{'loss': {y:.4f}, 'learning_rate': 1e-05, 'epoch': {x:.2f}}}",
    "step {n} | global batch size: {k} | step time: {y:.4f} s | seqlen: 4096",
    "[rank{a}] step={n}, skipped=0, lr=[1e-05], samples/sec={x:.2f}",
    " {a}%|###   | {n}/1000 [00:10<00:10, {y:.2f}it/s]",
    "step {n} took {y:.2f} s, forward {x:.1f} ms, backward {x:.1f} ms",
    "no step here, only {k} words of a batch",
)
NUMBERS = st.tuples(
    st.integers(0, 59), st.integers(0, 10**9 - 1), st.integers(0, 10**7), st.floats(0, 1e6), st.floats(0, 20)
)


def _line(form: str, numbers: tuple[int, int, int, float, float]) -> str:
    a, n, k, x, y = numbers
    return form.format(a=a, n=n, k=k, x=x, y=y)


@given(st.lists(st.tuples(st.sampled_from(LINES), NUMBERS), min_size=2, max_size=40))
def test_a_form_says_what_the_whole_reader_says(lines: list[tuple[str, tuple[int, int, int, float, float]]]) -> None:
    forms = Forms()
    for line in (_line(*each) for each in lines):
        assert forms.read(line) == read_line(line)


@given(st.lists(st.text(alphabet="step iter 0123456789.,:=|/%()[]'ms\n", max_size=60), max_size=20))
def test_any_text_is_read_as_by_the_whole_reader(lines: list[str]) -> None:
    forms = Forms()
    for line in (*lines, *lines):
        assert forms.read(line) == read_line(line)


def test_lines_of_one_form_are_read_in_full_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    dice, read = random.Random(3), []
    monkeypatch.setattr(step_forms, "read_line", lambda line: read.append(line) or read_line(line))
    forms = Forms()
    for number in range(1000, 2000):
        forms.read(_line(LINES[0], (30, number, 1, 1000 + dice.random(), 2 + dice.random())))
    assert len(read) < 40


def test_a_text_of_ever_new_forms_is_read_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt = []
    whole = step_forms._learnt
    monkeypatch.setattr(step_forms, "_learnt", lambda line: learnt.append(line) or whole(line))
    forms = Forms()
    for number in range(2 * MOST_LEARNT):
        forms.read("step " + "x" * number + " 5 loss: 3.5")
    assert len(learnt) == MOST_LEARNT
