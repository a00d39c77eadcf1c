"""A line that is read by its form says what it says when it is read in full."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import texts
from topodiag.evidence.live import step_forms
from topodiag.evidence.live.step_forms import MOST_LEARNT, Forms
from topodiag.evidence.live.step_lines import read_line

TEXTS = texts(__file__)
LINES = tuple(TEXTS["lines"])
NUMBERS = st.tuples(
    st.integers(0, 59), st.integers(0, 10**9 - 1), st.integers(0, 10**7), st.floats(0, 1e6), st.floats(0, 20)
)


def _line(form: str, numbers: tuple[int, int, int, float, float]) -> str:
    a, n, k, x, y = numbers
    return form.format(a=a, n=n, k=k, x=x, y=y)


@given(st.lists(st.tuples(st.sampled_from(LINES), NUMBERS), min_size=2, max_size=40))
def test_a_form_says_what_the_whole_reader_says(lines: list[tuple[str, tuple[int, int, int, float, float]]]) -> None:
    forms = Forms()
    for line in (_line(*line) for line in lines):
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


@pytest.mark.parametrize("blanks", [2, 13, 24, 250, 3000])
def test_a_bar_with_many_blanks_is_read_at_once(blanks: int) -> None:
    forms = Forms()
    for step in range(1, 9):
        line = f"Loading: {step:2}%|{'#' * step}{' ' * blanks}| {step}/90 [00:0{step}<01:20,  1.0{step}it/s]"
        assert forms.read(line) == read_line(line)
